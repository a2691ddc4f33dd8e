/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * open.c - making a communicator, in steps that every way of starting shares:
 *
 *     comm_prepare()   memory for the rings into this rank, and the card that says where it is
 *     (exchange)       everybody's cards: by bootstrap.c, through a parent communicator, or within
 *                      one process
 *     comm_connect()   the other processes mapped, the links to every rank
 *     comm_measure()   what links cost; it ends, or where costs are known all there is of it is,
 *     comm_assemble()  a barrier: everybody got here, and may close again
 */
#include "comm/open.h"
#include "comm/engine/choose.h"
#include "comm/engine/run.h"
#include "comm/failure/error.h"
#include "comm/networks.h"
#include "comm/state/comm.h"

#include "base/fail.h"
#include "base/log.h"
#include "collectives/levels/grouping.h"
#include "comm/engine/reach.h"
#include "comm/engine/repeat.h"
#include "comm/failure/leave.h"
#include "comm/gpu/gpu.h"
#include "comm/registration.h"
#include "comm/rendezvous/host.h"
#include "comm/state/crowd.h"
#include "transport/link/connection.h"
#include "transport/link/seal.h"
#include "transport/memory/process.h"
#include "transport/memory/shm.h"
#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>

enum { CARD_MAGIC = 0x526f6e64, CARD_VERSION = 5 };

static rondo_result allocate(rondo_comm *comm)
{
    size_t size = (size_t)comm->size;
    size_t links = size * PLAN_LANES;
    struct exec_world *world = &comm->world;

    comm->cards = calloc(size, sizeof(*comm->cards));
    comm->processes = calloc(size, sizeof(*comm->processes));
    comm->boards = calloc(size, sizeof(*comm->boards));
    comm->alarms = calloc(size, sizeof(*comm->alarms));
    comm->repeat = repeat_open();
    world->out = calloc(links, sizeof(*world->out));
    world->in = calloc(links, sizeof(*world->in));
    world->packed = calloc(2 * links, LINK_PACKED);
    world->peers = calloc(size, sizeof(*world->peers));
    world->sources = calloc(size + 2, sizeof(*world->sources));
    world->destinations = calloc(size + 2, sizeof(*world->destinations));
    if (!comm->cards || !comm->processes || !comm->boards || !comm->alarms || !comm->repeat ||
        !world->out || !world->in || !world->packed || !world->peers || !world->sources ||
        !world->destinations)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a communicator of %d ranks.",
                          comm->size);
    return RONDO_OK;
}

static bool is_forced(const struct comm_settings *settings)
{
    return strcmp(settings->transport, "tcp") == 0 || strcmp(settings->transport, "verbs") == 0;
}

/* What others are told about this rank; its heap is open, its arena is there. */
static rondo_result make_card(rondo_comm *comm, struct rank_card *card)
{
    const struct comm_settings *settings = &comm->settings;
    rondo_result result;

    card->magic = CARD_MAGIC;
    card->version = CARD_VERSION;
    card->arena = (uint64_t)(comm->arena - heap_base());
    card->slot_bytes = settings->slot_bytes;
    card->slots = (uint32_t)settings->slots;
    card->settings = comm_settings_hash(settings);
    card->security = settings->security;
    card->rank = comm->rank;
    card->size = comm->size;
    card->quota = host_quota();
    host_cpus(card->cpus);
    card->machine = host_machine();
    /* With a network forced upon them, ranks of one host do not share its memory. */
    result = host_identity(is_forced(settings) ? 1 + comm->rank : 0, card->host);
    if (!result)
        result = networks_open(comm, card);
    return result ? result : gpu_make_card(comm, &card->device);
}

rondo_result comm_prepare(int size, int rank, const struct comm_settings *settings,
                          rondo_comm **ret_comm)
{
    rondo_comm *comm = calloc(1, sizeof(*comm));
    struct rank_card *card;
    rondo_result result;
    void *arena = NULL, *board = NULL;

    if (!comm)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a communicator.");
    comm->size = size;
    comm->rank = rank;
    comm->settings = *settings;
    comm->home = fork_home();
    lock_init(&comm->error_lock, LOCK_COMM_ERROR);
    lock_init(&comm->registrations_lock, LOCK_COMM_REGISTRATIONS);
    operations_init(&comm->operations);
    comm->world.ops = &comm_world_ops;
    comm->world.rank = rank;
    comm->world.size = size;
    comm->world.slot_bytes = settings->slot_bytes;
    result = allocate(comm);
    if (!result)
        result = gpu_open(settings->cuda_device, &comm->gpu);
    if (result)
        goto fail;
    comm->hands = comm->gpu ? &gpu_hands : &thread_hands;
    card = &comm->cards[rank];
    result = heap_enter(&card->heap);
    if (result)
        goto fail;
    comm->entered = true;
    result = heap_alloc(shm_arena_bytes(size, PLAN_LANES, settings->slots, settings->slot_bytes),
                        &arena);
    if (result)
        goto fail;
    comm->arena = arena;
    comm->alarms[rank] = (struct shm_alarm *)arena;
    comm->world.alarm = &comm->alarms[rank]->rung;
    result = shown_take(&board, &card->board);
    if (result)
        goto fail;
    comm->boards[rank] = comm->board = board;
    comm->world.inside = &comm->board->inside;
    result = make_card(comm, card);
    if (result)
        goto fail;
    *ret_comm = comm;
    return RONDO_OK;
fail:
    comm_free(comm);
    return result;
}

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

