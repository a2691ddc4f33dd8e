/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct device_driver driver;
static int devices;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define TEXT(name) #name

static void load(void)
{
    static const struct {
        const char *name;
        size_t at;
    } wanted[] = {
#define WANTED(name) {TEXT(name), offsetof(struct device_driver, name)},
        DEVICE_FUNCTIONS(WANTED)
#undef WANTED
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; library && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *function = dlsym(library, wanted[i].name);

        if (!function)
            return;
        memcpy((char *)&driver + wanted[i].at, &function, sizeof(function));
    }
    if (library && !driver.cuInit(0) && driver.cuDeviceGetCount(&devices))
        devices = 0;
}

const struct device_driver *device_driver(void)
{
    pthread_once(&once, load);
    return devices ? &driver : NULL;
}

int device_count(void)
{
    return device_driver() ? devices : 0;
}

static int ask_apart(int (*question)(void))
{
    int status = 0;
    pid_t child = fork();

    if (!child)
        _exit(question());
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : 0;
}

int device_count_apart(void)
{
    return ask_apart(device_count);
}

static void *find_in_standin(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    return library ? dlsym(library, name) : NULL;
}

void (*device_standin_stop(void))(void)
{
    void *found = find_in_standin("cuStandinStop");
    void (*stop)(void) = NULL;

    memcpy(&stop, &found, sizeof(stop));
    return stop;
}

static int is_standin(void)
{
    return device_standin_stop() != NULL;
}

bool device_can_be_told_to_fail(void)
{
    return ask_apart(is_standin);
}

long device_kernels(const char *name)
{
    void *found = find_in_standin("cuStandinKernels");
    unsigned long (*count)(const char *) = NULL;

    memcpy(&count, &found, sizeof(count));
    return count ? (long)count(name) : -1;
}

long device_copies(void)
{
    void *found = find_in_standin("cuStandinCopies");
    unsigned long (*count)(void) = NULL;

    memcpy(&count, &found, sizeof(count));
    return count ? (long)count() : -1;
}

bool device_hold(CUstream stream, uint32_t *flag)
{
    CUdeviceptr address;

    __atomic_store_n(flag, 0, __ATOMIC_RELEASE);
    return !device_driver()->cuMemHostGetDevicePointer(&address, flag, 0) &&
           !device_driver()->cuStreamWaitValue32(stream, address, 1, CU_STREAM_WAIT_VALUE_EQ);
}

bool device_use(int number)
{
    CUdevice device;
    CUcontext context;

    return device_driver() && !driver.cuDeviceGet(&device, number) &&
           !driver.cuDevicePrimaryCtxRetain(&context, device) && !driver.cuCtxSetCurrent(context);
}

void *device_alloc(enum device_memory kind, size_t bytes)
{
    CUdeviceptr memory = 0;
    void *host = NULL;

    switch (kind) {
    case MEMORY_DEVICE:
        return driver.cuMemAlloc(&memory, bytes) ? NULL : (void *)(uintptr_t)memory;
    case MEMORY_MANAGED:
        return driver.cuMemAllocManaged(&memory, bytes, CU_MEM_ATTACH_GLOBAL)
                   ? NULL
                   : (void *)(uintptr_t)memory;
    case MEMORY_PINNED:
        return driver.cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE) ? NULL : host;
    case MEMORY_PIECES:
    case MEMORY_CLOSED:
        return pieces_alloc(bytes, kind == MEMORY_PIECES);
    default:
        return malloc(bytes);
    }
}

void device_free(enum device_memory kind, void *memory)
{
    if (!memory)
        return;
    if (kind == MEMORY_PINNED)
        driver.cuMemFreeHost(memory);
    else if (kind == MEMORY_PLAIN)
        free(memory);
    else if (kind == MEMORY_PIECES || kind == MEMORY_CLOSED)
        pieces_free(memory);
    else
        driver.cuMemFree((CUdeviceptr)(uintptr_t)memory);
}

bool device_copy(void *to, const void *from, size_t bytes)
{
    return !bytes ||
           (!driver.cuMemcpy((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes) &&
            !driver.cuStreamSynchronize(NULL));
}
