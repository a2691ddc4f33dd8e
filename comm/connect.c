/* SPDX-License-Identifier: BSD-3-Clause */
/* connect.c - a communicator whose ranks know everybody's cards: are they fit for each other, and
 * then the links between them. */
#include "comm/networks.h"
#include "comm/open.h"
#include "comm/stage.h"

#include "base/fail.h"
#include "base/log.h"
#include "comm/failure/error.h"
#include "comm/failure/leave.h"
#include "comm/gpu/gpu.h"
#include "comm/state/crowd.h"
#include "transport/link/connection.h"
#include "transport/link/seal.h"
#include "transport/memory/process.h"
#include "transport/memory/shm.h"
#include "transport/transport.h"

#include <string.h>

static rondo_result check_card(const rondo_comm *comm, int rank)
{
    const struct rank_card *own = &comm->cards[comm->rank];
    const struct rank_card *card = &comm->cards[rank];

    if (!card->magic)
        return rondo_fail(RONDO_ERROR_PEER,
                          "Rank %d could not take part in the communicator: look at what it said.",
                          rank);
    if (card->magic != CARD_MAGIC || card->version != CARD_VERSION || card->rank != rank ||
        card->size != comm->size)
        return rondo_fail(RONDO_ERROR_MISMATCH,
                          "Rank %d runs another version of Rondo than rank %d.", rank, comm->rank);
    if (card->security != own->security)
        return rondo_fail(RONDO_ERROR_MISMATCH,
                          "Rank %d has RONDO_SECURITY=%s and rank %d has RONDO_SECURITY=%s: give "
                          "every rank the same.",
                          rank, seal_mode_name(card->security), comm->rank,
                          seal_mode_name(own->security));
    if (card->settings != own->settings || card->slots != own->slots ||
        card->slot_bytes != own->slot_bytes)
        return rondo_fail(
            RONDO_ERROR_MISMATCH,
            "Rank %d has other settings than rank %d; algorithm, deterministic, costs, "
            "slots and slot bytes must be the same everywhere (configuration or "
            "RONDO_ environment variables).",
            rank, comm->rank);
    return RONDO_OK;
}

/* All ranks compute the same number from all cards; it
 * marks boards as belonging to this communicator. */
static uint64_t identity(const rondo_comm *comm)
{
    const unsigned char *bytes = (const unsigned char *)comm->cards;
    uint64_t hash = 14695981039346656037u; /* FNV-1a over random identities and offsets */

    for (size_t i = 0; i < (size_t)comm->size * sizeof(*comm->cards); i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash | 1;
}

/* Short messages of links in shared memory are packed here. */
static void give_room(struct exec_world *world, int peer)
{
    for (int lane = 0; lane < PLAN_LANES; lane++) {
        int at = lane * world->size + peer;
        char *packed = world->packed + (size_t)at * 2 * LINK_PACKED;

        world->out[at].packed = packed;
        world->in[at].packed = packed + LINK_PACKED;
    }
}

/* A rank of this host: what it shows, and how to alarm it. */
static rondo_result find_board(rondo_comm *comm, int rank)
{
    const struct rank_card *card = &comm->cards[rank];
    const struct process *process = comm->processes[rank];

    comm->boards[rank] = process_shown(process, card->board, sizeof(struct board));
    comm->alarms[rank] =
        (struct shm_alarm *)(void *)process_at(process, card->arena, shm_alarm_bytes(comm->size));
    if (!comm->boards[rank] || !comm->alarms[rank])
        return rondo_fail(RONDO_ERROR_PEER,
                          "Rank %d says that its board is outside of what it shows, or its rings "
                          "outside of its heap.",
                          rank);
    return RONDO_OK;
}

static rondo_result connect_rank(rondo_comm *comm, int rank)
{
    struct transport_pair pair = {.own = &comm->cards[comm->rank],
                                  .peer = &comm->cards[rank],
                                  .networks = comm->networks,
                                  .lanes = PLAN_LANES};
    const char *wanted = rank == comm->rank ? "auto" : comm->settings.transport;
    const struct transport_ops *transport;
    rondo_result result = transport_choose(pair.own, pair.peer, wanted, &transport);

    if (result)
        return result;
    if (memcmp(pair.own->host, pair.peer->host, sizeof(pair.own->host)) == 0) {
        result = process_attach(&pair.peer->heap, &comm->processes[rank]);
        if (result)
            return result;
        result = find_board(comm, rank);
        if (result)
            return result;
        comm->local_rank += rank < comm->rank;
        comm->local_size++;
        comm->one_process &= process_is_own(comm->processes[rank]);
    } else {
        comm->boards[rank] = &comm->mirrors[rank];
        comm->one_process = false;
    }
    comm->tcp_carries |= transport == &tcp_transport;
    pair.process = comm->processes[rank];
    result = transport->connect(&pair, comm->world.out, comm->world.in);
    if (result)
        return result;
    give_room(&comm->world, rank);
    comm->world.lends |= connection_lends(comm->world.out[rank].connection);
    return RONDO_OK;
}

static rondo_result check_cards(rondo_comm *comm)
{
    rondo_result result = RONDO_OK;

    for (int rank = 0; rank < comm->size && !result; rank++)
        result = check_card(comm, rank);
    return result;
}

static rondo_result size_slots(rondo_comm *comm)
{
    networks_size_slots(comm);
    return RONDO_OK;
}

static rondo_result agree_on_devices(rondo_comm *comm)
{
    gpu_agree(comm);
    return RONDO_OK;
}

static rondo_result link_ranks(rondo_comm *comm)
{
    rondo_result result = RONDO_OK;

    comm->one_process = true;
    for (int rank = 0; rank < comm->size && !result; rank++)
        result = connect_rank(comm, rank);
    return result;
}

static rondo_result share_cores(rondo_comm *comm)
{
    crowd_make_shallow(comm);
    comm->costs.cores = crowd_cores(comm);
    crowd_choose_spinning(comm);
    comm->world.rooms = crowd_choose_rooms(comm);
    return RONDO_OK;
}

static const struct comm_stage connecting[] = {{"check cards", check_cards},
                                               {"size slots", size_slots},
                                               {"agree on devices", agree_on_devices},
                                               {"start networks", networks_start},
                                               {"link ranks", link_ranks},
                                               {"enlist", leave_enlist},
                                               {"share cores", share_cores},
                                               {"find groups", comm_find_groups},
                                               {"connect devices", gpu_connect},
                                               {NULL, NULL}};

/* Where our own rings are is taken from our own card, which has been in other hands. */
static rondo_result take_cards(rondo_comm *comm, const struct rank_card *cards)
{
    if (memcmp(&comm->cards[comm->rank], &cards[comm->rank], sizeof(*cards)) != 0)
        return rondo_fail(RONDO_ERROR_PEER,
                          "The card of rank %d came back from the others changed.", comm->rank);
    memcpy(comm->cards, cards, (size_t)comm->size * sizeof(*cards));
    comm->id = identity(comm);
    atomic_store_explicit(&comm->boards[comm->rank]->id, comm->id, memory_order_release);
    return RONDO_OK;
}

rondo_result comm_connect(rondo_comm *comm, const struct rank_card *cards)
{
    rondo_result result = take_cards(comm, cards);

    if (!result)
        result = comm_stages_run(comm, connecting);
    if (result)
        return comm_break(comm, result, comm->rank);
    log_info("rank %d of %d: %d ranks on this node, %d cores, slots of %zu bytes, %d each",
             comm->rank, comm->size, comm->local_size, comm->costs.cores, comm->world.slot_bytes,
             comm->settings.slots);
    return RONDO_OK;
}
