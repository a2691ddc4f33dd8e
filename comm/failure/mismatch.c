/* SPDX-License-Identifier: BSD-3-Clause */
/* mismatch.c - calls are compared by what status pages show of them: the one in progress, and the
 * last few, as a rank that waits for nobody may be far ahead. */
#include "comm/failure/mismatch.h"

#include "base/collective.h"
#include "base/fail.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"
#include "comm/failure/network.h"

#include <string.h>

static rondo_result mismatch(rondo_comm *comm, const struct task *task, int peer,
                             const struct call_record *theirs)
{
    char own[128], other[128];

    health_describe(task, own, sizeof(own));
    call_describe(theirs, other, sizeof(other));
    if (strcmp(own, other) == 0)
        rondo_fail(RONDO_ERROR_MISMATCH,
                   "Rank %d and rank %d both called %s, but asked for different algorithms.",
                   comm->rank, peer, own);
    else
        rondo_fail(RONDO_ERROR_MISMATCH,
                   "Call %u of the communicator differs between ranks: rank %d called %s, rank %d "
                   "called %s. All ranks must make the same calls in the same order.",
                   health_users_number(comm, comm->calls), comm->rank, own, peer, other);
    return comm_break(comm, RONDO_ERROR_MISMATCH, peer);
}

static rondo_result past_mismatch(rondo_comm *comm, uint32_t call, int peer)
{
    struct call_record records[2];
    char text[2][128];

    for (int i = 0; i < 2; i++) {
        const struct status *status =
            i ? health_status(comm, peer) : comm->status_pages[comm->rank];

        if (!status || !status_past(status, call, &records[i]))
            return RONDO_OK;
    }
    if (records[0].fingerprint == records[1].fingerprint)
        return RONDO_OK;
    for (int i = 0; i < 2; i++)
        call_describe_past(&records[i], text[i], sizeof(text[i]));
    rondo_fail(RONDO_ERROR_MISMATCH,
               "Call %u of the communicator differed between ranks: rank %d called %s, rank %d "
               "called %s%s. All ranks must make the same calls in the same order.",
               health_users_number(comm, call), comm->rank, text[0], peer, text[1],
               strcmp(text[0], text[1]) ? "" : " with another count");
    return comm_break(comm, RONDO_ERROR_MISMATCH, peer);
}

/* The last calls up to this one that both have made, the oldest first: it is the one that went
 * wrong, and all that came after it may differ, too. */
static rondo_result compare_past(rondo_comm *comm, uint32_t last)
{
    rondo_result result = RONDO_OK;

    for (int rank = 0; rank < comm->size && !result; rank++) {
        const struct status *status = rank == comm->rank ? NULL : health_status(comm, rank);
        uint32_t theirs =
            status ? atomic_load_explicit(&status->call.sequence, memory_order_acquire) / 2 : 0;
        uint32_t both = theirs < last ? theirs : last;

        for (uint32_t i = CALL_HEADER_READ; i-- > 0 && !result && status;)
            if (both > i && comm->calls - (both - i) < CALL_HEADER_READ)
                result = past_mismatch(comm, both - i, rank);
    }
    return result;
}

rondo_result mismatch_look(rondo_comm *comm, const struct task *task)
{
    struct call_record own, theirs;
    rondo_result result;

    if (collective_is_pair(task->key.collective) ||
        !status_read(comm->status_pages[comm->rank], comm->calls, &own))
        return RONDO_OK;
    result = compare_past(comm, comm->calls - 1);
    for (int rank = 0; rank < comm->size && !result; rank++) {
        const struct status *status = rank == comm->rank ? NULL : health_status(comm, rank);

        if (status && status_read(status, comm->calls, &theirs) &&
            theirs.fingerprint != own.fingerprint && health_status(comm, rank))
            return mismatch(comm, task, rank, &theirs);
    }
    return result ? result : compare_past(comm, comm->calls);
}

rondo_result mismatch_unheard(rondo_comm *comm, const struct task *task)
{
    enum { LOOK_EVERY = 64, NETWORK_EVERY = 4 };
    rondo_result result = RONDO_OK;
    bool moved, seen = comm->calls % LOOK_EVERY == 0;

    if (networks_any(comm) && comm->calls % NETWORK_EVERY == 0)
        result = networks_progress(comm, &moved);
    seen = seen || exec_unexpected(&task->execution, task->choice->deaf_channels);
    if (!result && seen)
        result = health_adopt(comm);
    return !result && seen ? compare_past(comm, comm->calls) : result;
}

/* True if a message between two ranks with that type and count has the fingerprint that came, by
 * the algorithm of the task or the other one that messages have: `other` is what differs then. */
static bool would_match(const struct task *task, const struct choice_key *key, uint32_t other)
{
    uint32_t same = task->choice->hash ^ choice_fingerprint(&task->key);
    uint32_t sent = same ^ choice_fingerprint(key), foreign = task->execution.foreign;

    return link_fingerprint(sent) == foreign || link_fingerprint(sent ^ other) == foreign;
}

/*
 * Find what the peer sent, which its fingerprint tells who tries: 4 million counts of this type,
 * which takes milliseconds, and this count of other types. Another one that fits by chance comes
 * once in a thousand times.
 */
static bool find_message(const struct task *task, struct choice_key *ret_key)
{
    enum { COUNTS = 4 << 20 };
    const uint32_t other = choice_name_hash("direct") ^ choice_name_hash("zero_copy");

    if (!collective_is_pair(task->key.collective) || task->backend->on_device)
        return false;
    *ret_key = task->key;
    for (int type = 0; type < RONDO_TYPES; type++) {
        ret_key->type = (rondo_type)type;
        if (would_match(task, ret_key, other))
            return true;
    }
    ret_key->type = task->key.type;
    for (ret_key->count = 0; ret_key->count < COUNTS; ret_key->count++)
        if (would_match(task, ret_key, other))
            return true;
    return false;
}

static rondo_result foreign(rondo_comm *comm, const struct task *task)
{
    int peer = task->execution.blamed;
    char own[128];

    health_describe(task, own, sizeof(own));
    rondo_fail(RONDO_ERROR_MISMATCH,
               "Rank %d called %s with rank %d, but the message that came from there belongs to "
               "another call: type, count or algorithm differ, or the order of calls does.",
               comm->rank, own, peer);
    return comm_break(comm, RONDO_ERROR_MISMATCH, peer);
}

static rondo_result other_message(rondo_comm *comm, const struct task *task,
                                  const struct choice_key *sent)
{
    int peer = task->execution.blamed;
    char own[128];

    health_describe(task, own, sizeof(own));
    rondo_fail(RONDO_ERROR_MISMATCH,
               "Rank %d called %s with rank %d, but the message that came from there has %zu %s "
               "elements: counts and types of the two must be the same, in the order of the calls "
               "between these ranks.",
               comm->rank, own, peer, sent->count, rondo_type_name(sent->type));
    return comm_break(comm, RONDO_ERROR_MISMATCH, peer);
}

rondo_result mismatch_found(rondo_comm *comm, struct task *task)
{
    rondo_result result = health_adopt(comm);
    struct choice_key sent;

    if (!result)
        result = mismatch_look(comm, task);
    if (result)
        return result;
    return find_message(task, &sent) ? other_message(comm, task, &sent) : foreign(comm, task);
}

rondo_result mismatch_on_stream(rondo_comm *comm, struct task *task)
{
    rondo_result result = health_adopt(comm);

    return result ? result : foreign(comm, task);
}
