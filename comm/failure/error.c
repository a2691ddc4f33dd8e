/* SPDX-License-Identifier: BSD-3-Clause */
/* error.c - see error.h. */
#include "comm/failure/error.h"

#include "base/fail.h"
#include "comm/failure/leave.h"
#include "comm/failure/network.h"

#include <stdio.h>

rondo_result comm_refuse(const char *function)
{
    return fork_refuse(function, "communicator");
}

rondo_result comm_note_error(rondo_comm *comm, rondo_result result)
{
    if (result <= RONDO_IN_PROGRESS || fork_is_foreign(comm->home))
        return result;
    lock_take(&comm->error_lock);
    snprintf(comm->error, sizeof(comm->error), "%s", fail_sentence());
    lock_give(&comm->error_lock);
    return result;
}

rondo_result comm_break(rondo_comm *comm, rondo_result result, int culprit)
{
    int sound = RONDO_OK;

    comm_note_error(comm, result);
    /* The first failure wins; the board is written by whoever changed the state, so only once. */
    if (atomic_compare_exchange_strong_explicit(&comm->broken, &sound, (int)result,
                                                memory_order_acq_rel, memory_order_acquire)) {
        const struct network_failure failure = {
            .result = result, .culprit = culprit, .sentence = fail_sentence()};

        board_fail(comm->boards[comm->rank], result, culprit, fail_sentence());
        leave_ring(comm);
        networks_tell(comm, &failure);
    }
    return result;
}

rondo_result comm_say_broken(rondo_comm *comm)
{
    int broken = atomic_load_explicit(&comm->broken, memory_order_acquire);
    char sentence[FAIL_SENTENCE_MAX];
    int culprit;

    if (!board_failure(comm->boards[comm->rank], &culprit, sentence))
        snprintf(sentence, sizeof(sentence), "%s", rondo_result_string((rondo_result)broken));
    return comm_note_error(comm, rondo_fail((rondo_result)broken, "%s", sentence));
}
