/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp.c - the network of one communicator: what executor and communicator call. */
#include "transport/tcp/engine.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/setting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel gives the call this number on all machines; old headers have no name for it. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

enum {
    EVENTS = 32,
    LARGE = 64 << 10, /* bytes of a message for which further lines are opened */
    DEFER = 16 << 10, /* bytes of a message from which on it is sent with those behind it */
    HOT_AFTER = 16,   /* times in a row that nothing came but from one line */
    HOT_LOOKS = 8,    /* of so many looks all but one are at that line alone */
    HOT_TIMES = 2,    /* so often in a look, as whoever asks comes back for nothing else */
};

/* ---- Links ----------------------------------------------------------------------------------- */

/* Send later, as more of a long message may be pushed at once: the system is slower with pieces. */
static void defer(struct tcp_peer *peer)
{
    struct tcp_network *network = peer->network;

    if (peer->deferred)
        return;
    peer->deferred = true;
    peer->next = network->deferred;
    network->deferred = peer;
}

static void send_deferred(struct tcp_network *network)
{
    while (network->deferred) {
        struct tcp_peer *peer = network->deferred;

        network->deferred = peer->next;
        peer->deferred = false;
        tcp_peer_send(peer);
    }
}

static void push(struct connection *connection, struct link_slot *slot, const char *payload,
                 size_t bytes, uint64_t flag)
{
    struct tcp_link *link = (struct tcp_link *)connection;
    struct tcp_peer *peer = link->peer;
    struct tcp_network *network = peer->network;
    struct tcp_message *message;

    lock_take(&network->lock);
    link->pushed = (uint32_t)flag;
    if (peer->state == TCP_NEW)
        tcp_peer_dial(peer);
    if (peer->state == TCP_GONE) {
        if (!network->failed && !peer->failed)
            network->failed = peer;
        goto done;
    }
    message = tcp_peer_append(peer);
    message->payload = payload;
    message->slot = NULL;
    if (payload != slot->payload && payload != slot->head.payload)
        message->slot = slot->payload;
    message->frame = (struct tcp_frame){.kind = TCP_DATA,
                                        .channel = (uint8_t)connection->channel,
                                        .inlined = payload == slot->head.payload,
                                        .bytes = (uint32_t)bytes,
                                        .flag = flag,
                                        .consumed = link->given};
    call_header_say(network->owner.page, message->frame.call_header);
    link->told = link->given;
    if (bytes >= LARGE)
        tcp_peer_widen(peer);
    if (bytes < DEFER)
        tcp_peer_send(peer);
    else
        defer(peer);
done:
    lock_give(&network->lock);
}

/* Half of the slots at a time: whoever has filled all waits for as many. */
static void give_back(struct connection *connection, uint32_t received)
{
    struct tcp_link *link = (struct tcp_link *)connection;
    struct tcp_peer *peer = link->peer;
    struct tcp_network *network = peer->network;

    lock_take(&network->lock);
    link->given_index = (link->given_index + received - link->given) % (uint32_t)network->slots;
    link->given = received;
    link->expected.flag = 0; /* what was expected has come, here or elsewhere */
    if (link->given - link->told >= (uint32_t)network->slots / 2 && peer->state != TCP_GONE) {
        struct tcp_message *message = tcp_peer_append(peer);

        message->payload = NULL;
        message->slot = NULL;
        message->frame = (struct tcp_frame){
            .kind = TCP_CREDIT, .channel = (uint8_t)connection->channel, .consumed = link->given};
        link->told = link->given;
        tcp_peer_send(peer);
    }
    lock_give(&network->lock);
}

static void reclaim(struct connection *connection, const void *at, size_t bytes)
{
    struct tcp_network *network = ((struct tcp_link *)connection)->peer->network;

    lock_take(&network->lock);
    tcp_zcopy_reclaim(network, at, bytes);
    lock_give(&network->lock);
}

static void post_receive(struct connection *connection, uint64_t flag, void *at, size_t bytes)
{
    struct tcp_link *link = (struct tcp_link *)connection;
    struct tcp_network *network = link->peer->network;

    lock_take(&network->lock);
    link->expected.flag = flag;
    link->expected.at = at;
    link->expected.bytes = bytes;
    lock_give(&network->lock);
}

/* Both rings of a link lie side by side, see make_link(). */
static bool rings(struct connection *connection, struct connection_rings *ret_rings)
{
    const struct tcp_link *link = (const struct tcp_link *)connection;

    *ret_rings = (struct connection_rings){.memory = link->credit,
                                           .bytes = 2 * link->peer->network->ring_bytes};
    return true;
}

