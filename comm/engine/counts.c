/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counts.c - collectives whose counts differ from rank to rank, as groups of calls.
 *
 * Everything is checked before the group starts, so that a call in it fails for what peers did
 * only, and the sentence names the function that the user called.
 */
#include "rondo/collectives.h"

#include "comm/engine/call.h"
#include "comm/failure/error.h"

#include "base/cancel.h"
#include "base/fail.h"
#include "kernels/kernels.h"

#include <stdint.h>

/* One side of a call: a block for each rank. */
struct blocks {
    const char *side;
    const char *memory;
    const size_t *counts;
    const size_t *displacements; /* NULL: packed */
};

struct counts_call {
    const char *name;
    rondo_comm *comm;
    rondo_stream *stream;
    rondo_type type;
    rondo_op op;
    size_t element; /* bytes */
};

/* An error of the arguments, whose sentence was said. On a communicator whose ranks agree on
 * results the others hear of it. */
static rondo_result refuse(const struct counts_call *call, rondo_collective part,
                           rondo_result result)
{
    if (call->comm)
        result = call_refuse(call->comm, part, result);
    if (group_is_open())
        group_spoil(result);
    return call->comm ? comm_note_error(call->comm, result) : result;
}

static rondo_result check_call(struct counts_call *call)
{
    if (!call->comm)
        return rondo_fail(RONDO_ERROR_INVALID, "%s: the communicator is NULL.", call->name);
    if ((unsigned)call->type >= RONDO_TYPES)
        return rondo_fail(RONDO_ERROR_INVALID, "%s: there is no type number %d.", call->name,
                          (int)call->type);
    call->element = kernel_type_bytes[call->type];
    return RONDO_OK;
}

/* In elements from the beginning; the next block's, as displacements that are NULL ask for it. */
static size_t next_place(const struct blocks *blocks, int rank, size_t place)
{
    return blocks->displacements ? blocks->displacements[rank] : place;
}

/* Finds where the blocks end that hold something, in elements. */
static rondo_result check_blocks(const struct counts_call *call, const struct blocks *blocks,
                                 size_t *ret_end)
{
    size_t place = 0, most = SIZE_MAX / 2 / call->element;

    *ret_end = 0;
    if (!blocks->counts)
        return rondo_fail(RONDO_ERROR_INVALID, "%s: rank %d gave no counts (NULL) for its %s.",
                          call->name, call->comm->rank, blocks->side);
    for (int r = 0; r < call->comm->size; r++) {
        size_t count = blocks->counts[r];

        place = next_place(blocks, r, place);
        if (place > most || count > most - place)
            return rondo_fail(RONDO_ERROR_INVALID,
                              "%s: %zu %s elements at %zu, block %d of the %s of rank %d, are more "
                              "than memory can hold.",
                              call->name, count, rondo_type_name(call->type), place, r,
                              blocks->side, call->comm->rank);
        if (count && !blocks->memory)
            return rondo_fail(RONDO_ERROR_INVALID,
                              "%s: rank %d gave no %s (NULL) for %zu elements in block %d.",
                              call->name, call->comm->rank, blocks->side, count, r);
        place += count;
        if (count && place > *ret_end)
            *ret_end = place;
    }
    return RONDO_OK;
}

static bool ascends(const struct blocks *blocks, int size)
{
    size_t end = 0;

    for (int r = 0; r < size && blocks->displacements; r++) {
        if (blocks->counts[r] && blocks->displacements[r] < end)
            return false;
        if (blocks->counts[r])
            end = blocks->displacements[r] + blocks->counts[r];
    }
    return true;
}

/* Two ranks' blocks would be written to the same place, in no known order. */
static rondo_result check_apart(const struct counts_call *call, const struct blocks *output)
{
    const size_t *at = output->displacements, *counts = output->counts;

    if (ascends(output, call->comm->size))
        return RONDO_OK;
    for (int r = 0; r < call->comm->size; r++)
        for (int s = 0; s < r; s++)
            if (counts[r] && counts[s] && at[r] < at[s] + counts[s] && at[s] < at[r] + counts[r])
                return rondo_fail(RONDO_ERROR_INVALID,
                                  "%s: blocks %d and %d of the output of rank %d overlap.",
                                  call->name, s, r, call->comm->rank);
    return RONDO_OK;
}

/* The block that is this rank's input or output beside the blocks of the other side. */
struct own_block {
    const char *side;
    const char *memory;
    size_t count;
};

static rondo_result check_own(const struct counts_call *call, const struct blocks *blocks,
                              size_t end, const struct own_block *own)
{
    const char *memory = own->memory;
    size_t place = 0, bytes = own->count * call->element;

    if (!own->count)
        return RONDO_OK;
    if (!memory)
        return rondo_fail(RONDO_ERROR_INVALID, "%s: rank %d gave no %s (NULL) for %zu elements.",
                          call->name, call->comm->rank, own->side, own->count);
    for (int r = 0; r <= call->comm->rank; r++)
        place = next_place(blocks, r, place) + (r < call->comm->rank ? blocks->counts[r] : 0);
    if (memory == blocks->memory + place * call->element || memory + bytes <= blocks->memory ||
        blocks->memory + end * call->element <= memory)
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_INVALID,
                      "%s: input and output of rank %d overlap, but not as an in-place call may: "
                      "the %s is block %d of the %s then.",
                      call->name, call->comm->rank, own->side, call->comm->rank, blocks->side);
}

/* The calls of the group start from this one. */
static rondo_call part_of(const struct counts_call *call, rondo_collective collective)
{
    return (rondo_call){.struct_size = sizeof(rondo_call),
                        .collective = collective,
                        .type = call->type,
                        .op = call->op,
                        .comm = call->comm,
                        .stream = call->stream};
}

