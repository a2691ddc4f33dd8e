/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream_bodies.c - bodies of tests: order in and between streams, events, memory operations.
 *
 * Most of them hold a stream back by a wait for a word of host memory, look that others behave, and
 * let it go.
 */
#include "tests/standin/bodies.h"

#include <pthread.h>
#include <stdint.h>

/* Holds the stream until the word is `value`. */
static void hold(struct check *check, CUstream stream, const unsigned *word, unsigned value)
{
    CHECK_OK(cuStreamWaitValue32(stream, check_address(word), value, CU_STREAM_WAIT_VALUE_GEQ));
}

void body_call_returns_before_the_work_is_done(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUdeviceptr memory = check_memory(check, 64);
    unsigned *gate = check_word(check);
    unsigned *copy = check_word(check);
    hold(check, stream, gate, 1);
    CHECK_OK(cuMemsetD32Async(memory, 7, 16, stream));
    CHECK_OK(cuMemsetD32Async(memory, 8, 1, stream));
    CHECK_OK(cuMemcpyDtoHAsync(copy, memory, sizeof *copy, stream));
    CHECK_GIVES(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    CHECK(*copy == 0);
    check_release(gate, 1);
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_OK(cuStreamQuery(stream));
    CHECK(*copy == 8);
    CHECK(check_read(check, memory + 4) == 7);
    check_end(check, 0);
}

void body_blocked_stream_does_not_block_another(struct check *check)
{
    check_begin(check, 0);
    CUstream blocked = check_stream(check), free_one = check_stream(check);
    CUdeviceptr memory = check_memory(check, 64);
    unsigned *gate = check_word(check);
    hold(check, blocked, gate, 1);
    CHECK_OK(cuMemsetD32Async(memory, 5, 1, free_one));
    CHECK_OK(cuStreamSynchronize(free_one));
    CHECK_GIVES(cuStreamQuery(blocked), CUDA_ERROR_NOT_READY);
    CHECK(check_read(check, memory) == 5); /* the legacy stream does not wait for it either */
    check_release(gate, 1);
    CHECK_OK(cuStreamSynchronize(blocked));
    check_end(check, 0);
}

void body_legacy_stream_waits_for_blocking_streams(struct check *check)
{
    check_begin(check, 0);
    CUstream blocking = NULL;
    CHECK_OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    CUdeviceptr memory = check_memory(check, 64);
    unsigned *gate = check_word(check);
    hold(check, blocking, gate, 1);
    CHECK_OK(cuMemsetD32Async(memory, 1, 1, blocking));
    CHECK_OK(cuMemsetD32Async(memory, 2, 1, NULL));
    CHECK_GIVES(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
    check_release(gate, 1);
    CHECK(check_read(check, memory) == 2);
    check_end(check, 0);
}

void body_blocking_stream_waits_for_the_legacy_stream(struct check *check)
{
    check_begin(check, 0);
    CUstream blocking = NULL, other = check_stream(check);
    CHECK_OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    CUdeviceptr memory = check_memory(check, 64);
    unsigned *gate = check_word(check);
    hold(check, NULL, gate, 1);
    CHECK_OK(cuMemsetD32Async(memory, 1, 1, NULL));
    CHECK_OK(cuMemsetD32Async(memory, 2, 1, blocking));
    CHECK_OK(cuMemsetD32Async(memory + 4, 3, 1, CU_STREAM_PER_THREAD));
    CHECK_OK(cuMemsetD32Async(memory + 8, 4, 1, other));
    CHECK_OK(cuStreamSynchronize(other)); /* a non-blocking one does not */
    CHECK_GIVES(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
    CHECK_GIVES(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    check_release(gate, 1);
    CHECK_OK(cuStreamSynchronize(blocking));
    CHECK_OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    CHECK(check_read(check, memory) == 2);
    CHECK(check_read(check, memory + 4) == 3);
    check_end(check, 0);
}

void body_event_stands_for_the_latest_record(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check), waits = check_stream(check);
    CUevent event = NULL;
    unsigned *gate = check_word(check);
    CHECK_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK_OK(cuEventQuery(event)); /* never recorded: there is nothing to wait for */
    CHECK_OK(cuStreamWaitEvent(waits, event, 0));
    hold(check, stream, gate, 1);
    CHECK_OK(cuEventRecord(event, stream));
    CHECK_OK(cuStreamWaitEvent(waits, event, 0)); /* for this record ... */
    hold(check, stream, gate, 2);
    CHECK_OK(cuEventRecord(event, stream));
    CHECK_GIVES(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    check_release(gate, 1);
    CHECK_OK(cuStreamSynchronize(waits)); /* ... not for the later one */
    CHECK_GIVES(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    check_release(gate, 2);
    CHECK_OK(cuEventSynchronize(event));
    CHECK_OK(cuEventQuery(event));
    CHECK_OK(cuEventDestroy(event));
    CHECK_GIVES(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    check_end(check, 0);
}

void body_event_orders_streams_of_two_devices(struct check *check)
{
    CUcontext second = check_begin(check, 1);
    CUstream there = check_stream(check);
    CUevent event = NULL;
    CHECK_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    check_begin(check, 0);
    CUstream here = check_stream(check);
    CUdeviceptr memory = check_memory(check, 64);
    unsigned *gate = check_word(check);
    CHECK_OK(cuCtxSetCurrent(second));
    hold(check, there, gate, 1);
    CHECK_OK(cuEventRecord(event, there));
    CHECK_GIVES(cuEventRecord(event, here), CUDA_ERROR_INVALID_HANDLE);
    CHECK_OK(cuStreamWaitEvent(here, event, 0));
    CHECK_OK(cuMemsetD32Async(memory, 9, 1, here));
    CHECK_GIVES(cuStreamQuery(here), CUDA_ERROR_NOT_READY);
    check_release(gate, 1);
    CHECK_OK(cuStreamSynchronize(here));
    check_end(check, 1);
    check_begin(check, 0);
    CHECK(check_read(check, memory) == 9);
    CHECK_OK(cuDevicePrimaryCtxRelease(0));
    check_end(check, 0);
}

void body_elapsed_time_needs_two_timed_and_reached_events(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUevent first = NULL, second = NULL, untimed = NULL;
    unsigned *gate = check_word(check);
    float time = -1;
    CHECK_OK(cuEventCreate(&first, CU_EVENT_DEFAULT));
    CHECK_OK(cuEventCreate(&second, CU_EVENT_BLOCKING_SYNC));
    CHECK_OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    CHECK_OK(cuEventRecord(first, stream));
    CHECK_GIVES(cuEventElapsedTime(&time, first, second), CUDA_ERROR_INVALID_HANDLE);
    hold(check, stream, gate, 1);
    CHECK_OK(cuEventRecord(second, stream));
    CHECK_OK(cuEventRecord(untimed, stream));
    CHECK_GIVES(cuEventElapsedTime(&time, first, second), CUDA_ERROR_NOT_READY);
    check_release(gate, 1);
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_OK(cuEventElapsedTime(&time, first, second));
    CHECK(time >= 0);
    CHECK_GIVES(cuEventElapsedTime(&time, first, untimed), CUDA_ERROR_INVALID_HANDLE);
    check_end(check, 0);
}

struct comparison {
    unsigned flags;
    uint64_t word, value; /* the wait is over at once */
    uint64_t not_yet;     /* with this in the word it is not */
};

static const struct comparison comparisons[] = {
    {CU_STREAM_WAIT_VALUE_EQ, 5, 5, 6},
    {CU_STREAM_WAIT_VALUE_GEQ, 6, 5, 4},
    {CU_STREAM_WAIT_VALUE_GEQ, 2, 0xfffffffe, 0xfffffffd}, /* cyclic in 32 bits */
    {CU_STREAM_WAIT_VALUE_AND, 6, 2, 5},
    {CU_STREAM_WAIT_VALUE_NOR, 0xfffffff0, 0xe, 0xfffffff1},
};

void body_wait_value_compares_in_four_ways(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    unsigned *word = check_word(check);
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
        const struct comparison *c = &comparisons[i];
        check_release(word, (unsigned)c->not_yet);
        CHECK_OK(cuStreamWaitValue32(stream, check_address(word), (unsigned)c->value, c->flags));
        CHECK_GIVES(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
        check_release(word, (unsigned)c->word);
        CHECK_OK(cuStreamSynchronize(stream));
    }
    check_end(check, 0);
}

void body_wait_value_of_64_bits_is_cyclic_too(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check), other = check_stream(check);
    CUdeviceptr word = check_memory(check, 8);
    CHECK_OK(cuStreamWriteValue64(stream, word, UINT64_MAX - 1, 0));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_OK(cuStreamWaitValue64(stream, word, 3, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK_GIVES(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuStreamWriteValue64(other, word, 4, 0));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_GIVES(cuStreamWaitValue64(stream, word + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
    check_end(check, 0);
}

void body_batch_of_memory_operations_runs_in_order(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUdeviceptr memory = check_memory(check, 16);
    unsigned *gate = check_word(check);
    CUstreamBatchMemOpParams all[3] = {0};
    all[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    all[0].waitValue.address = check_address(gate);
    all[0].waitValue.value = 1;
    all[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    all[1].writeValue.address = memory;
    all[1].writeValue.value = 11;
    all[2].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    all[2].writeValue.address = memory + 8;
    all[2].writeValue.value64 = 12;
    CHECK_OK(cuStreamBatchMemOp(stream, 3, all, 0));
    CHECK_GIVES(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    CHECK(check_read(check, memory) == 0);
    check_release(gate, 1);
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK(check_read(check, memory) == 11 && check_read(check, memory + 8) == 12);
    all[2].writeValue.address = memory + 16; /* behind the end */
    CHECK_GIVES(cuStreamBatchMemOp(stream, 3, all, 0), CUDA_ERROR_INVALID_VALUE);
    check_end(check, 0);
}

struct told {
    CUresult result;
    unsigned *order;
    unsigned value;
};

static void CUDA_CB tell(void *argument)
{
    struct told *told = argument;
    CUdeviceptr memory = 0;
    told->result = cuMemAlloc(&memory, 64); /* not allowed here */
    told->value = ++*told->order;
}

void body_host_function_runs_in_order_and_may_not_call_the_driver(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    unsigned *gate = check_word(check);
    unsigned order = 0;
    struct told told[2] = {{.order = &order}, {.order = &order}};
    hold(check, stream, gate, 1);
    CHECK_OK(cuLaunchHostFunc(stream, tell, &told[0]));
    CHECK_OK(cuLaunchHostFunc(stream, tell, &told[1]));
    CHECK_GIVES(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    check_release(gate, 1);
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK(told[0].value == 1 && told[1].value == 2);
    CHECK_GIVES(told[0].result, CUDA_ERROR_NOT_PERMITTED);
    check_end(check, 0);
}

struct per_thread {
    struct check check;
    CUcontext context;
    CUdeviceptr memory;
    unsigned *gate;
};

static void *use_own_stream(void *argument)
{
    struct per_thread *other = argument;
    struct check *check = &other->check;
    CHECK_OK(cuCtxSetCurrent(other->context));
    CHECK_OK(cuMemsetD32Async(other->memory, 6, 1, CU_STREAM_PER_THREAD));
    CHECK_OK(cuStreamSynchronize(CU_STREAM_PER_THREAD)); /* the other thread's is held */
    check_release(other->gate, 1);
    return NULL;
}

void body_each_thread_has_its_own_per_thread_stream(struct check *check)
{
    CUcontext context = check_begin(check, 0);
    unsigned *gate = check_word(check);
    struct per_thread other = {.context = context, .gate = gate};
    other.memory = check_memory(check, 64);
    hold(check, CU_STREAM_PER_THREAD, gate, 1);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, use_own_stream, &other) == 0);
    CHECK_OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    pthread_join(thread, NULL);
    CHECK(!other.check.what);
    CHECK(check_read(check, other.memory) == 6);
    check_end(check, 0);
}

void body_destroyed_stream_finishes_its_work(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUdeviceptr memory = check_memory(check, 64);
    unsigned *gate = check_word(check);
    hold(check, stream, gate, 1);
    CHECK_OK(cuMemsetD32Async(memory, 3, 1, stream));
    CHECK_OK(cuStreamDestroy(stream));
    CHECK_GIVES(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    check_release(gate, 1);
    CHECK_OK(cuCtxSynchronize());
    CHECK(check_read(check, memory) == 3);
    check_end(check, 0);
}
