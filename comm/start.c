/* SPDX-License-Identifier: BSD-3-Clause */
/* start.c - the ways into a communicator: the job's
 * environment, a unique id, or all ranks in this process. */
#include "comm/start.h"

#include "rondo/bindings.h"

#include "comm/engine/call.h"
#include "comm/engine/post.h"
#include "comm/engine/stream.h"
#include "comm/engine/threads.h"
#include "comm/failure/error.h"
#include "comm/gpu/gpu.h"
#include "comm/open.h"
#include "comm/registration.h"
#include "comm/rendezvous/bootstrap.h"

#include "base/caller/name.h"
#include "base/caller/times.h"
#include "base/cancel.h"
#include "base/fail.h"
#include "base/log.h"
#include "transport/memory/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rondo_result meet(const struct membership *membership, double timeout,
                         const struct endpoint *own, struct endpoint *ret_endpoints)
{
    const struct bootstrap_part part = {.place = membership->place,
                                        .rank = membership->rank,
                                        .size = membership->size,
                                        .serve = membership->serve,
                                        .timeout = timeout,
                                        .watch = membership->watch,
                                        .ret_nobody = membership->ret_nobody};
    rondo_result result = bootstrap_take_part(&part, own, sizeof(*own), ret_endpoints);

    if (!result && membership->ret_met)
        *membership->ret_met = true;
    return result;
}

/*
 * A rank that can't take part comes to the rendezvous all the same, with an empty endpoint, so that
 * the others hear of it and don't wait for the whole timeout. Returns the error that it came with.
 */
static rondo_result decline(const struct membership *membership, rondo_result result)
{
    const struct endpoint empty = {0};
    struct membership declined = *membership;
    struct endpoint *endpoints = calloc((size_t)membership->size, sizeof(*endpoints));
    char sentence[FAIL_SENTENCE_MAX];

    memcpy(sentence, fail_sentence(), strlen(fail_sentence()) + 1);
    declined.ret_nobody = NULL; /* the error is the one that it came with */
    if (endpoints && membership->place)
        meet(&declined, PATIENCE_DECLINE, &empty, endpoints);
    free(endpoints);
    return rondo_fail(result, "%s", sentence);
}

rondo_result start_member(const struct membership *membership, const rondo_config *config,
                          rondo_comm **ret_comm)
{
    struct comm_settings settings;
    struct endpoint *endpoints = NULL;
    rondo_comm *comm = NULL;
    rondo_result result = comm_read_settings(config, membership->size, &settings);

    /* Who meets at a socket of one host needs no other. */
    if (!result && membership->place && strncmp(membership->place->address, "unix:", 5) != 0)
        comm_settings_expect_hosts(&settings);
    if (!result)
        result = comm_prepare(membership->size, membership->rank, &settings, &comm);
    if (result)
        return decline(membership, result);
    if (membership->place)
        memcpy(comm->key, membership->place->secret, sizeof(comm->key));
    endpoints = calloc((size_t)membership->size, sizeof(*endpoints));
    if (!endpoints)
        result = rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %d ranks.", membership->size);
    else if (!membership->place)
        endpoints[0] = comm->endpoints[0];
    else
        result = meet(membership, settings.timeout, &comm->endpoints[membership->rank], endpoints);
    if (!result)
        result = comm_connect(comm, endpoints);
    if (!result)
        result = comm_measure(comm);
    free(endpoints);
    if (result) {
        comm_break(comm, result, comm->rank); /* peers may know where its rings are */
        comm_free(comm);
        return result;
    }
    *ret_comm = comm;
    return RONDO_OK;
}

/* The rank that a failed open is put down to: one whose process has ended before those that have
 * only closed what they could not use. */
static int culprit_of(const rondo_comm *comm, const uint64_t failed[VOTE_SET])
{
    int first = -1;

    for (int rank = comm->size - 1; rank >= 0; rank--)
        if (set_has(failed, rank))
            first = rank;
    for (int rank = comm->size - 1; rank >= 0; rank--)
        if (set_has(failed, rank) && comm->processes[rank] && !process_alive(comm->processes[rank]))
            first = rank;
    return first;
}

