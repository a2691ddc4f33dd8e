/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * estimate.c - how long calls will take, by the cost model, without making them.
 *
 * An estimate is what the choice of an algorithm goes by: the least that the model predicts for any
 * form that may be taken. It reads what was measured when the communicator opened and takes no
 * turn, so it may be asked for beside calls in progress, and all ranks find the same.
 */
#include "comm/engine/call.h"
#include "comm/engine/choose.h"
#include "comm/failure/error.h"

#include "base/cancel.h"
#include "base/fail.h"

static const double microsecond = 1e-6;

static rondo_result estimate(const rondo_call *call, double *ret_seconds)
{
    struct counts counts = {NULL};
    struct choice_key key;
    struct task task;
    rondo_result result = comm_check(call->comm);

    if (!result)
        result = call_check_but_buffers(call, &task);
    if (result)
        return result;
    key = task.key;
    key.made = task.made.handle ? &task.made : NULL;
    result = choice_predict(call->comm, &key, NULL, &counts, ret_seconds);
    counts_done(&counts);
    return result;
}

rondo_result rondo_estimate(const rondo_call *call, double *ret_microseconds)
{
    CANCEL_LATER();
    double seconds = 0;
    rondo_result result;

    if (!call || call->struct_size != sizeof(*call) || !call->comm || !ret_microseconds)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_estimate: needs a call whose struct_size is sizeof(rondo_call), "
                          "with a communicator, and a place for the answer.");
    result = estimate(call, &seconds);
    if (result)
        return comm_note_error(call->comm, result);
    *ret_microseconds = seconds / microsecond;
    return RONDO_OK;
}

/* ---- Groups ---------------------------------------------------------------------------------- */

/* True if a call of the group before this one has the same communicator. */
static bool is_counted(size_t index, const rondo_comm *comm)
{
    struct choice_key key;
    rondo_comm *earlier;

    for (size_t i = 0; i < index && group_look(i, &earlier, &key); i++)
        if (earlier == comm)
            return true;
    return false;
}

/* The calls of the group on one communicator, from the first one on, one after another. */
static rondo_result add_up(size_t first, rondo_comm *comm, double *ret_seconds)
{
    struct counts counts = {NULL};
    rondo_result result = comm_check(comm);
    struct choice_key key;
    rondo_comm *other;

    *ret_seconds = 0;
    for (size_t i = first; !result && group_look(i, &other, &key); i++) {
        double seconds = 0;

        if (other != comm)
            continue;
        result = choice_predict(comm, &key, NULL, &counts, &seconds);
        *ret_seconds += seconds;
    }
    counts_done(&counts);
    return result;
}

rondo_result rondo_group_estimate(double *ret_microseconds)
{
    CANCEL_LATER();
    rondo_result result = group_check();
    struct choice_key key;
    double longest = 0;
    rondo_comm *comm;

    if (!group_is_open() || !ret_microseconds)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_group_estimate: needs a place for the answer, and a group that "
                          "rondo_group_start() has opened on this thread.");
    for (size_t i = 0; !result && group_look(i, &comm, &key); i++) {
        double seconds;

        if (is_counted(i, comm))
            continue;
        result = add_up(i, comm, &seconds);
        longest = seconds > longest ? seconds : longest;
    }
    if (!result)
        *ret_microseconds = longest / microsecond;
    return result;
}
