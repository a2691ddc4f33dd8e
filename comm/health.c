/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * health.c - checks of a wait that lasts.
 *
 * In order: a peer that has already failed says so on its board, and its sentence becomes ours, so
 * that every rank names the same culprit; a peer that is in the same call by number but called
 * something else; a peer that has closed the communicator, or whose process has ended; and time. A
 * peer that finished its part and left is no culprit: only those that we wait for are suspected, by
 * each program of the plan its own, and only when what they wrote before has been looked at.
 */
#include "comm/health.h"

#include "base/collective.h"
#include "base/fail.h"
#include "comm/network.h"
#include "transport/process.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void describe_own(const struct task *task, char *text, size_t size)
{
    const struct call_record record = {.collective = (uint8_t)task->key.collective,
                                       .type = (uint8_t)task->key.type,
                                       .op = (int16_t)task->key.op,
                                       .root = task->key.root,
                                       .count = task->key.count};

    board_describe(&record, text, size);
}

/* The number of a call as its user counts, who does not know of ours. */
static uint32_t users_number(const rondo_comm *comm, uint32_t call)
{
    return call - comm->internal;
}

static const struct board *board_of(const rondo_comm *comm, int rank)
{
    const struct board *board = comm->boards[rank];

    if (!board || atomic_load_explicit(&board->id, memory_order_acquire) != comm->id)
        return NULL;
    return board;
}

rondo_result health_adopt(rondo_comm *comm)
{
    char sentence[FAIL_SENTENCE_MAX];

    for (int rank = 0; rank < comm->size; rank++) {
        const struct board *board = rank == comm->rank ? NULL : board_of(comm, rank);
        rondo_result result;
        int culprit;

        if (!board)
            continue;
        result = board_failure(board, &culprit, sentence);
        if (!result || !board_of(comm, rank)) /* closed meanwhile: that was something else */
            continue;
        rondo_fail(result, "%s", sentence);
        return comm_break(comm, result, culprit);
    }
    return RONDO_OK;
}

static rondo_result mismatch(rondo_comm *comm, const struct task *task, int peer,
                             const struct call_record *theirs)
{
    char own[128], other[128];

    describe_own(task, own, sizeof(own));
    board_describe(theirs, other, sizeof(other));
    if (strcmp(own, other) == 0)
        rondo_fail(RONDO_ERROR_MISMATCH,
                   "Rank %d and rank %d both called %s, but asked for different algorithms.",
                   comm->rank, peer, own);
    else
        rondo_fail(RONDO_ERROR_MISMATCH,
                   "Call %u of the communicator differs between ranks: rank %d called %s, rank %d "
                   "called %s. All ranks must make the same calls in the same order.",
                   users_number(comm, comm->calls), comm->rank, own, peer, other);
    return comm_break(comm, RONDO_ERROR_MISMATCH, peer);
}

static rondo_result past_mismatch(rondo_comm *comm, uint32_t call, int peer)
{
    struct call_record records[2];
    char text[2][128];

    for (int i = 0; i < 2; i++) {
        const struct board *board = i ? board_of(comm, peer) : comm->boards[comm->rank];

        if (!board || !board_past(board, call, &records[i]))
            return RONDO_OK;
    }
    if (records[0].fingerprint == records[1].fingerprint)
        return RONDO_OK;
    for (int i = 0; i < 2; i++)
        board_describe_past(&records[i], text[i], sizeof(text[i]));
    rondo_fail(RONDO_ERROR_MISMATCH,
               "Call %u of the communicator differed between ranks: rank %d called %s, rank %d "
               "called %s%s. All ranks must make the same calls in the same order.",
               users_number(comm, call), comm->rank, text[0], peer, text[1],
               strcmp(text[0], text[1]) ? "" : " with another count");
    return comm_break(comm, RONDO_ERROR_MISMATCH, peer);
}

/* The last calls that both have made, the oldest first: it is the one that went wrong. */
static rondo_result compare_past(rondo_comm *comm)
{
    rondo_result result = RONDO_OK;

    for (int rank = 0; rank < comm->size && !result; rank++) {
        const struct board *board = rank == comm->rank ? NULL : board_of(comm, rank);
        uint32_t theirs =
            board ? atomic_load_explicit(&board->sequence, memory_order_acquire) / 2 : 0;
        uint32_t both = theirs < comm->calls ? theirs : comm->calls;

        for (uint32_t i = BOARD_READ; i-- > 0 && !result && board;)
            if (both > i && comm->calls - (both - i) < BOARD_READ)
                result = past_mismatch(comm, both - i, rank);
    }
    return result;
}

