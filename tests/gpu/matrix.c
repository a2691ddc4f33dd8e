/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * matrix.c - random calls on CUDA streams: collectives, types, operations, counts, roots, in place
 * or not, unaligned or not, and all kinds of memory on each rank.
 */
#include "bodies.h"
#include "device.h"

#include "rondo/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0xa5, MOST_SHIFT = 16, MOST_COUNT = 40009 };

struct shot {
    rondo_collective collective;
    rondo_type type;
    rondo_op op;
    size_t count;
    int size, rank, root;
    bool in_place, unaligned;
    enum device_memory input_kind, output_kind; /* of this rank */
};

/* Allocated once: freeing device memory waits for all work on the device, and so for the peers. */
struct stock {
    char *memory[MEMORY_KINDS];
    char *mirror;
};

/* A buffer of any kind, and its contents on the host. */
struct place {
    char *memory, *mirror;
    size_t bytes, shift;
};

static void place_open(struct place *place, const struct stock *stock, enum device_memory kind,
                       size_t bytes, size_t shift)
{
    *place = (struct place){stock->memory[kind], stock->mirror, bytes, shift};
    memset(place->mirror, GUARD_BYTE, bytes + 2 * GUARD);
}

static char *place_at(const struct place *place)
{
    return place->memory + place->shift + GUARD;
}

static bool place_write(const struct place *place)
{
    return device_copy(place->memory + place->shift, place->mirror, place->bytes + 2 * GUARD);
}

/* False, too, if something was written beside it. */
static bool place_read(const struct place *place)
{
    bool held = device_copy(place->mirror, place->memory + place->shift, place->bytes + 2 * GUARD);

    for (int i = 0; i < GUARD; i++)
        held = held && (unsigned char)place->mirror[i] == GUARD_BYTE &&
               (unsigned char)place->mirror[GUARD + place->bytes + (size_t)i] == GUARD_BYTE;
    return held;
}

static rondo_result stock_open(struct stock *stock, size_t bytes)
{
    bool all = (stock->mirror = malloc(bytes)) != NULL;

    for (int kind = 0; kind < MEMORY_KINDS && all; kind++)
        all = (stock->memory[kind] = device_alloc((enum device_memory)kind, bytes)) != NULL;
    return all ? RONDO_OK : RONDO_ERROR_MEMORY;
}

static void stock_close(struct stock *stock)
{
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        device_free((enum device_memory)kind, stock->memory[kind]);
    free(stock->mirror);
}

/* ---- A call ---------------------------------------------------------------------------------- */

static bool reduces(rondo_collective collective)
{
    return collective == RONDO_ALL_REDUCE || collective == RONDO_REDUCE ||
           collective == RONDO_REDUCE_SCATTER;
}

/* All ranks draw the same, but for the kinds of memory. */
static struct shot draw(int index, int size, int rank, bool pieces)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 17, 64, 255, 1000, 4099, MOST_COUNT};
    uint64_t dice = world_hash(2027, (uint64_t)index);
    uint64_t own = world_hash(dice, (uint64_t)rank);
    struct shot shot = {.size = size, .rank = rank};

    shot.collective = (rondo_collective)(index % (RONDO_SCATTER + 1));
    shot.type = (rondo_type)(dice % RONDO_TYPES);
    shot.op = (rondo_op)(dice / 16 % RONDO_OPS);
    if (world_is_float(shot.type) && shot.op >= RONDO_BAND)
        shot.op = RONDO_SUM;
    shot.count = counts[dice / 256 % (sizeof(counts) / sizeof(counts[0]))];
    shot.root = (int)(dice / 4096 % (unsigned)size);
    shot.in_place = dice / 65536 % 3 == 0;
    shot.unaligned = dice / 262144 % 3 == 0;
    shot.input_kind = (enum device_memory)(own % 8 < 5 ? MEMORY_DEVICE : own / 8 % MEMORY_KINDS);
    shot.output_kind =
        (enum device_memory)(own / 32 % 8 < 5 ? MEMORY_DEVICE : own / 256 % MEMORY_KINDS);
    if (pieces)
        shot.input_kind = shot.output_kind = MEMORY_PIECES;
    return shot;
}

static void describe(const struct shot *shot, char *text, size_t size)
{
    snprintf(text, size, "%s of %zu %s, %s, root %d, %d ranks, memory %d to %d%s%s",
             rondo_collective_name(shot->collective), shot->count, rondo_type_name(shot->type),
             reduces(shot->collective) ? rondo_op_name(shot->op) : "moved", shot->root, shot->size,
             shot->input_kind, shot->output_kind, shot->in_place ? ", in place" : "",
             shot->unaligned ? ", unaligned" : "");
}

