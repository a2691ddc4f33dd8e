/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * health.c - checks of a wait that lasts.
 *
 * In order: a peer that has already failed says so on its status page, and its sentence becomes
 * ours, so that every rank names the same culprit; a peer that is in the same call by number but
 * called something else; a peer that has closed the communicator, or whose process has ended; and
 * time. A peer that finished its part and left is no culprit: only those that we wait for are
 * suspected, by each program of the plan its own, and only when what they wrote before has been
 * looked at.
 */
#include "comm/failure/health.h"

#include "base/caller/times.h"
#include "base/collective.h"
#include "base/fail.h"
#include "comm/failure/blame.h"
#include "comm/failure/error.h"
#include "comm/failure/long_wait.h"
#include "comm/failure/mismatch.h"
#include "comm/failure/network.h"
#include "transport/memory/process.h"

#include <stdio.h>
#include <string.h>

void health_describe(const struct task *task, char *text, size_t size)
{
    const struct call_record record = {.collective = (uint8_t)task->key.collective,
                                       .type = (uint8_t)task->key.type,
                                       .op = (int16_t)choice_op(&task->key),
                                       .root = task->key.root,
                                       .count = task->key.count};

    call_describe(&record, text, size);
}

const struct status *health_status(const rondo_comm *comm, int rank)
{
    const struct status *status = comm->status_pages[rank];

    if (!status || atomic_load_explicit(&status->id, memory_order_acquire) != comm->id)
        return NULL;
    return status;
}

bool health_has_closed(const rondo_comm *comm, int rank)
{
    const struct status *status = health_status(comm, rank);
    uint32_t closed =
        status ? atomic_load_explicit(&status->closed, memory_order_acquire) : STATUS_CLOSED;

    return closed >= STATUS_PARTED ? closed == STATUS_PARTED && comm->may_part : closed;
}

/* True if that is known of the rank's end. */
static bool has_status(const rondo_comm *comm, int rank, enum status_closed closed)
{
    const struct status *status = health_status(comm, rank);

    return status && atomic_load_explicit(&status->closed, memory_order_acquire) == closed;
}

bool health_is_lost(const rondo_comm *comm, int rank)
{
    return has_status(comm, rank, STATUS_LOST);
}

/* Finds the page on which a rank shows that it has failed. One that failed before it knew the
 * communicator's identity, while that was opened, has left the page without one; nobody else gets
 * the page then. */
static const struct status *failed_status(const rondo_comm *comm, int rank)
{
    const struct status *status = comm->status_pages[rank];

    if (comm_is_assembled(comm) || !status ||
        atomic_load_explicit(&status->id, memory_order_acquire))
        return health_status(comm, rank);
    return status;
}

rondo_result health_adopt(rondo_comm *comm)
{
    char sentence[FAIL_SENTENCE_MAX];

    for (int rank = 0; rank < comm->size; rank++) {
        const struct status *status = rank == comm->rank ? NULL : failed_status(comm, rank);
        rondo_result result;
        int culprit;

        if (!status)
            continue;
        result = status_failure(status, &culprit, sentence);
        if (!result || !failed_status(comm, rank)) /* closed meanwhile: that was something else */
            continue;
        rondo_fail(result, "%s", sentence);
        return comm_break(comm, result, culprit);
    }
    return RONDO_OK;
}

static rondo_result dead(rondo_comm *comm, const struct task *task, int peer)
{
    char own[128];

    health_describe(task, own, sizeof(own));
    rondo_fail(RONDO_ERROR_PEER,
               "Rank %d (process %d) has ended while rank %d waited for it in %s; look at its "
               "output for the reason.",
               peer, process_id(comm->processes[peer]), comm->rank, own);
    return comm_break(comm, RONDO_ERROR_PEER, peer);
}

/*
 * A process that was killed loses its memory a moment before it counts as ended; and one that left
 * because of somebody else's failure has told so on its status page, which outlives it.
 */
rondo_result health_unreadable(rondo_comm *comm, struct task *task)
{
    enum { LOOKS = 200 };
    int peer = task->execution.blamed;
    char sentence[FAIL_SENTENCE_MAX];
    rondo_result result;

    snprintf(sentence, sizeof(sentence), "%s", fail_sentence());
    for (int look = 0; look < LOOKS; look++) {
        bool ended = comm->processes[peer] && !process_alive(comm->processes[peer]);

        result = health_adopt(comm);
        if (result)
            return result;
        if (ended)
            return dead(comm, task, peer);
        doze_for(DOZE_NEWS);
    }
    return comm_break(comm, rondo_fail(RONDO_ERROR_PEER, "%s", sentence), peer);
}

/* True if the wait has lasted for the timeout. In a circle of ranks that wait for each other it may
 * last a little longer, as one of them may yet find out whom to blame. */
static bool is_too_long(const rondo_comm *comm, const struct blame *blame, double waited)
{
    double timeout = comm_timeout(comm);

    return timeout > 0 && waited > timeout + (blame->circular ? blame_patience(comm) : 0);
}

/* A rank whose process has ended while some program of the task waits for it; -1: none. */
static int find_dead(const rondo_comm *comm, const struct execution *x)
{
    for (int i = 0; i < x->plan->programs; i++) {
        const struct exec_program *program = &x->programs[i];
        const struct process *process = program->done ? NULL : comm->processes[program->blamed];

        if (process && !process_alive(process))
            return program->blamed;
    }
    return -1;
}

