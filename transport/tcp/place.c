/* SPDX-License-Identifier: BSD-3-Clause */
/* place.c - the address of this host at which ranks of others meet, as a shrink needs one. */
#include "transport/tcp/engine.h"

#include <string.h>

/* The address of this end of a socket, or of the other end; false: it is none. */
static bool end_of(int fd, bool other, struct net_address *ret_address)
{
    struct sockaddr_storage where;
    socklen_t length = sizeof(where);
    int error = other ? getpeername(fd, (struct sockaddr *)&where, &length)
                      : getsockname(fd, (struct sockaddr *)&where, &length);

    return !error && net_address_read((struct sockaddr *)&where, ret_address);
}

static bool same(const struct net_address *a, const struct net_address *b)
{
    return a->family == b->family && !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

/* Returns that address of those that peers were told at which a line to another host ends; NULL:
 * there is no such line. */
static const struct net_address *proven(const struct tcp_network *network)
{
    const struct net_addresses *told = &network->endpoint.addresses;

    for (int rank = 0; rank < network->size; rank++) {
        const struct tcp_peer *peer = network->peers[rank];
        struct net_address here, there;

        if (!peer || peer->state != TCP_UP || !peer->lines[0] ||
            !end_of(peer->lines[0]->fd, false, &here) || !end_of(peer->lines[0]->fd, true, &there))
            continue;
        for (unsigned i = 0; i < told->count && !same(&here, &there); i++)
            if (same(&told->at[i], &here))
                return &told->at[i];
    }
    return NULL;
}

rondo_result tcp_place(struct network *base, char *ret_text, size_t room)
{
    struct tcp_network *network = (struct tcp_network *)base;
    const struct net_address *best;

    if (!network->endpoint.addresses.count)
        return rondo_fail(RONDO_ERROR_SYSTEM,
                          "Rank %d has no network address at which ranks of other hosts could "
                          "meet.",
                          network->rank);
    lock_take(&network->lock);
    best = proven(network);
    lock_give(&network->lock);
    net_address_text(best ? best : &network->endpoint.addresses.at[0], 0, ret_text, room);
    return RONDO_OK;
}
