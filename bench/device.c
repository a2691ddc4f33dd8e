/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - a table of the driver's functions, filled from libcuda.so.1, and what stands on it. */
#include "bench/device.h"

#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENTENCE = 256, SPARE_BYTES = 256 };

/* clang-format off */
#define FUNCTIONS(use) \
    use(cuInit) use(cuGetErrorName) use(cuGetErrorString) use(cuDeviceGetCount) use(cuDeviceGet) \
    use(cuDeviceTotalMem) use(cuDevicePrimaryCtxRetain) \
    use(cuDevicePrimaryCtxRelease) use(cuCtxSetCurrent) use(cuMemAlloc) use(cuMemFree) \
    use(cuMemcpyAsync) use(cuMemcpyDtoDAsync) use(cuMemsetD8Async) \
    use(cuMemsetD32Async) use(cuStreamCreate) use(cuStreamDestroy) use(cuStreamSynchronize) \
    use(cuStreamBeginCapture) use(cuStreamEndCapture) \
    use(cuGraphInstantiate) use(cuGraphLaunch) use(cuGraphDestroy) use(cuGraphExecDestroy) \
    use(cuModuleLoadData) use(cuModuleUnload) use(cuModuleGetFunction) use(cuLaunchKernel)
/* clang-format on */

static struct {
#define FIELD(name) __typeof__(&(name)) name;
    FUNCTIONS(FIELD)
#undef FIELD
} cuda;

#define TEXT(name)  #name
#define PLACE(name) {TEXT(name), &cuda.name},

/* What was loaded, once for all ranks of the process; "": all is there. */
static char missing[SENTENCE];
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct device {
    CUdevice handle;
    int number, count;
    CUcontext context;
    CUstream stream;
    CUmodule module;
    CUfunction empty;  /* NULL: the driver took no PTX */
    CUdeviceptr spare; /* for device_queue_nothing() then */
    CUgraphExec graph; /* NULL: none */
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
    CUresult code;

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

static int settle(struct device *device, CUresult code, const char *call)
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

static CUdeviceptr address(const void *memory)
{
    return (CUdeviceptr)(uintptr_t)memory;
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
    if (settle(device, cuda.cuDeviceGetCount(&device->count), "cuDeviceGetCount"))
        return -1;
    if (!device->count) {
        snprintf(device->error, sizeof(device->error), "NVIDIA's driver finds no GPU here");
        return -1;
    }
    device->number = local_rank % device->count;
    return settle(device, cuda.cuDeviceGet(&device->handle, device->number), "cuDeviceGet");
}

static int enter(struct device *device)
{
    CUcontext context = NULL;

    if (settle(device, cuda.cuDevicePrimaryCtxRetain(&context, device->handle),
               "cuDevicePrimaryCtxRetain"))
        return -1;
    device->context = context;
    if (settle(device, cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent") ||
        settle(device, cuda.cuDeviceTotalMem(&device->bytes, device->handle), "cuDeviceTotalMem") ||
        settle(device, cuda.cuStreamCreate(&device->stream, CU_STREAM_NON_BLOCKING),
               "cuStreamCreate") ||
        settle(device, cuda.cuMemAlloc(&device->spare, SPARE_BYTES), "cuMemAlloc"))
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
    CUdeviceptr memory = 0;

    if (settle(device, cuda.cuMemAlloc(&memory, bytes), "cuMemAlloc"))
        return NULL;
    return (void *)(uintptr_t)memory;
}

void device_free(struct device *device, void *memory)
{
    settle(device, cuda.cuMemFree(address(memory)), "cuMemFree");
}

/* On the stream: to wait for the whole device would be to wait for ranks that share it. */
int device_clear(struct device *device, void *memory, size_t bytes)
{
    if (settle(device, cuda.cuMemsetD8Async(address(memory), 0, bytes, device->stream),
               "cuMemsetD8Async"))
        return -1;
    return device_wait(device);
}

int device_copy(struct device *device, void *to, const void *from, size_t bytes)
{
    if (settle(device, cuda.cuMemcpyAsync(address(to), address(from), bytes, device->stream),
               "cuMemcpyAsync"))
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
    return settle(device, cuda.cuStreamSynchronize(device->stream), "cuStreamSynchronize");
}

int device_queue_copy(struct device *device, void *to, const void *from, size_t bytes)
{
    return settle(device, cuda.cuMemcpyDtoDAsync(address(to), address(from), bytes, device->stream),
                  "cuMemcpyDtoDAsync");
}

int device_queue_nothing(struct device *device)
{
    if (!device->empty)
        return settle(device, cuda.cuMemsetD32Async(device->spare, 0, 1, device->stream),
                      "cuMemsetD32Async");
    return settle(
        device, cuda.cuLaunchKernel(device->empty, 1, 1, 1, 1, 1, 1, 0, device->stream, NULL, NULL),
        "cuLaunchKernel");
}

int device_record_begin(struct device *device)
{
    if (device->graph)
        cuda.cuGraphExecDestroy(device->graph);
    device->graph = NULL;
    return settle(device,
                  cuda.cuStreamBeginCapture(device->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                  "cuStreamBeginCapture");
}

int device_record_end(struct device *device)
{
    CUgraph graph = NULL;
    int failed =
        settle(device, cuda.cuStreamEndCapture(device->stream, &graph), "cuStreamEndCapture");

    if (!failed)
        failed =
            settle(device, cuda.cuGraphInstantiate(&device->graph, graph, 0), "cuGraphInstantiate");
    if (graph)
        cuda.cuGraphDestroy(graph);
    return failed;
}

int device_replay(struct device *device)
{
    return settle(device, cuda.cuGraphLaunch(device->graph, device->stream), "cuGraphLaunch");
}
