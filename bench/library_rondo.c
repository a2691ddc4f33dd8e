/* SPDX-License-Identifier: BSD-3-Clause */
/* library_rondo.c - Rondo as the benchmark sees it: public headers, nothing else. */
#include "bench/library.h"

#include "bench/device.h"
#include "bench/library_rondo_calls.h"

#include "rondo/bindings.h"
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
    struct bench_place place;
    /* Of calls that go on together: communicators behind the first one, and whether the calls are
     * in the background, on a stream of the host, or in a call group. */
    rondo_comm **more;
    int more_count;
    rondo_stream *background;
    bool in_background;
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
    if (!tried && (made = rondo_unique_id_create(&id)))
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
        rondo_stream_close(state->background);
        for (int i = 0; i < state->more_count; i++)
            rondo_comm_close(state->more[i]);
        free(state->more);
        rondo_stream_close(state->stream);
        rondo_comm_close(state->comm);
    }
    free(state);
}

static void *rondo_open(struct bench_place *place)
{
    struct state *state = calloc(1, sizeof(*state));
    bool failed;

    if (!state)
        return NULL;
    state->comm = join(place);
    failed = state->comm && place->device &&
             rondo_stream_open_cuda(device_stream(place->device), &state->stream);
    if (failed)
        keep_sentence();
    if (failed || !state->comm) {
        rondo_close(state);
        return NULL;
    }
    place->rank = rondo_comm_rank(state->comm);
    place->size = state->size = rondo_comm_size(state->comm);
    state->place = *place;
    return state;
}

/* Whole pages, of which calls have nothing to copy. */
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

/* ---- Calls ----------------------------------------------------------------------------------- */

/* A way is where a call goes. */
struct way {
    rondo_comm *comm;
    rondo_stream *stream;
};

static rondo_result send_to(const struct way *way, const struct bench_call *call, const void *input,
                            int peer)
{
    return rondo_send(input, call->count, call->type, peer, way->comm, way->stream);
}

static rondo_result receive_from(const struct way *way, const struct bench_call *call, void *output,
                                 int peer)
{
    return rondo_recv(output, call->count, call->type, peer, way->comm, way->stream);
}

/* Makes all messages of a call in one group; a negative rank is nobody. */
static rondo_result exchange(const struct way *way, const struct bench_call *call,
                             const void *input, void *output, int to, int from)
{
    rondo_result result = rondo_group_start();
    rondo_result ended;

    for (int i = 0; i < bench_messages(call->collective) && !result; i++) {
        if (to >= 0)
            result = send_to(way, call, input, to);
        if (!result && from >= 0)
            result = receive_from(way, call, output, from);
    }
    ended = rondo_group_end();
    return result ? result : ended;
}

/* To the right, from the left. */
static rondo_result sendrecv(const struct state *state, const struct way *way,
                             const struct bench_call *call, const void *input, void *output)
{
    int rank = rondo_comm_rank(way->comm);

    return exchange(way, call, input, output, (rank + 1) % state->size,
                    (rank + state->size - 1) % state->size);
}

static rondo_result ping_pong(const struct way *way, const struct bench_call *call,
                              const void *input, void *output, int partner)
{
    bool first = rondo_comm_rank(way->comm) < partner;
    rondo_result result =
        first ? send_to(way, call, input, partner) : receive_from(way, call, output, partner);

    if (result)
        return result;
    return first ? receive_from(way, call, output, partner) : send_to(way, call, input, partner);
}

/* A window goes from the lower rank, or both ways. The answer is one element, in the memory that
 * the sender of the window has for it. */
static rondo_result of_pair(const struct state *state, const struct way *way,
                            const struct bench_call *call, const void *input, void *output)
{
    int rank = rondo_comm_rank(way->comm);
    int partner = bench_partner(rank, state->size);
    bool both = call->collective == BENCH_BIDIRECTIONAL;
    struct bench_call answer = *call;
    rondo_result result;

    if (partner < 0)
        return RONDO_OK;
    if (call->collective == BENCH_LATENCY)
        return ping_pong(way, call, input, output, partner);
    result = exchange(way, call, input, output, both || rank < partner ? partner : -1,
                      bench_pair_source(call->collective, rank, state->size));
    if (result || both)
        return result;
    answer.count = 1;
    return rank < partner ? receive_from(way, &answer, output, partner)
                          : send_to(way, &answer, input, partner);
}

