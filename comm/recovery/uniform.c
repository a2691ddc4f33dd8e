/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uniform.c - a collective returns the same result on every rank that is left (RONDO_UNIFORM).
 *
 * When its part of a call is over, well or badly, a rank votes with its result, and all take the
 * verdict: the first error, in the order of rondo_result, that any of them had. Who has ended since
 * is no error of a call that went well for all others; the next one tells of it.
 *
 * After an error the ranks have parted: their communicators are broken, calls return the same error
 * at once, and agreements are again made by rondo_comm_agree() and its like alone. A rank that goes
 * there while others are still in a call, as a message of its own failed, or as it was told, meets
 * them in the agreement about that call, which is then no success, and waits for them in the next.
 * What all ranks refuse alike breaks nothing.
 */
#include "comm/recovery/recovery.h"

#include "base/cancel.h"
#include "base/fail.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"

_Static_assert(RONDO_RESULTS < 32, "each result is a bit of a vote");

static uint64_t bit_of(rondo_result result)
{
    return (uint64_t)PURPOSE_RESULT << result;
}

static bool is_abandoned(uint64_t purposes)
{
    return purposes & (PURPOSE_AGREE | PURPOSE_SHRINK | PURPOSE_GROW);
}

rondo_result uniform_result(uint64_t purposes)
{
    for (int result = RONDO_ERROR_INVALID; result < RONDO_RESULTS; result++)
        if (purposes & bit_of((rondo_result)result))
            return (rondo_result)result;
    return is_abandoned(purposes) ? RONDO_ERROR_ABORTED : RONDO_OK;
}

/* All ranks have refused the call for the same reason. */
static bool is_refused_by_all(uint64_t purposes, rondo_result result)
{
    return purposes == (PURPOSE_CALL | bit_of(result));
}

/* The sentence of a rank that had this result, if there is one. */
static rondo_result explain(const rondo_comm *comm, rondo_result result, int *ret_culprit)
{
    char sentence[FAIL_SENTENCE_MAX];

    for (int rank = 0; rank < comm->size; rank++) {
        const struct status *status = health_status(comm, rank);

        if (status && status_failure(status, ret_culprit, sentence) == result)
            return rondo_fail(result, "%s", sentence);
    }
    *ret_culprit = comm->rank;
    return rondo_fail(result,
                      "Another rank than rank %d had an error in this call (%s), and with "
                      "RONDO_UNIFORM it is everybody's: look at what that rank said.",
                      comm->rank, rondo_result_string(result));
}

static rondo_result abandoned(const rondo_comm *comm, rondo_result result)
{
    return rondo_fail(
        result,
        "Rank %d called a collective, and other ranks called rondo_comm_agree(), "
        "rondo_comm_shrink() or rondo_comm_grow() instead; with RONDO_UNIFORM that is "
        "an error of this call.",
        comm->rank);
}

static rondo_result part(rondo_comm *comm, rondo_result result, int culprit)
{
    recovery_part(comm, result);
    comm_break(comm, result, culprit);
    return comm_note_error(comm, result);
}

static rondo_result take(rondo_comm *comm, rondo_result own, const struct verdict *verdict)
{
    rondo_result result = uniform_result(verdict->purposes);
    int culprit = comm->rank;

    if (!result || is_refused_by_all(verdict->purposes, result))
        return result;
    if (result != own && !own && is_abandoned(verdict->purposes))
        abandoned(comm, result);
    else if (result != own)
        explain(comm, result, &culprit);
    return part(comm, result, culprit);
}

rondo_result uniform_settle(rondo_comm *comm, rondo_result own)
{
    CANCEL_LATER();
    rondo_result parted = recovery_parted(comm), result;
    struct verdict verdict;
    int culprit;

    if (parted)
        return own == parted ? own : comm_note_error(comm, explain(comm, parted, &culprit));
    result = recovery_decide(
        comm,
        PURPOSE_CALL | bit_of(own) |
            (own && atomic_load_explicit(&comm->broken, memory_order_acquire) ? PURPOSE_BROKE : 0),
        UINT64_MAX, &verdict);
    return result ? part(comm, result, comm->rank) : take(comm, own, &verdict);
}