/*
 * A rank of this host that some program of the task waits for, and that has closed the
 * communicator: its status page is gone, with the memory that it gave back; -1: none. It did that
 * after its last call, so what it had to say in that is there (acquire, in health_has_closed()).
 */
static int find_closed(const rondo_comm *comm, const struct execution *x)
{
    for (int i = 0; i < x->plan->programs && comm_is_assembled(comm); i++) {
        int peer = x->programs[i].blamed;

        if (!x->programs[i].done && peer != comm->rank && health_has_closed(comm, peer))
            return peer;
    }
    return -1;
}

static rondo_result closed(rondo_comm *comm, const struct task *task, int peer)
{
    bool numbered = task->state == TASK_RUNNING && !collective_is_pair(task->key.collective);
    char own[128], call[32] = "";

    health_describe(task, own, sizeof(own));
    if (numbered)
        snprintf(call, sizeof(call), " (call %u)", health_users_number(comm, comm->calls));
    rondo_fail(RONDO_ERROR_PEER,
               "Rank %d waits in %s%s for rank %d, which has closed the communicator; every rank "
               "has to make the same calls before it closes.",
               comm->rank, own, call, peer);
    return comm_break(comm, RONDO_ERROR_PEER, peer);
}

/* Ranks of other hosts that some program of the task waits for. */
static rondo_result watch_distant(rondo_comm *comm, const struct execution *x)
{
    rondo_result result = RONDO_OK;

    if (!networks_any(comm))
        return RONDO_OK;
    for (int i = 0; i < x->plan->programs && !result; i++)
        if (!x->programs[i].done)
            result = networks_watch(comm, x->programs[i].blamed);
    return result;
}

/* The peer will never come. */
static rondo_result missing(rondo_comm *comm, const struct task *task, int peer)
{
    return comm_is_assembled(comm) && health_has_closed(comm, peer) ? closed(comm, task, peer)
                                                                    : dead(comm, task, peer);
}

/* A peer seen closed or ended may have done its part before. So believe it at the second look, when
 * all that it wrote before its end has been looked at. */
static rondo_result suspect_peer(rondo_comm *comm, struct task *task, int peer)
{
    if (task->suspect == peer + 1)
        return missing(comm, task, peer);
    task->suspect = peer + 1;
    return RONDO_OK;
}

/* Find a rank that the task waits for and that will never come; -1: none. */
static int find_missing(const rondo_comm *comm, const struct execution *x)
{
    int peer = find_closed(comm, x);

    return peer >= 0 ? peer : find_dead(comm, x);
}

rondo_result health_check(rondo_comm *comm, struct task *task, double waited)
{
    int peer;
    rondo_result result = health_adopt(comm);

    if (!result)
        result = mismatch_look(comm, task);
    if (result)
        return result;
    if (exec_has_unexpected(&task->execution))
        return mismatch_found(comm, task);
    peer = find_missing(comm, &task->execution);
    if (peer >= 0)
        return suspect_peer(comm, task, peer);
    result = watch_distant(comm, &task->execution);
    if (!result && is_too_long(comm, &comm->blame, waited))
        return long_wait_end(comm, &comm->blame, task, waited);
    return result;
}

rondo_result health_stream_check(rondo_comm *comm, struct task *task, double waited)
{
    rondo_result result = health_adopt(comm);

    if (result || !is_too_long(comm, &comm->stream_blame, waited))
        return result;
    return long_wait_end(comm, &comm->stream_blame, task, waited);
}

rondo_result health_stream_missing(rondo_comm *comm, const struct task *task, double now,
                                   double *since)
{
    int peer = find_missing(comm, &task->execution);

    if (peer < 0 || *since == 0)
        *since = peer < 0 ? 0 : now;
    if (peer < 0 || now - *since < PATIENCE_STREAM)
        return RONDO_OK;
    return missing(comm, task, peer);
}

rondo_result health_graph_check(rondo_comm *comm, int peer, bool before)
{
    rondo_result result = health_adopt(comm);

    if (result || peer < 0 || !before || process_alive(comm->processes[peer]))
        return result;
    rondo_fail(RONDO_ERROR_PEER,
               "Rank %d (process %d) has ended while rank %d waited for it in a CUDA graph; look "
               "at its output for the reason.",
               peer, process_id(comm->processes[peer]), comm->rank);
    return comm_break(comm, RONDO_ERROR_PEER, peer);
}

rondo_result health_flush(rondo_comm *comm, double waited)
{
    rondo_result result = health_adopt(comm);
    int peer = comm->rank;

    if (result || networks_flushed(comm, &peer))
        return result;
    /* One that has closed its end has what it wanted, though its acknowledgement got lost. */
    if (has_status(comm, peer, STATUS_PARTED)) {
        networks_forsake(comm, peer);
        if (networks_flushed(comm, &peer))
            return RONDO_OK;
    }
    result = networks_watch(comm, peer);
    if (result || !is_too_long(comm, &comm->blame, waited))
        return result;
    return long_wait_end(comm, &comm->blame, NULL, waited);
}
