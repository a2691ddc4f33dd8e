/* SPDX-License-Identifier: BSD-3-Clause */
/* nvml.c - fills the table from libnvidia-ml.so.1, which comes with the driver and stays loaded. */
#include "topology/nvml.h"

#include "base/fail.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stddef.h>
#include <string.h>

#define LIBRARY "libnvidia-ml.so.1"

static struct nvml loaded;
static rondo_result outcome;
static char sentence[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct wanted {
    const char *name;
    size_t at; /* in the table */
};

#define TEXT(name)              #name
#define WANTED(name, arguments) {TEXT(name), offsetof(struct nvml, name)},

static const struct wanted needed[] = {NVML_FUNCTIONS(WANTED)};
static const struct wanted later[] = {NVML_LATER_FUNCTIONS(WANTED) WANTED(nvmlErrorString, )};

static void refuse(const char *format, const char *what)
{
    outcome = rondo_fail(RONDO_ERROR_UNSUPPORTED, format, what);
    snprintf(sentence, sizeof(sentence), "%s", fail_sentence());
}

/* The first name that the library does not have, NULL: it has all. */
static const char *find(void *library, const struct wanted *wanted, size_t count)
{
    const char *missing = NULL;

    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(library, wanted[i].name);

        if (!function && !missing)
            missing = wanted[i].name;
        /* A function pointer from a data pointer: what POSIX asks of dlsym(), not of C. */
        memcpy((char *)&loaded + wanted[i].at, &function, sizeof(function));
    }
    return missing;
}

static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    const char *missing;
    int code;

    if (!library) {
        refuse("%s was not found", LIBRARY);
        return;
    }
    find(library, later, sizeof(later) / sizeof(later[0]));
    missing = find(library, needed, sizeof(needed) / sizeof(needed[0]));
    if (missing) {
        refuse(LIBRARY " is too old: it has no %s", missing);
        return;
    }
    code = loaded.nvmlInit_v2();
    if (code)
        refuse(LIBRARY " does not start: %s",
               loaded.nvmlErrorString ? loaded.nvmlErrorString(code) : "no reason given");
}

rondo_result nvml_load(const struct nvml **ret_nvml)
{
    pthread_once(&once, load);
    if (outcome)
        return rondo_fail(outcome, "%s", sentence);
    *ret_nvml = &loaded;
    return RONDO_OK;
}
