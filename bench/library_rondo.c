/* SPDX-License-Identifier: BSD-3-Clause */
/* library_rondo.c - Rondo as the benchmark sees it: the public header, nothing else. */
#include "bench/library.h"

#include "bench/device.h"

#include "rondo/cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

/* Memory of malloc() that the communicator knows. */
struct registered {
    struct registered *next;
    void *data;
    rondo_registration *registration;
};

struct state {
    rondo_comm *comm;
    rondo_stream *stream; /* over that of the rank's device; NULL: none */
    struct registered *registered;
    int size;
};

static void config_init(rondo_config *config, const struct bench_place *place)
{
    *config = (rondo_config)RONDO_CONFIG_INIT;
    if (place->deterministic)
        config->deterministic = 1;
    config->timeout = place->timeout;
    if (place->device)
        config->cuda_device = device_number(place->device);
}

/* The sentence of a failed open: for all threads, whoever tried. */
static char open_sentence[1024];
static pthread_mutex_t open_mutex = PTHREAD_MUTEX_INITIALIZER;

static void keep_sentence(void)
{
    pthread_mutex_lock(&open_mutex);
    snprintf(open_sentence, sizeof(open_sentence), "%s", rondo_last_error(NULL));
    pthread_mutex_unlock(&open_mutex);
}

/* Whoever comes first opens the communicators of all threads. */
static rondo_comm *join_threads(const struct bench_place *place, const rondo_config *config)
{
    static bool tried;
    rondo_comm *comm;

    pthread_mutex_lock(&open_mutex);
    if (!tried && rondo_comm_open_all(place->size, config, place->joined))
        snprintf(open_sentence, sizeof(open_sentence), "%s", rondo_last_error(NULL));
    tried = true;
    comm = place->joined[place->rank];
    pthread_mutex_unlock(&open_mutex);
    return comm;
}

/* Threads with a device each open their own communicators: whoever comes first makes the id. */
static rondo_comm *join_threads_by_id(const struct bench_place *place, const rondo_config *config)
{
    static rondo_unique_id id;
    static rondo_result made;
    static bool tried;
    rondo_comm *comm = NULL;

    pthread_mutex_lock(&open_mutex);
    if (!tried)
        made = rondo_unique_id_create(&id);
    if (!tried && made)
        snprintf(open_sentence, sizeof(open_sentence), "%s", rondo_last_error(NULL));
    tried = true;
    pthread_mutex_unlock(&open_mutex);
    if (!made && rondo_comm_open_id(&id, place->size, place->rank, config, &comm))
        keep_sentence();
    return comm;
}

static rondo_comm *join(const struct bench_place *place)
{
    rondo_comm *comm = NULL;
    rondo_config config;

    config_init(&config, place);
    if (place->threads)
        return place->device ? join_threads_by_id(place, &config) : join_threads(place, &config);
    if (rondo_comm_open(&config, &comm))
        keep_sentence();
    return comm;
}

static void rondo_close(void *memory)
{
    struct state *state = memory;

    if (state) {
        rondo_stream_close(state->stream);
        rondo_comm_close(state->comm);
    }
    free(state);
}

static void *rondo_open(struct bench_place *place)
{
    struct state *state = calloc(1, sizeof(*state));

    if (!state)
        return NULL;
    state->comm = join(place);
    if (state->comm && place->device &&
        rondo_stream_open_cuda(device_stream(place->device), &state->stream)) {
        keep_sentence();
        rondo_close(state);
        return NULL;
    }
    if (!state->comm) {
        free(state);
        return NULL;
    }
    place->rank = rondo_comm_rank(state->comm);
    place->size = state->size = rondo_comm_size(state->comm);
    return state;
}

/* Whole pages, so that nothing else lies in the last one. */
static void *registered_alloc(struct state *state, size_t bytes)
{
    struct registered *entry = malloc(sizeof(*entry));

    bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    if (!entry)
        return NULL;
    entry->data = bench_plain_alloc(bytes);
    if (!entry->data ||
        rondo_comm_register(state->comm, entry->data, bytes, &entry->registration)) {
        free(entry->data);
        free(entry);
        return NULL;
    }
    entry->next = state->registered;
    state->registered = entry;
    return entry->data;
}

