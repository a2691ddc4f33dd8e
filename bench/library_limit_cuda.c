/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library_limit_cuda.c - what `--limit` stands on for device memory, as one more library of the
 * benchmark: how fast a device copies its own memory, and how long launches take that follow each
 * other. Nothing of Rondo is in here.
 *
 * The ranks are threads. On each device one of them, the first, works; the others only wait:
 *
 *     sendrecv, queued    copies the input to the output, on the device
 *     barrier, queued     launches an empty kernel
 *     barrier             the threads wait for each other
 */
#include "bench/library.h"

#include "bench/device.h"
#include "bench/pattern.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct state {
    struct device *device;
    bool works;
};

static pthread_barrier_t all;

/* The barrier of all threads is made by whoever comes first, and stays as long as the process. */
static bool make_barrier(int size)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static bool made;

    pthread_mutex_lock(&mutex);
    if (!made)
        made = !pthread_barrier_init(&all, NULL, (unsigned)size);
    pthread_mutex_unlock(&mutex);
    return made;
}

static void *limit_open(struct bench_place *place)
{
    struct state *state = calloc(1, sizeof(*state));

    if (state && make_barrier(place->size)) {
        state->device = place->device;
        state->works = place->rank < device_count(place->device);
        return state;
    }
    free(state);
    return NULL;
}

static void limit_close(void *memory)
{
    free(memory);
}

static const char *limit_lacks(void *memory, const struct bench_call *call)
{
    if (call->collective != BENCH_BARRIER && call->collective != BENCH_SENDRECV)
        return "it is computed from a copy and a launch";
    return NULL;
}

static int limit_run(void *memory, const struct bench_call *call, const void *input, void *output)
{
    struct state *state = memory;
    size_t bytes = call->count * pattern_type_bytes(call->type);

    if (!call->queued) {
        pthread_barrier_wait(&all);
        return 0;
    }
    if (!state->works)
        return 0;
    return call->collective == BENCH_BARRIER
               ? device_queue_nothing(state->device)
               : device_queue_copy(state->device, output, input, bytes);
}

static const char *limit_error(void *memory)
{
    const struct state *state = memory;

    return state ? device_error(state->device) : "there is no memory";
}

static void version(char *text, size_t room)
{
    snprintf(text, room, "this machine's limit");
}

const struct bench_library bench_the_library = {
    .open = limit_open,
    .close = limit_close,
    .lacks = limit_lacks,
    .run = limit_run,
    .error = limit_error,
    .version = version,
};
