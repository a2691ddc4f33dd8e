/* SPDX-License-Identifier: BSD-3-Clause */
/* socket.c - options of sockets: what waits, who is gone, how fast. */
#include "transport/tcp/engine.h"

#include "base/caller/times.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/net/socket.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>

enum {
    /*
     * Bytes of a data line that may wait in the system for their turn. They are sent when an
     * acknowledgement comes, by the processor that it comes to, and may overtake what this one
     * sends; the other end then reports losses, and this one sends twice and slows down.
     */
    UNSENT = 64 << 10,
};

bool tcp_socket_watch(const struct tcp_network *network, int fd, uint32_t events,
                      struct tcp_line *line)
{
    struct epoll_event event = {.events = events, .data.ptr = line};

    if (epoll_ctl(network->epoll, EPOLL_CTL_ADD, fd, &event))
        return false;
    fork_note_socket(fd);
    return true;
}

void tcp_socket_close(const struct tcp_network *network, int fd)
{
    /* A process that was just started may have a copy of it, so the system would go on telling. */
    epoll_ctl(network->epoll, EPOLL_CTL_DEL, fd, NULL);
    fork_close_socket(fd);
}

static void set(int fd, int option, int value)
{
    setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value));
}

/* A socket of IPv6 may carry IPv4: both are told, and one of them does not know its option. */
static void set_traffic_class(int fd, int traffic_class)
{
    if (!traffic_class)
        return;
    setsockopt(fd, IPPROTO_IP, IP_TOS, &traffic_class, sizeof(traffic_class));
    setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &traffic_class, sizeof(traffic_class));
}

void tcp_tune(int fd, bool control, const struct tcp_network *network)
{
    double patience = network->patience;
    int probes = patience > 2 ? (int)(patience + 0.5) - 1 : 1; /* one a second, after the first */

    socket_keep(fd);
    set_traffic_class(fd, network->traffic_class);
    set(fd, TCP_KEEPIDLE, LOOK_KEEPALIVE);
    set(fd, TCP_KEEPINTVL, LOOK_KEEPALIVE);
    set(fd, TCP_KEEPCNT, probes);
    if (control)
        set(fd, TCP_USER_TIMEOUT, (int)(1000 * patience) - PATIENCE_TCP_EARLY_MS);
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
