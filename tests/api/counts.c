/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counts.c - see counts.h.
 *
 * Block b of rank r has data of its own, whose seed is that of the pair. Memory is filled with
 * UNTOUCHED before the call, and what is between blocks must stay so.
 */
#include "counts.h"

#include "bodies.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UNTOUCHED = 0xa5, GAP = 3 };

/* One side of a call on this rank. */
struct side {
    size_t counts[WORLD_RANKS], places[WORLD_RANKS], end;
    char *memory;
};

struct scene {
    const struct counts *test;
    rondo_comm *comm;
    int rank, size;
    size_t element;
    struct side in, out;
    rondo_stream *stream;
};

/* Elements in the block that `from` gives and `to` gets. */
static size_t count_between(const struct counts *test, int from, int to)
{
    uint64_t hash = world_hash((uint64_t)from * WORLD_RANKS + (uint64_t)to, test->longest);

    return hash % 3 ? (size_t)(hash >> 8) % (test->longest + 1) : 0;
}

static struct world_data data_of(const struct scene *scene, int from, int to)
{
    bool reduces = scene->test->call == COUNTS_REDUCE_SCATTER;

    return (struct world_data){scene->test->type, reduces ? RONDO_SUM : WORLD_MOVED, scene->size,
                               (uint64_t)(reduces ? to : from * WORLD_RANKS + to)};
}

static void lay_out(const struct scene *scene, struct side *side)
{
    size_t gap = scene->test->layout == COUNTS_PACKED ? 0 : GAP;

    side->end = 0;
    for (int i = 0; i < scene->size; i++) {
        int r = scene->test->layout == COUNTS_REVERSED ? scene->size - 1 - i : i;

        side->places[r] = side->end;
        side->end += side->counts[r] + gap;
    }
}

static char *at(const struct scene *scene, const struct side *side, int block)
{
    return side->memory + side->places[block] * scene->element;
}

/* A side has a block of each rank, or one block, which is then the first. */
static void make_counts(struct scene *scene)
{
    enum counts_call call = scene->test->call;

    for (int r = 0; r < scene->size; r++) {
        bool to = call == COUNTS_ALL_GATHER, from = call == COUNTS_REDUCE_SCATTER;

        scene->in.counts[r] = to ? 0 : count_between(scene->test, from ? 0 : scene->rank, r);
        scene->out.counts[r] = from ? 0 : count_between(scene->test, r, to ? 0 : scene->rank);
    }
    if (call == COUNTS_ALL_GATHER)
        scene->in.counts[0] = scene->out.counts[scene->rank];
    if (call == COUNTS_REDUCE_SCATTER)
        scene->out.counts[0] = scene->in.counts[scene->rank];
}

static rondo_result side_open(const struct scene *scene, struct side *side)
{
    lay_out(scene, side);
    side->memory = malloc(side->end * scene->element + 1);
    if (!side->memory)
        return RONDO_ERROR_MEMORY;
    memset(side->memory, UNTOUCHED, side->end * scene->element + 1);
    return RONDO_OK;
}

static void fill(struct scene *scene)
{
    for (int b = 0; b < scene->size; b++) {
        bool gathers = scene->test->call == COUNTS_ALL_GATHER;
        struct world_data data = data_of(scene, scene->rank, gathers ? 0 : b);

        if (scene->in.counts[b] || !gathers)
            world_fill(&data, scene->rank, scene->in.counts[b], at(scene, &scene->in, b));
    }
}

/* In place, the one block of a side lies among the blocks of the other. */
static void put_in_place(struct scene *scene)
{
    bool gathers = scene->test->call == COUNTS_ALL_GATHER;
    struct side *one = gathers ? &scene->in : &scene->out;
    struct side *all = gathers ? &scene->out : &scene->in;

    if (gathers)
        memcpy(at(scene, all, scene->rank), at(scene, one, 0), one->counts[0] * scene->element);
    free(one->memory);
    one->memory = NULL;
}

static rondo_result scene_open(struct scene *scene, rondo_comm *comm, const struct counts *test)
{
    rondo_result result;

    *scene = (struct scene){.test = test,
                            .comm = comm,
                            .rank = rondo_comm_rank(comm),
                            .size = rondo_comm_size(comm),
                            .element = rondo_type_size(test->type)};
    make_counts(scene);
    result = side_open(scene, &scene->in);
    if (!result)
        result = side_open(scene, &scene->out);
    if (!result)
        fill(scene);
    if (!result && test->in_place)
        put_in_place(scene);
    if (!result && test->streamed)
        result = rondo_stream_open(&scene->stream);
    return result;
}

static void scene_close(struct scene *scene)
{
    rondo_stream_close(scene->stream);
    free(scene->in.memory);
    free(scene->out.memory);
}

static rondo_result call_with(const struct scene *scene, const struct side *in,
                              const struct side *out)
{
    const struct counts *test = scene->test;
    const bool packed = test->layout == COUNTS_PACKED;
    const size_t *in_places = packed ? NULL : in->places;
    const size_t *out_places = packed ? NULL : out->places;
    const char *input = in->memory;
    char *output = out->memory;

    if (test->call == COUNTS_ALL_GATHER)
        input = input ? at(scene, in, 0) : at(scene, out, scene->rank);
    if (test->call == COUNTS_REDUCE_SCATTER)
        output = output ? at(scene, out, 0) : at(scene, in, scene->rank);

    switch (test->call) {
    case COUNTS_ALL_TO_ALL:
        return rondo_all_to_all_v(input, in->counts, in_places, output, out->counts, out_places,
                                  test->type, scene->comm, scene->stream);
    case COUNTS_ALL_GATHER:
        return rondo_all_gather_v(input, output, out->counts, out_places, test->type, scene->comm,
                                  scene->stream);
    default:
        return rondo_reduce_scatter_v(input, in->counts, in_places, output, test->type, RONDO_SUM,
                                      scene->comm, scene->stream);
    }
}

