/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * whose.c - for which device a call is, if its communicator was opened without one.
 *
 * Streams and memory know their device, but the driver tells only threads that have a context. One
 * that has none borrows those that the process has in use; none is made for the question.
 */
#include "comm/gpu/inside.h"

/* The device that the stream is on; -1: the driver does not say. A context is current. */
static int device_of_stream(const struct cuda_driver *cuda, CUstream stream)
{
    CUcontext context = NULL;
    int number;

    if (cuda_is_everywhere(stream) || cuda->cuStreamGetCtx(stream, &context) ||
        cuda->cuCtxPushCurrent(context))
        return -1;
    number = cuda_current_number();
    cuda->cuCtxPopCurrent(&context);
    return number;
}

/* The device that the memory is on; -1: none, or the driver does not say. A context is current. */
static int device_of_memory(const struct cuda_driver *cuda, const void *memory)
{
    enum cuda_memory kind = cuda_memory_kind(cuda, memory);
    int number = -1;

    if ((kind != CUDA_MEMORY_DEVICE && kind != CUDA_MEMORY_MANAGED) ||
        cuda->cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                    cuda_address(memory)))
        return -1;
    return number;
}

static int device_of_batch(const struct cuda_driver *cuda, const struct batch *batch)
{
    int number = -1;

    for (int i = 0; i < batch->count && number < 0; i++) {
        number = device_of_memory(cuda, batch->tasks[i].input);
        if (number < 0)
            number = device_of_memory(cuda, batch->tasks[i].output);
    }
    return number;
}

/* With that device's context, if the process has it in use. */
static int ask_from(int from, const struct batch *batch, CUstream stream)
{
    struct cuda_device device;
    int number = -1;

    if (cuda_device_open(from, &device))
        return -1;
    if (!cuda_enter(&device)) {
        number = device_of_stream(device.driver, stream);
        if (number < 0)
            number = device_of_batch(device.driver, batch);
        cuda_leave(&device);
    }
    cuda_device_close(&device);
    return number;
}

static bool is_in_use(const struct cuda_driver *cuda, int number)
{
    CUdevice device;
    unsigned flags = 0;
    int active = 0;

    return !cuda->cuDeviceGet(&device, number) &&
           !cuda->cuDevicePrimaryCtxGetState(device, &flags, &active) && active;
}

int gpu_whose(const struct cuda_driver *cuda, const struct batch *batch, CUstream stream)
{
    int current = cuda_current_number(), number = -1, first = -1, count = 0;

    if (current >= 0) {
        number = device_of_stream(cuda, stream);
        return number < 0 ? current : number;
    }
    if (cuda->cuDeviceGetCount(&count))
        return 0;
    for (int i = 0; i < count && number < 0; i++) {
        if (!is_in_use(cuda, i))
            continue;
        first = first < 0 ? i : first;
        number = ask_from(i, batch, stream);
    }
    return number >= 0 ? number : first >= 0 ? first : 0;
}