/* Elements of input and output; as in rondo.h. */
static void lengths(const struct shot *shot, size_t *ret_input, size_t *ret_output)
{
    size_t count = shot->count, all = count * (size_t)shot->size;
    bool root = shot->rank == shot->root;
    size_t input[] = {count, count, root ? count : 0, count, all, all, count, root ? all : 0};
    size_t output[] = {count, root ? count : 0, count, all, count, all, root ? all : 0, count};

    *ret_input = input[shot->collective];
    *ret_output = output[shot->collective];
}

static bool check(const struct shot *shot, const struct world_data *data, const char *output,
                  char *sentence)
{
    size_t block = shot->count * rondo_type_size(shot->type);
    size_t mine = (size_t)shot->rank * shot->count;
    bool right = true;

    switch (shot->collective) {
    case RONDO_ALL_REDUCE:
    case RONDO_REDUCE:
        return world_check_reduced(data, 0, shot->count, output, sentence);
    case RONDO_REDUCE_SCATTER:
        return world_check_reduced(data, mine, shot->count, output, sentence);
    case RONDO_BROADCAST:
        return world_check_moved(data, shot->root, 0, shot->count, output, sentence);
    case RONDO_SCATTER:
        return world_check_moved(data, shot->root, mine, shot->count, output, sentence);
    default:
        for (int rank = 0; rank < shot->size && right; rank++)
            right = world_check_moved(data, rank, shot->collective == RONDO_ALL_TO_ALL ? mine : 0,
                                      shot->count, output + (size_t)rank * block, sentence);
        return right;
    }
}

/* In place: one buffer, of which the shorter one is a part. */
static rondo_result shoot(struct gpu_rank *rank, const struct shot *shot,
                          const struct stock stocks[2])
{
    struct place places[2];
    struct world_data data = {.type = shot->type,
                              .op = reduces(shot->collective) ? shot->op : WORLD_MOVED,
                              .size = shot->size,
                              .seed = shot->count};
    size_t bytes = rondo_type_size(shot->type), in, out;
    size_t shift = shot->unaligned ? bytes : 0;
    struct place *from = &places[0], *to = &places[1];
    size_t from_offset = 0, to_offset = 0;
    rondo_call call = {.struct_size = sizeof(call),
                       .collective = shot->collective,
                       .type = shot->type,
                       .op = shot->op,
                       .root = shot->root,
                       .count = shot->count,
                       .comm = rank->comm,
                       .stream = rank->stream};
    rondo_result result;

    lengths(shot, &in, &out);
    if (shot->in_place && in && out) {
        to = from;
        from_offset = in < out ? bytes * in * (size_t)shot->rank : 0;
        to_offset = out < in ? bytes * out * (size_t)shot->rank : 0;
    }
    place_open(from, &stocks[0], shot->input_kind, bytes * (to == from && out > in ? out : in),
               shift);
    if (to != from)
        place_open(to, &stocks[1], shot->output_kind, bytes * out, shift);
    world_fill(&data, shot->rank, in, from->mirror + GUARD + from_offset);
    if (!place_write(from) || (to != from && !place_write(to)))
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "cannot write a buffer");
    call.input = in ? place_at(from) + from_offset : NULL;
    call.output = out ? place_at(to) + to_offset : NULL;
    result = rondo_collective_call(&call);
    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    if (result)
        return world_say(rank->sentence, result, "%s", rondo_last_error(rank->comm));
    if (!place_read(to) || (to != from && !place_read(from)))
        return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "wrote beside a buffer");
    if (out && !check(shot, &data, to->mirror + GUARD + to_offset, rank->sentence))
        return RONDO_ERROR_INTERNAL;
    if (to != from &&
        !world_check_moved(&data, shot->rank, 0, in, from->mirror + GUARD, rank->sentence))
        return RONDO_ERROR_INTERNAL;
    return RONDO_OK;
}

static rondo_result matrix(struct gpu_rank *rank)
{
    int size = rondo_comm_size(rank->comm);
    size_t bytes = (size_t)size * MOST_COUNT * 8 + 2 * GUARD + MOST_SHIFT;
    char text[256], detail[WORLD_SENTENCE];
    struct stock stocks[2] = {{{0}, NULL}, {{0}, NULL}};
    rondo_result result = stock_open(&stocks[0], bytes);

    if (!result)
        result = stock_open(&stocks[1], bytes);
    for (int i = 0; i < rank->scene->cases && !result; i++) {
        struct shot shot = draw(i, size, rondo_comm_rank(rank->comm), rank->scene->pieces);

        result = shoot(rank, &shot, stocks);
        if (result) {
            describe(&shot, text, sizeof(text));
            snprintf(detail, sizeof(detail), "%s", rank->sentence);
            snprintf(rank->sentence, WORLD_SENTENCE, "case %d, %s: %.700s", i, text, detail);
        }
    }
    if (!result)
        result = rondo_comm_finalize(rank->comm); /* nobody frees while others' work goes on */
    stock_close(&stocks[0]);
    stock_close(&stocks[1]);
    return result;
}

rondo_result gpu_matrix(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, matrix);
}
