/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp.h - links over TCP: what a rank's card says about where it listens, and the network of one
 * communicator (connection.h).
 *
 * Between two ranks there are one control line and, beside it, data lines: sockets that are
 * opened when the first message is pushed, or when a wait lasts. Read tcp/engine.h next.
 */
#ifndef RONDO_TRANSPORT_TCP_TCP_H
#define RONDO_TRANSPORT_TCP_TCP_H

#include "transport/link/card.h"
#include "transport/link/connection.h"
#include "transport/link/ops.h"
#include "transport/link/seal.h"

/* Listen, and fill the card. */
rondo_result tcp_open(struct tcp_card *ret_card, struct network **ret_network);

/* The facts that all ranks of a job have to know of each other, and this one of itself. */
struct tcp_job {
    const struct network_owner *owner;
    const unsigned char *key; /* NETWORK_KEY bytes that only ranks of the job know */
    uint64_t comm;            /* which communicator of the job */
    enum seal_mode security;  /* of data; control is never less than authentic */
    int rank, size, lanes, slots;
    size_t slot_bytes;
};

/* Before links are made (tcp_transport); peers are connected to when there is something to say. */
rondo_result tcp_start(struct network *network, const struct tcp_job *job);

#endif
