/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * move.c - the same model on another communicator.
 *
 * What is whole on every rank, parameters and buffers, stays where it is. All else belongs to the
 * ranks with which it was made and is made anew: the communicator and the stream of exchanges, the
 * buckets, what was learned of the order of gradients, votes.
 */
#include "ddp/core.h"

#include <stdlib.h>

void rondo_ddp_revoke(rondo_ddp *ddp)
{
    if (!ddp)
        return;
    if (ddp->exchange_comm)
        rondo_comm_revoke(ddp->exchange_comm);
    ddp->broken = true;
    ddp->in_pass = false;
}

static void forget_step(rondo_ddp *ddp)
{
    ddp->in_pass = ddp->exchange = ddp->joined = false;
    ddp->order_known = ddp->order_is_new = ddp->rebuilt = false;
    ddp->late = (struct ddp_late){0};
    ddp->announced = ddp->arrived = ddp->next = ddp->root = 0;
    ddp->passes = ddp->own_passes = 0;
    ddp->problem = RONDO_OK;
    ddp->sentence[0] = 0;
    for (int i = 0; i < ddp->parameter_count; i++) {
        free(ddp->parameters[i].kept);
        ddp->parameters[i].kept = NULL;
        ddp->parameters[i].touched = ddp->parameters[i].ready = false;
    }
}

rondo_result rondo_ddp_move(rondo_ddp *ddp, rondo_comm *comm)
{
    rondo_result result;
    int32_t *states;

    if (!ddp || !comm)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_ddp_move: there is no %s.",
                        ddp ? "communicator" : "rondo_ddp");
    result = ddp_check_call(ddp, "rondo_ddp_move");
    if (result)
        return result;
    states = calloc((size_t)rondo_comm_size(comm), sizeof(*states));
    if (!states)
        return ddp_fail(RONDO_ERROR_MEMORY, "Out of memory for %d ranks.", rondo_comm_size(comm));
    ddp_leave(ddp);
    free(ddp->states);
    ddp->states = states;
    forget_step(ddp);
    ddp->comm = comm;
    ddp->rank = rondo_comm_rank(comm);
    ddp->size = ddp->remaining = rondo_comm_size(comm);
    ddp->broken = false;
    result = ddp_enter(ddp, true);
    if (!result)
        result = rondo_ddp_zero_gradients(ddp);
    ddp->broken = result != RONDO_OK;
    return result;
}

rondo_result rondo_ddp_share(rondo_ddp *ddp, const rondo_ddp_tensor *arrays, int count)
{
    struct ddp_tensor *tensors;
    rondo_result result = ddp_check_call(ddp, "rondo_ddp_share");

    if (result)
        return result;
    if (ddp->broken || ddp->in_pass || count < 0 || (count && !arrays))
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_ddp_share: %s.",
                        ddp->broken    ? "the communicator failed before; move to another one"
                        : ddp->in_pass ? "not inside of a pass; call rondo_ddp_wait() first"
                                       : "there are no arrays");
    tensors = calloc((size_t)count + 1, sizeof(*tensors));
    if (!tensors)
        return ddp_fail(RONDO_ERROR_MEMORY, "Out of memory for %d arrays.", count);
    for (int i = 0; i < count; i++) {
        tensors[i].data = arrays[i].data;
        tensors[i].count = arrays[i].count;
        tensors[i].type = arrays[i].type;
    }
    result = ddp_broadcast(ddp, tensors, count, 0);
    free(tensors);
    return result;
}
