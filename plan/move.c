/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * move.c - the data movement of a step: where its operands are, and which arithmetic it means.
 *
 * Long pieces may be stored past the cache. A slot's lines were read by the peer last, so an
 * ordinary store first fetches each of them from the other core, only to overwrite it, and the peer
 * fetches them back; a long output is not read again soon, and an ordinary store first reads it
 * from memory. Whether going past pays depends on the caches: the caller finds out.
 */
#include "plan/move.h"

#include "plan/zcopy.h"

#define STEP_FUNCTION static inline
#include "plan/pieces.h"

/*
 * Bytes reduced at a time on the way past the cache. Where inputs come from memory, they have to be
 * loaded while stores of the tile before wait for their turn, so the tile is small: with the other
 * one it all takes a third longer. Where only slots go past the cache, inputs are in it.
 */
enum { TILE = 16384, SMALL_TILE = 1024 };

/* So far ahead of the small tile sources are asked for: the processor does not do so by itself
 * across the end of a page. */
enum { AHEAD = 4096 };

/* Finds where an operand is. A slot's next piece is taken from the message that is open, or added
 * to the one being filled. */
static inline char *locate(struct execution *x, const struct exec_program *program,
                           const struct plan_operand *operand, bool source, size_t bytes)
{
    struct exec_world *world = x->world;
    size_t link = (size_t)operand->channel * (size_t)world->size + (size_t)operand->rank;
    bool own = operand->rank == x->plan->rank;
    char **piece, *at;

    switch (operand->buffer) {
    case PLAN_SLOT:
        piece = source ? &world->in[link].take : &world->out[link].fill;
        at = *piece;
        *piece = at + bytes;
        return at;
    case PLAN_SCRATCH:
        return world->scratch +
               (operand->block * x->shape.segment + atom_start(x, program, operand->first)) *
                   x->shape.element;
    case PLAN_INPUT:
        at = own ? (char *)(uintptr_t)x->input : exec_peer(x, operand->rank)->input;
        break;
    default:
        at = own ? x->output : exec_peer(x, operand->rank)->output;
    }
    return at ? at + user_offset(x, program, operand) : NULL;
}

/* Copy out of memory that is not mapped here. */
static enum exec_state read_across(struct execution *x, const struct exec_program *program,
                                   const struct plan_step *step, size_t bytes)
{
    const struct plan_operand *source = plan_sources(x->plan, step);
    void **to = x->world->destinations;
    uint64_t from = exec_peer(x, source->rank)->remote_input + user_offset(x, program, source);
    rondo_result result = x->world->ops->read(x->world, source->rank, to[0], from, bytes);

    for (int i = 1; i < step->destinations && !result; i++)
        kernel_copy(to[i], to[0], bytes);
    x->blamed = source->rank;
    return result ? EXEC_FAILED : EXEC_MOVED;
}

static inline bool goes_past(const struct execution *x, const struct plan_operand *destination,
                             size_t bytes)
{
    unsigned kind = destination->buffer == PLAN_SLOT ? PAST_CACHE_SLOTS : PAST_CACHE_OUTPUTS;
    size_t link = (size_t)destination->channel * (size_t)x->world->size + (size_t)destination->rank;

    if (!(x->past_cache & kind) || bytes < PAST_CACHE_FROM || destination->buffer == PLAN_SCRATCH)
        return false;
    /* A network reads a slot at once, on this core. */
    return destination->buffer != PLAN_SLOT || !x->world->out[link].connection;
}

/* To the first `destinations`; if others are left out, through the cache, see reduce(). */
static void copy(const struct execution *x, const struct plan_step *step, int destinations,
                 size_t bytes)
{
    const struct plan_operand *operands = plan_destinations(x->plan, step);
    bool all = destinations == step->destinations;
    const void *from = x->world->sources[0];
    bool streamed = false;

    for (int i = 0; i < destinations; i++) {
        void *to = x->world->destinations[i];

        if (to == from)
            continue;
        if (all && goes_past(x, &operands[i], bytes)) {
            kernel_stream(to, from, bytes);
            streamed = true;
        } else {
            kernel_copy(to, from, bytes);
        }
    }
    if (streamed)
        kernel_stream_end();
}

/* Prefetch a little ahead of the sources; a prefetch does no harm where there is no memory. */
static void fetch_ahead(const struct exec_world *world, int sources, size_t bytes)
{
    for (int i = 0; i < sources; i++) {
        uintptr_t from = (uintptr_t)world->sources[i] + AHEAD;

        for (size_t at = 0; at < bytes; at += LINK_LINE)
            __builtin_prefetch((const void *)(from + at), 0, 2);
    }
}

/* Long results, some of which go past the cache: computed tile
 * by tile, and each tile stored on while it is in cache. */
