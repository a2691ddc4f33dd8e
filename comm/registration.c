/* SPDX-License-Identifier: BSD-3-Clause */
/* registration.c - memory that peers can map: the calls that make it, and that register it. */
#include "comm/registration.h"

#include "base/caller/times.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "comm/engine/call.h"
#include "comm/engine/post.h"
#include "comm/engine/stream.h"
#include "comm/failure/error.h"
#include "comm/failure/leave.h"
#include "comm/state/comm.h"
#include "comm/state/registration.h"
#include "transport/memory/heap.h"
#include "transport/memory/pages.h"
#include "transport/memory/registered.h"

#include <stdlib.h>

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

/* Waits for queued and posted calls that use the block of memory. What is none is told by whoever
 * frees it. */
static rondo_result let_go(const void *memory, const char *function)
{
    char *begin;
    size_t bytes;

    if (!heap_block(memory, &begin, &bytes))
        return RONDO_OK;
    if (group_uses(begin, bytes))
        return rondo_fail(RONDO_ERROR_INVALID,
                          "%s: a call of the open group uses the memory; end the group first.",
                          function);
    posts_let_go(begin, bytes);
    return streams_let_go(begin, bytes, function);
}

rondo_result rondo_mem_free(void *memory)
{
    CANCEL_LATER();
    rondo_result result = let_go(memory, "rondo_mem_free");

    return result ? result : heap_free(memory);
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
        return comm_refuse(comm, "rondo_comm_register");
    registration = malloc(sizeof(*registration));
    if (!registration)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory while registering memory.");
    result = heap_register(memory, bytes);
    if (result) {
        free(registration);
        return comm_note_error(comm, result);
    }
    registration->memory = memory;
    lock_take(&comm->registrations_lock);
    registration->next = comm->registrations;
    comm->registrations = registration;
    lock_give(&comm->registrations_lock);
    *ret_registration = registration;
    return RONDO_OK;
}

/* With the lock held: the link to a registration; to NULL: it is not of this communicator. */
static rondo_registration **find(rondo_comm *comm, const rondo_registration *registration)
{
    rondo_registration **link = &comm->registrations;

    while (*link && *link != registration)
        link = &(*link)->next;
    return link;
}

/* False: it is not of this communicator. NULL: its memory was taken back from peers. */
static bool memory_of(rondo_comm *comm, const rondo_registration *registration, void **ret_memory)
{
    const rondo_registration *found;

    lock_take(&comm->registrations_lock);
    found = *find(comm, registration);
    *ret_memory = found ? found->memory : NULL;
    lock_give(&comm->registrations_lock);
    return found;
}

struct block {
    char *begin;
    size_t bytes;
};

static bool is_shown(rondo_comm *comm, void *context)
{
    const struct block *block = context;
    const char *end = block->begin + block->bytes;
    bool shown = false;

    for (int i = 0; i <= comm->size && !shown; i++)
        shown = exposed_maps(&comm->exposures[i].written, block->begin, end) ||
                exposed_maps(&comm->exposures[i].read, block->begin, end);
    return shown && !turn_idle(&comm->turn);
}

/*
 * Any thread may be in a call, of any communicator, whose peers use the range in the heap: these
 * are waited for as well; calls that come find it private. If `comm` is broken, the caller may be
 * about to break those others, too, so they are not waited for for ever: then they fail, instead of
 * their peers reading zeros, and the range's place in the heap is not used again. A call that fails
 * takes the lock of registrations, so that is not held here.
 */
static rondo_result let_go_range(rondo_comm *comm, const void *memory, const char *function)
{
    rondo_result result = let_go(memory, function);
    double since = clock_seconds();
    struct block block;

    if (result || !heap_block(memory, &block.begin, &block.bytes))
        return result;
    registered_hide(memory);
    while (leave_any(is_shown, &block)) {
        if (atomic_load_explicit(&comm->broken, memory_order_relaxed) &&
            clock_seconds() - since > PATIENCE_SHARED)
            return heap_withdraw(&(struct heap_withdrawal){
                .memory = memory, .bytes = block.bytes, .warn = leave_warn, .context = comm});
        doze_for(DOZE_OWN);
    }
    return RONDO_OK;
}

static rondo_result no_such(const char *function)
{
    return rondo_fail(RONDO_ERROR_INVALID, "%s: this communicator has no such registration.",
                      function);
}

/* The memory becomes private again, if a call that fails does not take it back at the same time. */
static rondo_result take_back(rondo_comm *comm, const rondo_registration *registration,
                              const char *function)
{
    rondo_result result;
    void *memory;

    if (!memory_of(comm, registration, &memory))
        return no_such(function);
    result = memory ? let_go_range(comm, memory, function) : RONDO_OK;
    if (result)
        return result;
    if (!memory_of(comm, registration, &memory)) /* by another thread */
        return no_such(function);
    result = heap_deregister(memory);
    return memory_of(comm, registration, &memory) && !memory ? RONDO_OK : result;
}

static void unlist(rondo_comm *comm, rondo_registration *registration)
{
    rondo_registration **link;

    lock_take(&comm->registrations_lock);
    link = find(comm, registration);
    if (*link) {
        *link = registration->next;
        free(registration);
    }
    lock_give(&comm->registrations_lock);
}

rondo_result rondo_comm_deregister(rondo_comm *comm, rondo_registration *registration)
{
    CANCEL_LATER();
    rondo_result result;

    if (!comm || !registration)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_comm_deregister: needs a communicator and a registration.");
    if (fork_is_foreign(comm->home))
        return comm_refuse(comm, "rondo_comm_deregister");
    result = take_back(comm, registration, "rondo_comm_deregister");
    if (!result)
        unlist(comm, registration);
    return comm_note_error(comm, result);
}

bool registration_is_needed(rondo_comm *comm)
{
    struct block block;
    bool used = false;

    lock_take(&comm->registrations_lock);
    for (rondo_registration *at = comm->registrations; at && !used; at = at->next)
        used = at->memory && heap_block(at->memory, &block.begin, &block.bytes) &&
               group_uses(block.begin, block.bytes);
    lock_give(&comm->registrations_lock);
    return used;
}

bool registration_in_group(rondo_comm *comm)
{
    if (!registration_is_needed(comm))
        return false;
    group_spoil(rondo_fail(RONDO_ERROR_INVALID,
                           "rondo_comm_close: a call of the open group uses memory that is "
                           "registered with the communicator, which stays open; end the group "
                           "first."));
    return true;
}

void registration_drop_all(rondo_comm *comm)
{
    void *memory;

    while (comm->registrations) {
        if (take_back(comm, comm->registrations, "rondo_comm_close")) {
            log_warn("%s Its pages stay shared.", fail_sentence());
            if (memory_of(comm, comm->registrations, &memory))
                registered_hide(memory); /* the caller may put something else in its place */
        }
        unlist(comm, comm->registrations);
    }
}
