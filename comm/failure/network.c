/* SPDX-License-Identifier: BSD-3-Clause */
/* network.c - see network.h. */
#include "comm/failure/network.h"

#include "comm/failure/error.h"
#include "comm/failure/health.h"

#include <stdio.h>

/* ---- What networks ask, and say -------------------------------------------------------------- */

static void waits(void *context, struct network_wait *ret_wait)
{
    const rondo_comm *comm = context;
    const struct status *status = comm->status_pages[comm->rank];

    ret_wait->heartbeats = atomic_load_explicit(&status->heartbeats, memory_order_acquire);
    ret_wait->blames = atomic_load_explicit(&status->blames, memory_order_relaxed);
}

static void waited(void *context, int peer, const struct network_wait *wait)
{
    rondo_comm *comm = context;

    atomic_store_explicit(&comm->mirrors[peer].blames, wait->blames, memory_order_relaxed);
    /* Release, pairs with the acquire of readers. */
    atomic_store_explicit(&comm->mirrors[peer].heartbeats, wait->heartbeats, memory_order_release);
}

static void failed(void *context, int peer, const struct network_failure *failure)
{
    rondo_comm *comm = context;

    status_fail(&comm->mirrors[peer], failure->result, failure->culprit, failure->sentence);
}

static void left(void *context, int peer, bool parted)
{
    rondo_comm *comm = context;

    /* Release, pairs with the acquire of readers. */
    atomic_store_explicit(&comm->mirrors[peer].closed, parted ? STATUS_PARTED : STATUS_LOST,
                          memory_order_release);
}

static void note(void *context, int peer, const void *bytes, size_t count)
{
    const rondo_comm *comm = context;

    if (!status_hear_invitation(&comm->mirrors[peer], bytes, count) &&
        !vote_hear(&comm->mirrors[peer].vote, comm->size, bytes, count))
        networks_hear(&comm->networks, peer, bytes, count);
}

struct network_owner networks_owner(rondo_comm *comm)
{
    return (struct network_owner){.page = &comm->status->call,
                                  .context = comm,
                                  .waits = waits,
                                  .waited = waited,
                                  .failed = failed,
                                  .left = left,
                                  .note = note};
}

/* ---- While a call lasts ---------------------------------------------------------------------- */

/* Add the call in progress to the sentence of an error. */
static rondo_result in_call(const rondo_comm *comm, rondo_result result)
{
    const struct status *status = comm->status_pages[comm->rank];
    char sentence[FAIL_SENTENCE_MAX], call[128];
    struct call_record record;

    if (!comm->calls || !status_read(status, comm->calls, &record))
        return result;
    snprintf(sentence, sizeof(sentence), "%s", fail_sentence());
    call_describe(&record, call, sizeof(call));
    return rondo_fail(result, "%s It came in %s (call %u).", sentence, call,
                      health_users_number(comm, comm->calls));
}

/* A peer is gone, or not itself. If it, or another, has said why, that goes before what we see of
 * it. One that may part is done without. */
static rondo_result lost(rondo_comm *comm, rondo_result result, int culprit)
{
    rondo_result told = health_adopt(comm);

    if (!told && comm->may_part && health_has_closed(comm, culprit)) {
        networks_forsake(comm, culprit);
        return RONDO_OK;
    }
    if (!told && result == RONDO_ERROR_AUTH)
        in_call(comm, result);
    return told ? told : comm_break(comm, result, culprit);
}

rondo_result networks_progress(rondo_comm *comm, bool *ret_moved)
{
    rondo_result result = networks_look(&comm->networks, comm->tuning.looks_per_tcp, ret_moved);

    return result ? lost(comm, result, comm->networks.culprit) : RONDO_OK;
}

bool networks_flushed(rondo_comm *comm, int *ret_peer)
{
    return networks_are_flushed(&comm->networks, ret_peer);
}

bool networks_pause(rondo_comm *comm, struct waiter *waiter, bool local)
{
    bool woken = !local && !comm->networks.polled;

    if (waiter_looks_again(waiter))
        return false;
    networks_doze(&comm->networks, waiter_sleep(waiter, woken));
    return waiter_look(waiter);
}

rondo_result networks_watch(rondo_comm *comm, int peer)
{
    rondo_result result = RONDO_OK;
    int culprit = peer;

    if (networks_mirror(comm, peer))
        result = networks_watch_peer(&comm->networks, peer, &culprit);
    return result ? lost(comm, result, culprit) : RONDO_OK;
}

void networks_reclaim(rondo_comm *comm)
{
    struct connection *zcopy_connection = comm->world.zcopy_connection;

    comm->world.zcopy_connection = NULL;
    if (zcopy_connection)
        zcopy_connection->ops->reclaim(zcopy_connection, NULL, SIZE_MAX);
}

void networks_let_go(rondo_comm *comm)
{
    networks_end_zcopies(&comm->networks);
}

void networks_forsake(rondo_comm *comm, int peer)
{
    networks_tell(comm, &(struct network_failure){.culprit = peer, .forsakes = true});
}

void networks_tell(rondo_comm *comm, const struct network_failure *failure)
{
    networks_tell_all(&comm->networks, failure);
}