/* Opens a communicator as a job does its first one, but that the id comes over that. */
static rondo_result open_by_id(const struct state *state, rondo_comm **ret_comm)
{
    int rank = rondo_comm_rank(state->comm);
    rondo_config config;
    rondo_unique_id id;
    rondo_result result = rank ? RONDO_OK : rondo_unique_id_create(&id);

    config_init(&config, &state->place);
    if (!result)
        result = rondo_broadcast(&id, &id, sizeof(id), RONDO_UINT8, 0, state->comm, NULL);
    return result ? result : rondo_comm_open_id(&id, state->size, rank, &config, ret_comm);
}

static rondo_result open_another(const struct state *state, const struct bench_call *call)
{
    rondo_comm *comm = NULL;
    rondo_result result = call->collective == BENCH_DUP ? rondo_comm_dup(state->comm, &comm)
                                                        : open_by_id(state, &comm);

    rondo_comm_close(comm);
    return result;
}

static rondo_result collective_on(const struct way *way, const struct bench_call *call,
                                  const void *input, void *output)
{
    rondo_call request = bench_request(call, input, output, way->comm, way->stream);

    return rondo_collective_call(&request);
}

static rondo_result call_on(const struct state *state, const struct way *way,
                            const struct bench_call *call, const void *input, void *output)
{
    if (call->collective < BENCH_SENDRECV)
        return collective_on(way, call, input, output);
    if (call->collective == BENCH_SENDRECV)
        return sendrecv(state, way, call, input, output);
    if (bench_collective_is_of_pairs(call->collective))
        return of_pair(state, way, call, input, output);
    return bench_collective_has_counts(call->collective)
               ? bench_call_with_counts(call, input, output, way->comm, way->stream)
               : open_another(state, call);
}

static int rondo_run(void *memory, const struct bench_call *call, const void *input, void *output)
{
    const struct state *state = memory;
    const struct way way = {state->comm, call->queued ? state->stream : NULL};
    rondo_result result = call_on(state, &way, call, input, output);

    return result == RONDO_ERROR_UNSUPPORTED ? BENCH_NO_SUCH_CALL : result != RONDO_OK;
}

static double rondo_predict(void *memory, const struct bench_call *call)
{
    return bench_estimate(call, ((const struct state *)memory)->comm);
}

/* ---- Calls that go on together --------------------------------------------------------------- */

static rondo_result open_more(struct state *state, int communicators)
{
    rondo_comm **larger = realloc(state->more, (size_t)communicators * sizeof(rondo_comm *));
    rondo_result result = RONDO_OK;

    if (!larger)
        return RONDO_ERROR_MEMORY;
    state->more = larger;
    while (!result && state->more_count + 1 < communicators) {
        result = rondo_comm_dup(state->comm, &state->more[state->more_count]);
        state->more_count += !result;
    }
    return result;
}

static int rondo_begin(void *memory, int communicators, bool background)
{
    struct state *state = memory;
    rondo_result result = RONDO_OK;

    if (state->more_count + 1 < communicators)
        result = open_more(state, communicators);
    if (!result && background && !state->background)
        result = rondo_stream_open(&state->background);
    state->in_background = background;
    if (!result && !background)
        result = rondo_group_start();
    return result != RONDO_OK;
}

static int rondo_start(void *memory, const struct bench_call *call, int communicator,
                       const void *input, void *output)
{
    const struct state *state = memory;
    const struct way way = {communicator ? state->more[communicator - 1] : state->comm,
                            state->in_background ? state->background
                            : call->queued       ? state->stream
                                                 : NULL};

    return call_on(state, &way, call, input, output) != RONDO_OK;
}

static int rondo_finish(void *memory)
{
    const struct state *state = memory;

    return (state->in_background ? rondo_stream_synchronize(state->background)
                                 : rondo_group_end()) != RONDO_OK;
}

/* A comm has its own sentence; what failed before there was a call on it has the thread's. */
static const char *rondo_error(void *memory)
{
    const struct state *state = memory;
    const char *sentence = state ? rondo_last_error(state->comm) : open_sentence;

    return *sentence ? sentence : rondo_last_error(NULL);
}

static const char *rondo_ran(void *memory)
{
    return rondo_comm_last_algorithm(((const struct state *)memory)->comm);
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
    .ran = rondo_ran,
    .version = version,
    .begin = rondo_begin,
    .start = rondo_start,
    .finish = rondo_finish,
    .predict = rondo_predict,
};
