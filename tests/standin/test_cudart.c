/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cudart.c - the runtime's stand-in, as a program uses it that knows nothing of the driver.
 */
#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <pthread.h>

enum { COUNT = 1000 };

Test(cudart, device_needs_no_preparation)
{
    int count = 0, device = 9;
    struct cudaDeviceProp properties;
    cr_assert_eq(cudaGetDeviceCount(&count), cudaSuccess);
    cr_assert_eq(count, 2);
    cr_assert_eq(cudaGetDevice(&device), cudaSuccess);
    cr_assert_eq(device, 0);
    cr_assert_eq(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
    cr_assert_eq(properties.major, 9);
    cr_assert_eq(properties.totalGlobalMem, 4UL << 30);
    cr_assert_eq(cudaSetDevice(2), cudaErrorInvalidDevice);
    cr_assert_eq(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    cr_assert_eq(cudaGetLastError(), cudaErrorInvalidDevice);
    cr_assert_eq(cudaGetLastError(), cudaSuccess);
    cr_assert_str_eq(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue");
    cr_assert_str_eq(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
}

Test(cudart, memory_goes_there_and_back)
{
    int numbers[COUNT], back[COUNT] = {0}, *memory = NULL, *second = NULL;
    cudaStream_t stream = NULL;
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i;
    cr_assert_eq(cudaStreamCreate(&stream), cudaSuccess);
    cr_assert_eq(cudaMalloc((void **)&memory, sizeof numbers), cudaSuccess);
    cr_assert_eq(cudaMalloc((void **)&second, sizeof numbers), cudaSuccess);
    cr_assert_eq(cudaMemcpy(memory, numbers, sizeof numbers, cudaMemcpyHostToDevice), cudaSuccess);
    cr_assert_eq(cudaMemcpyAsync(second, memory, sizeof numbers, cudaMemcpyDeviceToDevice, stream),
                 cudaSuccess);
    cr_assert_eq(cudaMemcpyAsync(back, second, sizeof back, cudaMemcpyDefault, stream),
                 cudaSuccess);
    cr_assert_eq(cudaStreamSynchronize(stream), cudaSuccess);
    cr_assert_arr_eq(back, numbers, sizeof numbers);
    cr_assert_eq(cudaMemcpy(memory, numbers, sizeof numbers + 1, cudaMemcpyHostToDevice),
                 cudaErrorInvalidValue);
    cr_assert_eq(cudaFree(memory), cudaSuccess);
    cr_assert_eq(cudaFree(memory), cudaErrorInvalidValue);
    cr_assert_eq(cudaFree(NULL), cudaSuccess);
    cr_assert_eq(cudaFreeHost(NULL), cudaSuccess);
    cr_assert_eq(cudaMalloc((void **)&memory, (size_t)1 << 50), cudaErrorMemoryAllocation);
    cr_assert_eq(cudaStreamDestroy(stream), cudaSuccess);
}

Test(cudart, kinds_of_memory_are_told_apart)
{
    struct cudaPointerAttributes known;
    void *memory = NULL, *managed = NULL, *pinned = NULL;
    int plain = 0;
    cr_assert_eq(cudaSetDevice(1), cudaSuccess);
    cr_assert_eq(cudaMalloc(&memory, 64), cudaSuccess);
    cr_assert_eq(cudaMallocManaged(&managed, 64, cudaMemAttachGlobal), cudaSuccess);
    cr_assert_eq(cudaMallocHost(&pinned, 64), cudaSuccess);
    cr_assert_eq(cudaPointerGetAttributes(&known, memory), cudaSuccess);
    cr_assert(known.type == cudaMemoryTypeDevice && known.device == 1 && !known.hostPointer);
    cr_assert_eq(cudaPointerGetAttributes(&known, managed), cudaSuccess);
    cr_assert_eq(known.type, cudaMemoryTypeManaged);
    cr_assert_eq(cudaPointerGetAttributes(&known, pinned), cudaSuccess);
    cr_assert(known.type == cudaMemoryTypeHost && known.devicePointer == pinned);
    cr_assert_eq(cudaPointerGetAttributes(&known, &plain), cudaSuccess);
    cr_assert_eq(known.type, cudaMemoryTypeUnregistered);
}

static void *use_other_device(void *argument)
{
    int device = -1;
    void *memory = NULL;
    struct cudaPointerAttributes known = {.device = -1};
    /* Each thread begins with device 0. */
    if (cudaGetDevice(&device) || device || cudaSetDevice(1) || cudaMalloc(&memory, 64) ||
        cudaPointerGetAttributes(&known, memory) || known.device != 1)
        return NULL;
    return argument;
}

Test(cudart, each_thread_has_its_device)
{
    pthread_t thread;
    void *good = NULL;
    int device = 9;
    cr_assert_eq(cudaFree(NULL), cudaSuccess); /* what programs do to get a context */
    cr_assert_eq(pthread_create(&thread, NULL, use_other_device, &device), 0);
    pthread_join(thread, &good);
    cr_assert(good == &device);
    cr_assert_eq(cudaGetDevice(&device), cudaSuccess);
    cr_assert_eq(device, 0);
    cr_assert_eq(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    cr_assert_eq(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
    cr_assert_eq(cudaGetDevice(&device), cudaSuccess);
    cr_assert_eq(device, 0);
}

Test(cudart, graph_is_captured_and_launched)
{
    unsigned char *memory = NULL, back[2] = {0};
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaEvent_t first = NULL, last = NULL;
    float time = -1;
    cr_assert_eq(cudaMalloc((void **)&memory, 64), cudaSuccess);
    cr_assert_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    cr_assert_eq(cudaEventCreate(&first), cudaSuccess);
    cr_assert_eq(cudaEventCreate(&last), cudaSuccess);
    cr_assert_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    cr_assert_eq(cudaMemsetAsync(memory, 7, 2, stream), cudaSuccess);
    cr_assert_eq(cudaMemsetAsync(memory + 1, 8, 1, stream), cudaSuccess);
    cr_assert_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cr_assert_eq(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    cr_assert_eq(cudaEventRecord(first, stream), cudaSuccess);
    cr_assert_eq(cudaGraphLaunch(exec, stream), cudaSuccess);
    cr_assert_eq(cudaEventRecord(last, stream), cudaSuccess);
    cr_assert_eq(cudaEventSynchronize(last), cudaSuccess);
    cr_assert_eq(cudaEventElapsedTime(&time, first, last), cudaSuccess);
    cr_assert(time >= 0);
    cr_assert_eq(cudaMemcpy(back, memory, 2, cudaMemcpyDeviceToHost), cudaSuccess);
    cr_assert(back[0] == 7 && back[1] == 8);
    cr_assert_eq(cudaGraphExecDestroy(exec), cudaSuccess);
    cr_assert_eq(cudaGraphDestroy(graph), cudaSuccess);
    cr_assert_eq(cudaDeviceReset(), cudaSuccess);
    cr_assert_eq(cudaMalloc((void **)&memory, 64), cudaSuccess);
}
