/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reach.c - user buffers in the eyes of peers.
 *
 * A rank announces its buffers as reachable only if every peer can reach them; so all ranks,
 * whichever process they are in, draw the same conclusion from the same announcements. Of a message
 * only the sender's buffer matters, which it announces to its receiver.
 */
#include "comm/engine/reach.h"

#include "base/collective.h"
#include "base/fail.h"
#include "comm/failure/error.h"
#include "comm/failure/leave.h"
#include "comm/state/address.h"
#include "comm/state/comm.h"
#include "transport/memory/heap.h"
#include "transport/memory/page.h"
#include "transport/memory/process.h"
#include "transport/memory/registered.h"

#include <string.h>

static uint32_t address_of(const void *memory, size_t bytes, uint64_t *ret_address, bool *ret_parts)
{
    *ret_address = 0;
    if (!memory || !bytes)
        return ADDRESS_NONE;
    if (heap_find(memory, bytes, ret_address))
        return ADDRESS_HEAP;
    if (registered_room(memory, bytes, ret_address)) {
        *ret_parts = true;
        return ADDRESS_HEAP;
    }
    *ret_address = (uint64_t)(uintptr_t)memory;
    return ADDRESS_PLAIN;
}

/* Fills x->own; true if peers can't map every page of a buffer, though there is room for it. */
static bool look_up(struct execution *x, const void *input, const void *output,
                    struct address_lengths bytes)
{
    bool parts = false;

    x->own.input_kind = address_of(input, bytes.input, &x->own.input, &parts);
    x->own.output_kind = address_of(output, bytes.output, &x->own.output, &parts);
    return parts;
}

/* Copies what a buffer has of a first and of a last page that it does not fill. If they are filled
 * by the range that it lies in, both places are the same memory, and nothing changes. */
static void copy_parts(char *to, const char *from, size_t bytes)
{
    size_t first = page_after(to) < bytes ? page_after(to) : bytes;
    size_t last = page_before(to + bytes) < bytes - first ? page_before(to + bytes) : bytes - first;

    memcpy(to, from, first);
    memcpy(to + bytes - last, from + bytes - last, last);
}

/* The execution uses a buffer where peers see all of it, in the heap, instead of at the caller's
 * address; and the other one, too: in a call in place they are the same memory. */
static void use_room(struct execution *x, const void *input)
{
    if (x->own.input_kind == ADDRESS_HEAP)
        x->input = heap_base() + x->own.input;
    if (x->own.output_kind == ADDRESS_HEAP)
        x->output = heap_base() + x->own.output;
    if (x->input != input)
        copy_parts((char *)(uintptr_t)x->input, input, address_lengths(x).input);
}

void address_return(const struct execution *x, void *output)
{
    copy_parts(output, x->output, address_lengths(x).output);
}

/* True if peers may read an input that is not in the heap. Across processes a call of the kernel
 * does, which is quicker than slots or several times as slow. Collectives try (life.c), but the
 * sender of a message does not see how long its receiver takes. */
static bool shows_plain_input(const rondo_comm *comm, const struct execution *x)
{
    return comm->one_process ||
           (comm->tuning.reads_across && !x->op && !collective_is_pair(x->plan->collective));
}

bool address_announce(rondo_comm *comm, const void *input, void *output, struct execution *x)
{
    const struct address_lengths bytes = address_lengths(x);
    bool in_place = x->plan->collective == RONDO_ALL_TO_ALL && input == output && bytes.input;
    bool plain_input = shows_plain_input(comm, x);
    /* Without a reduction nobody writes the output for us. */
    bool plain_output = comm->one_process || !x->op;
    struct exposure *exposure = comm_exposure(comm, x->plan->collective, x->plan->root);
    const struct link_addresses *own = &x->own;
    bool reachable, parts;

    x->input = input;
    x->output = output;
    exposure_open(exposure, x->op ? output : NULL, bytes.output, input, bytes.input);
    parts = look_up(x, input, output, bytes);
    if (parts && !x->op) { /* then the execution itself writes where the output's room is */
        exposure_open(exposure, output, bytes.output, input, bytes.input);
        parts = look_up(x, input, output, bytes); /* it may have been taken back before that */
    }
    reachable = (own->input_kind != ADDRESS_PLAIN || plain_input) &&
                (own->output_kind != ADDRESS_PLAIN || plain_output) && !in_place;
    if (!reachable) {
        address_hide(x);
        exposure_close(exposure);
    } else {
        exposure_tell(exposure, own->output_kind == ADDRESS_PLAIN,
                      own->input_kind == ADDRESS_PLAIN);
        if (parts)
            use_room(x, input);
    }
    return reachable;
}

bool address_shows_plain_input(const struct execution *x)
{
    return x->own.input_kind == ADDRESS_PLAIN;
}

void address_hide(struct execution *x)
{
    x->own = (struct link_addresses){.input_kind = ADDRESS_HIDDEN, .output_kind = ADDRESS_HIDDEN};
}

/* One buffer as `peer` announced it. All ranks have to find the same, so memory of its heap that
 * can't be mapped here, or isn't there, breaks the communicator. */
static char *resolve_one(rondo_comm *comm, int peer, uint32_t kind, uint64_t address, size_t bytes)
{
    struct process *process = comm->processes[peer];
    char *memory = NULL;

    if (kind == ADDRESS_HEAP) {
        rondo_result result = process_map(process, address, bytes, &memory);

        if (result == RONDO_ERROR_PEER)
            comm_break(comm,
                       rondo_fail(RONDO_ERROR_PEER,
                                  "Rank %d (process %d) has ended while rank %d came to use its "
                                  "memory; look at its output for the reason.",
                                  peer, process_id(process), comm->rank),
                       peer);
        else if (result)
            comm_break(comm, result, comm->rank);
    } else if (kind == ADDRESS_PLAIN && process_is_own(process)) {
        memory = (char *)(uintptr_t)address;
    }
    return memory;
}

static void resolve(struct exec_world *world, int peer, const struct link_addresses *said,
                    const size_t bytes[2], struct exec_peer *ret_peer)
{
    rondo_comm *comm = (rondo_comm *)world;
    struct link_addresses heard = *said; /* once: the peer could change it while we look */

    ret_peer->input = resolve_one(comm, peer, heard.input_kind, heard.input, bytes[0]);
    ret_peer->output = resolve_one(comm, peer, heard.output_kind, heard.output, bytes[1]);
    ret_peer->remote_input = heard.input_kind == ADDRESS_PLAIN ? heard.input : 0;
}

static rondo_result read_across(struct exec_world *world, int peer, void *to, uint64_t from,
                                size_t bytes)
{
    const rondo_comm *comm = (const rondo_comm *)world;

    return process_read(comm->processes[peer], to, from, bytes);
}

static bool is_left(const struct execution *x)
{
    const rondo_comm *comm = (const rondo_comm *)x->world;

    return collective_is_pair(x->plan->collective) ? leave_lost(comm, x->plan->root)
                                                   : leave_spoils(comm);
}

const struct exec_world_ops comm_world_ops = {
    .resolve = resolve, .read = read_across, .is_left = is_left};