static rondo_result call_once(const struct scene *scene)
{
    return call_with(scene, &scene->in, &scene->out);
}

/* Between two calls of another kind; the arrays are gone when the function has returned. */
static rondo_result call_on_stream(const struct scene *scene, int64_t *sums)
{
    struct side in = scene->in, out = scene->out;
    rondo_result result = rondo_group_start();

    sums[0] = sums[1] = 1;
    for (int i = 0; i < 2 && !result; i++) {
        result = rondo_all_reduce(&sums[i], &sums[i], 1, RONDO_INT64, RONDO_SUM, scene->comm,
                                  scene->stream);
        if (!i && !result)
            result = call_with(scene, &in, &out);
        memset(in.counts, 0xff, sizeof(in.counts));
        memset(in.places, 0xff, sizeof(in.places));
        memset(out.counts, 0xff, sizeof(out.counts));
        memset(out.places, 0xff, sizeof(out.places));
    }
    if (!result)
        result = rondo_group_end();
    return result ? result : rondo_stream_synchronize(scene->stream);
}

static bool is_untouched(const char *memory, const char *end)
{
    while (memory < end && *memory == (char)UNTOUCHED)
        memory++;
    return memory >= end;
}

static bool check_block(const struct scene *scene, int block, const char *memory, char *sentence)
{
    size_t count = scene->out.counts[block];
    enum counts_call call = scene->test->call;
    struct world_data data;

    if (call == COUNTS_REDUCE_SCATTER) {
        data = data_of(scene, 0, scene->rank);
        return world_check_reduced(&data, 0, count, memory, sentence);
    }
    data = data_of(scene, block, call == COUNTS_ALL_GATHER ? 0 : scene->rank);
    return world_check_moved(&data, block, 0, count, memory, sentence);
}

static rondo_result check(const struct scene *scene, char *sentence)
{
    const struct side *out = &scene->out;
    int blocks = scene->test->call == COUNTS_REDUCE_SCATTER ? 1 : scene->size;

    for (int b = 0; b < blocks; b++) {
        const char *memory = out->memory ? at(scene, out, b) : at(scene, &scene->in, scene->rank);
        const char *end = memory + out->counts[b] * scene->element;
        size_t gap = !out->memory || scene->test->layout == COUNTS_PACKED ? 0 : GAP;

        if (!check_block(scene, b, memory, sentence))
            return RONDO_ERROR_INTERNAL;
        if (!is_untouched(end, end + gap * scene->element))
            return world_say(sentence, RONDO_ERROR_INTERNAL,
                             "rank %d: something was written behind block %d", scene->rank, b);
    }
    return RONDO_OK;
}

rondo_result counts_run(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    int64_t sums[2] = {0};
    rondo_result result = scene_open(&scene, comm, argument);

    if (!result)
        result = scene.stream ? call_on_stream(&scene, sums) : call_once(&scene);
    if (result)
        world_say(sentence, result, "call %d: %s", (int)scene.test->call, rondo_last_error(comm));
    else
        result = check(&scene, sentence);
    if (!result && scene.stream && (sums[0] != scene.size || sums[1] != scene.size))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "the calls around are wrong");
    scene_close(&scene);
    return result;
}

rondo_result counts_run_all(rondo_comm *comm, void *argument, char *sentence)
{
    static const size_t longest[] = {0, 1, 7, 1000, 20001};
    static const rondo_type types[] = {RONDO_UINT8, RONDO_FLOAT32, RONDO_BFLOAT16, RONDO_INT64};
    rondo_result result = RONDO_OK;

    (void)argument;
    for (int i = 0; i < 2 * COUNTS_CALLS * COUNTS_LAYOUTS * 5 && !result; i++) {
        struct counts counts = {.call = (enum counts_call)(i / 2 % COUNTS_CALLS),
                                .layout = (enum counts_layout)(i / 6 % COUNTS_LAYOUTS),
                                .longest = longest[i / 18 % 5],
                                .type = types[world_hash((uint64_t)i, 5) % 4],
                                .streamed = i % 5 == 0};

        counts.in_place = i % 2 && counts.call != COUNTS_ALL_TO_ALL;
        result = counts_run(comm, &counts, sentence);
    }
    return result;
}

/* ---- What goes wrong ------------------------------------------------------------------------- */

rondo_result counts_differ(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, argument);

    if (scene.rank == 1) {
        scene.in.counts[2] += 1;
        if (scene.test->call == COUNTS_ALL_GATHER)
            scene.out.counts[2] += 1;
    }
    scene.in.memory = realloc(scene.in.memory, 1 << 20);
    scene.out.memory = realloc(scene.out.memory, 1 << 20);
    if (!result)
        result = call_once(&scene);
    if (!result)
        result = rondo_barrier(comm, NULL);
    if (result)
        world_say(sentence, result, "%s", rondo_last_error(comm));
    scene_close(&scene);
    return result;
}

rondo_result counts_lose_a_rank(rondo_comm *comm, void *argument, char *sentence)
{
    struct scene scene;
    rondo_result result = scene_open(&scene, comm, argument);

    for (int i = 0; i < 1000 && !result; i++) {
        if (i == 5 && scene.rank == 1)
            kill(getpid(), SIGKILL);
        result = call_once(&scene);
    }
    if (result)
        world_say(sentence, result, "%s", rondo_last_error(comm));
    scene_close(&scene);
    return result;
}