static void registered_free(struct state *state, void *data)
{
    struct registered **link = &state->registered, *entry;

    while (*link && (*link)->data != data)
        link = &(*link)->next;
    entry = *link;
    if (entry) {
        *link = entry->next;
        rondo_comm_deregister(state->comm, entry->registration);
        free(entry);
    }
    free(data);
}

static void *rondo_alloc(void *state, size_t bytes, enum bench_memory memory)
{
    void *data = NULL;

    if (memory == BENCH_MEMORY_CUDA)
        return rondo_cuda_mem_alloc(bytes, &data) ? NULL : data;
    if (memory == BENCH_MEMORY_SHARED)
        return rondo_mem_alloc(bytes, &data) ? NULL : data;
    if (memory == BENCH_MEMORY_REGISTERED)
        return registered_alloc(state, bytes);
    return bench_plain_alloc(bytes);
}

static void rondo_free(void *state, void *data, enum bench_memory memory)
{
    if (memory == BENCH_MEMORY_CUDA)
        rondo_cuda_mem_free(data);
    else if (memory == BENCH_MEMORY_SHARED)
        rondo_mem_free(data);
    else if (memory == BENCH_MEMORY_REGISTERED)
        registered_free(state, data);
    else
        free(data);
}

/* To the right, from the left, in one group. */
static rondo_result sendrecv(const struct state *state, const struct bench_call *call,
                             const void *input, void *output)
{
    rondo_stream *stream = call->queued ? state->stream : NULL;
    int rank = rondo_comm_rank(state->comm);
    int right = (rank + 1) % state->size;
    int left = (rank + state->size - 1) % state->size;
    rondo_result result = rondo_group_start();
    rondo_result ended;

    if (!result)
        result = rondo_send(input, call->count, call->type, right, state->comm, stream);
    if (!result)
        result = rondo_recv(output, call->count, call->type, left, state->comm, stream);
    ended = rondo_group_end();
    return result ? result : ended;
}

static int rondo_run(void *memory, const struct bench_call *call, const void *input, void *output)
{
    static const rondo_collective collectives[BENCH_COLLECTIVES] = {
        [BENCH_ALL_REDUCE] = RONDO_ALL_REDUCE,
        [BENCH_REDUCE] = RONDO_REDUCE,
        [BENCH_BROADCAST] = RONDO_BROADCAST,
        [BENCH_ALL_GATHER] = RONDO_ALL_GATHER,
        [BENCH_REDUCE_SCATTER] = RONDO_REDUCE_SCATTER,
        [BENCH_ALL_TO_ALL] = RONDO_ALL_TO_ALL,
        [BENCH_GATHER] = RONDO_GATHER,
        [BENCH_SCATTER] = RONDO_SCATTER,
        [BENCH_BARRIER] = RONDO_BARRIER,
    };
    const struct state *state = memory;
    rondo_call request = {
        .struct_size = sizeof(request),
        .collective = collectives[call->collective],
        .type = call->type,
        .op = call->op,
        .root = call->root,
        .input = input,
        .output = output,
        .count = call->count,
        .comm = state->comm,
        .stream = call->queued ? state->stream : NULL,
        .algorithm = call->algorithm[0] ? call->algorithm : NULL,
    };

    if (call->collective == BENCH_SENDRECV)
        return sendrecv(state, call, input, output) != RONDO_OK;
    return rondo_collective_call(&request) != RONDO_OK;
}

/* A comm has its own sentence; what failed before there was a call on it has the thread's. */
static const char *rondo_error(void *memory)
{
    const struct state *state = memory;
    const char *sentence = state ? rondo_last_error(state->comm) : open_sentence;

    return *sentence ? sentence : rondo_last_error(NULL);
}

static void version(char *text, size_t room)
{
    snprintf(text, room, "Rondo %s", rondo_version());
}

const struct bench_library bench_the_library = {
    .open = rondo_open,
    .close = rondo_close,
    .alloc = rondo_alloc,
    .free = rondo_free,
    .run = rondo_run,
    .error = rondo_error,
    .version = version,
};
