/* SPDX-License-Identifier: BSD-3-Clause */
/* network.c - what a communicator does with its networks, and what it tells them. */
#include "comm/network.h"

#include "base/log.h"
#include "base/proof.h"
#include "comm/among.h"
#include "comm/gpu.h"
#include "comm/health.h"
#include "comm/wait.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What travels with messages: the call that a rank is in, as on its board. */
struct caption {
    uint32_t call;
    unsigned char record[sizeof(struct call_record)];
};
_Static_assert(sizeof(struct caption) == NETWORK_CAPTION, "wire format");

static const double DOZE = 1e-3;        /* seconds: then it is worth a look at the peers' health */
static const double DOZE_LOCAL = 50e-6; /* ranks of this host wake nobody */

/* Beside RDMA, TCP is looked at once in so many looks (powers of 2), as each is a system call, and
 * whenever a wait has been long enough to sleep: it may carry only what is not urgent. */
enum { LOOKS_PER_TCP = 16, LOOKS_PER_CONTROL = 256 };

/* ---- What networks ask ----------------------------------------------------------------------- */

/* From any thread: one that breaks the communicator answers peers, too. */
static void caption(void *context, void *ret_caption)
{
    const rondo_comm *comm = context;
    const struct board *board = comm->boards[comm->rank];
    uint32_t call = atomic_load_explicit(&board->sequence, memory_order_acquire) / 2;
    struct call_record record;
    struct caption own = {0};

    if (call && board_read(board, call, &record)) {
        own.call = call;
        memcpy(own.record, &record, sizeof(record));
    }
    memcpy(ret_caption, &own, sizeof(own));
}

static void heard(void *context, int peer, const void *bytes)
{
    rondo_comm *comm = context;
    struct board *mirror = &comm->mirrors[peer];
    struct caption theirs;
    struct call_record record;

    memcpy(&theirs, bytes, sizeof(theirs));
    if (!theirs.call ||
        atomic_load_explicit(&mirror->sequence, memory_order_relaxed) == 2 * theirs.call)
        return;
    memcpy(&record, theirs.record, sizeof(record));
    board_note(mirror, theirs.call, &record);
    if (board_shows(mirror, &record))
        board_repeat(mirror, theirs.call);
    else
        board_begin(mirror, theirs.call, &record);
}

static void waits(void *context, struct network_wait *ret_wait)
{
    const rondo_comm *comm = context;
    const struct board *board = comm->boards[comm->rank];

    ret_wait->beats = atomic_load_explicit(&board->beats, memory_order_acquire);
    ret_wait->blames = atomic_load_explicit(&board->blames, memory_order_relaxed);
}

static void waited(void *context, int peer, const struct network_wait *wait)
{
    rondo_comm *comm = context;

    atomic_store_explicit(&comm->mirrors[peer].blames, wait->blames, memory_order_relaxed);
    /* Release, pairs with the acquire of readers. */
    atomic_store_explicit(&comm->mirrors[peer].beats, wait->beats, memory_order_release);
}

static void failed(void *context, int peer, const struct network_failure *failure)
{
    rondo_comm *comm = context;

    board_fail(&comm->mirrors[peer], failure->result, failure->culprit, failure->sentence);
}

static void note(void *context, int peer, const void *bytes, size_t count)
{
    const rondo_comm *comm = context;

    if (among_heard(&comm->mirrors[peer], bytes, count))
        return;
    if (comm->networks[NETWORK_VERBS])
        verbs_note(comm->networks[NETWORK_VERBS], peer, bytes, count);
}

/* ---- Open and close -------------------------------------------------------------------------- */

/*
 * Between two hosts with a rank each, a message that is longer than slots are elsewhere is cheaper
 * (docs/performance_networks.md): over TCP where one is enough for what goes one way at a time,
 * over soft-RoCE always. All that decides is on the cards, so both find the same.
 */
enum { TIMES = 4, MOST = 1 << 30 };

