/* SPDX-License-Identifier: BSD-3-Clause */
/* networks.c - loops over the networks of a communicator, and over the table of transports. */
#include "transport/networks.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- Transports ------------------------------------------------------------------------------ */

const struct transport_ops *transport_find(const char *name)
{
    for (int i = 0; transports[i]; i++)
        if (strcmp(transports[i]->name, name) == 0)
            return transports[i];
    return NULL;
}

/* The row, and where its part of an endpoint begins. */
static int row_of(const struct transport_ops *transport, size_t *ret_at)
{
    int row = 0;

    for (*ret_at = 0; transports[row] != transport; row++)
        *ret_at += (transports[row]->part_bytes + 7) / 8;
    return row;
}

/* Set what is this transport's own in a pair. */
static void look_at(const struct networks *networks, const struct transport_ops *transport,
                    struct transport_pair *pair)
{
    size_t at;
    int row = row_of(transport, &at);

    pair->network = transport->open ? networks->open[row] : NULL;
    pair->own_part = pair->own->parts + at;
    pair->peer_part = pair->peer->parts + at;
}

static bool can_connect(const struct networks *networks, const struct transport_ops *transport,
                        struct transport_pair *pair, const char **why)
{
    if (transport->control && !can_connect(networks, transport->control, pair, why))
        return false;
    look_at(networks, transport, pair);
    return transport->can_connect(pair, why);
}

rondo_result transport_choose(const struct networks *networks, struct transport_pair *pair,
                              const char *wanted, const struct transport_ops **ret_transport)
{
    char reasons[256] = "";
    size_t used = 0;

    for (int i = 0; transports[i] && used < sizeof(reasons); i++) {
        const char *why = "";

        if (strcmp(wanted, "auto") != 0 && strcmp(wanted, transports[i]->name) != 0)
            continue;
        if (can_connect(networks, transports[i], pair, &why)) {
            *ret_transport = transports[i];
            return RONDO_OK;
        }
        used += (size_t)snprintf(reasons + used, sizeof(reasons) - used, "%s%s: %s",
                                 used ? "; " : "", transports[i]->name, why);
    }
    return rondo_fail(RONDO_ERROR_UNSUPPORTED, "Rank %d cannot reach rank %d (%s).",
                      pair->own->rank, pair->peer->rank, reasons);
}

rondo_result transport_connect(const struct networks *networks,
                               const struct transport_ops *transport, struct transport_pair *pair,
                               struct link_out *out, struct link_in *in)
{
    rondo_result result = RONDO_OK;

    if (transport->control) {
        look_at(networks, transport->control, pair);
        result = transport->control->connect(pair, out, in);
    }
    look_at(networks, transport, pair);
    if (pair->network)
        pair->network->carries = true;
    return result ? result : transport->connect(pair, out, in);
}

/* ---- Opening and closing --------------------------------------------------------------------- */

/* True if a transport of that name needs the network of this one. */
static bool is_needed(const struct transport_ops *transport, const char *wanted)
{
    const struct transport_ops *named = transport_find(wanted);

    return named && (named == transport || named->control == transport);
}

static rondo_result open_one(const struct transport_ops *transport, struct networks *networks,
                             const struct network_wish *wish, struct endpoint *endpoint)
{
    size_t at;
    int row = row_of(transport, &at);

    if (row >= NETWORKS || at * 8 + transport->part_bytes > ENDPOINT_PARTS)
        return rondo_fail(RONDO_ERROR_INTERNAL, "No room for the network %s.", transport->name);
    return transport->open(wish, endpoint->parts + at, &networks->open[row]);
}

rondo_result networks_open_all(struct networks *networks, const char *wanted,
                               const struct network_wish *wish, struct endpoint *endpoint)
{
    bool any = strcmp(wanted, "auto") == 0;

    for (int i = 0; transports[i]; i++) {
        struct network_wish own = *wish;
        rondo_result result;

        own.must = is_needed(transports[i], wanted) || !transports[i]->optional;
        if (!transports[i]->open || (!any && !is_needed(transports[i], wanted)))
            continue;
        result = open_one(transports[i], networks, &own, endpoint);
        if (result && own.must)
            return result;
    }
    return RONDO_OK;
}

rondo_result networks_start_all(struct networks *networks, const struct network_job *job)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; transports[i] && !result; i++) {
        struct network_job own = *job;
        size_t at;

        if (transports[i]->control)
            own.control = networks->open[row_of(transports[i]->control, &at)];
        if (!transports[i]->open || !networks->open[i])
            continue;
        result = transports[i]->start(networks->open[i], &own);
        networks->polled |= !networks->open[i]->ops->doze;
    }
    return result;
}

/* Those that are better come first in the table, and end before their control networks. */
void networks_close_all(struct networks *networks)
{
    for (int i = 0; i < NETWORKS; i++) {
        if (networks->open[i])
            networks->open[i]->ops->close(networks->open[i]);
        networks->open[i] = NULL;
    }
}

