/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c - the little that has to be asked of the CUDA driver itself. It is not linked: where
 * Rondo found devices the driver is in this process already, and is looked up there.
 */
#include "compat/compat.h"

#include <dlfcn.h>

/* Numbers of the driver's interface. */
enum { CUDA_OK = 0, CUDA_NOT_CAPTURING = 0 };
typedef unsigned long long device_pointer;

static struct driver {
    bool here;
    int (*current_device)(int *device);
    int (*device_count)(int *count);
    int (*is_capturing)(cudaStream_t stream, int *capturing);
    int (*read)(void *to, device_pointer from, size_t bytes, cudaStream_t stream);
    int (*synchronize)(cudaStream_t stream);
} driver;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The way from an object pointer to a function's that C17 allows. */
static bool find(void *library, const char *name, void *function)
{
    *(void **)function = dlsym(library, name);
    return *(void **)function != NULL;
}

static void load(void)
{
    void *library = NULL;

    if (!rondo_cuda_check())
        library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    driver.here = library && find(library, "cuCtxGetDevice", &driver.current_device) &&
                  find(library, "cuDeviceGetCount", &driver.device_count) &&
                  find(library, "cuStreamIsCapturing", &driver.is_capturing) &&
                  find(library, "cuMemcpyDtoHAsync_v2", &driver.read) &&
                  find(library, "cuStreamSynchronize", &driver.synchronize);
}

static bool is_here(void)
{
    pthread_once(&once, load);
    return driver.here;
}

/* A thread that has no context yet gets one of device 0 from the CUDA runtime. */
int compat_device_current(void)
{
    int device;

    if (!is_here())
        return -1;
    return driver.current_device(&device) == CUDA_OK ? device : 0;
}

int compat_device_count(void)
{
    int count;

    return is_here() && driver.device_count(&count) == CUDA_OK ? count : 0;
}

/*
 * Refuses a client that works on a GPU where Rondo cannot: its pointers may be the device's, which
 * Rondo would take for the host's. The driver is looked up each time, as the client may load it
 * after its first communicator.
 */
ncclResult_t compat_device_check(void)
{
    const rondo_result result = rondo_cuda_check();
    int (*current_device)(int *device);
    bool on_device;
    void *library;
    int device;

    library = result ? dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!library)
        return ncclSuccess;
    on_device =
        find(library, "cuCtxGetDevice", &current_device) && current_device(&device) == CUDA_OK;
    dlclose(library);
    return on_device ? compat_result(NULL, result) : ncclSuccess;
}

ncclResult_t compat_device_read(ncclComm_t comm, void *to, const void *from, size_t bytes,
                                cudaStream_t stream)
{
    int capturing = CUDA_NOT_CAPTURING;
    int error;

    if (!is_here())
        return compat_fail(comm, ncclInternalError, "There is no CUDA driver to read memory with.");
    error = driver.is_capturing(stream, &capturing);
    if (error == CUDA_OK && capturing != CUDA_NOT_CAPTURING)
        return compat_fail(comm, ncclInvalidUsage,
                           "An operation whose scalar is on the device can't be captured in a "
                           "graph; make it with ncclScalarHostImmediate.");
    if (error == CUDA_OK)
        error = driver.read(to, (device_pointer)(uintptr_t)from, bytes, stream);
    if (error == CUDA_OK)
        error = driver.synchronize(stream);
    if (error != CUDA_OK)
        return compat_fail(comm, ncclUnhandledCudaError,
                           "The scalar of an operation can't be read from the device (CUDA error "
                           "%d).",
                           error);
    return ncclSuccess;
}
