/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_tap.c - see tcp_tap.h. All sockets are served by tap_work(), none blocks. */
#include "tests/transport/tcp/tcp_tap.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS = 64, CHUNK = 16384 };

struct bytes {
    unsigned char *at;
    size_t count, room;
};

/* One way of a connection. */
struct way {
    struct bytes seen, said; /* what came; what is to go on, of which `sent` is gone */
    size_t passed, sent;     /* of `seen`, what is in `said` in some form */
    bool over, closed;       /* no more comes; and that was passed on */
};

struct tapped {
    int fds[2];         /* to who dialed, to who accepted */
    struct way ways[2]; /* from the first, from the second */
};

static struct tapped now[CONNECTIONS], before[CONNECTIONS];
static int count, listeners[NODES];
static struct in_addr local;
static uint16_t ports[NODES]; /* of the ranks themselves */
static struct tap_plan plan;
static bool done;

static void append(struct bytes *to, const unsigned char *from, size_t bytes)
{
    if (to->count + bytes > to->room) {
        to->room = 2 * (to->count + bytes);
        to->at = realloc(to->at, to->room);
        if (!to->at)
            abort();
    }
    if (bytes)
        memcpy(to->at + to->count, from, bytes);
    to->count += bytes;
}

/* ---- Deeds ----------------------------------------------------------------------------------- */

static void replace(struct way *way, const struct way *by)
{
    size_t there = by->seen.count > plan.at ? by->seen.count - plan.at : 0;
    size_t taken = there < plan.length ? there : plan.length;

    append(&way->said, by->seen.at + plan.at, taken);
    append(&way->said, way->seen.at + plan.at + taken, plan.length - taken);
    done = taken && memcmp(by->seen.at + plan.at, way->seen.at + plan.at, taken) != 0;
}

/* All bytes that it takes have come. */
static void do_it(struct tapped *tapped)
{
    struct way *way = &tapped->ways[plan.back];
    unsigned char *at = way->seen.at + plan.at;
    unsigned char flipped = *at ^ (unsigned char)(1 << plan.length % 8);

    done = true;
    if (plan.deed == TAP_FLIP) {
        append(&way->said, &flipped, 1);
    } else if (plan.deed == TAP_REPEAT) {
        append(&way->said, at, plan.length);
        append(&way->said, at, plan.length);
    } else if (plan.deed == TAP_SWAP) {
        append(&way->said, at + plan.length, plan.length);
        append(&way->said, at, plan.length);
        done = memcmp(at, at + plan.length, plan.length) != 0;
    } else if (plan.deed == TAP_REPLAY) {
        replace(way, &before[plan.connection].ways[plan.back]);
    } else if (plan.deed == TAP_REFLECT) {
        replace(way, &tapped->ways[!plan.back]);
    } else if (plan.deed == TAP_CUT) {
        way->over = true;
    }
}

static size_t deed_bytes(void)
{
    return plan.deed == TAP_FLIP ? 1 : plan.deed == TAP_SWAP ? 2 * plan.length : plan.length;
}

/* From what was seen to what is said. */
static void pass(int number, bool back)
{
    struct tapped *tapped = &now[number];
    struct way *way = &tapped->ways[back];
    bool marked = plan.deed && plan.connection == number && plan.back == back;
    size_t until = way->seen.count;

    if (marked && way->passed <= plan.at && until > plan.at)
        until = plan.at;
    if (until > way->passed) {
        append(&way->said, way->seen.at + way->passed, until - way->passed);
        way->passed = until;
    }
    if (!marked || way->passed != plan.at || way->seen.count < plan.at + deed_bytes())
        return;
    do_it(tapped);
    way->passed = plan.deed == TAP_CUT ? SIZE_MAX : plan.at + deed_bytes();
    if (plan.deed != TAP_CUT)
        pass(number, back);
}

/* ---- Carrying -------------------------------------------------------------------------------- */

