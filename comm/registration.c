/* SPDX-License-Identifier: BSD-3-Clause */
/* registration.c - memory that peers can map: the calls that make it, and that register it. */
#include "comm/registration.h"

#include "base/cancel.h"
#include "base/fail.h"
#include "comm/failure/error.h"
#include "comm/state/comm.h"
#include "comm/state/registration.h"
#include "transport/memory/heap.h"
#include "transport/memory/pages.h"

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
    lock_take(&comm->registrations_lock);
    link = &comm->registrations;
    while (*link && *link != registration)
        link = &(*link)->next;
    if (!*link)
        result = rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_deregister: this communicator has no "
                                                 "such registration.");
    else if (registration->memory)
        result = heap_deregister(registration->memory);
    if (!result)
        *link = registration->next;
    lock_give(&comm->registrations_lock);
    if (!result)
        free(registration);
    return comm_note_error(comm, result);
}

void registration_drop_all(rondo_comm *comm)
{
    while (comm->registrations) {
        rondo_registration *registration = comm->registrations;

        comm->registrations = registration->next;
        if (registration->memory)
            heap_deregister(registration->memory);
        free(registration);
    }
}
