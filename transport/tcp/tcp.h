/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp.h - links over TCP: what a rank's endpoint says about where it listens.
 *
 * Between two ranks there are one control line and, beside it, data lines: sockets that are
 * opened when the first message is pushed, or when a wait lasts. Read tcp/engine.h next.
 */
#ifndef RONDO_TRANSPORT_TCP_TCP_H
#define RONDO_TRANSPORT_TCP_TCP_H

#include "base/net/address.h"
#include "transport/link/ops.h"

enum { TCP_PUBLIC_KEY = 32 };

/* The addresses and port at which a rank listens: its part of the endpoint. */
struct tcp_endpoint {
    uint64_t space; /* net_space() */
    uint16_t port;  /* 0: this rank does not listen */
    uint8_t has_aes, unused[5];
    unsigned char public_key[TCP_PUBLIC_KEY]; /* X25519, of this communicator alone */
    struct net_addresses addresses;
    uint32_t unused_too;
};

#endif
