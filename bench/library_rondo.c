/* SPDX-License-Identifier: BSD-3-Clause */
/* library_rondo.c - Rondo as the benchmark sees it: the public header, nothing else. */
#include "bench/library.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

struct state {
    rondo_comm *comm;
    int size;
};

static void config_init(rondo_config *config, const struct bench_place *place)
{
    *config = (rondo_config)RONDO_CONFIG_INIT;
    if (place->deterministic)
        config->deterministic = 1;
    config->timeout = place->timeout;
}

/* The sentence of a failed open: for all threads, whoever tried. */
static char open_sentence[1024];

/* Whoever comes first opens the communicators of all threads. */
static rondo_comm *join_threads(const struct bench_place *place, const rondo_config *config)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static bool tried;
    rondo_comm *comm;

    pthread_mutex_lock(&mutex);
    if (!tried && rondo_comm_open_all(place->size, config, place->joined))
        snprintf(open_sentence, sizeof(open_sentence), "%s", rondo_last_error(NULL));
    tried = true;
    comm = place->joined[place->rank];
    pthread_mutex_unlock(&mutex);
    return comm;
}

static void *rondo_open(struct bench_place *place)
{
    struct state *state = calloc(1, sizeof(*state));
    rondo_config config;

    if (!state)
        return NULL;
    config_init(&config, place);
    if (place->joined)
        state->comm = join_threads(place, &config);
    else if (rondo_comm_open(&config, &state->comm))
        snprintf(open_sentence, sizeof(open_sentence), "%s", rondo_last_error(NULL));
    if (!state->comm) {
        free(state);
        return NULL;
    }
    place->rank = rondo_comm_rank(state->comm);
    place->size = state->size = rondo_comm_size(state->comm);
    return state;
}

static void rondo_close(void *memory)
{
    struct state *state = memory;

    if (state)
        rondo_comm_close(state->comm);
    free(state);
}

static const char *rondo_lacks(void *memory, const struct bench_call *call)
{
    return NULL;
}

static void *rondo_alloc(void *memory, size_t bytes, bool shared)
{
    void *data = NULL;

    if (shared)
        return rondo_mem_alloc(bytes, &data) ? NULL : data;
    if (posix_memalign(&data, PAGE, bytes))
        return NULL;
    return memset(data, 0, bytes);
}

static void rondo_free(void *memory, void *data, bool shared)
{
    if (shared)
        rondo_mem_free(data);
    else
        free(data);
}

/* To the right, from the left, in one group. */
static rondo_result sendrecv(const struct state *state, const struct bench_call *call,
                             const void *input, void *output)
{
    int rank = rondo_comm_rank(state->comm);
    int right = (rank + 1) % state->size;
    int left = (rank + state->size - 1) % state->size;
    rondo_result result = rondo_group_start();
    rondo_result ended;

    if (!result)
        result = rondo_send(input, call->count, call->type, right, state->comm, NULL);
    if (!result)
        result = rondo_recv(output, call->count, call->type, left, state->comm, NULL);
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
    .lacks = rondo_lacks,
    .alloc = rondo_alloc,
    .free = rondo_free,
    .run = rondo_run,
    .error = rondo_error,
    .version = version,
};
