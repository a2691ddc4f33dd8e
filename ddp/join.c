/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * join.c - ranks with fewer batches than others.
 *
 * With a join mode every pass begins with an announcement: each rank tells whether it has data. A
 * rank in rondo_ddp_join() has none, and shadows: it makes the same pass as the others, in which no
 * parameter is announced. When nobody has data any more, all leave.
 */
#include "ddp/core.h"

/* An announcement has the state in the lower bits, and above them how many passes of the step the
 * rank has made. */
enum { STATE_BITS = 2 };

static rondo_result hear_announcements(rondo_ddp *ddp, enum ddp_state state)
{
    int32_t mine = (int32_t)state | ddp->own_passes << STATE_BITS, *states = ddp->states;
    rondo_result result = rondo_all_gather(&mine, states, 1, RONDO_INT32, ddp->comm, NULL);

    if (result)
        return ddp_broken(ddp, result, ddp->comm, "Asking who still has data");
    ddp->made_passes = 0;
    for (int rank = 0; rank < ddp->size; rank++) {
        ddp->made_passes += states[rank] >> STATE_BITS;
        states[rank] &= (1 << STATE_BITS) - 1;
    }
    return RONDO_OK;
}

rondo_result ddp_announce(rondo_ddp *ddp, enum ddp_state state)
{
    const int32_t *states = ddp->states;
    int first = -1, remaining = 0;
    rondo_result result = hear_announcements(ddp, state);

    if (result)
        return result;
    for (int rank = 0; rank < ddp->size; rank++) {
        if (states[rank] == DDP_NO_DATA)
            continue;
        if (first < 0)
            first = rank;
        if (states[rank] != states[first])
            return ddp_fail(RONDO_ERROR_MISMATCH,
                            "rondo_ddp_begin: rank %d begins a pass that %s, rank %d one that %s.",
                            first, states[first] == DDP_EXCHANGES ? "exchanges" : "does not", rank,
                            states[rank] == DDP_EXCHANGES ? "exchanges" : "does not");
        remaining++;
    }
    ddp->remaining = remaining;
    ddp->made_passes += remaining;
    if (remaining)
        ddp->root = first;
    return RONDO_OK;
}

static rondo_result shadow(rondo_ddp *ddp, rondo_ddp_step_function step, void *context)
{
    bool exchange = ddp->states[ddp->root] == DDP_EXCHANGES;
    rondo_result result = ddp_pass_begin(ddp, exchange);

    if (!result)
        result = ddp_pass_finish(ddp);
    if (!result && exchange && step) {
        rondo_result stepped = step(context);

        if (stepped) /* told at the next exchange, if there is one */
            ddp_problem(ddp, stepped, "Rank %d has joined, and its step function returned: %s.",
                        ddp->rank, rondo_result_string(stepped));
    }
    return result;
}

/* All are here. */
static rondo_result leave(rondo_ddp *ddp)
{
    rondo_result result = ddp_agree(ddp, DDP_VOTE_PROBLEM + 1);

    if (!result && ddp->passes) /* a step that was begun is forgotten */
        result = rondo_ddp_zero_gradients(ddp);
    ddp->passes = ddp->own_passes = 0;
    for (int i = 0; i < ddp->parameter_count; i++)
        ddp->parameters[i].touched = false;
    if (!result)
        result = ddp_broadcast(ddp, ddp->parameters, ddp->parameter_count, ddp->root);
    if (!result)
        result = ddp_broadcast(ddp, ddp->buffers, ddp->buffer_count, ddp->root);
    return result;
}

rondo_result rondo_ddp_join(rondo_ddp *ddp, rondo_ddp_step_function step, void *context)
{
    rondo_result result = ddp_check_call(ddp, "rondo_ddp_join");

    if (result)
        return result;
    if (ddp->broken || !ddp->config.join)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_ddp_join: %s.",
                        ddp->broken ? "the communicator failed before"
                                    : "the settings have no join mode; set one when opening");
    if (ddp->in_pass)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_ddp_join: rank %d is in a pass; end it by rondo_ddp_wait().",
                        ddp->rank);
    ddp->joined = true;
    do {
        result = ddp_announce(ddp, DDP_NO_DATA);
        if (!result && ddp->remaining)
            result = shadow(ddp, step, context);
    } while (!result && ddp->remaining);
    if (!result)
        result = leave(ddp);
    ddp->joined = false;
    return result;
}
