/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory_bodies.c - bodies of tests: contexts, kinds of memory, what is known of an address.
 */
#include "tests/patience.h"
#include "tests/standin/bodies.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void body_call_without_a_context_is_refused(struct check *check)
{
    CUdeviceptr memory = 0;
    int count = 0;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuCtxSetCurrent(NULL));
    CHECK_GIVES(cuMemAlloc(&memory, 64), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_OK(cuDeviceGetCount(&count)); /* devices need none */
    CHECK(count == 2);
    CHECK_GIVES(cuDeviceGet(&count, 2), CUDA_ERROR_INVALID_DEVICE);
}

void body_primary_context_lives_as_long_as_it_is_retained(struct check *check)
{
    unsigned flags = 9;
    int active = 9;
    CUcontext context = check_begin(check, 1), again = NULL, popped = NULL;
    CHECK_OK(cuDevicePrimaryCtxRetain(&again, 1));
    CHECK(again == context);
    CHECK_OK(cuCtxPushCurrent(context));
    CHECK_OK(cuCtxPopCurrent(&popped));
    CHECK(popped == context);
    CHECK_OK(cuDevicePrimaryCtxRelease(1));
    CHECK_OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
    CHECK(active == 1 && flags == 0);
    CUdeviceptr memory = check_memory(check, 64);
    CHECK_OK(cuCtxSynchronize());
    CHECK_OK(cuDevicePrimaryCtxRelease(1));
    CHECK_OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
    CHECK(active == 0);
    CHECK_GIVES(cuMemFree(memory), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_GIVES(cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_OK(cuCtxSetCurrent(NULL));
}

void body_device_says_what_it_can(struct check *check)
{
    static const struct {
        CUdevice_attribute attribute;
        int value;
    } wanted[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 10},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0},
    };
    char name[64] = "", bus[32] = "";
    CUuuid first, second;
    CUdevice found = 9;
    int value = -1;
    CHECK_OK(cuInit(0));
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        CHECK_OK(cuDeviceGetAttribute(&value, wanted[i].attribute, 0));
        CHECK(value == wanted[i].value);
    }
    CHECK_OK(cuDeviceGetName(name, sizeof name, 0));
    CHECK(strlen(name) > 4);
    CHECK_OK(cuDeviceGetPCIBusId(bus, sizeof bus, 1));
    CHECK_OK(cuDeviceGetByPCIBusId(&found, bus));
    CHECK(found == 1);
    CHECK_OK(cuDeviceGetUuid(&first, 0));
    CHECK_OK(cuDeviceGetUuid(&second, 1));
    CHECK(memcmp(&first, &second, sizeof first) != 0);
}

