/* SPDX-License-Identifier: BSD-3-Clause */
/* address.h - which addresses of this host peers are told (RONDO_INTERFACE), and which of a
 * peer's to try first. */
#ifndef RONDO_TRANSPORT_TCP_ADDRESS_H
#define RONDO_TRANSPORT_TCP_ADDRESS_H

#include "transport/tcp/tcp.h"

#include <sys/socket.h>

/* Fill addresses and space of the card; an error names the interfaces that there are. */
rondo_result tcp_addresses_find(struct tcp_card *ret_card);
/* The peer's addresses in the order in which to try them: those in a network of ours first. */
void tcp_addresses_order(const struct tcp_card *own, const struct tcp_card *peer,
                         int ret_order[TCP_ADDRESSES]);
bool tcp_address_is_loopback(const struct tcp_address *address);
socklen_t tcp_address_socket(const struct tcp_address *address, unsigned port,
                             struct sockaddr_storage *ret_where);
/* "10.0.0.1:4000" or "[fd00::1]:4000" */
void tcp_address_text(const struct tcp_address *address, unsigned port, char *text, size_t size);
/* Does one of the comma-separated words choose this interface or address? See RONDO_INTERFACE. */
bool tcp_interface_chosen(const char *words, const char *name, const struct tcp_address *address);

#endif
