/* SPDX-License-Identifier: BSD-3-Clause */
/* networks.c - which networks a communicator uses: they are opened, started and closed with it. */
#include "comm/networks.h"

#include "base/log.h"
#include "base/proof.h"
#include "comm/failure/network.h"
#include "comm/gpu/gpu.h"
#include "transport/link/seal.h"
#include "transport/tcp/tcp.h"
#include "transport/verbs/verbs.h"

#include <stdlib.h>
#include <string.h>

/*
 * Between two hosts with a rank each, a message that is longer than slots are elsewhere is cheaper
 * (docs/performance_networks.md): over TCP where one is enough for what goes one way at a time,
 * over soft-RoCE always. All that decides is on the cards, so both find the same.
 */
enum { TIMES = 4, MOST = 1 << 30 };

/* The bytes that verbs pins per peer if slots are TIMES as long. */
static size_t long_rings_bytes(const rondo_comm *comm)
{
    const struct comm_settings *settings = &comm->settings;

    return (size_t)2 * PLAN_LANES * (size_t)settings->slots * TIMES * settings->slot_bytes;
}

void networks_size_slots(rondo_comm *comm)
{
    const struct rank_card *a = &comm->cards[0], *b = &comm->cards[1];

    comm->long_slot_bytes = comm->settings.slot_bytes;
    if (comm->size != 2 || memcmp(a->host, b->host, sizeof(a->host)) == 0 ||
        comm->long_slot_bytes > MOST / TIMES)
        return;
    if (!a->verbs.rails || !b->verbs.rails)
        comm->long_slot_bytes *= TIMES;
    else if (a->verbs.long_slots && b->verbs.long_slots)
        comm->world.slot_bytes = comm->long_slot_bytes *= TIMES;
}

/* RDMA is used where it is, unless another transport was asked for; it must be there if it was. */
static rondo_result open_verbs(rondo_comm *comm, struct rank_card *card)
{
    bool must = strcmp(comm->settings.transport, "verbs") == 0;
    rondo_result result;

    if (!must && strcmp(comm->settings.transport, "auto") != 0)
        return RONDO_OK;
    if (comm->settings.security != SEAL_NONE && must)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "RONDO_TRANSPORT=verbs and RONDO_SECURITY=%s exclude each other: nobody "
                          "checks what RDMA writes. Leave the transport to auto, or protect the "
                          "network by other means.",
                          seal_mode_name(comm->settings.security));
    if (comm->settings.security != SEAL_NONE) {
        log_info("rank %d does without RDMA, as RONDO_SECURITY is %s", comm->rank,
                 seal_mode_name(comm->settings.security));
        return RONDO_OK;
    }
    result = verbs_open(&card->verbs, &comm->networks[NETWORK_VERBS]);
    if (!result)
        card->verbs.long_slots =
            verbs_wants_long_slots(comm->networks[NETWORK_VERBS], long_rings_bytes(comm));
    return must ? result : RONDO_OK;
}

rondo_result networks_open(rondo_comm *comm, struct rank_card *card)
{
    rondo_result result;

    if (!comm->settings.networked)
        return RONDO_OK;
    result = tcp_open(&card->tcp, &comm->networks[NETWORK_TCP]);
    return result ? result : open_verbs(comm, card);
}

static rondo_result start_verbs(rondo_comm *comm, const struct network_owner *owner)
{
    struct verbs_job job = {.owner = owner,
                            .control = comm->networks[NETWORK_TCP],
                            .rank = comm->rank,
                            .size = comm->size,
                            .lanes = PLAN_LANES,
                            .slots = comm->settings.slots,
                            .slot_bytes = comm->world.slot_bytes};

    job.device = gpu_lender(comm, &job.way);
    return comm->networks[NETWORK_VERBS] ? verbs_start(comm->networks[NETWORK_VERBS], &job)
                                         : RONDO_OK;
}

/* Sets the networks up for those ranks that are not on this host. */
rondo_result networks_start(rondo_comm *comm)
{
    const struct network_owner owner = networks_owner(comm);
    unsigned char key[PROOF_KEY];
    struct tcp_job job = {.owner = &owner,
                          .key = key,
                          .comm = comm->id,
                          .security = comm->settings.security,
                          .rank = comm->rank,
                          .size = comm->size,
                          .lanes = PLAN_LANES,
                          .slots = comm->settings.slots,
                          .slot_bytes = comm->long_slot_bytes};
    rondo_result result;
    int apart = 0;

    for (int rank = 0; rank < comm->size; rank++)
        apart += memcmp(comm->cards[rank].host, comm->cards[comm->rank].host,
                        sizeof(comm->cards[rank].host)) != 0;
    if (!apart || !comm->networks[NETWORK_TCP]) {
        networks_close(comm);
        return RONDO_OK;
    }
    comm->mirrors = calloc((size_t)comm->size, sizeof(*comm->mirrors));
    if (!comm->mirrors)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %d ranks.", comm->size);
    for (int rank = 0; rank < comm->size; rank++)
        atomic_store_explicit(&comm->mirrors[rank].id, comm->id, memory_order_relaxed);
    /* Cards hold random numbers; on one host only its user has seen them. */
    proof_derive(comm->key, comm->cards, (size_t)comm->size * sizeof(*comm->cards), key);
    result = tcp_start(comm->networks[NETWORK_TCP], &job);
    return result ? result : start_verbs(comm, &owner);
}

void networks_close(rondo_comm *comm)
{
    for (int i = NETWORKS - 1; i >= 0; i--) {
        if (comm->networks[i])
            comm->networks[i]->ops->close(comm->networks[i]);
        comm->networks[i] = NULL;
    }
    free(comm->mirrors);
    comm->mirrors = NULL;
}
