/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce.c - the way from a call to a pass, as short as it can be: most calls are small.
 *
 * What one pass does in registers goes straight to it: up to KERNEL_GROUP sources, no scaling, no
 * user function; two sources, as two ranks have, also to two destinations. Else further ones are
 * copied from the first, a piece at a time, so that the pieces come from the nearest cache.
 * Everything else is for tiles.c.
 */
#include "kernels/table.h"
#include "kernels/tiles.h"

#include "base/caller/float_mode.h"

#include <string.h>

enum { PIECE_BYTES = 8192 }; /* a fraction of the first-level cache, with the sources beside it */

const unsigned char kernel_type_bytes[RONDO_TYPES] = {
#define BYTES_INTEGER(type, kind, wrapping, c_type) [RONDO_##type] = sizeof(c_type),
#define BYTES_FLOAT(type, kind, c_type)             [RONDO_##type] = sizeof(c_type),
    KERNEL_INTEGERS(BYTES_INTEGER) KERNEL_WIDE_FLOATS(BYTES_FLOAT)
        KERNEL_NARROW_FLOATS(BYTES_FLOAT)};

static bool is_integer(rondo_type type)
{
    return type <= RONDO_UINT64;
}

bool kernel_can(rondo_type type, enum kernel_function function)
{
    if ((unsigned)type >= RONDO_TYPES || (unsigned)function >= KERNEL_FUNCTIONS)
        return false;
    if (function == KERNEL_BAND || function == KERNEL_BOR || function == KERNEL_BXOR)
        return is_integer(type);
    return true;
}

/* Bytes [at, at + bytes) of the first destination to the others. */
static void copy_to_others(const struct kernel_call *call, size_t at, size_t bytes)
{
    const char *from = (const char *)call->destinations[0] + at;

    for (int i = 1; i < call->destination_count; i++)
        memcpy((char *)call->destinations[i] + at, from, bytes);
}

static void reduce_in_pieces(kernel_pass *pass, const struct kernel_op *op,
                             const struct kernel_call *call)
{
    size_t size = kernel_type_bytes[op->type];
    size_t piece = PIECE_BYTES / size;

    for (size_t start = 0; start < call->count; start += piece) {
        size_t count = call->count - start < piece ? call->count - start : piece;
        const void *from[KERNEL_GROUP];

        for (int i = 0; i < call->source_count; i++)
            from[i] = (const char *)call->sources[i] + start * size;
        pass((char *)call->destinations[0] + start * size, from, call->source_count, count,
             op->divisor);
        copy_to_others(call, start * size, count * size);
    }
}

static void copy_in_pieces(const struct kernel_call *call, size_t bytes)
{
    const char *from = call->sources[0];

    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        size_t piece = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;

        for (int i = 0; i < call->destination_count; i++) {
            if (call->destinations[i] != from)
                memcpy((char *)call->destinations[i] + at, from + at, piece);
        }
    }
}

static void copy(const struct kernel_call *call, size_t bytes)
{
    if (call->destination_count > 1)
        copy_in_pieces(call, bytes);
    else if (call->destinations[0] != call->sources[0])
        kernel_copy(call->destinations[0], call->sources[0], bytes);
}

/* Not inlined, so that short calls save no registers for it. */
__attribute__((noinline)) static void reduce_any(const struct kernel_op *op,
                                                 const struct kernel_call *call)
{
    const struct kernel_table *table = kernel_table();
    bool scale = call->scaled >= 0 && op->has_scale;
    bool finish = call->finish && op->divisor > 1;
    int function = op->function;

    if (call->count == 0)
        return;
    if (call->source_count == 1 && !scale && !finish) {
        copy(call, call->count * kernel_type_bytes[op->type]);
        return;
    }
    if (finish)
        /* KERNEL_USER has no pass. */
        function = function == KERNEL_SUM ? KERNEL_AVERAGE : KERNEL_USER;

    kernel_pass *pass = table->pass[call->order][op->type][function];
    if (pass == NULL || scale || (finish && op->restore != 0) ||
        call->source_count > KERNEL_GROUP || call->source_count == 1)
        tiles_reduce(table, op, call);
    else if (call->destination_count == 1)
        pass(call->destinations[0], call->sources, call->source_count, call->count, op->divisor);
    else if (call->destination_count == 2 && call->source_count == 2)
        table->both[op->type][function](call->destinations[0], call->destinations[1], call->sources,
                                        call->count, op->divisor);
    else
        reduce_in_pieces(pass, op, call);
}

/* One pass does most calls. */
static inline void reduce(const struct kernel_op *op, const struct kernel_call *call)
{
    const struct kernel_table *table = kernel_table();
    bool is_plain = call->count && call->destination_count == 1 && call->source_count > 1 &&
                    call->source_count <= KERNEL_GROUP && call->scaled < 0 &&
                    !(call->finish && op->divisor > 1);
    kernel_pass *pass = is_plain ? table->pass[call->order][op->type][op->function] : NULL;

    if (pass)
        pass(call->destinations[0], call->sources, call->source_count, call->count, op->divisor);
    else
        reduce_any(op, call);
}

/* Not inlined, like reduce_any(). */
__attribute__((noinline)) static void reduce_in_our_mode(const struct kernel_op *op,
                                                         const struct kernel_call *call)
{
    uint64_t callers = float_mode_enter();

    reduce(op, call);
    float_mode_leave(callers);
}

void kernel_reduce(const struct kernel_op *op, const struct kernel_call *call)
{
    if (call->our_mode || float_mode_is_ours(float_mode()))
        reduce(op, call);
    else
        reduce_in_our_mode(op, call);
}
