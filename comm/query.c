/* SPDX-License-Identifier: BSD-3-Clause */
/* query.c - what a user asks of a communicator: who am I, is it sound, why not; and its abort. */
#include "comm/failure/error.h"

#include "rondo/bindings.h"

#include "base/cancel.h"
#include "base/fail.h"
#include "comm/failure/health.h"
#include "comm/failure/network.h"
#include "comm/gpu/gpu.h"

#include <stdio.h>

/* Fetch what ranks of other hosts have said. If a call of another thread has the turn, that call
 * does so. */
static rondo_result fetch(rondo_comm *comm)
{
    rondo_result result;
    unsigned ticket;
    bool moved;

    if (!turn_take_idle(&comm->turn, &ticket))
        return RONDO_OK;
    result = networks_progress(comm, &moved);
    turn_pass(&comm->turn);
    return result;
}

rondo_result rondo_comm_query(rondo_comm *comm)
{
    CANCEL_LATER();
    rondo_result result;

    if (!comm)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_query: the communicator is NULL.");
    if (fork_is_foreign(comm->home))
        return comm_refuse(comm, "rondo_comm_query");
    if (atomic_load_explicit(&comm->broken, memory_order_acquire)) {
        gpu_query(comm_gpu(comm));
        return (rondo_result)atomic_load_explicit(&comm->broken, memory_order_acquire);
    }
    result = fetch(comm);
    if (!result)
        result = health_adopt(comm);
    gpu_query(comm_gpu(comm));
    return result ? result : comm_check(comm);
}

const char *rondo_comm_last_algorithm(const rondo_comm *comm)
{
    const char *of_device =
        comm ? atomic_load_explicit(&comm->ran_on_device, memory_order_relaxed) : NULL;

    if (of_device)
        return of_device;
    return comm && comm->last_algorithm ? comm->last_algorithm : "";
}

rondo_result rondo_comm_abort(rondo_comm *comm)
{
    CANCEL_LATER();

    if (!comm)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_abort: the communicator is NULL.");
    if (fork_is_foreign(comm->home))
        return comm_refuse(comm, "rondo_comm_abort");
    rondo_fail(RONDO_ERROR_ABORTED, "Rank %d aborted the communicator (rondo_comm_abort).",
               comm->rank);
    comm_break(comm, RONDO_ERROR_ABORTED, comm->rank);
    return RONDO_OK;
}

const char *rondo_last_error(const rondo_comm *comm)
{
    static _Thread_local char copy[FAIL_SENTENCE_MAX];
    rondo_comm *writable = (rondo_comm *)(uintptr_t)comm;

    if (!comm || fork_is_foreign(comm->home))
        return fail_sentence();
    lock_take(&writable->error_lock);
    snprintf(copy, sizeof(copy), "%s", comm->error);
    lock_give(&writable->error_lock);
    return copy;
}

int rondo_comm_rank(const rondo_comm *comm)
{
    return comm ? comm->rank : -1;
}

int rondo_comm_size(const rondo_comm *comm)
{
    return comm ? comm->size : -1;
}

int rondo_comm_local_rank(const rondo_comm *comm)
{
    return comm ? comm->local_rank : -1;
}

int rondo_comm_local_size(const rondo_comm *comm)
{
    return comm ? comm->local_size : -1;
}