rondo_result comm_connect(rondo_comm *comm, const struct rank_card *cards)
{
    rondo_result result = RONDO_OK;

    /* Where our own rings are is taken from our own card, which has been in other hands. */
    if (memcmp(&comm->cards[comm->rank], &cards[comm->rank], sizeof(*cards)) != 0)
        return comm_break(comm,
                          rondo_fail(RONDO_ERROR_PEER,
                                     "The card of rank %d came back from the others changed.",
                                     comm->rank),
                          comm->rank);
    memcpy(comm->cards, cards, (size_t)comm->size * sizeof(*cards));
    comm->id = identity(comm);
    comm->one_process = true;
    atomic_store_explicit(&comm->boards[comm->rank]->id, comm->id, memory_order_release);
    for (int rank = 0; rank < comm->size && !result; rank++)
        result = check_card(comm, rank);
    networks_size_slots(comm);
    if (!result)
        gpu_agree(comm);
    if (!result)
        result = networks_start(comm);
    for (int rank = 0; rank < comm->size && !result; rank++)
        result = connect_rank(comm, rank);
    if (!result)
        result = leave_enlist(comm);
    if (!result)
        crowd_make_shallow(comm);
    if (!result)
        result = comm_find_groups(comm);
    if (!result)
        result = gpu_connect(comm);
    if (result)
        return comm_break(comm, result, comm->rank);
    comm->costs.cores = crowd_cores(comm);
    crowd_choose_spinning(comm);
    comm->world.rooms = crowd_choose_rooms(comm);
    log_info("rank %d of %d: %d ranks on this node, %d cores, slots of %zu bytes, %d each",
             comm->rank, comm->size, comm->local_size, comm->costs.cores, comm->world.slot_bytes,
             comm->settings.slots);
    return RONDO_OK;
}

rondo_result comm_assemble(rondo_comm *comm)
{
    struct task barrier = {.key = {.collective = RONDO_BARRIER, .type = RONDO_UINT8}};
    rondo_result result = gpu_settle(comm);

    if (!result && comm->size > 1)
        result = run_task(comm, &barrier);
    if (result)
        return comm_break(comm, result, comm->rank);
    comm->assembled = true;
    comm->internal = comm->calls;
    return RONDO_OK;
}

/*
 * Peers that have not closed the communicator may write into the arena: a message that nobody took,
 * or whatever a call does that this rank has left. Those of a broken one have to read why it broke.
 */
static void close_arena(rondo_comm *comm, bool broken)
{
    bool unused = !broken;

    if (!comm->board) {
        heap_free(comm->arena);
        return;
    }
    leave_for_good(comm);
    if (comm->lease)
        unused = comm->lease->ops->is_over(comm->lease);
    if (unused && comm->lease)
        comm->lease->ops->close(comm->lease);
    if (unused)
        heap_free(comm->arena);
    else
        heap_retire(comm->arena, shm_alarm_bytes(comm->size), comm->lease);
    if (unused && !comm->lease)
        shown_give(comm->board);
}

void comm_free(rondo_comm *comm)
{
    bool broken;

    if (!comm)
        return;
    broken = atomic_load_explicit(&comm->broken, memory_order_acquire);
    gpu_stop(comm->gpu);
    networks_close(comm);
    gpu_close(comm->gpu, broken);
    registration_drop_all(comm);
    leave_delist(comm);
    close_arena(comm, broken);
    for (int rank = 0; comm->processes && rank < comm->size; rank++)
        process_detach(comm->processes[rank]);
    if (comm->entered)
        heap_leave();
    choices_done(&comm->choices);
    free(comm->repeat);
    grouping_close(comm->groups);
    operations_done(&comm->operations);
    lock_done(&comm->error_lock);
    lock_done(&comm->registrations_lock);
    free(comm->world.out);
    free(comm->world.in);
    free(comm->world.packed);
    free(comm->world.peers);
    free(comm->world.sources);
    free(comm->world.destinations);
    free(comm->world.scratch);
    free(comm->cards);
    free(comm->processes);
    free(comm->boards);
    free(comm->alarms);
    free(comm);
}
