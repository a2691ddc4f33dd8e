/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c - user buffers in the eyes of peers, and the calls that make memory which they can map.
 *
 * A rank announces its buffers as reachable only if every peer can reach them; so all ranks,
 * whichever process they are in, draw the same conclusion from the same announcements.
 */
#include "comm/memory.h"

#include "base/cancel.h"
#include "base/fail.h"
#include "comm/state/comm.h"
#include "comm/failure/leave.h"
#include "transport/memory/heap.h"
#include "transport/memory/pages.h"
#include "transport/memory/process.h"

#include <stdlib.h>

struct rondo_registration {
    struct rondo_registration *next;
    void *memory; /* NULL: it was taken back from peers after a failed call */
};

static uint32_t address_of(const void *memory, size_t bytes, uint64_t *ret_address)
{
    *ret_address = 0;
    if (!memory || !bytes)
        return ADDRESS_NONE;
    if (heap_find(memory, bytes, ret_address))
        return ADDRESS_HEAP;
    *ret_address = (uint64_t)(uintptr_t)memory;
    return ADDRESS_PLAIN;
}

struct address_lengths address_lengths(const struct execution *x)
{
    const struct plan *plan = x->plan;
    size_t block = x->shape.count * x->shape.element;
    size_t inputs = (size_t)plan_input_blocks(plan->collective, plan->size, plan->rank, plan->root);
    size_t outputs =
        (size_t)plan_output_blocks(plan->collective, plan->size, plan->rank, plan->root);

    return (struct address_lengths){inputs * block, outputs * block};
}

bool address_announce(rondo_comm *comm, const void *input, const void *output, struct execution *x)
{
    const struct address_lengths bytes = address_lengths(x);
    bool in_place = x->plan->collective == RONDO_ALL_TO_ALL && input == output && bytes.input;
    bool plain_input = comm->one_process || (comm->settings.reads_across && !x->op);
    bool plain_output =
        comm->one_process || !x->op; /* without a reduction nobody writes it for us */
    struct link_addresses *own = &x->own;
    bool reachable;

    if (x->op)
        exposure_open(&comm->exposure, output, bytes.output);
    own->input_kind = address_of(input, bytes.input, &own->input);
    own->output_kind = address_of(output, bytes.output, &own->output);
    reachable = (own->input_kind != ADDRESS_PLAIN || plain_input) &&
                (own->output_kind != ADDRESS_PLAIN || plain_output) && !in_place;
    if (!reachable) {
        address_hide(x);
        exposure_close(&comm->exposure);
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

/* One buffer as `peer` announced it. What peers say is
 * checked: a heap offset must lie inside of their heap. */
static char *resolve_one(const struct process *process, uint32_t kind, uint64_t address,
                         size_t bytes)
{
    if (kind == ADDRESS_HEAP)
        return process_at(process, address, bytes);
    if (kind == ADDRESS_PLAIN && process_is_own(process))
        return (char *)(uintptr_t)address;
    return NULL;
}

static void resolve(struct exec_world *world, int peer, const struct link_addresses *said,
                    const size_t bytes[2], struct exec_peer *ret_peer)
{
    const rondo_comm *comm = (const rondo_comm *)world;
    const struct process *process = comm->processes[peer];
    struct link_addresses heard = *said; /* once: the peer could change it while we look */

    ret_peer->input = resolve_one(process, heard.input_kind, heard.input, bytes[0]);
    ret_peer->output = resolve_one(process, heard.output_kind, heard.output, bytes[1]);
    ret_peer->remote_input = heard.input_kind == ADDRESS_PLAIN ? heard.input : 0;
}

static rondo_result read_across(struct exec_world *world, int peer, void *to, uint64_t from,
                                size_t bytes)
{
    const rondo_comm *comm = (const rondo_comm *)world;

    return process_read(comm->processes[peer], to, from, bytes);
}

static bool is_left(struct exec_world *world)
{
    return leave_spoils((const rondo_comm *)world);
}

const struct exec_world_ops comm_world_ops = {
    .resolve = resolve, .read = read_across, .is_left = is_left};

rondo_result rondo_mem_alloc(size_t bytes, void **ret_memory)
{
    CANCEL_LATER();
    rondo_result result;

    if (!ret_memory)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_mem_alloc: no place for the address.");
    result = heap_alloc(bytes, ret_memory);
    if (!result)
        pages_prepare(*ret_memory, bytes);
    return result;
}

rondo_result rondo_mem_free(void *memory)
{
    CANCEL_LATER();

    return heap_free(memory);
}

rondo_result rondo_comm_register(rondo_comm *comm, void *memory, size_t bytes,
                                 rondo_registration **ret_registration)
{
    CANCEL_LATER();
    rondo_registration *registration;
    rondo_result result;

    if (!comm || !memory || !ret_registration)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_register: needs a communicator, memory "
                                               "and a place for the registration.");
    if (fork_is_foreign(comm->home))
        return comm_refuse("rondo_comm_register");
    registration = malloc(sizeof(*registration));
    if (!registration)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory while registering memory.");
    result = heap_adopt(memory, bytes);
    if (result) {
        free(registration);
        return comm_note_error(comm, result);
    }
    registration->memory = memory;
    pthread_mutex_lock(&comm->registrations_lock);
    registration->next = comm->registrations;
    comm->registrations = registration;
    pthread_mutex_unlock(&comm->registrations_lock);
    *ret_registration = registration;
    return RONDO_OK;
}

rondo_result rondo_comm_deregister(rondo_comm *comm, rondo_registration *registration)
{
    CANCEL_LATER();
    rondo_result result = RONDO_OK;
    rondo_registration **link;

    if (!comm || !registration)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_comm_deregister: needs a communicator and a registration.");
    if (fork_is_foreign(comm->home))
        return comm_refuse("rondo_comm_deregister");
    pthread_mutex_lock(&comm->registrations_lock);
    link = &comm->registrations;
    while (*link && *link != registration)
        link = &(*link)->next;
    if (!*link)
        result = rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_deregister: this communicator has no "
                                                 "such registration.");
    else if (registration->memory)
        result = heap_disown(registration->memory);
    if (!result)
        *link = registration->next;
    pthread_mutex_unlock(&comm->registrations_lock);
    if (!result)
        free(registration);
    return comm_note_error(comm, result);
}

void memory_forget_registration(rondo_comm *comm, const char *begin, const char *end)
{
    pthread_mutex_lock(&comm->registrations_lock);
    for (rondo_registration *at = comm->registrations; at; at = at->next)
        if ((const char *)at->memory >= begin && (const char *)at->memory < end)
            at->memory = NULL;
    pthread_mutex_unlock(&comm->registrations_lock);
}

void memory_deregister_all(rondo_comm *comm)
{
    while (comm->registrations) {
        rondo_registration *registration = comm->registrations;

        comm->registrations = registration->next;
        if (registration->memory)
            heap_disown(registration->memory);
        free(registration);
    }
}
