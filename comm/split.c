/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * split.c - communicators out of a communicator. Everything that has to be exchanged goes through
 * the parent: first who wants which color, then the endpoints of the new ones. Processes that share
 * a parent have each other's heaps mapped, so no socket and no descriptor is needed.
 *
 * Other threads may call the parent meanwhile, and each rank must see all calls in one order. So a
 * split takes all its turns on the parent at once.
 */
#include "comm/engine/call.h"
#include "comm/engine/run.h"
#include "comm/failure/error.h"
#include "comm/failure/leave.h"
#include "comm/failure/network.h"
#include "comm/open.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wish {
    int32_t color, key, rank; /* rank in the parent */
};

enum { TURNS = 3 }; /* for the wishes, for the endpoints, and to count these two calls */

/* A new communicator in the making on this rank. */
struct offspring {
    rondo_comm *parent;
    unsigned turn, end;         /* of its turns on the parent, the next one, and the one after */
    struct wish *wishes;        /* of my color, in the new order */
    struct endpoint *endpoints; /* of all ranks of the parent, then of the new communicator */
    int size, rank;             /* in the new communicator; size 0: none */
    rondo_comm *comm;
};

static rondo_result gather(struct offspring *offspring, const void *own, void *all, size_t bytes)
{
    rondo_comm *comm = offspring->parent;
    struct task task = {
        .key = {.collective = RONDO_ALL_GATHER, .type = RONDO_UINT8, .count = bytes},
        .input = own,
        .output = all};
    struct batch batch;
    rondo_result result;

    /* Relaxed, with choose.c: a call of the user at the same moment may be logged at the wrong
     * level, no more. */
    atomic_store_explicit(&comm->own_call, true, memory_order_relaxed);
    batch_open_at(&batch, comm, &task, 1, offspring->turn++);
    result = run_batches(&batch, 1);
    atomic_store_explicit(&comm->own_call, false, memory_order_relaxed);
    /* The next turn is ours, too. */
    comm->internal++;
    if (comm_is_assembled(comm))
        recorder_complete(comm->recorder, comm->internal);
    return result;
}

/* Pass the turns that are left. */
static void end_turns(struct offspring *offspring)
{
    for (; offspring->turn != offspring->end; offspring->turn++)
        turn_pass(&offspring->parent->turn);
}

static int compare_wishes(const void *a, const void *b)
{
    const struct wish *one = a;
    const struct wish *other = b;

    if (one->key != other->key)
        return one->key < other->key ? -1 : 1;
    return one->rank < other->rank ? -1 : one->rank > other->rank;
}

static rondo_result gather_wishes(struct offspring *offspring, int color, int key)
{
    rondo_comm *parent = offspring->parent;
    struct wish own = {.color = color, .key = key, .rank = parent->rank};
    rondo_result result = gather(offspring, &own, offspring->wishes, sizeof(own));

    if (result)
        return result;
    for (int rank = 0; rank < parent->size && color >= 0; rank++)
        if (offspring->wishes[rank].color == color) {
            offspring->wishes[rank].rank = rank; /* it becomes an index: not believed */
            offspring->wishes[offspring->size++] = offspring->wishes[rank];
        }
    qsort(offspring->wishes, (size_t)offspring->size, sizeof(own), compare_wishes);
    for (int i = 0; i < offspring->size; i++)
        if (offspring->wishes[i].rank == parent->rank)
            offspring->rank = i;
    return RONDO_OK;
}

/* Peers wait for what this rank can't do any more, so the parent is broken. */
static rondo_result out_of_memory(rondo_comm *parent)
{
    rondo_fail(RONDO_ERROR_MEMORY, "Rank %d is out of memory for splitting a communicator.",
               parent->rank);
    return comm_break(parent, RONDO_ERROR_MEMORY, parent->rank);
}

/* Everybody takes part, also who wants nothing or failed to prepare: its endpoint is empty then. */
static rondo_result gather_endpoints(struct offspring *offspring)
{
    rondo_comm *parent = offspring->parent;
    struct endpoint own = {0};
    struct endpoint *all = calloc((size_t)parent->size, sizeof(*all));
    rondo_result result;

    if (offspring->comm)
        own = offspring->comm->endpoints[offspring->rank];
    if (!all)
        return out_of_memory(parent);
    result = gather(offspring, &own, all, sizeof(own));
    if (result && offspring->comm) /* peers may have our endpoint: its rings stay where they are */
        comm_break(offspring->comm, result, offspring->rank);
    for (int i = 0; i < offspring->size && !result; i++) {
        offspring->endpoints[i] = all[offspring->wishes[i].rank];
        if (!offspring->endpoints[i].magic)
            result = rondo_fail(RONDO_ERROR_PEER,
                                "Rank %d of the communicator could not prepare the new one.",
                                offspring->wishes[i].rank);
    }
    free(all);
    return result;
}

