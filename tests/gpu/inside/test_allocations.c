/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_allocations.c - a call on a CUDA stream that is like one before allocates nothing, whichever
 * way it goes.
 *
 * The linker leads the library's calls of malloc() and the like here (-Wl,--wrap), where they are
 * counted; the driver's are not.
 */
#include "../bodies.h"
#include "../device.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { RANKS = 3, CALLS = 16, AHEAD = 4 * CALLS, ROUNDS = 20 };

static atomic_bool counts;
static atomic_int allocated;
static pthread_barrier_t all;

static void note(void)
{
    if (atomic_load_explicit(&counts, memory_order_relaxed))
        atomic_fetch_add_explicit(&allocated, 1, memory_order_relaxed);
}

/* The linker gives these names to what it leads here, and to what is meant. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t number, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size)
{
    note();
    return __real_malloc(size);
}

void *__wrap_calloc(size_t number, size_t size)
{
    note();
    return __real_calloc(number, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    note();
    return __real_realloc(memory, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    note();
    return __real_aligned_alloc(alignment, size);
}

struct buffers {
    int32_t *input, *output;
    uint32_t *gate; /* pinned: the stream waits until it is open */
};

static rondo_result call(struct gpu_rank *rank, const struct buffers *buffers, int times)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; i < times && !result; i++)
        result = rondo_all_reduce(buffers->input, buffers->output, (size_t)rank->scene->cases,
                                  RONDO_INT32, RONDO_SUM, rank->comm, rank->stream);
    return result;
}

/* Make more calls than will be counted, all on their way at a time. */
static rondo_result warm_up(struct gpu_rank *rank, const struct buffers *buffers)
{
    /* The first call copies its plan to the device. In the only hardware channel that would be
     * behind the wait of another rank, which waits for this one's calls. */
    rondo_result result = call(rank, buffers, 1);

    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    if (!result)
        result = rondo_barrier(rank->comm, NULL);
    if (result)
        return result;
    if (!device_hold(rank->cuda_stream, buffers->gate))
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "no gate");
    result = call(rank, buffers, AHEAD);
    __atomic_store_n(buffers->gate, 1, __ATOMIC_RELEASE);
    return result ? result : rondo_stream_synchronize(rank->stream);
}

/* Calls of all ranks, counted; what calls before them used may not have been given back yet, so the
 * first rounds may allocate. */
static rondo_result count(struct gpu_rank *rank, const struct buffers *buffers)
{
    const struct timespec nap = {0, 20 * 1000 * 1000};
    rondo_result result = RONDO_OK;
    int found = atomic_load_explicit(&allocated, memory_order_relaxed);

    if (!found)
        return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "nothing is counted");
    for (int round = 0; round < ROUNDS && found && !result; round++) {
        nanosleep(&nap, NULL);
        pthread_barrier_wait(&all);
        atomic_store_explicit(&counts, true, memory_order_relaxed);
        result = call(rank, buffers, CALLS);
        if (!result)
            result = rondo_stream_synchronize(rank->stream);
        pthread_barrier_wait(&all);
        atomic_store_explicit(&counts, false, memory_order_relaxed);
        found = atomic_load_explicit(&allocated, memory_order_relaxed);
        pthread_barrier_wait(&all);
        atomic_store_explicit(&allocated, 0, memory_order_relaxed);
    }
    return result || !found
               ? result
               : world_say(rank->sentence, RONDO_ERROR_INTERNAL,
                           "%d calls of %d ranks allocate %d times", CALLS, RANKS, found);
}

static rondo_result count_allocations(struct gpu_rank *rank)
{
    size_t bytes = (size_t)rank->scene->cases * sizeof(int32_t);
    struct buffers buffers = {device_alloc(MEMORY_DEVICE, bytes),
                              device_alloc(MEMORY_DEVICE, bytes),
                              device_alloc(MEMORY_PINNED, sizeof(uint32_t))};
    rondo_result result = warm_up(rank, &buffers);

    if (!result)
        result = count(rank, &buffers);
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    device_free(MEMORY_DEVICE, buffers.input);
    device_free(MEMORY_DEVICE, buffers.output);
    device_free(MEMORY_PINNED, buffers.gate);
    return result;
}

static rondo_result body(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, count_allocations);
}

static void expect_none(struct gpu_scene scene)
{
    static struct world_report report;

    scene.devices = 2;
    atomic_store_explicit(&counts, true, memory_order_relaxed); /* while ranks open, to see it */
    pthread_barrier_init(&all, NULL, RANKS);
    cr_assert(world_run_threads(RANKS, body, &scene, &report) == 0, "%s", report.summary);
    pthread_barrier_destroy(&all);
}

Test(gpu_allocations, a_short_call_allocates_nothing)
{
    expect_none((struct gpu_scene){.cases = 1000});
}

Test(gpu_allocations, a_longer_call_allocates_nothing)
{
    expect_none((struct gpu_scene){.cases = 100000});
}

Test(gpu_allocations, a_call_of_1_mib_allocates_nothing)
{
    expect_none((struct gpu_scene){.cases = 1 << 18});
}

/* A call that names a plan is carried out step by step. */
Test(gpu_allocations, a_call_as_operations_of_the_stream_allocates_nothing)
{
    setenv("RONDO_ALGORITHM", "zero_copy", 1);
    expect_none((struct gpu_scene){.cases = 100000});
}

Test(gpu_allocations, a_call_by_way_of_the_host_allocates_nothing)
{
    expect_none((struct gpu_scene){.cases = 1000, .host = true});
    expect_none((struct gpu_scene){.cases = 100000, .host = true});
}