rondo_result start_settle(rondo_comm *comm, enum recovery_purpose purpose, const char *function,
                          const char *advice)
{
    char sentence[FAIL_SENTENCE_MAX];
    struct verdict verdict;
    rondo_result result = recovery_agree(comm, purpose, 0, &verdict);
    int failed = result ? -1 : culprit_of(comm, verdict.failed);

    if (failed >= 0)
        result = rondo_fail(RONDO_ERROR_PEER,
                            "%s: rank %d of the %d ranks of the new communicator failed while it "
                            "was opened, so nobody keeps it; %s.",
                            function, failed, comm->size, advice);
    if (!result)
        return RONDO_OK;
    snprintf(sentence, sizeof(sentence), "%s", fail_sentence());
    comm_free(comm);
    return rondo_fail(result, "%s", sentence);
}

/* Ranks without a parent open a communicator, and settle it by themselves, where transports carry
 * the notes of agreements. */
static rondo_result start_job(const struct membership *membership, const rondo_config *config,
                              const char *function, rondo_comm **ret_comm)
{
    rondo_comm *comm = NULL;
    rondo_result result = start_member(membership, config, &comm);

    if (!result && membership->size > 1 && membership->size <= VOTE_RANKS &&
        networks_can_note(&comm->networks))
        result = start_settle(comm, PURPOSE_OPEN, function, "those that are left can open another");
    if (!result)
        *ret_comm = comm;
    return result;
}

rondo_result rondo_comm_open(const rondo_config *config, rondo_comm **ret_comm)
{
    CANCEL_LATER();
    struct launch launch;
    rondo_result result;
    bool met = false;

    if (!ret_comm)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_open: no place for the communicator.");
    result = launch_read(&launch);
    if (result)
        return result;
    result = launch_claim(&launch);
    if (!result)
        result =
            start_job(&(struct membership){.place = launch.size > 1 ? &launch.place : NULL,
                                           .rank = launch.rank,
                                           .size = launch.size,
                                           .serve = !launch.served,
                                           .watch = launch.watch.context ? &launch.watch : NULL,
                                           .ret_met = &met},
                      config, "rondo_comm_open", ret_comm);
    if (!result)
        launch_met(&launch);
    if (!met)
        launch_missed(&launch);
    return result;
}

rondo_result rondo_unique_id_create(rondo_unique_id *ret_id)
{
    CANCEL_LATER();

    if (!ret_id)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_unique_id_create: no place for the id.");
    return bootstrap_id_create(ret_id);
}

rondo_result rondo_unique_id_create_at(const char *address, double timeout, rondo_unique_id *ret_id)
{
    CANCEL_LATER();

    if (!ret_id)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_unique_id_create_at: no place for the id.");
    return bootstrap_id_create_at(address, timeout, ret_id);
}

struct join {
    rondo_unique_id id;
    int size, rank;
    rondo_config config;
    rondo_comm *comm; /* NULL: not open */
    rondo_comm **ret_comm;
    char *algorithm, *network; /* of a join in a group: copies, to which `config` points */
};

static rondo_result join_by_id(void *argument)
{
    struct join *join = argument;
    struct bootstrap_place place;
    rondo_result result = bootstrap_id_read(&join->id, &place);

    if (result)
        return result;
    return start_job(
        &(struct membership){
            .place = &place, .rank = join->rank, .size = join->size, .serve = false},
        &join->config, "rondo_comm_open_id", &join->comm);
}

/* Nobody gets a communicator from a group in which another one could not be opened. */
static void end_join(void *argument, rondo_result result)
{
    struct join *join = argument;

    if (result)
        comm_free(join->comm);
    else
        *join->ret_comm = join->comm;
    free(join->algorithm);
    free(join->network);
    free(join);
}

/* The group ends when the caller's names of the configuration may be gone. */
static rondo_result add_join(const struct join *join)
{
    struct join *kept = malloc(sizeof(*kept));

    if (kept)
        *kept = *join;
    if (kept && (!name_keep(&kept->config.algorithm, &kept->algorithm) ||
                 !name_keep(&kept->config.network, &kept->network))) {
        end_join(kept, RONDO_ERROR_MEMORY);
        kept = NULL;
    }
    if (!kept) {
        group_spoil(RONDO_ERROR_MEMORY);
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a group.");
    }
    return group_add_join(join_by_id, end_join, kept);
}