static void reduce_past(const struct execution *x, const struct plan_step *step,
                        struct kernel_call *call, size_t count)
{
    const struct plan_operand *operands = plan_destinations(x->plan, step);
    struct exec_world *world = x->world;
    size_t tile = (x->past_cache & PAST_CACHE_OUTPUTS ? SMALL_TILE : TILE) / x->shape.element;
    _Alignas(64) char aside[TILE];
    size_t total = count * x->shape.element;
    int kept = 0; /* the destination that is computed into: the first that stays in the cache */

    while (kept < step->destinations && goes_past(x, &operands[kept], total))
        kept++;
    call->destination_count = 1;
    for (size_t done = 0; done < count; done += call->count) {
        void *result = kept < step->destinations ? world->destinations[kept] : aside;
        size_t bytes;

        call->count = count - done < tile ? count - done : tile;
        call->destinations = &result;
        bytes = call->count * x->shape.element;
        if (tile == SMALL_TILE / x->shape.element)
            fetch_ahead(world, step->sources, bytes);
        kernel_reduce(x->op, call);
        for (int i = 0; i < step->destinations; i++) {
            if (goes_past(x, &operands[i], total))
                kernel_stream(world->destinations[i], result, bytes);
            else if (i != kept)
                kernel_copy(world->destinations[i], result, bytes);
            world->destinations[i] = (char *)world->destinations[i] + bytes;
        }
        for (int i = 0; i < step->sources; i++)
            world->sources[i] = (const char *)world->sources[i] + bytes;
    }
    kernel_stream_end();
}

/* Into the first `destinations`. If others are left out, a network takes those from memory of the
 * caller: all goes through the cache then, as it is read at once. */
static void reduce(struct execution *x, const struct plan_step *step, int destinations,
                   size_t count)
{
    struct kernel_call call = {
        .sources = x->world->sources,
        .destinations = x->world->destinations,
        .source_count = step->sources,
        .destination_count = destinations,
        .count = count,
        .order = step->flags & PLAN_BALANCED ? KERNEL_BALANCED : KERNEL_FOLD,
        .scaled = x->op->has_scale ? raw_source(x, step) : -1,
        .finish = step->flags & PLAN_FINISH,
        .our_mode = x->our_mode,
    };

    if (x->past_cache && destinations == step->destinations) {
        const struct plan_operand *operands = plan_destinations(x->plan, step);

        for (int i = 0; i < destinations; i++)
            if (goes_past(x, &operands[i], count * x->shape.element)) {
                reduce_past(x, step, &call, count);
                return;
            }
    }
    kernel_reduce(x->op, &call);
}

/* Every other step. Not inlined, so that copy_short() saves no registers for it. */
__attribute__((noinline)) static enum exec_state move_any(struct execution *x,
                                                          const struct exec_program *program,
                                                          const struct plan_step *step,
                                                          size_t count)
{
    struct exec_world *world = x->world;
    const struct plan_operand *operands = plan_sources(x->plan, step);
    size_t bytes = count * x->shape.element;
    int destinations = step->destinations;
    bool copies = only_copies(x, step);

    for (int i = 0; i < step->sources; i++) {
        world->sources[i] = locate(x, program, &operands[i], true, bytes);
        if (x->zcopies && operands[i].buffer == PLAN_SLOT)
            world->sources[i] = zcopy_delivered(x, &operands[i], world->sources[i]);
    }
    operands += step->sources;
    for (int i = 0; i < step->destinations; i++)
        world->destinations[i] = locate(x, program, &operands[i], false, bytes);
    if (!count)
        return EXEC_MOVED;
    if (!world->sources[0])
        return read_across(x, program, step, bytes);
    if (x->zcopies)
        destinations = zcopy_destinations(x, step, bytes, copies);
    if (copies)
        copy(x, step, destinations, bytes);
    else
        reduce(x, step, destinations, count);
    return EXEC_MOVED;
}

/* The step of short messages: a copy through the cache. Every step has a destination. */
static enum exec_state copy_short(struct execution *x, const struct exec_program *program,
                                  const struct plan_step *step, size_t count)
{
    const struct plan_operand *operand = plan_sources(x->plan, step);
    const struct plan_operand *last = operand + step->destinations;
    size_t bytes = count * x->shape.element;
    const char *from = locate(x, program, operand, true, bytes);

    if (!from)
        return move_any(x, program, step, count);
    do {
        char *to = locate(x, program, ++operand, false, bytes);

        if (to != from)
            kernel_copy(to, from, bytes);
    } while (operand < last);
    return EXEC_MOVED;
}

enum exec_state move_step(struct execution *x, struct exec_program *program,
                          const struct plan_step *step)
{
    size_t count = step_elements(x, program, step);

    if (step->sources == 1 && !x->past_cache && !x->zcopies && only_copies(x, step))
        return copy_short(x, program, step, count);
    return move_any(x, program, step, count);
}
