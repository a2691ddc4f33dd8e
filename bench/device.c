/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c - a table of the driver's functions, filled from libcuda.so.1, and what stands on it.
 *
 * The functions are declared here, by the names that programs for CUDA 12 link with, so that no
 * toolkit has to be there when Rondo is built. Addresses of a device are numbers, handles pointers.
 */
#include "bench/device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENTENCE = 256, SPARE_BYTES = 256, STREAM_NON_BLOCKING = 1, CAPTURE_THREAD_LOCAL = 1 };

/* clang-format off */
/* The name, what its newest version adds to it, and the parameters. */
#define FUNCTIONS(use) \
    use(cuInit,, (unsigned)) \
    use(cuGetErrorName,, (int, const char **)) \
    use(cuGetErrorString,, (int, const char **)) \
    use(cuDeviceGetCount,, (int *)) \
    use(cuDeviceGet,, (int *, int)) \
    use(cuDeviceTotalMem, _v2, (size_t *, int)) \
    use(cuDevicePrimaryCtxRetain,, (void **, int)) \
    use(cuDevicePrimaryCtxRelease, _v2, (int)) \
    use(cuCtxSetCurrent,, (void *)) \
    use(cuMemAlloc, _v2, (uint64_t *, size_t)) \
    use(cuMemFree, _v2, (uint64_t)) \
    use(cuMemcpyAsync,, (uint64_t, uint64_t, size_t, void *)) \
    use(cuMemcpyDtoDAsync, _v2, (uint64_t, uint64_t, size_t, void *)) \
    use(cuMemsetD8Async,, (uint64_t, unsigned char, size_t, void *)) \
    use(cuMemsetD32Async,, (uint64_t, unsigned, size_t, void *)) \
    use(cuStreamCreate,, (void **, unsigned)) \
    use(cuStreamDestroy, _v2, (void *)) \
    use(cuStreamSynchronize,, (void *)) \
    use(cuStreamBeginCapture, _v2, (void *, int)) \
    use(cuStreamEndCapture,, (void *, void **)) \
    use(cuGraphInstantiate, WithFlags, (void **, void *, unsigned long long)) \
    use(cuGraphLaunch,, (void *, void *)) \
    use(cuGraphDestroy,, (void *)) \
    use(cuGraphExecDestroy,, (void *)) \
    use(cuModuleLoadData,, (void **, const void *)) \
    use(cuModuleUnload,, (void *)) \
    use(cuModuleGetFunction,, (void **, void *, const char *)) \
    use(cuLaunchKernel,, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                          unsigned, void *, void **, void **))
/* clang-format on */

static struct {
#define FIELD(name, version, parameters) int(*name) parameters;
    FUNCTIONS(FIELD)
#undef FIELD
} cuda;

#define PLACE(name, version, parameters) {#name #version, &cuda.name},
/* Calls a function; 0, or -1 and the device's sentence. */
#define CALL(device, name, ...) settle(device, cuda.name(__VA_ARGS__), #name)

/*
 * The sentence about what could not be loaded, once for all ranks of the process; "": all is there.
 */
static char missing[SENTENCE];
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct device {
    int handle, number, count;
    void *context, *stream, *module;
    void *empty;    /* a kernel; NULL: the driver took no PTX */
    uint64_t spare; /* for device_queue_nothing() then */
    void *graph;    /* that can be launched; NULL: none */
    size_t bytes;
    char error[SENTENCE];
};

static void load(void)
{
    static const struct {
        const char *name;
        void *place;
    } wanted[] = {FUNCTIONS(PLACE)};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const char *name = "unknown error";
    int code;

    if (!library) {
        snprintf(missing, sizeof(missing),
                 "GPU memory needs NVIDIA's driver, and libcuda.so.1 was not found");
        return;
    }
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *function = dlsym(library, wanted[i].name);

        if (!function) {
            snprintf(missing, sizeof(missing),
                     "NVIDIA's driver is too old: it has no %s; CUDA 12 or later is needed",
                     wanted[i].name);
            return;
        }
        memcpy(wanted[i].place, &function, sizeof(function));
    }
    code = cuda.cuInit(0);
    if (code)
        cuda.cuGetErrorName(code, &name);
    if (code)
        snprintf(missing, sizeof(missing),
                 "NVIDIA's driver is installed but does not start (%s): is there a GPU in this "
                 "machine, and may this user open /dev/nvidia*?",
                 name);
}

static int settle(struct device *device, int code, const char *call)
{
    const char *name = NULL;
    const char *text = NULL;

    if (!code)
        return 0;
    cuda.cuGetErrorName(code, &name);
    cuda.cuGetErrorString(code, &text);
    snprintf(device->error, sizeof(device->error), "%s failed: %s (%s)", call,
             text ? text : "unknown error", name ? name : "no name");
    return -1;
}

static uint64_t address(const void *memory)
{
    return (uintptr_t)memory;
}

