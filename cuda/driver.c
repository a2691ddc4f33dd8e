/* SPDX-License-Identifier: BSD-3-Clause */
/* driver.c - fills the table from libcuda.so.1, which stays loaded. */
#include "cuda/driver.h"

#include "base/fail.h"
#include "base/fork.h"
#include "base/log.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define LIBRARY "libcuda.so.1"

static struct cuda_driver loaded;
static rondo_result outcome;
static char sentence[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct wanted {
    const char *name;
    size_t at; /* in the table */
    bool later;
};

#define TEXT(name)   #name
#define WANTED(name) {TEXT(name), offsetof(struct cuda_driver, name), false},
#define LATER(name)  {TEXT(name), offsetof(struct cuda_driver, name), true},

static const struct wanted wanted[] = {CUDA_FUNCTIONS(WANTED) CUDA_LATER_FUNCTIONS(LATER)};

static void refuse(const char *format, const char *what)
{
    outcome = rondo_fail(RONDO_ERROR_UNSUPPORTED, format, what);
    strncpy(sentence, fail_sentence(), sizeof(sentence) - 1);
}

static bool find_functions(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        refuse("GPU memory needs NVIDIA's driver, and %s was not found.", LIBRARY);
        return false;
    }
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *function = dlsym(library, wanted[i].name);

        if (!function && !wanted[i].later) {
            refuse("NVIDIA's driver is too old: it has no %s; CUDA 12 or later is needed.",
                   wanted[i].name);
            return false;
        }
        /* A function pointer from a data pointer: what POSIX asks of dlsym(), not of C. */
        memcpy((char *)&loaded + wanted[i].at, &function, sizeof(function));
    }
    return true;
}

static void load(void)
{
    CUresult code;
    int devices = 0;
    int version = 0;

    if (!find_functions())
        return;
    code = loaded.cuInit(0);
    if (!code)
        code = loaded.cuDeviceGetCount(&devices);
    if (code) {
        const char *name = NULL;

        loaded.cuGetErrorName(code, &name);
        refuse("NVIDIA's driver is installed but does not start (%s): is there a GPU in this "
               "machine, and may this user open /dev/nvidia*?",
               name ? name : "unknown error");
    } else if (!devices) {
        refuse("NVIDIA's driver finds no GPU in this machine%s.", "");
    } else {
        loaded.cuDriverGetVersion(&version);
        log_info("CUDA: driver for version %d.%d, %d devices", version / 1000, version % 1000 / 10,
                 devices);
    }
}

rondo_result cuda_load(const struct cuda_driver **ret_driver)
{
    pthread_once(&once, load);
    if (outcome)
        return rondo_fail(outcome, "%s", sentence);
    *ret_driver = &loaded;
    return RONDO_OK;
}

const struct cuda_driver *cuda_loaded(void)
{
    const struct cuda_driver *driver = NULL;
    void *library;

    fork_prevent();
    library = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD | RTLD_LOCAL);
    if (library)
        dlclose(library);
    fork_allow();
    return !library || cuda_load(&driver) ? NULL : driver;
}

rondo_result cuda_result(CUresult code, const char *call)
{
    const char *name = NULL;
    const char *text = NULL;

    if (!code)
        return RONDO_OK;
    if (loaded.cuGetErrorName) {
        loaded.cuGetErrorName(code, &name);
        loaded.cuGetErrorString(code, &text);
    }
    return rondo_fail(code == CUDA_ERROR_OUT_OF_MEMORY ? RONDO_ERROR_MEMORY : RONDO_ERROR_SYSTEM,
                      "CUDA: %s failed: %s (%s).", call, text ? text : "unknown error",
                      name ? name : "no name");
}
