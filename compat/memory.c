/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c - memory that is good for communication, and memory that the client has already.
 *
 * Registering is a promise of speed, never of success: what cannot be registered works all the
 * same, so the answer is a handle either way. Memory of the device needs none of it.
 */
#include "compat/compat.h"

#include <stdlib.h>
#include <unistd.h>

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

/* Whole pages of host memory are given to Rondo; a page that is only partly the client's is not. */
static rondo_registration *adopt(ncclComm_t comm, void *memory, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    rondo_registration *registration = NULL;

    if (comm->device >= 0 || (uintptr_t)memory % page || bytes % page)
        return NULL;
    return rondo_comm_register(comm->calls, memory, bytes, &registration) ? NULL : registration;
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
    registered = malloc(sizeof(*registered));
    if (!registered)
        return compat_fail(comm, ncclSystemError, "Out of memory for registering memory.");
    registered->registration = adopt(comm, buff, size);
    pthread_mutex_lock(&comm->lock);
    registered->next = comm->registered;
    comm->registered = registered;
    pthread_mutex_unlock(&comm->lock);
    *handle = registered;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommDeregister, const ncclComm_t comm, void *handle)
{
    ncclResult_t result = communicator_check(comm, "ncclCommDeregister");
    struct registered **link;
    struct registered *found;

    if (result || !handle)
        return result;
    pthread_mutex_lock(&comm->lock);
    link = &comm->registered;
    while (*link && *link != handle)
        link = &(*link)->next;
    found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&comm->lock);
    if (!found)
        return compat_fail(comm, ncclInvalidArgument,
                           "ncclCommDeregister: this communicator has no such handle.");
    if (found->registration)
        result = compat_result(comm, rondo_comm_deregister(comm->calls, found->registration));
    free(found);
    return result;
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

/* ---- Windows: not offered, which is said by a window that is NULL ---------------------------- */

NCCL_API(ncclResult_t, ncclCommWindowRegister, ncclComm_t comm, void *buff, size_t size,
         ncclWindow_t *win, int winFlags)
{
    ncclResult_t result = communicator_check(comm, "ncclCommWindowRegister");

    (void)buff;
    (void)size;
    (void)winFlags;
    if (!result && !win)
        result = compat_fail(comm, ncclInvalidArgument,
                             "ncclCommWindowRegister: no place for the window.");
    if (result)
        return result;
    *win = NULL;
    compat_fail(comm, ncclSuccess,
                "ncclCommWindowRegister: Rondo has no windows, so the window is NULL; calls on the "
                "buffer work as on any other.");
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommWindowDeregister, ncclComm_t comm, ncclWindow_t win)
{
    ncclResult_t result = communicator_check(comm, "ncclCommWindowDeregister");

    if (!result && win)
        result = compat_fail(comm, ncclInvalidArgument,
                             "ncclCommWindowDeregister: Rondo made no such window.");
    return result;
}
