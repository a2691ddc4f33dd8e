/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * procedure.c - functions of the driver by their names, without the versions.
 *
 * Each function is here in one version only, that of cuda.h.
 */
#include "standin/driver/base/call.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *find(void *self, const char *symbol)
{
    static const char *const versions[] = {"", "_v2", "_v3", "_v4", "WithFlags"};
    char name[256];
    void *found = NULL;
    for (size_t i = 0; !found && i < sizeof versions / sizeof *versions; i++) {
        snprintf(name, sizeof name, "%s%s", symbol, versions[i]);
        found = dlsym(self, name);
    }
    return found;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status)
{
    if (!symbol || !function)
        return CUDA_ERROR_INVALID_VALUE;
    Dl_info info;
    /* This library itself, which may not be in the global scope. */
    void *self = dladdr(__extension__(void *) cuGetProcAddress, &info)
                     ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD)
                     : NULL;
    bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    *function = self && !per_thread && strncmp(symbol, "cu", 2) == 0 ? find(self, symbol) : NULL;
    if (self)
        dlclose(self);
    if (status)
        *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
