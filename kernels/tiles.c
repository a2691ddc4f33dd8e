/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tiles.c - the general way to reduce: tile by tile, with intermediate results on the stack, in the
 * type that accumulates.
 *
 *   source --widen, scale--> operand --pass of up to 8--> partial results
 *   partial results --passes--> result --finish, narrow--> destinations
 *
 * Passes of KERNEL_GROUP sources keep the defined order: a fold goes on from the result so far, and
 * 8 being a power of two, each group of 8 is a whole subtree of the balanced tree. A tile of every
 * source is read before any destination is written, so destinations may be sources. User functions
 * see aligned copies: `in` is the left side, `inout` the right.
 */
#include "kernels/tiles.h"

#include "base/range.h"

#include <stdalign.h>
#include <string.h>

enum {
    TILE = 512,                  /* elements */
    TILE_BYTES = TILE * 8,       /* of the widest type */
    ROOM_BYTES = TILE_BYTES + 64 /* so that rooms do not all fall on the same lines of the cache */
};

struct work {
    const struct kernel_table *table;
    const struct kernel_op *op;
    const struct kernel_call *call;
    bool narrow;     /* accumulated as float32 */
    rondo_type type; /* that accumulates */
    size_t start;    /* of the tile */
    size_t count;
};

static size_t bytes_before(const struct work *work)
{
    return work->start * kernel_type_bytes[work->op->type];
}

static const void *source_at(const struct work *work, int index)
{
    return (const char *)work->call->sources[index] + bytes_before(work);
}

/* Scales own input, and rounds it as a peer gets it. */
static void scale_operand(const struct work *work, void *room)
{
    unsigned char rounded[2 * TILE];

    kernel_tile_scale(work->type, room, work->count, work->op);
    if (!work->narrow)
        return;
    work->table->narrow[work->op->type](rounded, room, work->count);
    work->table->widen[work->op->type](room, rounded, work->count);
}

/* Source `index` as the accumulating type: where it is, or in `room`. */
static const void *operand(const struct work *work, int index, void *room)
{
    const void *source = source_at(work, index);
    bool scale = work->call->scaled == index && work->op->has_scale;

    if (!work->narrow && !scale)
        return source;
    if (work->narrow)
        work->table->widen[work->op->type](room, source, work->count);
    else
        memcpy(room, source, work->count * kernel_type_bytes[work->type]);
    if (scale)
        scale_operand(work, room);
    return room;
}

static void combine(const struct work *work, const void *const *from, int k, void *out)
{
    kernel_pass *pass = work->table->pass[work->call->order][work->type][work->op->function];

    if (k > 1)
        pass(out, from, k, work->count, 0);
    else if (from[0] != out)
        memcpy(out, from[0], work->count * kernel_type_bytes[work->type]);
}

/*
 * `n` sources, at most KERNEL_GROUP, into `out`; with `onto`, at most one less, after what is in
 * `out`.
 */
static void reduce_group(const struct work *work, int first, int n, bool onto, void *out)
{
    alignas(64) unsigned char room[KERNEL_GROUP][ROOM_BYTES];
    const void *from[KERNEL_GROUP + 1];
    int k = 0;

    if (onto)
        from[k++] = out;
    for (int i = 0; i < n; i++)
        from[k++] = operand(work, first + i, room[i]);
    combine(work, from, k, out);
}

static void reduce_fold(const struct work *work, void *out)
{
    int total = work->call->source_count;

    for (int first = 0; first < total;) {
        int most = first > 0 ? KERNEL_GROUP - 1 : KERNEL_GROUP;
        int n = total - first < most ? total - first : most;

        reduce_group(work, first, n, first > 0, out);
        first += n;
    }
}

static void reduce_tree(const struct work *work, int first, int n, void *out)
{
    alignas(64) unsigned char right[TILE_BYTES];
    const void *both[] = {out, right};

    if (n <= KERNEL_GROUP) {
        reduce_group(work, first, n, false, out);
        return;
    }
    reduce_tree(work, first, range_split(n), out);
    reduce_tree(work, first + range_split(n), n - range_split(n), right);
    combine(work, both, 2, out);
}

static void user_combine(const struct work *work, const void *left, void *right)
{
    work->op->user(work->op->context, left, right, work->count, work->op->type);
}

static void user_fold(const struct work *work, void *out)
{
    alignas(64) unsigned char left[TILE_BYTES];
    size_t bytes = work->count * kernel_type_bytes[work->op->type];

    memcpy(out, source_at(work, 0), bytes);
    for (int i = 1; i < work->call->source_count; i++) {
        memcpy(left, out, bytes);
        memcpy(out, source_at(work, i), bytes);
        user_combine(work, left, out);
    }
}

static void user_tree(const struct work *work, int first, int n, void *out)
{
    alignas(64) unsigned char left[TILE_BYTES];

    if (n == 1) {
        memcpy(out, source_at(work, first), work->count * kernel_type_bytes[work->op->type]);
        return;
    }
    user_tree(work, first, range_split(n), left);
    user_tree(work, first + range_split(n), n - range_split(n), out);
    user_combine(work, left, out);
}

static void reduce_tile(const struct work *work, void *out)
{
    bool tree = work->call->order == KERNEL_BALANCED;

    if (work->op->function == KERNEL_USER && tree)
        user_tree(work, 0, work->call->source_count, out);
    else if (work->op->function == KERNEL_USER)
        user_fold(work, out);
    else if (tree)
        reduce_tree(work, 0, work->call->source_count, out);
    else
        reduce_fold(work, out);
}

static void write_tile(const struct work *work, const void *result)
{
    size_t bytes = work->count * kernel_type_bytes[work->op->type];
    char *first = (char *)work->call->destinations[0] + bytes_before(work);

    if (work->narrow)
        work->table->narrow[work->op->type](first, result, work->count);
    else
        memcpy(first, result, bytes);
    for (int i = 1; i < work->call->destination_count; i++)
        memcpy((char *)work->call->destinations[i] + bytes_before(work), first, bytes);
}

static void finish_tile(const struct work *work, void *result)
{
    const struct kernel_op restore = {.scale.real = work->op->restore};

    kernel_tile_divide(work->type, result, work->count, work->op->divisor);
    if (work->narrow && work->op->restore != 0)
        kernel_tile_scale(work->type, result, work->count, &restore);
}

void tiles_reduce(const struct kernel_table *table, const struct kernel_op *op,
                  const struct kernel_call *call)
{
    alignas(64) unsigned char result[TILE_BYTES];
    bool user = op->function == KERNEL_USER;
    struct work work = {.table = table, .op = op, .call = call};

    work.narrow = !user && table->widen[op->type] != NULL;
    work.type = work.narrow ? RONDO_FLOAT32 : op->type;
    for (work.start = 0; work.start < call->count; work.start += TILE) {
        work.count = call->count - work.start < TILE ? call->count - work.start : TILE;
        reduce_tile(&work, result);
        if (call->finish && op->divisor > 1 && !user)
            finish_tile(&work, result);
        write_tile(&work, result);
    }
}