static bool take(int number, bool back)
{
    struct way *way = &now[number].ways[back];
    unsigned char chunk[CHUNK];
    ssize_t got = way->over ? -1 : recv(now[number].fds[back], chunk, sizeof(chunk), MSG_DONTWAIT);

    if (got == 0)
        way->over = true;
    if (got <= 0)
        return false;
    append(&way->seen, chunk, (size_t)got);
    pass(number, back);
    return true;
}

static bool give(int number, bool back)
{
    struct way *way = &now[number].ways[back];
    int fd = now[number].fds[!back];
    ssize_t sent = 0;

    if (way->said.count > way->sent)
        sent = send(fd, way->said.at + way->sent, way->said.count - way->sent,
                    MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0)
        way->sent += (size_t)sent;
    if (way->over && !way->closed && way->sent == way->said.count) {
        way->closed = true;
        shutdown(fd, SHUT_WR);
    }
    return sent > 0;
}

static int dial(int rank)
{
    struct sockaddr_in where = {
        .sin_family = AF_INET, .sin_port = htons(ports[rank]), .sin_addr = local};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (!connect(fd, (struct sockaddr *)&where, sizeof(where)))
        return fd;
    close(fd);
    return -1;
}

static void take_in(int rank)
{
    int fd = accept4(listeners[rank], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
    int other = fd < 0 || count == CONNECTIONS ? -1 : dial(rank);

    if (other < 0) {
        if (fd >= 0)
            close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    now[count++] = (struct tapped){.fds = {fd, other}};
}

bool tap_work(void)
{
    bool worked = false;

    for (int rank = 0; rank < NODES; rank++)
        take_in(rank);
    for (int i = 0; i < count; i++)
        for (int back = 0; back < 2; back++) {
            worked |= take(i, back);
            worked |= give(i, back);
        }
    return worked;
}

/* ---- The rest -------------------------------------------------------------------------------- */

static void reroute(int rank, uint16_t port)
{
    for (int from = 0; from < NODES; from++) {
        struct tcp_peer *peer = node_tcp(from)->peers[rank];

        if (!peer)
            continue;
        peer->endpoint.port = port;
        peer->endpoint.addresses.count = 1;
        peer->endpoint.addresses.at[0] =
            (struct net_address){.family = 4, .prefix = 8, .bytes = {127, 0, 0, 1}};
    }
}

void tap_open(const struct tap_plan *wanted)
{
    local.s_addr = htonl(INADDR_LOOPBACK);
    plan = *wanted;
    done = false;
    for (int rank = 0; rank < NODES; rank++) {
        struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr = local};
        socklen_t length = sizeof(where);

        listeners[rank] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (bind(listeners[rank], (struct sockaddr *)&where, length) ||
            listen(listeners[rank], 16) ||
            getsockname(listeners[rank], (struct sockaddr *)&where, &length))
            abort();
        ports[rank] = nodes[rank].part.port;
        reroute(rank, ntohs(where.sin_port));
    }
}

static void forget(struct tapped *tapped)
{
    for (int back = 0; back < 2; back++) {
        free(tapped->ways[back].seen.at);
        free(tapped->ways[back].said.at);
    }
    *tapped = (struct tapped){.fds = {-1, -1}};
}

void tap_close(void)
{
    for (int rank = 0; rank < NODES; rank++)
        close(listeners[rank]);
    for (int i = 0; i < CONNECTIONS; i++) {
        forget(&before[i]);
        if (i < count) {
            close(now[i].fds[0]);
            close(now[i].fds[1]);
            before[i] = now[i];
        }
        now[i] = (struct tapped){.fds = {-1, -1}};
    }
    count = 0;
}

bool tap_done(void)
{
    return done;
}

size_t tap_carried(int connection, bool back)
{
    return connection < count ? now[connection].ways[back].seen.count : 0;
}

bool tap_saw(const unsigned char sixteen[16])
{
    for (int i = 0; i < count; i++)
        for (int back = 0; back < 2; back++) {
            const struct bytes *seen = &now[i].ways[back].seen;

            if (seen->count && memmem(seen->at, seen->count, sixteen, 16))
                return true;
        }
    return false;
}