const struct connection_ops tcp_link_ops = {.push = push,
                                            .give_back = give_back,
                                            .reclaim = reclaim,
                                            .post_receive = post_receive,
                                            .rings = rings};

/* ---- Progress -------------------------------------------------------------------------------- */

static void serve(struct tcp_network *network, const struct epoll_event *event)
{
    struct tcp_line *line = event->data.ptr;

    if (!line) {
        tcp_hello_accept(network);
        return;
    }
    if (line->state == TCP_CLOSED)
        return;
    if (line->state == TCP_CONNECTING) {
        tcp_hello_begin(line);
        return;
    }
    if (line->state != TCP_OPEN) {
        tcp_hello_receive(line);
        return;
    }
    if (event->events & EPOLLOUT)
        tcp_line_send(line);
    if (line->state == TCP_OPEN && event->events & ~(uint32_t)EPOLLOUT)
        tcp_line_receive(line);
}

static void look_at_deadlines(struct tcp_network *network, double now)
{
    struct tcp_line *next;

    if (now - network->timed < LOOK_DEADLINES)
        return;
    network->timed = now;
    for (int rank = 0; rank < network->size; rank++)
        if (network->peers[rank])
            tcp_peer_look(network->peers[rank], now);
    for (struct tcp_line *line = network->strangers; line; line = next) {
        next = line->next;
        if (now > line->deadline)
            tcp_hello_drop(line);
    }
    if (network->shut)
        tcp_hello_accept(network);
}

void tcp_bury(struct tcp_network *network)
{
    while (network->closed) {
        struct tcp_line *line = network->closed;

        network->closed = line->next;
        free(line);
    }
}

/* Note whether all that comes has come from one line of late, which read_hot() then reads alone. */
static void note_sources(struct tcp_network *network, const struct epoll_event *events, int count)
{
    struct tcp_line *line = count ? events[0].data.ptr : NULL;

    if (!count)
        return;
    if (count == 1 && line && line == network->hot)
        network->in_a_row += network->in_a_row < HOT_AFTER;
    else
        network->in_a_row = 0;
    network->hot = count == 1 && line && line->state == TCP_OPEN && line->index ? line : NULL;
}

/* Read it without asking first who can be read, which saves every message a system call. */
static bool read_hot(struct tcp_network *network)
{
    if (!network->hot || network->in_a_row < HOT_AFTER || tcp_unsent(network) ||
        network->looks % HOT_LOOKS == 0)
        return false;
    for (int i = 0; i < HOT_TIMES && network->hot && !network->moved; i++)
        tcp_line_receive(network->hot);
    return true;
}

static void serve_ready(struct tcp_network *network, int milliseconds)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(network->epoll, events, EVENTS, milliseconds);

    note_sources(network, events, count);
    for (int i = 0; i < count; i++)
        serve(network, &events[i]);
}

void tcp_work(struct tcp_network *network, int milliseconds)
{
    send_deferred(network);
    network->looks++;
    if (milliseconds || !read_hot(network)) {
        serve_ready(network, milliseconds);
        look_at_deadlines(network, clock_seconds());
    }
    tcp_bury(network);
}

static bool lasts(const struct tcp_shortage *shortage)
{
    return shortage->since && clock_seconds() - shortage->since >= PATIENCE_STARVE;
}

/* Try once more: descriptors may be free by now, or the peer is gone or has dialed itself. */
static bool dials_in_vain(struct tcp_network *network)
{
    bool dials = false;

    if (!lasts(&network->dial_shortage))
        return false;
    network->timed = 0;
    look_at_deadlines(network, clock_seconds());
    for (int rank = 0; rank < network->size; rank++) {
        const struct tcp_peer *peer = network->peers[rank];

        dials |= peer && (peer->state == TCP_AWAITED || (peer->state == TCP_UP && peer->again > 0));
    }
    if (!dials)
        network->dial_shortage.since = 0;
    return lasts(&network->dial_shortage);
}

/* The peer waits for us, and we for the peer: nobody else can tell. */
static rondo_result starve(struct tcp_network *network)
{
    if (lasts(&network->accept_shortage))
        tcp_hello_accept(network); /* once more, as descriptors may be free by now */
    if (lasts(&network->accept_shortage)) {
        network->base.culprit = network->rank;
        errno = network->accept_shortage.number;
        return rondo_fail_errno(
            RONDO_ERROR_SYSTEM,
            "Rank %d cannot accept a connection (tcp; is `ulimit -n` too small?)", network->rank);
    }
    if (dials_in_vain(network)) {
        network->base.culprit = network->rank;
        errno = network->dial_shortage.number;
        return rondo_fail_errno(
            RONDO_ERROR_SYSTEM,
            "Rank %d cannot open a connection (tcp; is `ulimit -n` too small, or is no local port "
            "left?)",
            network->rank);
    }
    return RONDO_OK;
}