/* What verbs pins for a peer then. */
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
    const struct network_owner owner = {.context = comm,
                                        .caption = caption,
                                        .heard = heard,
                                        .waits = waits,
                                        .waited = waited,
                                        .failed = failed,
                                        .note = note};
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

/* ---- While a call lasts ---------------------------------------------------------------------- */

/* What the sentence says happened in this call. */
static rondo_result in_call(const rondo_comm *comm, rondo_result result)
{
    const struct board *board = comm->boards[comm->rank];
    char sentence[FAIL_SENTENCE_MAX], call[128];
    struct call_record record;

    if (!comm->calls || !board_read(board, comm->calls, &record))
        return result;
    snprintf(sentence, sizeof(sentence), "%s", fail_sentence());
    board_describe(&record, call, sizeof(call));
    return rondo_fail(result, "%s It came in %s (call %u).", sentence, call, comm->calls);
}

/* A peer is gone, or not itself. If it, or another, has said why, that goes before what we see of
 * it. */
static rondo_result lost(rondo_comm *comm, rondo_result result, int peer)
{
    rondo_result told = health_adopt(comm);

    if (!told && result == RONDO_ERROR_AUTH)
        in_call(comm, result);
    return told ? told : comm_break(comm, result, peer);
}

/* Is it time to look at TCP? */
static bool wants_tcp(rondo_comm *comm)
{
    if (!comm->networks[NETWORK_VERBS])
        return true;
    return !(++comm->looks & ((comm->tcp_carries ? LOOKS_PER_TCP : LOOKS_PER_CONTROL) - 1));
}

rondo_result networks_progress(rondo_comm *comm, bool *ret_moved)
{
    *ret_moved = false;
    for (int i = 0; i < NETWORKS; i++) {
        struct network *network = comm->networks[i];
        bool moved;
        rondo_result result;

        if (!network || (i == NETWORK_TCP && !wants_tcp(comm)))
            continue;
        result = network->ops->progress(network, &moved);
        if (result)
            return lost(comm, result, network->culprit);
        *ret_moved |= moved;
    }
    return RONDO_OK;
}

bool networks_flushed(rondo_comm *comm, int *ret_peer)
{
    for (int i = 0; i < NETWORKS; i++)
        if (comm->networks[i] && !comm->networks[i]->ops->flushed(comm->networks[i], ret_peer))
            return false;
    return true;
}

bool networks_pause(rondo_comm *comm, struct waiter *waiter, bool local)
{
    struct network *network = comm->networks[NETWORK_TCP];
    double time = DOZE * waiter->crowd;

    if (waiter->rounds < comm->network_rounds) {
        waiter->rounds++;
        return false;
    }
    if (local || comm->networks[NETWORK_VERBS])
        time = DOZE_LOCAL * (1 + waiter->crowd / 8);
    network->ops->doze(network, time);
    comm->looks = UINT_MAX; /* the next look is one at all of them */
    return waiter_look(waiter);
}

rondo_result networks_watch(rondo_comm *comm, int peer)
{
    if (comm->boards[peer] != &comm->mirrors[peer])
        return RONDO_OK;
    for (int i = 0; i < NETWORKS; i++) {
        struct network *network = comm->networks[i];
        rondo_result result = network ? network->ops->watch(network, peer) : RONDO_OK;

        if (result)
            return lost(comm, result, peer);
    }
    return RONDO_OK;
}

void networks_settle(rondo_comm *comm)
{
    struct connection *lender = comm->world.lender;

    comm->world.lender = NULL;
    if (lender)
        lender->ops->settle(lender, NULL, SIZE_MAX);
}

void networks_let_go(rondo_comm *comm)
{
    for (int i = 0; i < NETWORKS; i++)
        if (comm->networks[i] && comm->networks[i]->ops->let_go)
            comm->networks[i]->ops->let_go(comm->networks[i]);
}

void networks_tell(rondo_comm *comm, const struct network_failure *failure)
{
    for (int i = 0; i < NETWORKS; i++)
        if (comm->networks[i])
            comm->networks[i]->ops->tell(comm->networks[i], failure);
}
