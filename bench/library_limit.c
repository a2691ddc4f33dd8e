/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library_limit.c - what the machine can do for that many ranks, as one more library of the
 * benchmark. The ranks are threads, so that all of them can reach all buffers; nothing of Rondo is
 * in here.
 *
 * Synchronising is a round of flags: each rank writes its own cache line and reads those of all
 * others. A vector that fits into the line behind the flag travels in it, and the call is that one
 * round. Otherwise a round tells that all inputs are there, each rank reads what is its part
 * straight out of the others' inputs and writes it straight into the outputs, and a second round
 * tells that all outputs are there.
 *
 * Lines come in pairs that take turns: who begins round k + 2 knows that all have left round k.
 *
 * For device memory the limit is computed, from how fast a device copies its own memory, and how
 * long launches take that follow each other. On each device one thread, the first, works:
 *
 *     sendrecv, queued    copies the input to the output, on the device
 *     barrier, queued     launches an empty kernel
 */
#include "bench/library.h"

#include "bench/device.h"
#include "bench/limit_sum.h"
#include "bench/pattern.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS_MAX = 1024, AREAS = 2, PAYLOAD = 56, FLOATS_PER_LINE = 16, HUGE_PAGE = 2 << 20 };

struct line {
    _Alignas(64) _Atomic uint64_t round;
    unsigned char payload[PAYLOAD];
};

struct area {
    unsigned char *base;
    size_t bytes;
};

/* A rank tells the others this; they read `areas` after the round that follows their change. */
struct member {
    _Alignas(128) struct line lines[2];
    _Alignas(128) struct area areas[AREAS];
};

struct state {
    struct member *members; /* of all ranks */
    int rank, size;
    uint64_t round;
    int spins;             /* before a wait gives the processor away */
    struct device *device; /* NULL: the limit is that of the host */
    bool works;            /* on the device */
    const float *inputs[RANKS_MAX];
    float *outputs[RANKS_MAX];
};

/* ---- Joining --------------------------------------------------------------------------------- */

/* The table of all ranks is made by whoever comes first, and stays as long as the process. */
static struct member *find_members(int size)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static struct member *members;

    pthread_mutex_lock(&mutex);
    if (!members) {
        members = aligned_alloc(_Alignof(struct member), (size_t)size * sizeof(*members));
        if (members)
            memset(members, 0, (size_t)size * sizeof(*members));
    }
    pthread_mutex_unlock(&mutex);
    return members;
}

