/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socket.h - sockets by address: "unix:NAME" (abstract, same user only) or "HOST:PORT",
 * "[V6]:PORT".
 *
 * All sockets are close-on-exec and never block by themselves; waiting is done here, up to a
 * deadline on the clock of base/clock.h (INFINITY: for ever).
 */
#ifndef RONDO_COMM_RENDEZVOUS_SOCKET_H
#define RONDO_COMM_RENDEZVOUS_SOCKET_H

#include "comm/rendezvous/bootstrap.h"

#include <sys/socket.h>

enum socket_outcome { SOCKET_DONE, SOCKET_CLOSED, SOCKET_TIMED_OUT, SOCKET_FAILED };

/* RONDO_ERROR_INVALID with a sentence unless `address` has one of the forms. Does not look
 * names up. */
rondo_result socket_address_check(const char *address);
bool socket_address_is_unix(const char *address);

/*
 * Listen there. An address in use is tried again for a moment: the job before may be just closing
 * it. With port 0 the system picks one; ret_port (may be NULL) gets the port, 0 for a Unix socket.
 */
rondo_result socket_listen(const char *address, int *ret_fd, int *ret_port);
/* Close it; its file goes, if it has one. */
void socket_unlisten(int fd);
/* For one address: a socket, or -1 and errno. */
int socket_listen_at(int family, const struct sockaddr *where, socklen_t length);
int socket_connect_at(int family, const struct sockaddr *where, socklen_t length, double deadline);
/* One connection that waits, -1 and errno if there is none. A Unix peer of another user is
 * closed: errno EACCES. */
int socket_accept(int listener);

/* "unix:rondo-WHAT-" and a random name. */
void socket_fresh_name(const char *what, char ret_address[BOOTSTRAP_ADDRESS_MAX]);

/* Is the other end on this host for certain: a Unix socket, or by loopback? */
bool socket_peer_is_here(int fd);
/* "HOST:0" at which others reach this end of a connection, or a fresh "unix:NAME"; false: none. */
bool socket_own_place(int fd, char ret_address[BOOTSTRAP_ADDRESS_MAX]);

/*
 * One attempt to connect. -1 and errno when nobody listens (yet): the caller decides about trying
 * again. A sentence and a result only for what trying again cannot cure; ret_fd is -1 then, too.
 */
rondo_result socket_connect(const char *address, double deadline, int *ret_fd);

/* Move exactly `bytes`. */
enum socket_outcome socket_send(int fd, const void *from, size_t bytes, double deadline);
enum socket_outcome socket_receive(int fd, void *to, size_t bytes, double deadline);
/* Milliseconds for poll() until the deadline: rounded up, -1 for INFINITY. */
int socket_poll_time(double deadline);

#endif
