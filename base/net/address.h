/* SPDX-License-Identifier: BSD-3-Clause */
/* address.h - network addresses: which of this host peers are told (RONDO_INTERFACE), and which of
 * a peer's to try first. */
#ifndef RONDO_BASE_NET_ADDRESS_H
#define RONDO_BASE_NET_ADDRESS_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { NET_ADDRESSES = 4 };

/* An address travels like this in the endpoint of a rank. */
struct net_address {
    uint8_t family; /* 4 or 6, 0: none */
    uint8_t prefix; /* bits of its network */
    uint16_t unused;
    unsigned char bytes[16];
};

struct net_addresses {
    struct net_address at[NET_ADDRESSES]; /* best first */
    unsigned count;
};

/* Those that peers are told; an error names the interfaces that there are. */
rondo_result net_addresses_find(struct net_addresses *ret_addresses);
/* The peer's addresses in the order in which to try them: those in a network of ours first. */
void net_addresses_order(const struct net_addresses *own, const struct net_addresses *peer,
                         int ret_order[NET_ADDRESSES]);
/* Names the network namespace of the kernel: loopback works within it alone. */
uint64_t net_space(void);
bool net_address_is_loopback(const struct net_address *address);
/* False: it is none of IP, or means nothing to other hosts; NULL is none. */
bool net_address_read(const struct sockaddr *from, struct net_address *ret_address);
socklen_t net_address_socket(const struct net_address *address, unsigned port,
                             struct sockaddr_storage *ret_where);
/* "10.0.0.1:4000" or "[fd00::1]:4000" */
void net_address_text(const struct net_address *address, unsigned port, char *text, size_t size);

#endif
