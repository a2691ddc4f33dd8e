/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ops.h - what a means of transport does: it makes the links (link.h) of a pair of ranks. A new one
 * is a folder that defines a `struct transport_ops`, its part of the card (card.h), a line in
 * transport.c and a word of RONDO_TRANSPORT; if it moves bytes, also a number in enum network_id,
 * and its opening and starting in comm/networks.c.
 */
#ifndef RONDO_TRANSPORT_LINK_OPS_H
#define RONDO_TRANSPORT_LINK_OPS_H

#include "rondo/rondo.h"
#include "transport/link/card.h"
#include "transport/link/link.h"

#include <stdbool.h>

struct network;
struct process;

/* Transports that move bytes have a struct network (connection.h) per communicator. */
enum network_id { NETWORK_TCP, NETWORK_VERBS, NETWORKS };

/* Two ranks that are to be linked, as the communicator knows them. */
struct transport_pair {
    const struct rank_card *own, *peer;
    struct process *process;         /* of the peer, if it is on this node */
    struct network *const *networks; /* [enum network_id], NULL: not there */
    int lanes;
};

struct transport_ops {
    const char *name;
    /* Can these two talk this way? No side effects; when not, `why` is a clause for the log. */
    bool (*can_connect)(const struct rank_card *a, const struct rank_card *b, const char **why);
    /* Fill out[lane * size + peer] and in[...] for every lane. Nothing to undo on failure. */
    rondo_result (*connect)(const struct transport_pair *pair, struct link_out *out,
                            struct link_in *in);
};

extern const struct transport_ops shm_transport;
extern const struct transport_ops verbs_transport;
extern const struct transport_ops tcp_transport;

#endif
