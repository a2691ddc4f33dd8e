/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socket.h - sockets: listening, connecting, moving bytes.
 *
 * All sockets are close-on-exec and never block by themselves; waiting is done here, up to a
 * deadline on the clock of base/clock.h (INFINITY: for ever). Functions that give a socket give -1
 * and errno where there is none.
 */
#ifndef RONDO_BASE_NET_SOCKET_H
#define RONDO_BASE_NET_SOCKET_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

enum socket_outcome { SOCKET_DONE, SOCKET_CLOSED, SOCKET_TIMED_OUT, SOCKET_FAILED };

/* Listen at one address; `type` is SOCK_STREAM or SOCK_SEQPACKET. */
int socket_listen_at(const struct sockaddr *where, socklen_t length, int type);
/* On every address of this host: both families through one socket where there is IPv6. Who
 * connects has to prove itself. */
int socket_listen_everywhere(unsigned port);
/* The port of a socket; 0: it has none. */
int socket_port(int fd);
/* Begin to connect; it can be written, or has an error, when that is over. */
int socket_dial(const struct sockaddr *where, socklen_t length);
int socket_connect_at(const struct sockaddr *where, socklen_t length, double deadline);
/* The error that a socket has met. */
int socket_error(int fd);
/* Small messages that wait for answers; and a host that vanishes is noticed even without a
 * timeout. */
void socket_keep(int fd);

/* The address of an abstract Unix socket, which is gone with its last descriptor. */
socklen_t socket_abstract(const char *name, struct sockaddr_un *ret_where);
/* True if a process of our user is at the other end of a Unix socket. */
bool socket_same_user(int fd, uid_t *ret_uid, pid_t *ret_pid);
/* True if the other end is on this host for certain: a Unix socket, or by loopback. */
bool socket_peer_is_here(int fd);

/* Move exactly `bytes`. */
enum socket_outcome socket_send(int fd, const void *from, size_t bytes, double deadline);
enum socket_outcome socket_receive(int fd, void *to, size_t bytes, double deadline);
/* All or none of a few bytes, at once: a fresh connection has room for them. */
bool socket_say(int fd, const void *from, size_t bytes);
/* Read what has come of `bytes`, of which *filled are there. SOCKET_DONE: all of them, and *filled
 * is 0 again; SOCKET_TIMED_OUT: more has to come. */
enum socket_outcome socket_fill(int fd, void *to, size_t bytes, size_t *filled);
/* Milliseconds for poll() until the deadline: rounded up, -1 for INFINITY. */
int socket_poll_time(double deadline);

#endif
