/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c - memory that is good for communication, and memory that the client has already.
 *
 * Registering is a promise of speed, never of success: what cannot be registered works all the
 * same, so the answer is a handle either way. Memory of the device needs none of it.
 */
#include "compat/compat.h"

#include <stdlib.h>

NCCL_API(ncclResult_t, ncclMemAlloc, void **ptr, size_t size)
{
    if (!ptr)
        return compat_fail(NULL, ncclInvalidArgument, "ncclMemAlloc: no place for the address.");
    if (!size) {
        *ptr = NULL;
        return ncclSuccess;
    }
    return compat_result(NULL, compat_device_current() < 0 ? rondo_mem_alloc(size, ptr)
                                                           : rondo_cuda_mem_alloc(size, ptr));
}

NCCL_API(ncclResult_t, ncclMemFree, void *ptr)
{
    return compat_result(NULL, compat_device_current() < 0 ? rondo_mem_free(ptr)
                                                           : rondo_cuda_mem_free(ptr));
}

static rondo_registration *adopt(ncclComm_t comm, void *memory, size_t bytes)
{
    rondo_registration *registration = NULL;

    if (comm->device >= 0)
        return NULL;
    return rondo_comm_register(comm->calls, memory, bytes, &registration) ? NULL : registration;
}

static void add(ncclComm_t comm, struct registered *registered)
{
    pthread_mutex_lock(&comm->lock);
    registered->next = comm->registered;
    comm->registered = registered;
    pthread_mutex_unlock(&comm->lock);
}

/* Registering gains nothing for memory from ncclMemAlloc(), which is registered already, nor for
 * that of devices, which peers map when calls use it. */
static ncclResult_t note(ncclComm_t comm, void *memory, size_t bytes, bool window,
                         struct registered **ret_registered)
{
    struct registered *registered;

    if (rondo_comm_query(comm->calls) ==
        RONDO_ERROR_INVALID) /* a forked child has no such memory */
        return compat_result(comm, RONDO_ERROR_INVALID);
    registered = malloc(sizeof(*registered));
    if (!registered)
        return compat_fail(comm, ncclSystemError, "Out of memory for registering memory.");
    *registered = (struct registered){
        .memory = memory, .is_window = window, .registration = adopt(comm, memory, bytes)};
    add(comm, registered);
    *ret_registered = registered;
    return ncclSuccess;
}

/* Take a handle of either kind off the list; NULL: there is none such. */
static struct registered *take_off(ncclComm_t comm, const void *handle, bool window)
{
    struct registered **link = &comm->registered, *found;

    pthread_mutex_lock(&comm->lock);
    while (*link && (*link != handle || (*link)->is_window != window))
        link = &(*link)->next;
    found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&comm->lock);
    return found;
}

static ncclResult_t deregister(ncclComm_t comm, const char *function, const void *handle,
                               bool window)
{
    ncclResult_t result = communicator_check(comm, function);
    struct registered *found;

    if (result || !handle)
        return result;
    found = take_off(comm, handle, window);
    if (!found)
        return compat_fail(comm, ncclInvalidArgument, "%s: this communicator has no such %s.",
                           function, window ? "window" : "handle");
    if (found->registration)
        result = compat_result(comm, rondo_comm_deregister(comm->calls, found->registration));
    if (result)
        add(comm, found); /* it is still registered, and may be tried again */
    else
        free(found);
    return result;
}

NCCL_API(ncclResult_t, ncclCommRegister, const ncclComm_t comm, void *buff, size_t size,
         void **handle)
{
    ncclResult_t result = communicator_check(comm, "ncclCommRegister");
    struct registered *registered;

    if (result)
        return result;
    if (!buff || !size || !handle)
        return compat_fail(comm, ncclInvalidArgument,
                           "ncclCommRegister: needs memory and a place for the handle.");
    result = note(comm, buff, size, false, &registered);
    if (!result)
        *handle = registered;
    return result;
}

NCCL_API(ncclResult_t, ncclCommDeregister, const ncclComm_t comm, void *handle)
{
    return deregister(comm, "ncclCommDeregister", handle, false);
}

/* Forget what is still registered with Rondo; it ends with Rondo's communicator. */
void compat_memory_forget(ncclComm_t comm)
{
    while (comm->registered) {
        struct registered *next = comm->registered->next;

        free(comm->registered);
        comm->registered = next;
    }
}

/* ---- Windows --------------------------------------------------------------------------------- */
/*
 * A window is memory that every rank of the communicator registers at once, so that calls on it go
 * without copies in between. Here that is what registering does on each rank for itself: plans
 * that read or write peers' memory ask in each call where its buffers are.
 */

enum { WINDOW_ALIGNMENT = 4096 }; /* NCCL_WIN_REQUIRED_ALIGNMENT */

NCCL_API(ncclResult_t, ncclCommWindowRegister, ncclComm_t comm, void *buff, size_t size,
         ncclWindow_t *win, int winFlags)
{
    ncclResult_t result = communicator_check(comm, "ncclCommWindowRegister");
    struct registered *registered;

    (void)winFlags; /* symmetric or not, and in which order: calls are right with all of them */
    if (result)
        return result;
    if (!win || !buff || !size)
        return compat_fail(comm, ncclInvalidArgument,
                           "ncclCommWindowRegister: needs memory and a place for the window.");
    /* A driver packs short allocations, also those of ncclMemAlloc(), and nothing depends on it. */
    if (comm->device < 0 && (uintptr_t)buff % WINDOW_ALIGNMENT)
        return compat_fail(comm, ncclInvalidArgument,
                           "ncclCommWindowRegister: a window begins at a multiple of %d bytes, "
                           "unlike %p; memory from ncclMemAlloc() does.",
                           WINDOW_ALIGNMENT, buff);
    result = note(comm, buff, size, true, &registered);
    if (!result)
        *win = (ncclWindow_t)(void *)registered;
    return result;
}

NCCL_API(ncclResult_t, ncclCommWindowDeregister, ncclComm_t comm, ncclWindow_t win)
{
    return deregister(comm, "ncclCommWindowDeregister", win, true);
}

NCCL_API(ncclResult_t, ncclWinGetUserPtr, ncclComm_t comm, ncclWindow_t win, void **outUserPtr)
{
    ncclResult_t result = communicator_check(comm, "ncclWinGetUserPtr");
    const struct registered *at;

    if (result)
        return result;
    if (!outUserPtr)
        return compat_fail(comm, ncclInvalidArgument,
                           "ncclWinGetUserPtr: no place for the address.");
    pthread_mutex_lock(&comm->lock);
    for (at = comm->registered; at && (at != (const void *)win || !at->is_window); at = at->next)
        ;
    *outUserPtr = at ? at->memory : NULL;
    pthread_mutex_unlock(&comm->lock);
    return at ? ncclSuccess
              : compat_fail(comm, ncclInvalidArgument,
                            "ncclWinGetUserPtr: this communicator has no such window.");
}
