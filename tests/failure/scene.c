/* SPDX-License-Identifier: BSD-3-Clause */
/* scene.c - a seed becomes a scene: who calls what, over which memory, and who fails how. */
#include "soak.h"

#include "collectives/algorithm.h"

#include <stdlib.h>
#include <string.h>

const char *const soak_transports[SOAK_TRANSPORTS] = {"shm", "tcp", "mixed", "gpu"};
const char *const soak_fates[SOAK_FATES] = {"stop", "kill", "abort", "slow", "late", "close"};
const char *const soak_memories[SOAK_MEMORIES] = {"malloc",     "mapped", "heap",
                                                  "registered", "cuda",   "cuda_shared"};
const char *const soak_endings[SOAK_ENDINGS] = {"closes first", "closes after reuse", "keeps open"};

enum {
    LARGEST = 4 << 20,
    ALGORITHMS = 32
}; /* bytes of the longest buffer; how many there may be */

/* Short: a rank that is silent for so long has failed. Long: no rank is silent in these scenes. */
static const double SHORT_TIMEOUT = 0.4, LONG_TIMEOUT = 10;

/* The splitmix64 sequence. */
static uint64_t draw(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static unsigned below(uint64_t *state, unsigned limit)
{
    return (unsigned)(draw(state) % limit);
}

static bool percent(uint64_t *state, unsigned chance)
{
    return below(state, 100) < chance;
}

static bool is_reduction(rondo_collective collective)
{
    return collective == RONDO_ALL_REDUCE || collective == RONDO_REDUCE ||
           collective == RONDO_REDUCE_SCATTER;
}

static const char *draw_algorithm(uint64_t *state, rondo_collective collective,
                                  enum soak_transport transport)
{
    static const char *const readers[] = {"zero_copy", "none", "hierarchy_zero_copy", "zero_copy"};
    const char *names[ALGORITHMS];
    bool reads_peers = percent(state, 45), chosen = percent(state, 20);
    unsigned count = 0, pick = below(state, 1 << 16);

    for (int i = 0; algorithms[i] && count < ALGORITHMS; i++) {
        if (!algorithms[i]->forms[collective].write)
            continue;
        if (reads_peers && strcmp(algorithms[i]->name, readers[transport]) == 0)
            return algorithms[i]->name;
        names[count++] = algorithms[i]->name;
    }
    return chosen || !count ? NULL : names[pick % count];
}

static size_t draw_count(uint64_t *state, const struct scene *scene)
{
    size_t most = LARGEST / rondo_type_size(scene->type) / (size_t)scene->size;
    unsigned sort = below(state, 100), small = below(state, 100), number = below(state, 1 << 22);

    if (sort < 3)
        return 0;
    if (sort < 8)
        return 1;
    if (sort < 25)
        return 2 * (size_t)small + 1;
    if (sort < 50)
        return number % (most / 64) + 1;
    return number % most + 1;
}

static void draw_call(uint64_t *state, struct scene *scene)
{
    scene->collective = (rondo_collective)below(state, RONDO_SCATTER + 1);
    if (percent(state, 35))
        scene->collective = RONDO_ALL_REDUCE;
    scene->algorithm = draw_algorithm(state, scene->collective, scene->transport);
    scene->type = (rondo_type)below(state, RONDO_TYPES);
    scene->op = (rondo_op)below(state, RONDO_OPS);
    if (!is_reduction(scene->collective))
        scene->op = WORLD_MOVED;
    else if (world_is_float(scene->type) && scene->op >= RONDO_BAND)
        scene->op = RONDO_SUM;
    scene->root = (int)below(state, (unsigned)scene->size);
    scene->count = draw_count(state, scene);
    scene->in_place = percent(state, 20);
    scene->shares_page = percent(state, 20);
    scene->warm_ups = percent(state, 90) || scene->algorithm ? 1 + below(state, 3) : 0;
}

static void draw_settings(uint64_t *state, struct scene *scene)
{
    static const char *const ways[] = {"auto", "on", "off"};
    static const size_t slots[] = {1 << 10, 8 << 10, 128 << 10};

    scene->slot_bytes = percent(state, 50) ? 0 : slots[below(state, 3)];
    scene->slots = percent(state, 70) ? 0 : 2 + (int)below(state, 3);
    scene->deterministic = percent(state, 15);
    scene->cma = ways[below(state, 3)];
    scene->stream = ways[below(state, 3)];
    scene->cuda = percent(state, 20) ? "host" : "auto";
    scene->cuda_piece = percent(state, 50) ? "64K" : "4M";
}

static size_t draw_offset(uint64_t *state)
{
    size_t pages = below(state, 3), odd = below(state, 64);

    return percent(state, 50) ? 0 : pages * 4096 + odd;
}

static enum soak_memory draw_memory(uint64_t *state, enum soak_transport transport)
{
    enum soak_memory host = (enum soak_memory)below(state, HOST_MEMORIES);
    enum soak_memory device = percent(state, 50) ? MEMORY_CUDA : MEMORY_CUDA_SHARED;

    return transport == SOAK_GPU && percent(state, 85) ? device : host;
}

static void draw_parts(uint64_t *state, struct scene *scene)
{
    bool alike = percent(state, 60);
    enum soak_memory common = draw_memory(state, scene->transport);

    if (percent(state, 40) && scene->transport != SOAK_GPU)
        common = MEMORY_HEAP;
    for (int r = 0; r < scene->size; r++) {
        struct part *part = &scene->parts[r];

        part->input = draw_memory(state, scene->transport);
        part->output = draw_memory(state, scene->transport);
        if (alike)
            part->input = part->output = common;
        if (scene->in_place || scene->shares_page)
            part->output = part->input;
        part->input_offset = draw_offset(state);
        part->output_offset = draw_offset(state);
        part->renews = percent(state, 65);
        part->deregisters = percent(state, 50);
        part->ending = (enum soak_ending)below(state, SOAK_ENDINGS);
        part->skew = percent(state, 70) ? 0 : below(state, 2000);
    }
}

static void draw_fate(uint64_t *state, struct scene *scene)
{
    static const enum soak_fate of_threads[] = {FATE_ABORT, FATE_SLOW, FATE_LATE, FATE_CLOSE};
    /* What takes time and what is found most with comes most often. */
    static const enum soak_fate of_processes[] = {FATE_STOP, FATE_STOP,  FATE_STOP,  FATE_KILL,
                                                  FATE_KILL, FATE_ABORT, FATE_ABORT, FATE_SLOW,
                                                  FATE_LATE, FATE_CLOSE};
    struct fate *fate = &scene->fate;

    fate->kind = scene->threads ? of_threads[below(state, 4)] : of_processes[below(state, 10)];
    if (scene->transport == SOAK_GPU && fate->kind == FATE_SLOW)
        fate->kind = FATE_STOP; /* what runs on the device cannot be slowed down from here */
    fate->victim = (int)below(state, (unsigned)scene->size);
    fate->at_data = percent(state, 60);
    fate->draw = draw(state);
    fate->parts = below(state, FATE_PARTS + 1);
    fate->in_time = percent(state, 25);
    fate->pause = 0.7 + 0.01 * below(state, 80);
    fate->lingers = percent(state, 60);
}

/* All send to the right and receive from the left. What one of them is refused the others may not
 * be, so no algorithm is named. */
static void send_instead(struct scene *scene)
{
    scene->collective = RONDO_SEND;
    scene->algorithm = NULL;
    scene->op = WORLD_MOVED;
    scene->in_place = false;
}

void scene_make(uint64_t seed, enum soak_transport transport, double patience,
                struct scene *ret_scene)
{
    uint64_t state = world_hash(seed, (uint64_t)transport);
    bool waits;

    *ret_scene = (struct scene){.seed = seed, .transport = transport};
    ret_scene->size = 2 + (int)below(&state, SOAK_RANKS - 1);
    ret_scene->threads = percent(&state, 20) && transport != SOAK_MIXED && transport != SOAK_GPU;
    draw_call(&state, ret_scene);
    draw_settings(&state, ret_scene);
    draw_parts(&state, ret_scene);
    draw_fate(&state, ret_scene);
    if (transport != SOAK_GPU && percent(&state, 15))
        send_instead(ret_scene);
    waits = ret_scene->fate.kind == FATE_STOP || ret_scene->fate.kind == FATE_SLOW ||
            ret_scene->fate.kind == FATE_LATE;
    ret_scene->timeout = waits ? world_patience(SHORT_TIMEOUT) * patience : LONG_TIMEOUT * patience;
}

const char *scene_memory(const struct scene *scene)
{
    enum soak_memory first = scene->parts[0].input;

    for (int r = 0; r < scene->size; r++)
        if (scene->parts[r].input != first || scene->parts[r].output != first)
            return "mixed";
    return soak_memories[first];
}

void scene_lengths(const struct scene *scene, int rank, size_t *ret_input, size_t *ret_output)
{
    size_t count = scene->count, all = count * (size_t)scene->size;
    bool root = rank == scene->root;
    const size_t input[] = {count, count, root ? count : 0, count, all, all, count, root ? all : 0};
    const size_t output[] = {count, root ? count : 0, count, all, count,
                             all,   root ? all : 0,   count};
    bool message = scene->collective == RONDO_SEND;

    *ret_input = message ? count : input[scene->collective];
    *ret_output = message ? count : output[scene->collective];
}

void scene_describe(const struct scene *scene, char *text, size_t size)
{
    const struct fate *fate = &scene->fate;

    snprintf(
        text, size,
        "seed %llu over %s: %d %s, %s %s%s%s of %zu %s%s, root %d, %s memory; rank %d: %s",
        (unsigned long long)scene->seed, soak_transports[scene->transport], scene->size,
        scene->threads ? "threads" : "processes", scene->algorithm ? scene->algorithm : "chosen",
        rondo_collective_name(scene->collective), scene->op >= 0 ? " " : "",
        scene->op >= 0 ? rondo_op_name(scene->op) : "", scene->count, rondo_type_name(scene->type),
        scene->in_place      ? " in place"
        : scene->shares_page ? " side by side"
                             : "",
        scene->root, scene_memory(scene), fate->victim, soak_fates[fate->kind]);
}
