/* SPDX-License-Identifier: BSD-3-Clause */
/* socket.c - see socket.h. */
#include "base/net/socket.h"

#include "base/caller/descriptor.h"
#include "base/clock.h"
#include "base/net/address.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BACKLOG = 4096 }; /* the system cuts it to net.core.somaxconn */

/* ---- Opening --------------------------------------------------------------------------------- */

static int drop(int fd)
{
    int number = errno;

    close(fd);
    errno = number;
    return -1;
}

static int port_in(const struct sockaddr *where)
{
    if (where->sa_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)where)->sin_port);
    if (where->sa_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)where)->sin6_port);
    return 0;
}

int socket_port(int fd)
{
    struct sockaddr_storage where;
    socklen_t length = sizeof(where);

    return getsockname(fd, (struct sockaddr *)&where, &length) ? 0
                                                               : port_in((struct sockaddr *)&where);
}

int socket_listen_at(const struct sockaddr *where, socklen_t length, int type)
{
    int fd = descriptor_above(socket(where->sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    int on = 1, off = 0;

    if (fd < 0)
        return -1;
    if (port_in(where))
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (where->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    return bind(fd, where, length) || listen(fd, BACKLOG) ? drop(fd) : fd;
}

int socket_listen_everywhere(unsigned port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket_listen_at((struct sockaddr *)&six, sizeof(six), SOCK_STREAM);

    if (fd < 0 && errno != EADDRINUSE)
        fd = socket_listen_at((struct sockaddr *)&four, sizeof(four), SOCK_STREAM);
    return fd;
}

int socket_dial(const struct sockaddr *where, socklen_t length)
{
    int fd =
        descriptor_above(socket(where->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

    if (fd < 0 || !connect(fd, where, length) || errno == EINPROGRESS)
        return fd;
    return drop(fd);
}

int socket_error(int fd)
{
    int number = 0;
    socklen_t bytes = sizeof(number);

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &bytes) ? errno : number;
}

int socket_connect_at(const struct sockaddr *where, socklen_t length, double deadline)
{
    int fd = socket_dial(where, length);
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    int ready;

    if (fd < 0)
        return -1;
    ready = poll(&wait, 1, socket_poll_time(deadline));
    if (ready > 0)
        errno = socket_error(fd);
    else if (!ready)
        errno = ETIMEDOUT;
    return ready > 0 && !errno ? fd : drop(fd);
}

void socket_keep(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* fails on a Unix socket: as well */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

/* ---- Who is there ---------------------------------------------------------------------------- */

socklen_t socket_abstract(const char *name, struct sockaddr_un *ret_where)
{
    size_t length = strlen(name);

    *ret_where = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret_where->sun_path + 1, name, length); /* first byte 0: abstract */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

bool socket_same_user(int fd, uid_t *ret_uid, pid_t *ret_pid)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length))
        return false;
    if (ret_uid)
        *ret_uid = peer.uid;
    if (ret_pid)
        *ret_pid = peer.pid;
    return peer.uid == geteuid();
}

bool socket_peer_is_here(int fd)
{
    struct sockaddr_storage where;
    socklen_t length = sizeof(where);
    struct net_address address;

    if (getpeername(fd, (struct sockaddr *)&where, &length))
        return false;
    return where.ss_family == AF_UNIX || (net_address_read((struct sockaddr *)&where, &address) &&
                                          net_address_is_loopback(&address));
}

/* ---- Moving bytes ---------------------------------------------------------------------------- */

/* After a call that moved nothing: wait until it is worth another try. */
static enum socket_outcome wait_for(int fd, short events, double deadline)
{
    struct pollfd wait = {.fd = fd, .events = events};
    int ready;

    if (errno == EINTR)
        return SOCKET_DONE;
    if (errno == EPIPE || errno == ECONNRESET)
        return SOCKET_CLOSED;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        return SOCKET_FAILED;
    ready = poll(&wait, 1, socket_poll_time(deadline));
    if (ready == 0)
        return SOCKET_TIMED_OUT;
    return ready > 0 || errno == EINTR ? SOCKET_DONE : SOCKET_FAILED;
}

enum socket_outcome socket_send(int fd, const void *from, size_t bytes, double deadline)
{
    const char *next = from;

    while (bytes > 0) {
        ssize_t done = send(fd, next, bytes, MSG_NOSIGNAL);
        enum socket_outcome outcome = done < 0 ? wait_for(fd, POLLOUT, deadline) : SOCKET_DONE;

        if (outcome != SOCKET_DONE)
            return outcome;
        next += done > 0 ? done : 0;
        bytes -= done > 0 ? (size_t)done : 0;
    }
    return SOCKET_DONE;
}

enum socket_outcome socket_receive(int fd, void *to, size_t bytes, double deadline)
{
    char *next = to;

    while (bytes > 0) {
        ssize_t done = recv(fd, next, bytes, 0);
        enum socket_outcome outcome = done < 0 ? wait_for(fd, POLLIN, deadline) : SOCKET_DONE;

        if (done == 0)
            return SOCKET_CLOSED;
        if (outcome != SOCKET_DONE)
            return outcome;
        next += done > 0 ? done : 0;
        bytes -= done > 0 ? (size_t)done : 0;
    }
    return SOCKET_DONE;
}

bool socket_say(int fd, const void *from, size_t bytes)
{
    return send(fd, from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

enum socket_outcome socket_fill(int fd, void *to, size_t bytes, size_t *filled)
{
    while (*filled < bytes) {
        ssize_t done = recv(fd, (char *)to + *filled, bytes - *filled, MSG_DONTWAIT);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return SOCKET_TIMED_OUT;
        if (done <= 0)
            return SOCKET_CLOSED;
        *filled += (size_t)done;
    }
    *filled = 0;
    return SOCKET_DONE;
}

int socket_poll_time(double deadline)
{
    double left = deadline - clock_seconds();

    if (isinf(deadline))
        return -1;
    if (left <= 0)
        return 0;
    return left < 1e6 ? (int)ceil(left * 1e3) : 1000000000;
}
