/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grow.c - a communicator of all ranks of another one and of newcomers, who meet them by an id.
 *
 * The members agree that all of them are there and can grow; everybody meets at the id's place; and
 * all ranks of what was opened agree that all of them have it. The last agreement is on the new
 * communicator, as newcomers have no other: who has nothing to agree on counts as one that has
 * failed, so that nobody keeps what others do not have. While they wait for newcomers, a member
 * whose process serves the id looks after the other members, and tells everybody at the place if
 * one is gone.
 */
#include "comm/recovery/recovery.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fail.h"
#include "comm/engine/call.h"
#include "comm/failure/error.h"
#include "comm/open.h"
#include "comm/rendezvous/bootstrap.h"
#include "comm/start.h"

#include <stdio.h>

struct growth {
    rondo_comm *members; /* NULL: this rank is a newcomer */
    struct bootstrap_place place;
    int size, rank; /* of the new communicator */
    double looked;
};

/* The first of them, for a sentence. */
static int first_of(const uint64_t set[VOTE_SET], int size)
{
    for (int rank = 0; rank < size; rank++)
        if (set_has(set, rank))
            return rank;
    return -1;
}

static rondo_result blame(const rondo_comm *comm, const uint64_t failed[VOTE_SET], const char *when)
{
    return rondo_fail(RONDO_ERROR_PEER,
                      "rondo_comm_grow: rank %d of %d has failed %s; rondo_comm_shrink() leaves it "
                      "out, then grow again.",
                      first_of(failed, comm->size), comm->size, when);
}

/* The first agreement of the members; who cannot grow says so there, so that nobody waits for it.
 * Returns `own`, this rank's trouble, if there is any. */
static rondo_result gather_members(const struct growth *growth, rondo_result own)
{
    char sentence[FAIL_SENTENCE_MAX];
    struct verdict verdict;
    rondo_result result;

    if (!growth->members)
        return own;
    snprintf(sentence, sizeof(sentence), "%s", fail_sentence());
    result = recovery_agree(growth->members, PURPOSE_GROW, own == RONDO_OK, &verdict);
    if (own)
        return rondo_fail(own, "%s", sentence);
    if (!result && first_of(verdict.failed, growth->members->size) >= 0)
        return blame(growth->members, verdict.failed, "before newcomers were met");
    if (!result && !verdict.flags)
        return rondo_fail(RONDO_ERROR_PEER,
                          "rondo_comm_grow: another of the %d members could not call it: look at "
                          "what that one said. The members are as they were.",
                          growth->members->size);
    return result;
}

/* Looks after the members; who waits at the meeting point does so, and the thread that serves. */
static rondo_result look(void *context)
{
    struct growth *growth = context;
    uint64_t failed[VOTE_SET] = {0};
    double now = clock_seconds();

    if (now - growth->looked < LOOK_MEMBERS)
        return RONDO_OK;
    growth->looked = now;
    recovery_find_failed(growth->members, failed);
    return first_of(failed, growth->members->size) < 0
               ? RONDO_OK
               : blame(growth->members, failed, "while newcomers were awaited");
}

/* To a newcomer, an id that leads to nobody is a wrong one, whatever strangers say there. */
static rondo_result meet(struct growth *growth, const rondo_config *config, rondo_comm **ret_comm)
{
    bool nobody = false;
    struct growth served = *growth; /* the thread that serves the id has looks of its own */
    const struct bootstrap_watch own = {.look = look, .context = growth};
    const struct bootstrap_watch server = {.look = look, .context = &served};
    const struct membership membership = {.place = &growth->place,
                                          .rank = growth->rank,
                                          .size = growth->size,
                                          .watch = growth->members ? &own : NULL,
                                          .ret_nobody = &nobody};
    rondo_result result;

    if (growth->members)
        bootstrap_id_watch(&growth->place, &server);
    result = start_member(&membership, config, ret_comm);
    if (growth->members)
        bootstrap_id_watch(&growth->place, NULL);
    return nobody && !growth->members ? RONDO_ERROR_INVALID : result;
}

/* `own`: what keeps this rank from growing, RONDO_OK mostly. */
static rondo_result grow(struct growth *growth, rondo_result own, const rondo_config *config,
                         rondo_comm **ret_comm)
{
    rondo_result result = gather_members(growth, own);
    rondo_comm *grown;

    if (!result)
        result = meet(growth, config, &grown);
    else
        bootstrap_id_refuse(&growth->place); /* newcomers need not wait for us */
    if (!result)
        result =
            start_settle(grown, PURPOSE_GROW, "rondo_comm_grow", "the members are as they were");
    if (!result)
        *ret_comm = grown;
    return result;
}

/* ---- Public ---------------------------------------------------------------------------------- */

/* Whoever fails this cannot even take part in an agreement. */
static rondo_result check_caller(rondo_comm *comm)
{
    if (comm)
        return recovery_check(comm, "rondo_comm_grow");
    if (group_is_open())
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_grow: not inside of a group; it has to "
                                               "wait for the other ranks.");
    return RONDO_OK;
}

static rondo_result check_member(const rondo_comm *comm, int size, int rank)
{
    if (size < comm->size)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_comm_grow: %d ranks are fewer than the %d of now; "
                          "rondo_comm_split() makes smaller ones.",
                          size, comm->size);
    if (rank >= 0 && rank != comm->rank)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_comm_grow: rank %d cannot become rank %d: members keep their "
                          "ranks, and give -1.",
                          comm->rank, rank);
    return RONDO_OK;
}

static rondo_result check(const rondo_comm *comm, const rondo_unique_id *id, int size, int rank,
                          rondo_comm **ret_comm)
{
    if (!id || !ret_comm)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_grow: needs an id where members and "
                                               "newcomers meet, and a place for the communicator.");
    if (size > VOTE_RANKS)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "rondo_comm_grow: agreements are for up to %d ranks, not %d.", VOTE_RANKS,
                          size);
    if (comm)
        return check_member(comm, size, rank);
    if (rank < 0 || rank >= size)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_comm_grow: a newcomer cannot be rank %d of %d.", rank, size);
    return RONDO_OK;
}

rondo_result rondo_comm_grow(rondo_comm *comm, const rondo_unique_id *id, int size, int rank,
                             const rondo_config *config, rondo_comm **ret_comm)
{
    CANCEL_LATER();
    struct growth growth = {.members = comm, .size = size, .rank = comm ? comm->rank : rank};
    rondo_result result = check_caller(comm), own;
    rondo_config settings = config ? *config : (rondo_config)RONDO_CONFIG_INIT;

    if (result)
        return comm ? comm_note_error(comm, result) : result;
    /* The place is read in any case: who serves it tells newcomers that they wait in vain. */
    own = id ? bootstrap_id_read(id, &growth.place) : RONDO_OK;
    if (!own)
        own = check(comm, id, size, rank, ret_comm);
    if (comm && !config)
        settings = recovery_config(comm);
    settings.cuda_device = comm_choose_device(&settings);
    result = grow(&growth, own, &settings, ret_comm);
    return comm ? comm_note_error(comm, result) : result;
}
