/* SPDX-License-Identifier: BSD-3-Clause */
/* failed.c - what needs no agreement: who has failed as far as this rank knows, revoking, and how
 * long to wait. */
#include "comm/recovery/recovery.h"

#include "base/cancel.h"
#include "base/fail.h"
#include "base/relax.h"
#include "comm/engine/call.h"
#include "comm/failure/error.h"
#include "comm/failure/network.h"

#include <math.h>

rondo_result recovery_check(rondo_comm *comm, const char *function)
{
    if (!comm)
        return rondo_fail(RONDO_ERROR_INVALID, "%s: the communicator is NULL.", function);
    if (fork_is_foreign(comm->home))
        return comm_refuse(comm, function);
    if (group_is_open())
        return rondo_fail(RONDO_ERROR_INVALID,
                          "%s: not inside of a group; it has to wait for the other ranks.",
                          function);
    if (comm->size > VOTE_RANKS)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "%s: agreements are for up to %d ranks, and this communicator has %d; "
                          "rondo_comm_split() makes smaller ones.",
                          function, VOTE_RANKS, comm->size);
    return RONDO_OK;
}

int recovery_list(const uint64_t set[VOTE_SET], int size, int *ret_ranks)
{
    int count = 0;

    for (int rank = 0; rank < size; rank++)
        if (set_has(set, rank)) {
            if (ret_ranks)
                ret_ranks[count] = rank;
            count++;
        }
    return count;
}

void recovery_find_failed(rondo_comm *comm, uint64_t set[VOTE_SET])
{
    struct vote own = {0};
    uint64_t seen = 0;
    unsigned ticket;
    bool networks = networks_any(comm) && turn_take_idle(&comm->turn, &ticket), moved;

    if (networks)
        networks_look(&comm->networks, 1, &moved);
    while (!vote_read(&comm->status->vote, &seen, &own) &&
           atomic_load_explicit(&comm->status->vote.changes, memory_order_relaxed))
        relax(); /* another thread shows a vote */
    set_join(set, own.verdict.failed);
    for (int rank = 0; rank < comm->size; rank++)
        if (!set_has(set, rank) && recovery_has_ended(comm, rank, networks))
            set_add(set, rank);
    if (networks)
        turn_pass(&comm->turn);
}

rondo_result rondo_comm_failed(rondo_comm *comm, int *ret_failed, int *ret_count)
{
    CANCEL_LATER();
    uint64_t set[VOTE_SET] = {0};
    rondo_result result = recovery_check(comm, "rondo_comm_failed");
    int count;

    if (result)
        return comm ? comm_note_error(comm, result) : result;
    recovery_find_failed(comm, set);
    count = recovery_list(set, comm->size, ret_failed);
    if (ret_count)
        *ret_count = count;
    return RONDO_OK;
}

rondo_result rondo_comm_revoke(rondo_comm *comm)
{
    CANCEL_LATER();

    if (!comm)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_revoke: the communicator is NULL.");
    if (fork_is_foreign(comm->home))
        return comm_refuse(comm, "rondo_comm_revoke");
    if (atomic_load_explicit(&comm->broken, memory_order_acquire))
        return RONDO_OK; /* all ranks learn of that already */
    rondo_fail(RONDO_ERROR_ABORTED,
               "Rank %d revoked the communicator (rondo_comm_revoke): it has no more calls, but "
               "rondo_comm_agree() and rondo_comm_shrink() work on.",
               comm->rank);
    comm_break(comm, RONDO_ERROR_ABORTED, comm->rank);
    return RONDO_OK;
}

rondo_result rondo_comm_set_timeout(rondo_comm *comm, double seconds)
{
    if (!comm)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_set_timeout: the communicator is NULL.");
    if (fork_is_foreign(comm->home))
        return comm_refuse(comm, "rondo_comm_set_timeout");
    if (!isfinite(seconds) || seconds < 0)
        return comm_note_error(comm, rondo_fail(RONDO_ERROR_INVALID,
                                                "rondo_comm_set_timeout: %g is no number of "
                                                "seconds; 0 means to wait for ever.",
                                                seconds));
    atomic_store_explicit(&comm->timeout, seconds, memory_order_relaxed);
    return RONDO_OK;
}