static rondo_result make(struct offspring *offspring, const rondo_config *config)
{
    rondo_comm *parent = offspring->parent;
    struct comm_settings settings = parent->settings;
    char sentence[FAIL_SENTENCE_MAX];
    rondo_result prepared = RONDO_OK;
    rondo_result result;

    settings.timeout = comm_timeout(parent);
    if (offspring->size && config)
        prepared = comm_read_settings(config, offspring->size, &settings);
    settings.networked = parent->mirrors != NULL;
    if (offspring->size && !prepared)
        prepared = comm_prepare(offspring->size, offspring->rank, &settings, &offspring->comm);
    snprintf(sentence, sizeof(sentence), "%s", fail_sentence());
    result = gather_endpoints(offspring);
    end_turns(offspring);
    if (prepared) /* what the others say of it came after */
        return rondo_fail(prepared, "%s", sentence);
    if (result)
        return result;
    if (offspring->size) {
        memcpy(offspring->comm->key, parent->key, sizeof(parent->key));
        offspring->comm->tuning = parent->tuning; /* the same machine: no need to measure again */
        result = comm_connect(offspring->comm, offspring->endpoints);
        if (!result)
            result = comm_assemble(offspring->comm);
    }
    return result;
}

/* A rank of another host that gave up the split, as the parent was aborted, is only lost in the new
 * communicator. Why it did so is on its way on the parent. */
static rondo_result find_cause(rondo_comm *parent, rondo_result result)
{
    double until = clock_seconds() + PATIENCE_CAUSE;
    char sentence[FAIL_SENTENCE_MAX];

    if (result != RONDO_ERROR_PEER || !networks_any(parent))
        return result;
    snprintf(sentence, sizeof(sentence), "%s", fail_sentence());
    while (!rondo_comm_query(parent) && clock_seconds() < until)
        doze_for(DOZE_NEWS);
    result = comm_check(parent);
    return result ? result : rondo_fail(RONDO_ERROR_PEER, "%s", sentence);
}

static rondo_result split(rondo_comm *comm, struct wish own, const rondo_config *config,
                          rondo_comm **ret_comm)
{
    struct offspring offspring = {.parent = comm};
    rondo_result result;

    offspring.wishes = calloc((size_t)comm->size, sizeof(*offspring.wishes));
    offspring.endpoints = calloc((size_t)comm->size, sizeof(*offspring.endpoints));
    if (!offspring.wishes || !offspring.endpoints) {
        result = out_of_memory(comm);
    } else {
        offspring.turn = turn_take_several(&comm->turn, TURNS);
        offspring.end = offspring.turn + TURNS;
        result = gather_wishes(&offspring, own.color, own.key);
    }
    if (!result)
        result = make(&offspring, config);
    end_turns(&offspring);
    free(offspring.wishes);
    free(offspring.endpoints);
    if (result) {
        if (offspring.comm)
            leave_with(offspring.comm, comm);
        comm_free(offspring.comm);
        return comm_note_error(comm, find_cause(comm, result));
    }
    *ret_comm = offspring.comm;
    return RONDO_OK;
}

rondo_result rondo_comm_split(rondo_comm *comm, int color, int key, const rondo_config *config,
                              rondo_comm **ret_comm)
{
    CANCEL_LATER();
    rondo_result result;

    if (!comm || !ret_comm)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_split: needs a communicator and a "
                                               "place for the new one.");
    if (color < -1)
        return comm_note_error(comm, rondo_fail(RONDO_ERROR_INVALID,
                                                "rondo_comm_split: the color is %d; it must be at "
                                                "least 0, or -1 for no communicator.",
                                                color));
    if (group_is_open())
        return comm_note_error(comm, rondo_fail(RONDO_ERROR_INVALID,
                                                "rondo_comm_split: not inside of a group; it needs "
                                                "the communicator at once."));
    result = comm_check(comm);
    if (result)
        return result;
    return split(comm, (struct wish){.color = color, .key = key}, config, ret_comm);
}

rondo_result rondo_comm_dup(rondo_comm *comm, rondo_comm **ret_comm)
{
    return rondo_comm_split(comm, 0, rondo_comm_rank(comm), NULL, ret_comm);
}