/* For the time that a launch takes. */
static void load_empty(struct device *device)
{
    static const char text[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                               ".visible .entry empty()\n{\nret;\n}\n";

    if (cuda.cuModuleLoadData(&device->module, text))
        device->module = NULL;
    else if (cuda.cuModuleGetFunction(&device->empty, device->module, "empty"))
        device->empty = NULL;
}

static int find(struct device *device, int local_rank)
{
    if (CALL(device, cuDeviceGetCount, &device->count))
        return -1;
    if (!device->count) {
        snprintf(device->error, sizeof(device->error), "NVIDIA's driver finds no GPU here");
        return -1;
    }
    device->number = local_rank % device->count;
    return CALL(device, cuDeviceGet, &device->handle, device->number);
}

static int enter(struct device *device)
{
    void *context = NULL;

    if (CALL(device, cuDevicePrimaryCtxRetain, &context, device->handle))
        return -1;
    device->context = context;
    if (CALL(device, cuCtxSetCurrent, context) ||
        CALL(device, cuDeviceTotalMem, &device->bytes, device->handle) ||
        CALL(device, cuStreamCreate, &device->stream, STREAM_NON_BLOCKING) ||
        CALL(device, cuMemAlloc, &device->spare, SPARE_BYTES))
        return -1;
    load_empty(device);
    return 0;
}

struct device *device_open(int local_rank, char *sentence, size_t room)
{
    struct device *device = calloc(1, sizeof(*device));

    pthread_once(&once, load);
    if (*missing || !device) {
        snprintf(sentence, room, "%s", *missing ? missing : "out of memory");
        free(device);
        return NULL;
    }
    if (!find(device, local_rank) && !enter(device))
        return device;
    snprintf(sentence, room, "%s", device->error);
    device_close(device);
    return NULL;
}

void device_close(struct device *device)
{
    if (!device)
        return;
    if (device->graph)
        cuda.cuGraphExecDestroy(device->graph);
    if (device->module)
        cuda.cuModuleUnload(device->module);
    if (device->spare)
        cuda.cuMemFree(device->spare);
    if (device->stream)
        cuda.cuStreamDestroy(device->stream);
    if (device->context)
        cuda.cuDevicePrimaryCtxRelease(device->handle);
    free(device);
}

int device_number(const struct device *device)
{
    return device->number;
}

int device_count(const struct device *device)
{
    return device->count;
}

size_t device_bytes(const struct device *device)
{
    return device->bytes;
}

const char *device_error(const struct device *device)
{
    return device->error;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

void *device_alloc(struct device *device, size_t bytes)
{
    uint64_t memory = 0;

    if (CALL(device, cuMemAlloc, &memory, bytes))
        return NULL;
    return (void *)(uintptr_t)memory;
}

void device_free(struct device *device, void *memory)
{
    CALL(device, cuMemFree, address(memory));
}

/* On the stream: to wait for the whole device would be to wait for ranks that share it. */
int device_clear(struct device *device, void *memory, size_t bytes)
{
    if (CALL(device, cuMemsetD8Async, address(memory), 0, bytes, device->stream))
        return -1;
    return device_wait(device);
}

int device_copy(struct device *device, void *to, const void *from, size_t bytes)
{
    if (CALL(device, cuMemcpyAsync, address(to), address(from), bytes, device->stream))
        return -1;
    return device_wait(device);
}

/* ---- The stream ------------------------------------------------------------------------------ */

void *device_stream(const struct device *device)
{
    return device->stream;
}

int device_wait(struct device *device)
{
    return CALL(device, cuStreamSynchronize, device->stream);
}

int device_queue_copy(struct device *device, void *to, const void *from, size_t bytes)
{
    return CALL(device, cuMemcpyDtoDAsync, address(to), address(from), bytes, device->stream);
}

int device_queue_nothing(struct device *device)
{
    if (!device->empty)
        return CALL(device, cuMemsetD32Async, device->spare, 0, 1, device->stream);
    return CALL(device, cuLaunchKernel, device->empty, 1, 1, 1, 1, 1, 1, 0, device->stream, NULL,
                NULL);
}

int device_record_begin(struct device *device)
{
    if (device->graph)
        cuda.cuGraphExecDestroy(device->graph);
    device->graph = NULL;
    return CALL(device, cuStreamBeginCapture, device->stream, CAPTURE_THREAD_LOCAL);
}

int device_record_end(struct device *device)
{
    void *graph = NULL;
    int failed = CALL(device, cuStreamEndCapture, device->stream, &graph);

    if (!failed)
        failed = CALL(device, cuGraphInstantiate, &device->graph, graph, 0);
    if (graph)
        cuda.cuGraphDestroy(graph);
    return failed;
}

int device_replay(struct device *device)
{
    return CALL(device, cuGraphLaunch, device->graph, device->stream);
}