/* ---- all_to_all_v ---------------------------------------------------------------------------- */

static rondo_result check_exchange(struct counts_call *call, const struct blocks *input,
                                   const struct blocks *output)
{
    size_t input_end = 0, output_end = 0;
    rondo_result result = check_call(call);
    int rank;

    if (!result)
        result = check_blocks(call, input, &input_end);
    if (!result)
        result = check_blocks(call, output, &output_end);
    if (!result)
        result = check_apart(call, output);
    if (result)
        return result;
    rank = call->comm->rank;
    if (input_end && output_end && input->memory < output->memory + output_end * call->element &&
        output->memory < input->memory + input_end * call->element)
        return rondo_fail(RONDO_ERROR_INVALID, "%s: input and output of rank %d overlap.",
                          call->name, rank);
    if (input->counts[rank] != output->counts[rank])
        return rondo_fail(RONDO_ERROR_INVALID,
                          "%s: rank %d sends %zu elements to itself, but expects %zu.", call->name,
                          rank, input->counts[rank], output->counts[rank]);
    return RONDO_OK;
}

/* One block for each rank as calls of that collective. Empty blocks go as well: their messages
 * tell a rank that expects something. */
static rondo_result add_parts(const struct counts_call *call, const struct blocks *blocks,
                              rondo_collective collective)
{
    rondo_call part = part_of(call, collective);
    rondo_result result = RONDO_OK;
    size_t place = 0;

    for (int r = 0; r < call->comm->size && !result; r++) {
        char *memory;

        place = next_place(blocks, r, place);
        memory = (char *)(uintptr_t)blocks->memory + place * call->element;
        part.root = r;
        part.count = blocks->counts[r];
        part.input = collective == RONDO_SEND ? memory : NULL;
        part.output = collective == RONDO_SEND ? NULL : memory;
        result = rondo_collective_call(&part);
        place += blocks->counts[r];
    }
    return result;
}

rondo_result rondo_all_to_all_v(const void *input, const size_t *send_counts,
                                const size_t *send_displacements, void *output,
                                const size_t *recv_counts, const size_t *recv_displacements,
                                rondo_type type, rondo_comm *comm, rondo_stream *stream)
{
    CANCEL_LATER();
    struct blocks sent = {"input", input, send_counts, send_displacements};
    struct blocks received = {"output", output, recv_counts, recv_displacements};
    struct counts_call call = {"all_to_all_v", comm, stream, type, 0, 0};
    rondo_result result = check_exchange(&call, &sent, &received), ended;

    if (result)
        return refuse(&call, RONDO_SEND, result);
    (void)rondo_group_start();
    result = add_parts(&call, &received, RONDO_RECV);
    if (!result)
        result = add_parts(&call, &sent, RONDO_SEND);
    ended = rondo_group_end();
    return result ? result : ended;
}

/* ---- all_gather_v and reduce_scatter_v ------------------------------------------------------- */

static rondo_result check_gathering(struct counts_call *call, const struct blocks *blocks,
                                    struct own_block *own, bool writes_blocks)
{
    size_t end = 0;
    rondo_result result = check_call(call);

    if (!result)
        result = check_blocks(call, blocks, &end);
    if (!result && writes_blocks)
        result = check_apart(call, blocks);
    if (result)
        return result;
    own->count = blocks->counts[call->comm->rank];
    return check_own(call, blocks, end, own);
}

/* A broadcast or a reduce for each rank, which is its root: between its own block there, and its
 * block here. */
static rondo_result gather(struct counts_call *call, const struct blocks *blocks,
                           struct own_block *own, rondo_collective collective)
{
    bool writes_blocks = collective == RONDO_BROADCAST;
    rondo_result result = check_gathering(call, blocks, own, writes_blocks), ended;
    rondo_call part = part_of(call, collective);
    size_t place = 0;

    if (result)
        return refuse(call, collective, result);
    (void)rondo_group_start();
    for (int r = 0; r < call->comm->size && !result; r++) {
        char *block;

        place = next_place(blocks, r, place);
        block = (char *)(uintptr_t)blocks->memory + place * call->element;
        part.root = r;
        part.count = blocks->counts[r];
        part.input = writes_blocks ? own->memory : block;
        part.output = writes_blocks ? block : (char *)(uintptr_t)own->memory;
        result = rondo_collective_call(&part);
        place += blocks->counts[r];
    }
    ended = rondo_group_end();
    return result ? result : ended;
}

rondo_result rondo_all_gather_v(const void *input, void *output, const size_t *counts,
                                const size_t *displacements, rondo_type type, rondo_comm *comm,
                                rondo_stream *stream)
{
    CANCEL_LATER();
    struct blocks blocks = {"output", output, counts, displacements};
    struct own_block own = {"input", input, 0};
    struct counts_call call = {"all_gather_v", comm, stream, type, 0, 0};

    return gather(&call, &blocks, &own, RONDO_BROADCAST);
}

rondo_result rondo_reduce_scatter_v(const void *input, const size_t *counts,
                                    const size_t *displacements, void *output, rondo_type type,
                                    rondo_op op, rondo_comm *comm, rondo_stream *stream)
{
    CANCEL_LATER();
    struct blocks blocks = {"input", input, counts, displacements};
    struct own_block own = {"output", output, 0};
    struct counts_call call = {"reduce_scatter_v", comm, stream, type, op, 0};

    return gather(&call, &blocks, &own, RONDO_REDUCE);
}