/* A peer in the call of the same number must have called the same. */
static rondo_result compare_calls(rondo_comm *comm, const struct task *task)
{
    struct call_record own, theirs;

    if (collective_is_pair(task->key.collective) ||
        !board_read(comm->boards[comm->rank], comm->calls, &own))
        return RONDO_OK;
    for (int rank = 0; rank < comm->size; rank++) {
        const struct board *board = rank == comm->rank ? NULL : board_of(comm, rank);

        if (board && board_read(board, comm->calls, &theirs) &&
            theirs.fingerprint != own.fingerprint && board_of(comm, rank))
            return mismatch(comm, task, rank, &theirs);
    }
    return compare_past(comm);
}

/*
 * Whoever waits for no message (the root of a broadcast, a leaf of a reduction) would not hear of
 * a peer that thinks otherwise. Such a peer has sent to us, or somebody has in its place: a message
 * that we do not expect is there, or it is of a call that we have not made yet. That is one load
 * for each peer, of a line in our own memory; boards tell which it is. They are also looked at now
 * and then without a message.
 */
rondo_result health_unheard(rondo_comm *comm, const struct task *task)
{
    enum { LOOK_EVERY = 16, NETWORK_EVERY = 4 };
    rondo_result result = RONDO_OK;
    bool moved, seen = comm->calls % LOOK_EVERY == 0;

    if (networks_any(comm) && comm->calls % NETWORK_EVERY == 0)
        result = networks_progress(comm, &moved);
    seen = seen || exec_unexpected(&task->execution, task->choice->deaf_lanes);
    if (!result && seen)
        result = health_adopt(comm);
    return !result && seen ? compare_past(comm) : result;
}

static rondo_result foreign(rondo_comm *comm, const struct task *task)
{
    int peer = task->execution.blamed;
    char own[128];

    describe_own(task, own, sizeof(own));
    rondo_fail(RONDO_ERROR_MISMATCH,
               "Rank %d called %s with rank %d, but the message that came from there belongs to "
               "another call: type, count or algorithm differ, or the order of calls does.",
               comm->rank, own, peer);
    return comm_break(comm, RONDO_ERROR_MISMATCH, peer);
}

rondo_result health_mismatch(rondo_comm *comm, struct task *task)
{
    rondo_result result = health_adopt(comm);

    if (!result)
        result = compare_calls(comm, task);
    return result ? result : foreign(comm, task);
}

rondo_result health_stream_mismatch(rondo_comm *comm, struct task *task)
{
    rondo_result result = health_adopt(comm);

    return result ? result : foreign(comm, task);
}

static rondo_result dead(rondo_comm *comm, const struct task *task, int peer)
{
    char own[128];

    describe_own(task, own, sizeof(own));
    rondo_fail(RONDO_ERROR_PEER,
               "Rank %d (process %d) has ended while rank %d waited for it in %s; look at its "
               "output for the reason.",
               peer, process_id(comm->processes[peer]), comm->rank, own);
    return comm_break(comm, RONDO_ERROR_PEER, peer);
}

/*
 * A process that was killed loses its memory a moment before it counts as ended; and one that left
 * because of somebody else's failure has told so on its board, which outlives it.
 */
rondo_result health_unreadable(rondo_comm *comm, struct task *task)
{
    enum { LOOKS = 200 };
    const struct timespec doze = {0, 1000 * 1000};
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
        nanosleep(&doze, NULL);
    }
    return comm_break(comm, rondo_fail(RONDO_ERROR_PEER, "%s", sentence), peer);
}

/* The rank that has made fewest calls: everybody else waits for it, or for somebody who does. */
static int laggard(const rondo_comm *comm, int suspect, uint32_t *ret_calls)
{
    uint32_t most_behind = 0; /* differences, as numbers wrap */
    int last = suspect;

    for (int rank = 0; rank < comm->size; rank++) {
        const struct board *board = board_of(comm, rank);
        uint32_t behind;

        if (!board)
            continue;
        behind =
            comm->calls - (atomic_load_explicit(&board->sequence, memory_order_relaxed) + 1) / 2;
        behind &= UINT32_MAX / 2; /* numbers of calls on boards have 31 bits */
        if (behind < UINT32_MAX / 4 && behind > most_behind) {
            most_behind = behind;
            last = rank;
        }
    }
    *ret_calls = comm->calls - most_behind;
    return last;
}

/* Whom the first program that waits for another rank waits for: programs of one rank wait for each
 * other as well. */
