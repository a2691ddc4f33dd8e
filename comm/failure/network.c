/* SPDX-License-Identifier: BSD-3-Clause */
/* network.c - see network.h. */
#include "comm/failure/network.h"

#include "comm/failure/error.h"
#include "comm/failure/health.h"
#include "comm/state/wait.h"
#include "transport/verbs/verbs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The caption that travels with every message: the call that the rank is in, as on its board. */
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

    if (board_hear_invitation(&comm->mirrors[peer], bytes, count))
        return;
    if (comm->networks[NETWORK_VERBS])
        verbs_note(comm->networks[NETWORK_VERBS], peer, bytes, count);
}

struct network_owner networks_owner(rondo_comm *comm)
{
    return (struct network_owner){.context = comm,
                                  .caption = caption,
                                  .heard = heard,
                                  .waits = waits,
                                  .waited = waited,
                                  .failed = failed,
                                  .note = note};
}

/* ---- While a call lasts ---------------------------------------------------------------------- */

/* Add the call in progress to the sentence of an error. */
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

/* Does this round of looks include TCP? Beside verbs most rounds leave it out. */
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