/* ---- In use ---------------------------------------------------------------------------------- */

bool networks_is_any(const struct networks *networks)
{
    bool any = false;

    for (int i = 0; i < NETWORKS; i++)
        any |= networks->open[i] != NULL;
    return any;
}

bool networks_carry_by_calls(const struct networks *networks)
{
    bool any = false;

    for (int i = 0; i < NETWORKS; i++)
        any |= networks->open[i] && networks->open[i]->carries && networks->open[i]->ops->doze;
    return any;
}

rondo_result networks_look(struct networks *networks, unsigned seldom, bool *ret_moved)
{
    unsigned looks = atomic_load_explicit(&networks->looks, memory_order_relaxed) + 1;
    bool all = !networks->polled || !(looks & (seldom - 1));
    rondo_result result = RONDO_OK;

    atomic_store_explicit(&networks->looks, looks, memory_order_relaxed);
    *ret_moved = false;
    for (int i = 0; i < NETWORKS; i++) {
        struct network *network = networks->open[i];
        rondo_result own;
        bool moved = false;

        if (!network || (network->ops->doze && !all))
            continue;
        own = network->ops->progress(network, &moved);
        *ret_moved |= moved;
        if (!own)
            continue;
        result = own; /* the last one, to which the sentence belongs */
        networks->culprit = network->culprit;
    }
    return result;
}

bool networks_are_flushed(const struct networks *networks, int *ret_peer)
{
    for (int i = 0; i < NETWORKS; i++)
        if (networks->open[i] && !networks->open[i]->ops->flushed(networks->open[i], ret_peer))
            return false;
    return true;
}

bool networks_owe(const struct networks *networks, int rank)
{
    for (int i = 0; i < NETWORKS; i++)
        if (networks->open[i] && networks->open[i]->ops->owes(networks->open[i], rank))
            return true;
    return false;
}

void networks_doze(struct networks *networks, double seconds)
{
    atomic_store_explicit(&networks->looks, UINT_MAX, memory_order_relaxed);
    for (int i = 0; i < NETWORKS; i++)
        if (networks->open[i] && networks->open[i]->ops->doze) {
            networks->open[i]->ops->doze(networks->open[i], seconds);
            return;
        }
}

rondo_result networks_watch_peer(const struct networks *networks, int peer, int *ret_culprit)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; i < NETWORKS && !result; i++) {
        if (!networks->open[i])
            continue;
        result = networks->open[i]->ops->watch(networks->open[i], peer);
        if (result)
            *ret_culprit = networks->open[i]->culprit;
    }
    return result;
}

bool networks_has_lost(const struct networks *networks, int peer)
{
    int culprit = -1;

    return networks_watch_peer(networks, peer, &culprit) && culprit == peer;
}

void networks_tell_all(const struct networks *networks, const struct network_failure *failure)
{
    for (int i = 0; i < NETWORKS; i++)
        if (networks->open[i])
            networks->open[i]->ops->tell(networks->open[i], failure);
}

void networks_end_zcopies(const struct networks *networks)
{
    for (int i = 0; i < NETWORKS; i++)
        if (networks->open[i] && networks->open[i]->ops->let_go)
            networks->open[i]->ops->let_go(networks->open[i]);
}

bool networks_can_note(const struct networks *networks)
{
    bool any = false;

    for (int i = 0; i < NETWORKS; i++) {
        if (networks->open[i] && networks->open[i]->ops->note)
            return true;
        any |= networks->open[i] != NULL;
    }
    return !any;
}

void networks_note(const struct networks *networks, int peer, const void *bytes, size_t count)
{
    for (int i = 0; i < NETWORKS; i++)
        if (networks->open[i] && networks->open[i]->ops->note) {
            networks->open[i]->ops->note(networks->open[i], peer, bytes, count);
            return;
        }
}

void networks_hear(const struct networks *networks, int peer, const void *bytes, size_t count)
{
    for (int i = 0; i < NETWORKS; i++)
        if (networks->open[i] && networks->open[i]->ops->hear)
            networks->open[i]->ops->hear(networks->open[i], peer, bytes, count);
}

rondo_result networks_place(const struct networks *networks, char *ret_text, size_t room)
{
    for (int i = 0; i < NETWORKS; i++)
        if (networks->open[i] && networks->open[i]->ops->place)
            return networks->open[i]->ops->place(networks->open[i], ret_text, room);
    return rondo_fail(RONDO_ERROR_UNSUPPORTED, "None of the networks in use has addresses.");
}

struct network *networks_for_devices(const struct networks *networks)
{
    for (int i = 0; i < NETWORKS; i++)
        if (networks->open[i] && networks->open[i]->ops->try_device)
            return networks->open[i];
    return NULL;
}
