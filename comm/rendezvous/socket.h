/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socket.h - sockets by the address of a meeting point: "unix:NAME" (same user only) or
 * "HOST:PORT", "[V6]:PORT". Bytes are moved by base/net/socket.h.
 */
#ifndef RONDO_COMM_RENDEZVOUS_SOCKET_H
#define RONDO_COMM_RENDEZVOUS_SOCKET_H

#include "base/net/socket.h"
#include "comm/rendezvous/bootstrap.h"

/* RONDO_ERROR_INVALID with a sentence unless `address` has one of the forms. Does not look
 * names up. */
rondo_result socket_address_check(const char *address);
bool socket_address_is_unix(const char *address);

/*
 * Listen there. An address in use is tried again for a moment: the job before may be just closing
 * it. With port 0 the system picks one; ret_port (may be NULL) gets the port, 0 for a Unix socket.
 * `everywhere`: at that port of all addresses of this host, if it is no Unix socket.
 */
rondo_result socket_listen(const char *address, bool everywhere, int *ret_fd, int *ret_port);
/* Close it; its file goes, if it has one. */
void socket_unlisten(int fd);
/* One connection that waits, -1 and errno if there is none. A Unix peer of another user is
 * closed: errno EACCES. */
int socket_accept(int listener);

/* "unix:rondo-WHAT-" and a random name. */
void socket_fresh_name(const char *what, char ret_address[BOOTSTRAP_ADDRESS_MAX]);
/* "HOST:0" at which others reach this end of a connection, or a fresh "unix:NAME"; false: none. */
bool socket_own_place(int fd, char ret_address[BOOTSTRAP_ADDRESS_MAX]);
/* A link-local address of IPv6 means something together with an interface, which each host names as
 * it likes: `address` without it, as others are told, and for them with that of the connection
 * through which they have heard it. */
void socket_drop_scope(char *address);
void socket_add_scope(int fd, char address[BOOTSTRAP_ADDRESS_MAX]);

/*
 * One attempt to connect. -1 and errno when nobody listens (yet): the caller decides about trying
 * again. A sentence and a result only for what trying again cannot cure; ret_fd is -1 then, too. Of
 * a name's addresses each is tried for a moment, beginning with another one at each `attempt`.
 * *ret_unknown: why the name has no address, as names of containers have none before these run, or
 * NULL: a constant text, and errno is 0 then. The argument may be NULL itself.
 */
rondo_result socket_connect(const char *address, unsigned attempt, double deadline, int *ret_fd,
                            const char **ret_unknown);

#endif
