/* SPDX-License-Identifier: BSD-3-Clause */
/* socket.c - sockets that listen, dial, and notice when the other host is gone. */
#include "transport/tcp/engine.h"

#include "base/log.h"
#include "transport/tcp/address.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

enum {
    BACKLOG = 4096, /* the system cuts it to net.core.somaxconn */
    /*
     * Bytes of a data line that may wait in the system for their turn. They are sent when an
     * acknowledgement comes, by the processor that it comes to, and may overtake what this one
     * sends; the other end then reports losses, and this one sends twice and slows down.
     */
    UNSENT = 64 << 10,
};

static int listen_on(int family, const struct sockaddr *where, socklen_t length)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int off = 0, number;

    if (fd < 0)
        return -1;
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (!bind(fd, where, length) && !listen(fd, BACKLOG))
        return fd;
    number = errno;
    close(fd);
    errno = number;
    return -1;
}

/* On all addresses, of both families where there is IPv6: who connects has to prove itself. */
rondo_result tcp_listen(struct tcp_card *card, int *ret_fd)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_storage where;
    socklen_t length = sizeof(where);
    int fd = listen_on(AF_INET6, (struct sockaddr *)&six, sizeof(six));

    if (fd < 0)
        fd = listen_on(AF_INET, (struct sockaddr *)&four, sizeof(four));
    if (fd < 0 || getsockname(fd, (struct sockaddr *)&where, &length)) {
        if (fd >= 0)
            close(fd);
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot listen for TCP connections of peers");
    }
    card->port = ntohs(where.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&where)->sin6_port
                                                   : ((struct sockaddr_in *)&where)->sin_port);
    *ret_fd = fd;
    return RONDO_OK;
}

int tcp_dial(const struct tcp_address *address, unsigned port)
{
    struct sockaddr_storage where;
    socklen_t length = tcp_address_socket(address, port, &where);
    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int number;

    if (fd < 0)
        return -1;
    if (!connect(fd, (struct sockaddr *)&where, length) || errno == EINPROGRESS)
        return fd;
    number = errno;
    close(fd);
    errno = number;
    return -1;
}

static void set(int fd, int option, int value)
{
    setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value));
}

void tcp_tune(int fd, bool control, double patience)
{
    int on = 1;
    int probes = patience > 2 ? (int)(patience + 0.5) - 1 : 1; /* one a second, after the first */

    set(fd, TCP_NODELAY, on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    set(fd, TCP_KEEPIDLE, 1);
    set(fd, TCP_KEEPINTVL, 1);
    set(fd, TCP_KEEPCNT, probes);
    if (control)
        set(fd, TCP_USER_TIMEOUT, (int)(1000 * patience) - 500);
    else
        set(fd, TCP_NOTSENT_LOWAT, UNSENT);
}

static bool congest(int fd, const char *name)
{
    return !setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name));
}

/*
 * BBR sends as fast as it believes that the path can take. On a short path, where calls come in
 * bursts and packets wait for processors, it believes in half of it: docs/performance_networks.md.
 */
void tcp_congest(int fd, const char *wanted)
{
    const unsigned near = 1000; /* us there and back */
    struct tcp_info info = {0};
    socklen_t bytes = sizeof(info), length;
    char name[64] = "";

    length = sizeof(name) - 1;
    if (strcmp(wanted, "auto") != 0) {
        if (!congest(fd, wanted))
            log_info("congestion control %s of TCP: %s", wanted, strerror(errno));
        return;
    }
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) ||
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) || strncmp(name, "bbr", 3) != 0 ||
        info.tcpi_min_rtt >= near)
        return;
    if (!congest(fd, "cubic")) /* only those are allowed to everybody that the system lists */
        congest(fd, "reno");
}

void tcp_acknowledge(int fd)
{
    set(fd, TCP_QUICKACK, 1);
}