static rondo_result progress(struct network *base, bool *ret_moved)
{
    struct tcp_network *network = (struct tcp_network *)base;
    rondo_result result = RONDO_OK;

    lock_take(&network->lock);
    network->moved = false;
    tcp_work(network, 0);
    *ret_moved = network->moved;
    if (network->failed) {
        base->culprit = network->failed->rank;
        result = tcp_peer_lost(network->failed);
    } else {
        result = starve(network);
    }
    lock_give(&network->lock);
    return result;
}

bool tcp_peer_waits(const struct tcp_peer *peer)
{
    bool waiting = peer->head != peer->tail || peer->control_bytes;

    for (int i = 0; i < TCP_LINES; i++)
        waiting |= peer->lines[i] && (peer->lines[i]->batched || peer->lines[i]->staged);
    return waiting;
}

static bool flushed(struct network *base, int *ret_peer)
{
    struct tcp_network *network = (struct tcp_network *)base;

    if (!tcp_unsent(network))
        return true;
    if (!ret_peer)
        return false;
    lock_take(&network->lock);
    for (int rank = 0; rank < network->size; rank++)
        if (network->peers[rank] && tcp_peer_waits(network->peers[rank]))
            *ret_peer = rank;
    lock_give(&network->lock);
    return false;
}

static bool owes(struct network *base, int rank)
{
    struct tcp_network *network = (struct tcp_network *)base;
    bool waits;

    if (!tcp_unsent(network))
        return false;
    lock_take(&network->lock);
    waits = network->peers[rank] && tcp_peer_waits(network->peers[rank]);
    lock_give(&network->lock);
    return waits;
}

/* glibc has a function for this call from 2.35 on only, and wheels are for older ones, too. */
static long wait_for_any(int epoll, struct epoll_event *event, const struct timespec *time)
{
    return syscall(SYS_epoll_pwait2, epoll, event, 1, time, NULL, (size_t)0);
}

/* Without the lock: the set of sockets may change meanwhile, which does no harm. */
static void doze(struct network *base, double seconds)
{
    const struct tcp_network *network = (const struct tcp_network *)base;
    struct timespec time = timespec_of(seconds);
    struct epoll_event event;

    if (wait_for_any(network->epoll, &event, &time) < 0 && errno == ENOSYS)
        doze_for(seconds);
}

static rondo_result watch(struct network *base, int rank)
{
    struct tcp_network *network = (struct tcp_network *)base;
    struct tcp_peer *peer = network->peers[rank];
    const struct tcp_frame question = {.kind = TCP_ASK};
    rondo_result result = RONDO_OK;
    double now = clock_seconds();

    if (!peer)
        return RONDO_OK;
    lock_take(&network->lock);
    if (peer->state == TCP_NEW)
        tcp_peer_dial(peer);
    if (peer->state == TCP_UP && !peer->asking && now - peer->asked > LOOK_ASK) {
        peer->asked = now;
        peer->asking = true;
        tcp_peer_control(peer, &question, NULL);
    }
    if (peer->state == TCP_GONE) {
        base->culprit = rank;
        result = tcp_peer_lost(peer);
    }
    lock_give(&network->lock);
    return result;
}

static rondo_result note(struct network *base, int rank, const void *bytes, size_t count)
{
    struct tcp_network *network = (struct tcp_network *)base;
    struct tcp_peer *peer = network->peers[rank];
    const struct tcp_frame frame = {.kind = TCP_NOTE, .bytes = (uint32_t)count};
    rondo_result result = RONDO_OK;

    if (!peer || count > NETWORK_NOTE)
        return rondo_fail(RONDO_ERROR_INTERNAL, "A note of %zu bytes to rank %d.", count, rank);
    lock_take(&network->lock);
    if (peer->state == TCP_NEW)
        tcp_peer_dial(peer);
    if (peer->state != TCP_GONE)
        tcp_peer_control(peer, &frame, bytes);
    if (peer->state == TCP_GONE)
        result = tcp_peer_lost(peer);
    lock_give(&network->lock);
    return result;
}

static void let_go(struct network *base)
{
    struct tcp_network *network = (struct tcp_network *)base;

    lock_take(&network->lock);
    tcp_zcopy_end(network);
    lock_give(&network->lock);
}

const struct network_ops tcp_network_ops = {
    .name = "tcp",
    .progress = progress,
    .flushed = flushed,
    .owes = owes,
    .doze = doze,
    .watch = watch,
    .tell = tcp_tell,
    .note = note,
    .place = tcp_place,
    .let_go = let_go,
    .close = tcp_close,
};
