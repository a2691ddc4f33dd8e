/* SPDX-License-Identifier: BSD-3-Clause */
/* error.c - see error.h. */
#include "comm/failure/error.h"

#include "base/fail.h"
#include "base/log.h"
#include "comm/failure/answer.h"
#include "comm/failure/leave.h"
#include "comm/failure/network.h"
#include "comm/recorder/table.h"

#include <stdio.h>
#include <string.h>

rondo_result comm_refuse(const rondo_comm *comm, const char *function)
{
    if (comm->home == COMM_CLOSED)
        return rondo_fail(
            RONDO_ERROR_INVALID,
            "%s: the communicator was closed (rondo_comm_close) before this call. Set "
            "the pointer to NULL after closing.",
            function);
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

/* Tell what all ranks of this host are doing, while they still do it. */
static void tell(const rondo_comm *comm, rondo_result result)
{
    bool waited = result == RONDO_ERROR_TIMEOUT;
    bool peers = result == RONDO_ERROR_PEER || result == RONDO_ERROR_MISMATCH;

    if ((waited && log_wants(LOG_WARN)) || (peers && log_wants(LOG_INFO)))
        table_tell(comm->recorder, "a call has failed");
}

rondo_result comm_break(rondo_comm *comm, rondo_result result, int culprit)
{
    int sound = RONDO_OK;
    char sentence[FAIL_SENTENCE_MAX];

    comm_note_error(comm, result);
    /* What follows may fail as well, and describe that. */
    snprintf(sentence, sizeof(sentence), "%s", fail_sentence());
    /* The first failure wins; the status page is written by whoever changed the state, so only
     * once. */
    if (atomic_compare_exchange_strong_explicit(&comm->broken, &sound, (int)result,
                                                memory_order_acq_rel, memory_order_acquire)) {
        struct network_failure failure = {
            .result = result, .culprit = culprit, .sentence = sentence};

        tell(comm, result);
        recorder_fail(comm->recorder, (int)result, culprit, sentence);
        status_fail(comm->status_pages[comm->rank], result, culprit, sentence);
        leave_ring(comm);
        failure.answered = answer_start(comm);
        networks_tell(comm, &failure);
        if (strcmp(fail_sentence(), sentence) != 0)
            rondo_fail(result, "%s", sentence);
    }
    return result;
}

rondo_result comm_say_broken(rondo_comm *comm)
{
    int broken = atomic_load_explicit(&comm->broken, memory_order_acquire);
    char sentence[FAIL_SENTENCE_MAX];
    int culprit;

    if (!status_failure(comm->status_pages[comm->rank], &culprit, sentence)) {
        /* Another thread is about to write it there; it has noted it before it broke anything. */
        lock_take(&comm->error_lock);
        snprintf(sentence, sizeof(sentence), "%s",
                 *comm->error ? comm->error : rondo_result_string((rondo_result)broken));
        lock_give(&comm->error_lock);
    }
    return comm_note_error(comm, rondo_fail((rondo_result)broken, "%s", sentence));
}
