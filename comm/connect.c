/* SPDX-License-Identifier: BSD-3-Clause */
/* connect.c - a communicator whose ranks know everybody's endpoints: are they fit for each other,
 * and then the links between them. */
#include "comm/networks.h"
#include "comm/open.h"
#include "comm/stage.h"

#include "base/fail.h"
#include "base/log.h"
#include "collectives/levels/grouping.h"
#include "comm/failure/error.h"
#include "comm/failure/leave.h"
#include "comm/gpu/gpu.h"
#include "kernels/kernels.h"
#include "transport/memory/process.h"
#include "transport/memory/shm.h"

#include <stdio.h>
#include <string.h>

static rondo_result refuse_settings(const rondo_comm *comm, int rank)
{
    char theirs[ENDPOINT_SETTINGS], ours[ENDPOINT_SETTINGS];

    comm_settings_compare(comm->endpoints[rank].settings_text,
                          comm->endpoints[comm->rank].settings_text, theirs, ours);
    if (!*theirs && !*ours)
        return rondo_fail(RONDO_ERROR_MISMATCH,
                          "Rank %d has another RONDO_GROUPS than rank %d: give every rank the "
                          "same.",
                          rank, comm->rank);
    return rondo_fail(RONDO_ERROR_MISMATCH,
                      "Rank %d has %s and rank %d has %s: give every rank the same, by the "
                      "configuration or the environment.",
                      rank, theirs, comm->rank, ours);
}

rondo_result comm_check_endpoint(const rondo_comm *comm, int rank)
{
    const struct endpoint *own = &comm->endpoints[comm->rank];
    const struct endpoint *endpoint = &comm->endpoints[rank];

    if (!endpoint->magic)
        return rondo_fail(RONDO_ERROR_PEER,
                          "Rank %d could not take part in the communicator: look at what it said.",
                          rank);
    if (endpoint->magic != ENDPOINT_MAGIC || endpoint->version != ENDPOINT_VERSION ||
        endpoint->rank != rank || endpoint->size != comm->size)
        return rondo_fail(RONDO_ERROR_MISMATCH,
                          "Rank %d runs another version of Rondo than rank %d.", rank, comm->rank);
    if (endpoint->security != own->security)
        return rondo_fail(RONDO_ERROR_MISMATCH,
                          "Rank %d has RONDO_SECURITY=%s and rank %d has RONDO_SECURITY=%s: give "
                          "every rank the same.",
                          rank, seal_mode_name(endpoint->security), comm->rank,
                          seal_mode_name(own->security));
    if (endpoint->settings != own->settings || endpoint->slots != own->slots ||
        endpoint->slot_bytes != own->slot_bytes)
        return refuse_settings(comm, rank);
    return RONDO_OK;
}

/* All ranks compute the same number from all endpoints; it
 * marks status pages as belonging to this communicator. */
static uint64_t identity(const rondo_comm *comm)
{
    const unsigned char *bytes = (const unsigned char *)comm->endpoints;
    uint64_t hash = 14695981039346656037u; /* FNV-1a over random identities and offsets */

    for (size_t i = 0; i < (size_t)comm->size * sizeof(*comm->endpoints); i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash | 1;
}

/* Short messages of links in shared memory are packed here. */
static void give_room(struct exec_world *world, int peer)
{
    for (int channel = 0; channel < PLAN_CHANNELS; channel++) {
        int at = channel * world->size + peer;
        char *packed = world->packed + (size_t)at * 2 * LINK_PACKED;

        world->out[at].packed = packed;
        world->in[at].packed = packed + LINK_PACKED;
    }
}

/* A rank of this host: what it shows, and how to alarm it. */
static rondo_result find_rank(rondo_comm *comm, int rank)
{
    const struct endpoint *endpoint = &comm->endpoints[rank];
    /* find_the_others() may come again to one whose memory could not be mapped. */
    rondo_result result =
        comm->processes[rank] ? RONDO_OK : process_attach(&endpoint->heap, &comm->processes[rank]);
    size_t bytes =
        shm_arena_bytes(comm->size, PLAN_CHANNELS, comm->settings.slots, comm->settings.slot_bytes);
    char *arena = NULL;

    if (!result) /* with all rings, for which it would be mapped piece by piece otherwise */
        result = process_map(comm->processes[rank], endpoint->arena, bytes, &arena);
    if (result)
        return result;
    comm->alarms[rank] = (struct shm_alarm *)(void *)arena;
    comm->status_pages[rank] =
        process_shown(comm->processes[rank], endpoint->status, sizeof(struct status));
    if (comm->status_pages[rank])
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_PEER,
                      "It says that its status page is outside of what it shows.");
}

/* Names the rank in the sentence about its process. */
static rondo_result name_rank(rondo_result result, int rank)
{
    char sentence[FAIL_SENTENCE_MAX];

    snprintf(sentence, sizeof(sentence), "%s", fail_sentence());
    return rondo_fail(result, "Rank %d cannot be reached: %s", rank, sentence);
}

/* Their credit lines are kept when a rank closes (transport/memory/shm.h). */
_Static_assert(PLAN_CHANNEL_P2P == PLAN_CHANNELS - 1, "messages have the last channel");