rondo_result rondo_comm_open_id(const rondo_unique_id *id, int size, int rank,
                                const rondo_config *config, rondo_comm **ret_comm)
{
    CANCEL_LATER();
    struct join join = {.size = size, .rank = rank, .ret_comm = ret_comm};
    rondo_result result = RONDO_OK;

    if (!id || !ret_comm)
        result = rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_open_id: needs an id and a place for "
                                                 "the communicator.");
    else if (size < 1 || rank < 0 || rank >= size)
        result = rondo_fail(RONDO_ERROR_INVALID,
                            "rondo_comm_open_id: rank %d of %d does not exist; ranks go from 0 to "
                            "size - 1.",
                            rank, size);
    if (result) {
        if (group_is_open())
            group_spoil(result);
        return result;
    }
    join.id = *id;
    join.config = config ? *config : (rondo_config)RONDO_CONFIG_INIT;
    /* A group joins on other threads, to which this one's device means nothing. */
    join.config.cuda_device = comm_choose_device(&join.config);
    if (group_is_open())
        return add_join(&join);
    result = join_by_id(&join);
    if (!result)
        *ret_comm = join.comm;
    return result;
}

/* ---- All ranks in this process --------------------------------------------------------------- */

static rondo_result measure_step(void *comm)
{
    return comm_measure(comm);
}

static rondo_result connect_all(rondo_comm **comms, int size)
{
    struct endpoint *endpoints = calloc((size_t)size, sizeof(*endpoints));
    rondo_result result = RONDO_OK;

    if (!endpoints)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %d ranks.", size);
    for (int rank = 0; rank < size; rank++)
        endpoints[rank] = comms[rank]->endpoints[rank];
    for (int rank = 0; rank < size && !result; rank++)
        result = comm_connect(comms[rank], endpoints);
    free(endpoints);
    if (!result)
        return threads_run(measure_step, (void *const *)comms, size);
    for (int rank = 0; rank < size; rank++)
        comm_break(comms[rank], result, -1); /* some know where the rings of all are */
    return result;
}

rondo_result rondo_comm_open_all(int size, const rondo_config *config, rondo_comm **ret_comms)
{
    CANCEL_LATER();
    struct comm_settings settings;
    rondo_comm **comms;
    rondo_result result;

    if (size < 1 || !ret_comms)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_open_all: needs at least one rank and "
                                               "a place for the communicators.");
    result = comm_read_settings(config, size, &settings);
    if (result)
        return result;
    comms = calloc((size_t)size, sizeof(*comms));
    if (!comms)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %d communicators.", size);
    for (int rank = 0; rank < size && !result; rank++)
        result = comm_prepare(size, rank, &settings, &comms[rank]);
    if (!result)
        result = connect_all(comms, size);
    for (int rank = 0; rank < size; rank++) {
        if (result)
            comm_free(comms[rank]);
        else
            ret_comms[rank] = comms[rank];
    }
    free(comms);
    return result;
}

/* ---- Ending ---------------------------------------------------------------------------------- */

rondo_result rondo_comm_finalize(rondo_comm *comm)
{
    CANCEL_LATER();

    if (!comm)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_finalize: the communicator is NULL.");
    if (group_is_open())
        return comm_note_error(comm, rondo_fail(RONDO_ERROR_INVALID,
                                                "rondo_comm_finalize: not inside of a group; it "
                                                "has to wait."));
    return rondo_barrier(comm, NULL);
}

int rondo_group_needs(rondo_comm *comm, rondo_stream *stream)
{
    if (comm && fork_is_foreign(comm->home)) /* to be closed all the same */
        comm = NULL;
    if (stream && fork_is_foreign(stream->home))
        stream = NULL;
    return group_has_calls(comm, stream) || (comm && registration_is_needed(comm));
}

void rondo_comm_close(rondo_comm *comm)
{
    CANCEL_LATER();

    if (!comm)
        return;
    if (fork_is_foreign(comm->home)) {
        if (comm->home == COMM_CLOSED)
            comm_refuse(comm, "rondo_comm_close");
        else
            fork_keep(comm);
        return;
    }
    if (group_holds(comm, NULL, "rondo_comm_close", "communicator") || registration_in_group(comm))
        return;
    while (!gpu_shut(comm) || !turn_idle(&comm->turn))
        post_finish_or_doze(comm);
    comm_free(comm);
}