void body_peer_access_is_enabled_once(struct check *check)
{
    CUcontext second = check_begin(check, 1), first = check_begin(check, 0);
    CUdeviceptr there = 0;
    CUstream stream = check_stream(check);
    int can = 0;
    CHECK_OK(cuDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 1);
    CHECK_OK(cuDeviceCanAccessPeer(&can, 0, 0));
    CHECK(can == 0);
    CHECK_OK(cuCtxSetCurrent(second));
    CHECK_OK(cuMemAlloc(&there, 64));
    CHECK_OK(cuCtxSetCurrent(first));
    CHECK_GIVES(cuStreamWriteValue32(stream, there, 1, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuCtxEnablePeerAccess(second, 0));
    CHECK_GIVES(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    CHECK_OK(cuStreamWriteValue32(stream, there, 1, 0));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK(check_read(check, there) == 1);
    CHECK_OK(cuCtxDisablePeerAccess(second));
    CHECK_GIVES(cuCtxDisablePeerAccess(second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    CHECK_GIVES(cuCtxEnablePeerAccess(first, 0), CUDA_ERROR_INVALID_CONTEXT);
    check_end(check, 0);
    CHECK_OK(cuDevicePrimaryCtxRelease(1));
}

void body_memory_runs_out_and_comes_back(struct check *check)
{
    check_begin(check, 0);
    size_t free_bytes = 0, total = 0, later = 0;
    CUdeviceptr most = 0, more = 0;
    CHECK_OK(cuMemGetInfo(&free_bytes, &total));
    CHECK(free_bytes == total);
    CHECK_OK(cuMemAlloc(&most, free_bytes - 1000));
    CHECK_GIVES(cuMemAlloc(&more, 1001), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_OK(cuMemAlloc(&more, 1000));
    CHECK_OK(cuMemGetInfo(&later, &total));
    CHECK(later == 0);
    CHECK_OK(cuMemFree(more));
    CHECK_OK(cuMemFree(most));
    CHECK_OK(cuMemGetInfo(&later, &total));
    CHECK(later == free_bytes);
    CHECK_GIVES(cuMemAlloc(&more, 0), CUDA_ERROR_INVALID_VALUE);
    check_end(check, 0);
}

void body_use_of_freed_or_foreign_memory_is_refused(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUdeviceptr memory = check_memory(check, 100), base = 0;
    size_t size = 0;
    char bytes[128] = "";
    CHECK_OK(cuMemGetAddressRange(&base, &size, memory + 99));
    CHECK(base == memory && size == 100);
    CHECK_GIVES(cuMemGetAddressRange(&base, &size, memory + 100), CUDA_ERROR_NOT_FOUND);
    CHECK_GIVES(cuMemcpyHtoD(memory, bytes, 101), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuMemcpyHtoD(memory + 1, bytes, 100), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuMemcpyHtoDAsync(check_address(bytes), bytes, 8, stream),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuMemsetD8(memory + 50, 0, 51), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuMemsetD32(memory + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuMemFree(memory + 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemFree(memory));
    CHECK_GIVES(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuMemcpyHtoD(memory, bytes, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuStreamWriteValue32(stream, memory, 1, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuStreamSynchronize((CUstream)(void *)bytes), CUDA_ERROR_INVALID_HANDLE);
    CHECK_OK(cuMemFree(0));
    check_end(check, 0);
}

struct known {
    unsigned type;
    int device;
    unsigned managed, ipc;
    unsigned long long id;
    CUdeviceptr start;
    size_t size;
    CUcontext context;
};

static CUresult ask(CUdeviceptr address, struct known *known)
{
    *known = (struct known){.type = 99};
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,  CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
        CU_POINTER_ATTRIBUTE_BUFFER_ID,   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,  CU_POINTER_ATTRIBUTE_CONTEXT,
    };
    void *answers[] = {&known->type, &known->device, &known->managed, &known->ipc,
                       &known->id,   &known->start,  &known->size,    &known->context};
    return cuPointerGetAttributes(8, attributes, answers, address);
}

void body_addresses_are_known_by_their_kind(struct check *check)
{
    CUcontext context = check_begin(check, 1);
    struct known known, other;
    CUdeviceptr device = check_memory(check, 100), managed = 0;
    unsigned *pinned = check_word(check), type = 0;
    char *plain = malloc(64);
    CHECK_OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    CHECK_OK(ask(device + 40, &known));
    CHECK(known.type == CU_MEMORYTYPE_DEVICE && known.device == 1 && !known.managed && known.ipc);
    CHECK(known.start == device && known.size == 100 && known.context == context);
    CHECK_OK(ask(managed, &other));
    CHECK(other.type == CU_MEMORYTYPE_DEVICE && other.managed && !other.ipc);
    CHECK(other.id != known.id);
    CHECK_OK(ask(check_address(pinned), &known));
    CHECK(known.type == CU_MEMORYTYPE_HOST && !known.managed && !known.ipc);
    CHECK_OK(ask(check_address(plain), &known));
    CHECK(known.type == 0 && known.device == CU_DEVICE_INVALID && known.id == 0);
    CHECK_GIVES(
        cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, check_address(plain)),
        CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
    CHECK(type == CU_MEMORYTYPE_DEVICE);
    free(plain);
    check_end(check, 1);
}

void body_registered_memory_is_used_in_place(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUdeviceptr device = 0;
    unsigned *words = calloc(64, sizeof *words);
    CHECK_GIVES(cuMemHostUnregister(words), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    CHECK_GIVES(cuStreamWriteValue32(stream, check_address(words), 1, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemHostRegister(words, 64 * sizeof *words, CU_MEMHOSTREGISTER_DEVICEMAP));
    CHECK_GIVES(cuMemHostRegister(words + 8, 8, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CHECK_OK(cuMemHostGetDevicePointer(&device, words + 1, 0));
    CHECK(device == check_address(words + 1));
    CHECK_OK(cuStreamWriteValue32(stream, device, 7, 0));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK(words[1] == 7);
    CHECK_GIVES(cuMemFreeHost(words), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemHostUnregister(words));
    CHECK_GIVES(cuMemHostGetDevicePointer(&device, words, 0), CUDA_ERROR_INVALID_VALUE);
    free(words);
    check_end(check, 0);
}

void body_managed_memory_is_the_programs_too(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUdeviceptr memory = 0;
    CHECK_OK(cuMemAllocManaged(&memory, 64, CU_MEM_ATTACH_GLOBAL));
    unsigned *words = (unsigned *)(size_t)memory;
    words[0] = 5;
    CHECK_OK(cuMemcpyDtoDAsync(memory + 4, memory, 4, stream));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK(words[1] == 5);
    CHECK_OK(cuMemFree(memory));
    check_end(check, 0);
}

void body_pageable_source_is_taken_at_the_call(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUdeviceptr memory = check_memory(check, 64);
    unsigned *gate = check_word(check);
    unsigned word = 3, back = 0;
    CHECK_OK(cuStreamWaitValue32(stream, check_address(gate), 1, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK_OK(cuMemcpyHtoDAsync(memory, &word, sizeof word, stream));
    word = 4;
    check_release(gate, 1);
    CHECK_OK(cuMemcpyDtoHAsync(&back, memory, sizeof back, stream));
    CHECK(back == 3); /* to pageable memory: it is there when the call returns */
    check_end(check, 0);
}

/* Nothing says which copy is late, so it is tried until one is. To ThreadSanitizer it is the race
 * that it is. */
void body_synchronous_copies_of_pageable_memory_can_be_overtaken(struct check *check)
{
#ifdef __SANITIZE_THREAD__
    (void)check;
#else
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUdeviceptr memory = check_memory(check, 64), copied = check_memory(check, 64);
    bool overtaken = false;
    for (unsigned i = 1; i <= 10000 && !overtaken; i++) {
        unsigned word = i, back = 0;
        CHECK_OK(cuMemcpyHtoD(memory, &word, sizeof word));
        word = 0;
        CHECK_OK(cuMemcpyDtoDAsync(copied, memory, sizeof word, stream));
        CHECK_OK(cuStreamSynchronize(NULL));
        CHECK_OK(cuMemcpyDtoH(&back, memory, sizeof back));
        CHECK(back == i);
        CHECK_OK(cuStreamSynchronize(stream));
        CHECK_OK(cuMemcpyDtoH(&back, copied, sizeof back));
        overtaken = back != i;
    }
    CHECK(overtaken);
    check_end(check, 0);
#endif
}

void body_rows_are_copied_with_their_pitches(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUdeviceptr memory = check_memory(check, 64);
    char rows[8][4], back[64] = "";
    memset(rows, 'x', sizeof rows);
    CUDA_MEMCPY2D how = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                         .srcHost = rows,
                         .srcPitch = 4,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = memory,
                         .dstPitch = 8,
                         .dstXInBytes = 1,
                         .WidthInBytes = 3,
                         .Height = 8};
    CHECK_OK(cuMemcpy2DAsync(&how, stream));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_OK(cuMemcpyDtoH(back, memory, 64));
    for (int i = 0; i < 64; i++)
        CHECK(back[i] == (i % 8 >= 1 && i % 8 <= 3 ? 'x' : 0));
    how.Height = 9; /* more than there is */
    CHECK_GIVES(cuMemcpy2DAsync(&how, stream), CUDA_ERROR_INVALID_VALUE);
    check_end(check, 0);
}

void body_free_waits_for_work_under_way(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUdeviceptr memory = check_memory(check, 1 << 20), other = check_memory(check, 64);
    for (int i = 0; i < 20; i++)
        CHECK_OK(cuMemsetD8Async(memory, (unsigned char)i, 1 << 20, stream));
    CHECK_OK(cuMemFree(other));
    CHECK_OK(cuStreamQuery(stream));
    CHECK_OK(cuMemFree(memory));
    check_end(check, 0);
}

struct late {
    _Atomic bool begun;  /* the function has */
    _Atomic pid_t pins;  /* the thread that is about to pin memory */
    _Atomic bool pinned; /* it has */
    bool before;         /* ... when the function ended */
};

static void CUDA_CB come_late(void *argument)
{
    struct late *late = argument;
    late->begun = true;
    world_await_told(&late->pins);
    late->before = late->pinned;
}

void body_pinning_waits_for_host_functions(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    struct late late = {.before = true};
    void *memory = NULL;
    CHECK_OK(cuLaunchHostFunc(stream, come_late, &late));
    while (!late.begun)
        sched_yield();
    late.pins = gettid();
    CHECK_OK(cuMemHostAlloc(&memory, 64, 0));
    late.pinned = true;
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK(!late.before);
    CHECK_OK(cuMemFreeHost(memory));
    check_end(check, 0);
}