static rondo_result connect_rank(rondo_comm *comm, int rank)
{
    struct transport_pair pair = {.own = &comm->endpoints[comm->rank],
                                  .peer = &comm->endpoints[rank],
                                  .channels = PLAN_CHANNELS};
    const char *wanted = rank == comm->rank       ? "auto"
                         : !comm->processes[rank] ? comm->settings.between
                                                  : comm->settings.transport;
    const struct transport_ops *transport;
    rondo_result result = transport_choose(&comm->networks, &pair, wanted, &transport);

    if (result)
        return result;
    if (!comm->processes[rank]) { /* of another host: there are mirrors now */
        comm->status_pages[rank] = &comm->mirrors[rank];
        pair.page = &comm->mirrors[rank].call;
    }
    pair.process = comm->processes[rank];
    result = transport_connect(&comm->networks, transport, &pair, comm->world.out, comm->world.in);
    if (result)
        return result;
    give_room(&comm->world, rank);
    comm->world.zcopies |= connection_zcopies(comm->world.out[rank].connection);
    return RONDO_OK;
}

static rondo_result check_endpoints(rondo_comm *comm)
{
    rondo_result result = RONDO_OK;

    for (int rank = 0; rank < comm->size && !result; rank++)
        result = comm_check_endpoint(comm, rank);
    return result;
}

static rondo_result agree_on_devices(rondo_comm *comm)
{
    gpu_agree(comm);
    return RONDO_OK;
}

/* Before anything that may fail by itself: peers may write into the arena until they have closed
 * the communicator, and without knowing them its place could never be used again. */
static rondo_result find_ranks(rondo_comm *comm)
{
    const unsigned char *host = comm->endpoints[comm->rank].host;

    comm->one_process = true;
    for (int rank = 0; rank < comm->size; rank++) {
        bool here =
            memcmp(host, comm->endpoints[rank].host, sizeof(comm->endpoints[rank].host)) == 0;
        rondo_result result = here ? find_rank(comm, rank) : RONDO_OK;

        if (result)
            return name_rank(result, rank);
        comm->local_rank += here && rank < comm->rank;
        comm->local_size += here;
        comm->one_process &= here && process_is_own(comm->processes[rank]);
    }
    return RONDO_OK;
}

static rondo_result link_ranks(rondo_comm *comm)
{
    rondo_result result = RONDO_OK;

    for (int rank = 0; rank < comm->size && !result; rank++)
        result = connect_rank(comm, rank);
    return result;
}

static rondo_result tune(rondo_comm *comm)
{
    tuning_fit(comm);
    return RONDO_OK;
}

static const struct comm_stage connecting[] = {{"check endpoints", check_endpoints},
                                               {"find ranks", find_ranks},
                                               {"enlist", leave_enlist},
                                               {"size slots", networks_size_slots},
                                               {"agree on devices", agree_on_devices},
                                               {"start networks", networks_start},
                                               {"link ranks", link_ranks},
                                               {"tune", tune},
                                               {"find groups", comm_find_groups},
                                               {"connect devices", gpu_connect},
                                               {NULL, NULL}};

/* Where our own rings are is taken from our own endpoint, which has been in other hands. */
static rondo_result take_endpoints(rondo_comm *comm, const struct endpoint *endpoints)
{
    if (memcmp(&comm->endpoints[comm->rank], &endpoints[comm->rank], sizeof(*endpoints)) != 0)
        return rondo_fail(RONDO_ERROR_PEER,
                          "The endpoint of rank %d came back from the others changed.", comm->rank);
    memcpy(comm->endpoints, endpoints, (size_t)comm->size * sizeof(*endpoints));
    comm->id = identity(comm);
    recorder_name(comm->recorder, comm->id);
    atomic_store_explicit(&comm->status_pages[comm->rank]->id, comm->id, memory_order_release);
    return RONDO_OK;
}

/* A rank has ended or could not take part, so that this one stopped before it knew them all. The
 * others may still write into the arena: find them, or its place could never be used again. */
static void find_the_others(rondo_comm *comm)
{
    const unsigned char *host = comm->endpoints[comm->rank].host;

    for (int rank = 0; rank < comm->size; rank++) {
        const struct endpoint *endpoint = &comm->endpoints[rank];

        if (!endpoint->magic || comm->alarms[rank] ||
            memcmp(host, endpoint->host, sizeof(endpoint->host)) != 0)
            continue;
        if (find_rank(comm, rank) && !process_has_ended(&endpoint->heap))
            return; /* nobody knows when this one will be done */
    }
    leave_enlist(comm);
}

static rondo_result give_up(rondo_comm *comm, rondo_result result)
{
    char sentence[FAIL_SENTENCE_MAX];

    result = comm_break(comm, result, comm->rank);
    snprintf(sentence, sizeof(sentence), "%s", fail_sentence());
    if (!comm->lease)
        find_the_others(comm);
    return rondo_fail(result, "%s", sentence);
}

static void say_connected(const rondo_comm *comm)
{
    char groups[80], in_groups[120] = "";

    if (comm->groups) {
        grouping_describe(comm->groups, groups, sizeof(groups));
        snprintf(in_groups, sizeof(in_groups), "; ranks in %d groups: %s", comm->groups->groups,
                 groups);
    }
    log_alike("rank %d of %d: %d ranks on this node, %d cores (%s), slots of %zu bytes, %d each%s",
              comm->rank, comm->size, comm->local_size, comm->tuning.costs.cores, kernel_level(),
              comm->world.slot_bytes, comm->settings.slots, in_groups);
}

rondo_result comm_connect(rondo_comm *comm, const struct endpoint *endpoints)
{
    rondo_result result = take_endpoints(comm, endpoints);

    if (!result)
        result = comm_stages_run(comm, connecting);
    if (result)
        return give_up(comm, result);
    say_connected(comm);
    return RONDO_OK;
}