/* The ranks may be bound to a processor each; the process is not. */
static int count_processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(getpid(), sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

static void *limit_open(struct bench_place *place)
{
    struct state *state;

    if (place->size > RANKS_MAX)
        return NULL;
    state = calloc(1, sizeof(*state));
    if (!state)
        return NULL;
    state->members = find_members(place->size);
    state->rank = place->rank;
    state->size = place->size;
    state->device = place->device;
    state->works = place->device && place->rank < device_count(place->device);
    state->spins = place->size > count_processors() ? 20 : 20000;
    if (state->members)
        return state;
    free(state);
    return NULL;
}

static void limit_close(void *memory)
{
    free(memory);
}

static const char *limit_lacks(void *memory, const struct bench_call *call)
{
    const struct state *state = memory;

    if (call->collective >= BENCH_COLLECTIVES)
        return "only collectives and sendrecv are asked of the limit here";
    if (state->device && call->collective != BENCH_BARRIER && call->collective != BENCH_SENDRECV)
        return "it is computed from a copy and a launch";
    if (bench_collective_reduces(call->collective) &&
        (call->type != RONDO_FLOAT32 || call->op != RONDO_SUM))
        return "of all reductions only the float32 sum has a limit here";
    if (call->collective == BENCH_ALL_TO_ALL && call->in_place)
        return "all_to_all in place has no limit here: it needs a copy of the input";
    return NULL;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void *limit_alloc(void *memory, size_t bytes, enum bench_memory kind)
{
    struct state *state = memory;
    struct area *area = state->members[state->rank].areas;
    void *base;

    if (kind == BENCH_MEMORY_CUDA)
        return device_alloc(state->device, bytes);
    bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    while (area->base) /* the benchmark has an input and an output */
        area++;
    base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    madvise(base, bytes, MADV_HUGEPAGE); /* a wish */
    *area = (struct area){base, bytes};
    return memset(base, 0, bytes);
}

static void limit_free(void *memory, void *data, enum bench_memory kind)
{
    const struct state *state = memory;
    struct area *areas = state->members[state->rank].areas;

    if (kind == BENCH_MEMORY_CUDA)
        device_free(state->device, data);
    for (int i = 0; i < AREAS; i++)
        if (areas[i].base == data) {
            munmap(data, areas[i].bytes);
            areas[i] = (struct area){NULL, 0};
        }
}

/* Where `rank` has what this rank has at `mine`, `shift` bytes further for each rank. */
static unsigned char *twin(const struct state *state, const void *mine, int rank, size_t shift)
{
    const struct area *own = state->members[state->rank].areas;
    uintptr_t at = (uintptr_t)mine;
    int i = 0;

    while (i < AREAS - 1 && at - (uintptr_t)own[i].base >= own[i].bytes)
        i++;
    return state->members[rank].areas[i].base + (at - (uintptr_t)own[i].base) -
           (size_t)state->rank * shift + (size_t)rank * shift;
}

/* ---- Rounds of flags ------------------------------------------------------------------------- */

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Acquire, pairs with the release in announce(): whoever sees the flag also sees the payload. */
static void wait_for(const struct state *state, const struct line *line)
{
    for (int tries = 0; atomic_load_explicit(&line->round, memory_order_acquire) < state->round;
         tries++) {
        if (tries >= state->spins)
            sched_yield();
        else if (tries > 100)
            relax();
    }
}

static const struct line *line_of(const struct state *state, int rank)
{
    return &state->members[rank].lines[state->round % 2];
}

static void announce(struct state *state, const void *payload, size_t bytes)
{
    struct line *line = &state->members[state->rank].lines[++state->round % 2];

    if (bytes > 0)
        memcpy(line->payload, payload, bytes);
    atomic_store_explicit(&line->round, state->round, memory_order_release);
}

static void cross(struct state *state, const void *payload, size_t bytes)
{
    announce(state, payload, bytes);
    for (int i = 1; i < state->size; i++)
        wait_for(state, line_of(state, (state->rank + i) % state->size));
}

/* ---- The collectives, once all inputs are in reach ------------------------------------------- */

/* One call: who has what, in bytes. */
struct job {
    const struct bench_call *call;
    size_t block; /* of `count` elements */
};

static const unsigned char *input_of(const struct state *state, int rank)
{
    return (const void *)state->inputs[rank];
}

/* Elements from .. of a rank's slice; slices begin on a cache line if the vector does. */
static size_t slice_start(size_t count, int rank, int size)
{
    size_t lines = (count + FLOATS_PER_LINE - 1) / FLOATS_PER_LINE;
    size_t start = lines * (size_t)rank / (size_t)size * FLOATS_PER_LINE;

    return start < count ? start : count;
}

/* `start`, `count`: elements of the inputs. */
static void reduce_into(const struct state *state, float *const *to, int outputs, size_t start,
                        size_t count)
{
    const float *from[RANKS_MAX];

    for (int rank = 0; rank < state->size; rank++)
        from[rank] = state->inputs[rank] + start;
    limit_sum(to, outputs, from, state->size, count);
}

static void reduce(const struct state *state, const struct job *job)
{
    const struct bench_call *call = job->call;
    size_t start = slice_start(call->count, state->rank, state->size);
    size_t count = slice_start(call->count, state->rank + 1, state->size) - start;
    int outputs = call->collective == BENCH_ALL_REDUCE ? state->size : 1;
    float *to[RANKS_MAX];

    for (int i = 0; i < outputs; i++) /* everybody begins with another one */
        to[i] = state->outputs[outputs > 1 ? (state->rank + i) % outputs : call->root] + start;
    reduce_into(state, to, outputs, start, count);
}

/* Block `block` of the input of `from` becomes block `to_block` of the own output. */
static void fetch(const struct state *state, const struct job *job, int from, int block,
                  int to_block)
{
    const unsigned char *source = input_of(state, from) + (size_t)block * job->block;
    unsigned char *to = (unsigned char *)state->outputs[state->rank];

    to += (size_t)to_block * job->block;
    if (to != source)
        memcpy(to, source, job->block);
}

static void collect(const struct state *state, const struct job *job)
{
    bool all_to_all = job->call->collective == BENCH_ALL_TO_ALL;

    for (int i = 0; i < state->size; i++) {
        int from = (state->rank + i) % state->size;

        fetch(state, job, from, all_to_all ? state->rank : 0, from);
    }
}

static void do_part(const struct state *state, const struct job *job)
{
    const struct bench_call *call = job->call;
    enum bench_collective collective = call->collective;
    bool for_all = bench_input_elements(call, 2) > call->count; /* a block for every rank */
    bool from_all = bench_output_elements(call, 2) > call->count;
    int rank = state->rank;
    int left = (rank + state->size - 1) % state->size;

    if (collective == BENCH_REDUCE_SCATTER)
        reduce_into(state, &state->outputs[rank], 1, call->count * (size_t)rank, call->count);
    else if (bench_collective_reduces(collective))
        reduce(state, job);
    else if (!from_all)
        fetch(state, job, collective == BENCH_SENDRECV ? left : call->root, for_all ? rank : 0, 0);
    else if (collective != BENCH_GATHER || rank == call->root)
        collect(state, job);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* The vector is in the lines: everybody computes the whole result for itself. */
static void run_small(struct state *state, const struct job *job, const void *input, void *output,
                      size_t bytes)
{
    enum bench_collective collective = job->call->collective;
    bool all = collective != BENCH_REDUCE || state->rank == job->call->root;

    cross(state, input, bytes);
    for (int rank = 0; rank < state->size; rank++)
        state->inputs[rank] = (const float *)(const void *)line_of(state, rank)->payload;
    state->outputs[state->rank] = output;
    if (collective != BENCH_ALL_REDUCE && collective != BENCH_REDUCE)
        do_part(state, job);
    else if (all)
        reduce_into(state, &state->outputs[state->rank], 1, 0, job->call->count);
}

static void run_large(struct state *state, const struct job *job, const void *input, void *output)
{
    const struct bench_call *call = job->call;
    bool long_input = bench_input_elements(call, 2) > bench_output_elements(call, 2);
    size_t shift = call->in_place && bench_in_place_offset(call, 1) > 0 ? job->block : 0;

    cross(state, NULL, 0);
    for (int rank = 0; rank < state->size; rank++) {
        unsigned char *from = twin(state, input, rank, long_input ? 0 : shift);
        unsigned char *to = twin(state, output, rank, long_input ? shift : 0);

        state->inputs[rank] = (const float *)(const void *)from;
        state->outputs[rank] = (float *)(void *)to;
    }
    do_part(state, job);
    cross(state, NULL, 0);
}

static int queue(const struct state *state, const struct bench_call *call, const void *input,
                 void *output)
{
    if (!state->works)
        return 0;
    return call->collective == BENCH_BARRIER
               ? device_queue_nothing(state->device)
               : device_queue_copy(state->device, output, input,
                                   call->count * pattern_type_bytes(call->type));
}

static int limit_run(void *memory, const struct bench_call *call, const void *input, void *output)
{
    struct state *state = memory;
    size_t element = pattern_type_bytes(call->type);
    size_t bytes = bench_input_elements(call, state->size) * element;
    struct job job = {call, call->count * element};

    if (call->queued)
        return queue(state, call, input, output);
    if (call->collective == BENCH_BARRIER)
        cross(state, NULL, 0);
    else if (bytes <= PAYLOAD)
        run_small(state, &job, input, output, bytes);
    else
        run_large(state, &job, input, output);
    return 0;
}

static const char *limit_error(void *memory)
{
    const struct state *state = memory;

    if (state && state->device)
        return device_error(state->device);
    return memory ? "there is no memory for the buffers"
                  : "there is no memory, or there are more than 1024 ranks";
}

static void version(char *text, size_t room)
{
    snprintf(text, room, "this machine's limit");
}

const struct bench_library bench_the_library = {
    .open = limit_open,
    .close = limit_close,
    .lacks = limit_lacks,
    .alloc = limit_alloc,
    .free = limit_free,
    .run = limit_run,
    .error = limit_error,
    .version = version,
};