static int waited_for(const struct execution *x)
{
    for (int i = 0; i < x->plan->programs; i++)
        if (!x->programs[i].done && x->programs[i].blamed != x->plan->rank)
            return x->programs[i].blamed;
    return x->blamed;
}

static rondo_result silent(rondo_comm *comm, struct task *task, double waited)
{
    bool pair = collective_is_pair(task->key.collective);
    uint32_t calls = comm->calls;
    int peer = waited_for(&task->execution);
    char own[128], step[384];
    const char *where = "it is in the same call";

    if (pair)
        where = "no matching call was made there";
    else
        peer = laggard(comm, peer, &calls);
    if (calls != comm->calls)
        where = "it has not made this call";
    describe_own(task, own, sizeof(own));
    exec_describe(&task->execution, step, sizeof(step));
    rondo_fail(RONDO_ERROR_TIMEOUT,
               "Rank %d waited %.1f s for rank %d in %s, at %s; %s. RONDO_TIMEOUT sets how long "
               "to wait.",
               comm->rank, waited, peer, own, step, where);
    return comm_break(comm, RONDO_ERROR_TIMEOUT, peer);
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
 * communicator: its board is gone, with the memory that it gave back; -1: none. It did that after
 * its last call, so what it had to say in that is there (acquire, in board_of()).
 */
static int find_closed(const rondo_comm *comm, const struct execution *x)
{
    for (int i = 0; i < x->plan->programs && comm->assembled; i++) {
        int peer = x->programs[i].blamed;

        if (!x->programs[i].done && peer != comm->rank && !board_of(comm, peer))
            return peer;
    }
    return -1;
}

static rondo_result closed(rondo_comm *comm, const struct task *task, int peer)
{
    bool numbered = task->state == TASK_RUNNING && !collective_is_pair(task->key.collective);
    char own[128], call[32] = "";

    describe_own(task, own, sizeof(own));
    if (numbered)
        snprintf(call, sizeof(call), " (call %u)", users_number(comm, comm->calls));
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

/* Its peer may have done its part and left: that is believed at the second look, after one more for
 * what it wrote before its end. */
static rondo_result mourn(rondo_comm *comm, struct task *task, int peer)
{
    if (task->mourned == peer + 1)
        return comm->assembled && !board_of(comm, peer) ? closed(comm, task, peer)
                                                        : dead(comm, task, peer);
    task->mourned = peer + 1;
    return RONDO_OK;
}

/* Of the ranks that the task waits for, one that will not come; -1: none. */
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
        result = compare_calls(comm, task);
    if (result)
        return result;
    if (exec_strays(&task->execution))
        return health_mismatch(comm, task);
    peer = find_missing(comm, &task->execution);
    if (peer >= 0)
        return mourn(comm, task, peer);
    result = watch_distant(comm, &task->execution);
    if (!result && comm->settings.timeout > 0 && waited > comm->settings.timeout)
        return silent(comm, task, waited);
    return result;
}

rondo_result health_stream_check(rondo_comm *comm, struct task *task, double waited)
{
    rondo_result result = health_adopt(comm);
    int peer = result ? -1 : find_dead(comm, &task->execution);
    char own[128], step[384];

    if (result)
        return result;
    if (peer >= 0)
        return mourn(comm, task, peer);
    if (comm->settings.timeout <= 0 || waited <= comm->settings.timeout)
        return RONDO_OK;
    peer = task->execution.blamed;
    describe_own(task, own, sizeof(own));
    exec_describe(&task->execution, step, sizeof(step));
    rondo_fail(RONDO_ERROR_TIMEOUT,
               "On a stream, rank %d waited %.1f s for rank %d in %s, at %s. RONDO_TIMEOUT sets "
               "how long to wait.",
               comm->rank, waited, peer, own, step);
    return comm_break(comm, RONDO_ERROR_TIMEOUT, peer);
}

rondo_result health_stream_closed(rondo_comm *comm, struct task *task)
{
    int peer = find_closed(comm, &task->execution);

    return peer < 0 ? RONDO_OK : mourn(comm, task, peer);
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
    result = networks_watch(comm, peer);
    if (result || comm->settings.timeout <= 0 || waited <= comm->settings.timeout)
        return result;
    rondo_fail(RONDO_ERROR_TIMEOUT,
               "Rank %d waited %.1f s for rank %d to take the last messages of a call. "
               "RONDO_TIMEOUT sets how long to wait.",
               comm->rank, waited, peer);
    return comm_break(comm, RONDO_ERROR_TIMEOUT, peer);
}
