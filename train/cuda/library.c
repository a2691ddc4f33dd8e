/* SPDX-License-Identifier: BSD-3-Clause */
/* library.c - see library.h. What was loaded stays loaded. */
#include "train/cuda/library.h"

#include "train/common/say.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

struct driver_functions driver;
struct cublas_functions cublas;

struct wanted {
    const char *name;
    void *place;
};

#define TEXT(name)          #name
#define DRIVER_WANTED(name) {TEXT(name), &driver.name},
#define CUBLAS_WANTED(name) {TEXT(name), &cublas.name},

static const struct wanted driver_wanted[] = {DRIVER_FUNCTIONS(DRIVER_WANTED){NULL, NULL}};
static const struct wanted cublas_wanted[] = {CUBLAS_FUNCTIONS(CUBLAS_WANTED){NULL, NULL}};

static rondo_result find(void *library, const char *whose, const struct wanted *wanted)
{
    for (; wanted->name; wanted++) {
        void *function = dlsym(library, wanted->name);

        if (!function)
            return say(RONDO_ERROR_UNSUPPORTED,
                       "%s is too old: it has no %s; CUDA 12 or later is needed", whose,
                       wanted->name);
        /* A function pointer from a data pointer: what POSIX asks of dlsym(), not of C. */
        memcpy(wanted->place, &function, sizeof(function));
    }
    return RONDO_OK;
}

rondo_result library_load_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return say(RONDO_ERROR_UNSUPPORTED,
                   "--memory cuda needs NVIDIA's driver, and libcuda.so.1 was not found: install "
                   "it, or leave out --memory cuda");
    return find(library, "NVIDIA's driver", driver_wanted);
}

rondo_result library_load_cublas(void)
{
    void *library = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        library = dlopen("libcublas.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return say(RONDO_ERROR_UNSUPPORTED,
                   "--memory cuda needs cuBLAS for products of matrices, and neither "
                   "libcublas.so.13 nor libcublas.so.12 was found: install it, or name its folder "
                   "in LD_LIBRARY_PATH");
    return find(library, "cuBLAS", cublas_wanted);
}
