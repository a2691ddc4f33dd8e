/* SPDX-License-Identifier: BSD-3-Clause */
/* networks.c - the networks of a communicator in stages of opening it. */
#include "comm/networks.h"

#include "base/proof.h"
#include "comm/failure/network.h"
#include "comm/gpu/gpu.h"

#include <stdlib.h>
#include <string.h>

/*
 * Between two hosts with a rank each, a message that is longer than slots are elsewhere is cheaper
 * (docs/performance_networks.md): over TCP where one is enough for what goes one way at a time,
 * over soft-RoCE always. All that decides is on the endpoints, so both find the same.
 */
enum { TIMES = 4, MOST = 1 << 30 };

rondo_result networks_open(rondo_comm *comm)
{
    const struct comm_settings *settings = &comm->settings;
    struct network_wish wish = {.rank = comm->rank,
                                .traffic_class = (uint8_t)settings->traffic_class,
                                .security = settings->security};
    /* What was asked for by name is refused where it is not there, needed or not. */
    bool named = strcmp(settings->between, settings->transport) != 0;

    wish.long_rings =
        (size_t)2 * PLAN_CHANNELS * (size_t)settings->slots * TIMES * settings->slot_bytes;
    return settings->networked || named ? networks_open_all(&comm->networks, settings->between,
                                                            &wish, &comm->endpoints[comm->rank])
                                        : RONDO_OK;
}

static bool is_apart(const rondo_comm *comm, int rank)
{
    const struct endpoint *own = &comm->endpoints[comm->rank];

    return memcmp(comm->endpoints[rank].host, own->host, sizeof(own->host)) != 0;
}

rondo_result networks_size_slots(rondo_comm *comm)
{
    struct transport_pair pair = {.own = &comm->endpoints[comm->rank]};
    const struct transport_ops *transport;
    enum link_length length = LINK_SAME_LENGTH;

    comm->tuning.long_slot_bytes = comm->settings.slot_bytes;
    if (comm->size != 2 || !is_apart(comm, 1 - comm->rank) ||
        comm->tuning.long_slot_bytes > MOST / TIMES)
        return RONDO_OK;
    pair.peer = &comm->endpoints[1 - comm->rank];
    if (!transport_choose(&comm->networks, &pair, comm->settings.between, &transport) &&
        transport->length)
        length = transport->length(pair.own_part, pair.peer_part);
    if (length != LINK_SAME_LENGTH)
        comm->tuning.long_slot_bytes *= TIMES;
    if (length == LINK_LONG)
        comm->world.slot_bytes = comm->tuning.long_slot_bytes;
    return RONDO_OK;
}

static rondo_result make_mirrors(rondo_comm *comm)
{
    comm->mirrors = calloc((size_t)comm->size, sizeof(*comm->mirrors));
    if (!comm->mirrors)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %d ranks.", comm->size);
    for (int rank = 0; rank < comm->size; rank++)
        atomic_store_explicit(&comm->mirrors[rank].id, comm->id, memory_order_relaxed);
    return RONDO_OK;
}

rondo_result networks_start(rondo_comm *comm)
{
    unsigned char key[PROOF_KEY];
    struct network_job job = {.owner = networks_owner(comm),
                              .key = key,
                              .comm = comm->id,
                              .security = comm->settings.security,
                              .rank = comm->rank,
                              .size = comm->size,
                              .channels = PLAN_CHANNELS,
                              .slots = comm->settings.slots,
                              .slot_bytes = comm->tuning.long_slot_bytes};
    rondo_result result;
    bool apart = false;

    for (int rank = 0; rank < comm->size; rank++)
        apart |= is_apart(comm, rank);
    if (!apart || !networks_is_any(&comm->networks)) {
        networks_close(comm);
        return RONDO_OK;
    }
    result = make_mirrors(comm);
    if (result)
        return result;
    /* Endpoints hold random numbers; on one host only its user has seen them. */
    proof_derive(comm->key, comm->endpoints, (size_t)comm->size * sizeof(*comm->endpoints), key);
    job.device = gpu_device_source(comm, &job.way);
    return networks_start_all(&comm->networks, &job);
}

void networks_close(rondo_comm *comm)
{
    networks_close_all(&comm->networks);
    free(comm->mirrors);
    comm->mirrors = NULL;
}
