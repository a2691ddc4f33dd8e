/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contexts.c - threads without a current context, and communicators that were opened without a
 * device: what a call is for is known from its stream and its memory.
 */
#include "bodies.h"
#include "device.h"

#include "rondo/cuda.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 100000, PATIENCE = 100 /* seconds */ };

static rondo_result fail(struct gpu_rank *rank, const char *what)
{
    return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "%s: %s", what, rondo_last_error(NULL));
}

/* ---- A thread without a context -------------------------------------------------------------- */

/* A thread that waits for a stream; it has never used CUDA, or uses that device. */
struct waiter {
    rondo_stream *stream;
    int device; /* -1: none */
    rondo_result queried, synchronized;
    pthread_t handle;
    _Atomic pid_t thread;
};

static void *wait_for_stream(void *argument)
{
    struct waiter *waiter = argument;

    if (waiter->device >= 0)
        device_use(waiter->device);
    waiter->queried = rondo_stream_query(waiter->stream);
    atomic_store_explicit(&waiter->thread, gettid(), memory_order_release);
    waiter->synchronized = rondo_stream_synchronize(waiter->stream);
    return NULL;
}

/* Returns when the thread has begun to wait, 0: there is none. */
static pid_t begin(struct waiter *waiter)
{
    pid_t thread = 0;

    if (pthread_create(&waiter->handle, NULL, wait_for_stream, waiter))
        return 0;
    while (!(thread = atomic_load_explicit(&waiter->thread, memory_order_acquire)))
        sched_yield();
    return thread;
}

static rondo_result end(struct gpu_rank *rank, const struct waiter *waiter)
{
    pthread_join(waiter->handle, NULL);
    if (waiter->queried && waiter->queried != RONDO_IN_PROGRESS)
        return fail(rank, "query elsewhere");
    return waiter->synchronized ? fail(rank, "synchronize elsewhere") : RONDO_OK;
}

/* A call that is waited for elsewhere, to which rank 0 comes when the others' threads wait. */
static rondo_result call_late(struct gpu_rank *rank, rondo_stream *stream, int device,
                              int32_t *memory)
{
    struct waiter waiter = {.stream = stream, .device = device};
    bool late = !rondo_comm_rank(rank->comm);
    rondo_result result = late ? gpu_come_late(rank, true, 0) : RONDO_OK;
    pid_t thread;

    if (!result)
        result =
            rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_SUM, rank->comm, stream);
    if (result)
        return fail(rank, "all_reduce");
    thread = begin(&waiter);
    if (!thread)
        return fail(rank, "a thread");
    result = late ? RONDO_OK : gpu_come_late(rank, false, thread);
    return result ? result : end(rank, &waiter);
}

/* Now, or as good as: an event is over before the stream has put it away. */
static bool is_through(CUstream handle)
{
    time_t until = time(NULL) + PATIENCE;

    while (device_driver()->cuStreamQuery(handle) && time(NULL) <= until)
        usleep(1000);
    return !device_driver()->cuStreamQuery(handle);
}

static rondo_result wait_for_handle(struct gpu_rank *rank, CUstream handle, int32_t *memory)
{
    struct waiter waiter = {.device = -1};
    rondo_result result;

    if (rondo_stream_open_cuda(handle, &waiter.stream))
        return fail(rank, "stream");
    /* Nothing was queued yet. */
    result = begin(&waiter) ? end(rank, &waiter) : fail(rank, "a thread");
    if (!result)
        result = call_late(rank, waiter.stream, -1, memory);
    /* The calls of this thread, too, where the handle means another stream in each. */
    if (!result && !is_through(handle))
        result = fail(rank, "a stream that was waited for is not through");
    if (!result)
        result = rondo_stream_synchronize(waiter.stream);
    rondo_stream_close(waiter.stream);
    return result;
}

static rondo_result waits_without_context(struct gpu_rank *rank)
{
    const CUstream handles[] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};
    int32_t *memory = device_alloc(MEMORY_DEVICE, COUNT * sizeof(int32_t));
    rondo_result result = memory ? RONDO_OK : fail(rank, "no memory");

    for (int i = 0; i < 3 && !result; i++)
        result = wait_for_handle(rank, handles[i], memory);
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    device_free(MEMORY_DEVICE, memory);
    return result;
}

rondo_result gpu_waits_without_context(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, waits_without_context);
}

/* A thread with another device's context asks about a default stream: its calls are elsewhere. */
static rondo_result waits_from_other_device(struct gpu_rank *rank)
{
    int own = rondo_comm_cuda_device(rank->comm), other = (own + 1) % device_count();
    int32_t *memory = device_alloc(MEMORY_DEVICE, COUNT * sizeof(int32_t));
    rondo_stream *stream;
    rondo_result result;

    if (!memory || rondo_stream_open_cuda(NULL, &stream))
        return fail(rank, "stream");
    result = call_late(rank, stream, other, memory);
    if (!result && !is_through(NULL))
        result = fail(rank, "a call that was waited for is not through");
    rondo_stream_close(stream);
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    device_free(MEMORY_DEVICE, memory);
    return result;
}

rondo_result gpu_waits_from_other_device(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, waits_from_other_device);
}

/* ---- A communicator without a device --------------------------------------------------------- */

static int number_of(rondo_comm *comm)
{
    int there = device_count();

    return there ? rondo_comm_rank(comm) % there : 0;
}

/* By the stream, if it has one of its own; or else by the memory. */
static rondo_result call_without_device(rondo_comm *outer, const rondo_config *config,
                                        CUstream handle, char *sentence)
{
    int32_t *memory = device_alloc(MEMORY_DEVICE, COUNT * sizeof(int32_t));
    int number = number_of(outer);
    rondo_comm *comm = NULL;
    rondo_stream *stream = NULL;
    rondo_result result;

    if (!config) /* else it says that there is none, whatever is current */
        device_driver()->cuCtxSetCurrent(NULL);
    result = rondo_comm_split(outer, 0, rondo_comm_rank(outer), config, &comm);
    if (!result && rondo_comm_cuda_device(comm) != -1)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "the communicator has a device");
    if (!result)
        result = rondo_stream_open_cuda(handle, &stream);
    if (!result)
        result = rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_SUM, comm, stream);
    if (!result)
        result = rondo_stream_synchronize(stream);
    if (result)
        world_say(sentence, result, "a call without a device: %s", rondo_last_error(NULL));
    if (!result && rondo_comm_cuda_device(comm) != number)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "the device is %d, not %d",
                           rondo_comm_cuda_device(comm), number);
    rondo_stream_close(stream);
    rondo_comm_close(comm);
    device_use(number);
    device_free(MEMORY_DEVICE, memory);
    return result;
}

rondo_result gpu_finds_devices(rondo_comm *comm, void *scene, char *sentence)
{
    rondo_config none = RONDO_CONFIG_INIT;
    int number = number_of(comm);
    CUstream handle;
    rondo_result result;

    (void)scene;
    none.cuda_device = -2;
    if (!device_use(number) || device_driver()->cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING))
        return world_say(sentence, RONDO_ERROR_SYSTEM, "no device %d", number);
    result = call_without_device(comm, NULL, handle, sentence);
    if (!result)
        result = call_without_device(comm, NULL, NULL, sentence);
    if (!result)
        result = call_without_device(comm, &none, handle, sentence);
    device_driver()->cuStreamDestroy(handle);
    return result;
}
