/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp.c - the network of one communicator: what executor and communicator call. */
#include "transport/tcp_engine.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/setting.h"
#include "transport/tcp_address.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { EVENTS = 32, LARGE = 64 << 10 };
static const double look_time = 0.01; /* seconds between looks at deadlines */
static const double ask_time = 0.2;   /* ... between questions to a silent peer */
static const double starve_time = 2;  /* ... that a peer may stand at the door: errors take < 5 */
static const double tell_time = 0.5;  /* ... that ranks who compute may keep one that failed */
static const double leave_time = 60;  /* ... that closing may take, if a peer does not read */

/* ---- Links ----------------------------------------------------------------------------------- */

static void push(struct connection *connection, struct link_slot *slot, const char *payload,
                 size_t bytes, uint64_t flag)
{
    struct tcp_link *link = (struct tcp_link *)connection;
    struct tcp_peer *peer = link->peer;
    struct tcp_network *network = peer->network;
    struct tcp_message *message;

    pthread_mutex_lock(&network->lock);
    link->pushed = (uint32_t)flag;
    if (peer->state == TCP_NEW)
        tcp_peer_dial(peer);
    if (peer->state == TCP_GONE) {
        if (!network->failed)
            network->failed = peer;
        goto done;
    }
    message = tcp_peer_append(peer);
    message->payload = payload;
    message->frame = (struct tcp_frame){.kind = TCP_DATA,
                                        .lane = (uint8_t)connection->lane,
                                        .inlined = payload == slot->head.payload,
                                        .bytes = (uint32_t)bytes,
                                        .flag = flag,
                                        .consumed = link->given};
    memcpy(message->frame.caption, network->owner.caption(network->owner.context),
           sizeof(message->frame.caption));
    link->told = link->given;
    if (bytes >= LARGE)
        tcp_peer_widen(peer);
    tcp_peer_send(peer);
done:
    pthread_mutex_unlock(&network->lock);
}

/* Half of the slots at a time: whoever has filled all waits for as many. */
static void give_back(struct connection *connection, uint32_t received)
{
    struct tcp_link *link = (struct tcp_link *)connection;
    struct tcp_peer *peer = link->peer;
    struct tcp_network *network = peer->network;

    pthread_mutex_lock(&network->lock);
    link->given_index = (link->given_index + received - link->given) % (uint32_t)network->slots;
    link->given = received;
    if (link->given - link->told >= (uint32_t)network->slots / 2 && peer->state != TCP_GONE) {
        struct tcp_message *message = tcp_peer_append(peer);

        message->payload = NULL;
        message->frame = (struct tcp_frame){
            .kind = TCP_CREDIT, .lane = (uint8_t)connection->lane, .consumed = link->given};
        link->told = link->given;
        tcp_peer_send(peer);
    }
    pthread_mutex_unlock(&network->lock);
}

const struct connection_ops tcp_link_ops = {.push = push, .give_back = give_back};

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

    network->timed = now;
    for (int rank = 0; rank < network->size; rank++)
        if (network->peers[rank])
            tcp_peer_look(network->peers[rank], now);
    for (struct tcp_line *line = network->strangers; line; line = next) {
        next = line->next;
        if (now > line->deadline)
            tcp_hello_drop(line);
    }
}

static void bury(struct tcp_network *network)
{
    while (network->closed) {
        struct tcp_line *line = network->closed;

        network->closed = line->next;
        free(line);
    }
}

/* With the lock held. */
static void work(struct tcp_network *network, int milliseconds)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(network->epoll, events, EVENTS, milliseconds);
    double now = clock_seconds();

    for (int i = 0; i < count; i++)
        serve(network, &events[i]);
    if (now - network->timed > look_time)
        look_at_deadlines(network, now);
    bury(network);
}

/* The peer waits for us to accept it, and we for the peer: nobody else can tell. */
static rondo_result starve(struct tcp_network *network)
{
    if (!network->starved || clock_seconds() - network->starved < starve_time)
        return RONDO_OK;
    network->base.culprit = network->rank;
    errno = network->starved_of;
    return rondo_fail_errno(RONDO_ERROR_SYSTEM,
                            "Rank %d cannot accept a connection (tcp; is `ulimit -n` too small?)",
                            network->rank);
}

static rondo_result progress(struct network *base, bool *ret_moved)
{
    struct tcp_network *network = (struct tcp_network *)base;
    rondo_result result = RONDO_OK;

    pthread_mutex_lock(&network->lock);
    network->moved = false;
    work(network, 0);
    *ret_moved = network->moved;
    if (network->failed) {
        base->culprit = network->failed->rank;
        result = tcp_peer_lost(network->failed);
    } else if (network->starved) {
        result = starve(network);
    }
    pthread_mutex_unlock(&network->lock);
    return result;
}

static bool waits(const struct tcp_peer *peer)
{
    bool waiting = peer->head != peer->tail || peer->control_bytes;

    for (int i = 0; i < TCP_LINES; i++)
        waiting |= peer->lines[i] && peer->lines[i]->batched;
    return waiting;
}

static bool flushed(struct network *base, int *ret_peer)
{
    struct tcp_network *network = (struct tcp_network *)base;
    bool all;

    pthread_mutex_lock(&network->lock);
    all = !network->unsent;
    for (int rank = 0; rank < network->size && ret_peer && !all; rank++)
        if (network->peers[rank] && waits(network->peers[rank]))
            *ret_peer = rank;
    pthread_mutex_unlock(&network->lock);
    return all;
}

/* Without the lock: the set of sockets may change meanwhile, which does no harm. */
static void doze(struct network *base, double seconds)
{
    const struct tcp_network *network = (const struct tcp_network *)base;
    struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    struct epoll_event event;

    if (epoll_pwait2(network->epoll, &event, 1, &time, NULL) < 0 && errno == ENOSYS)
        nanosleep(&time, NULL);
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
    pthread_mutex_lock(&network->lock);
    if (peer->state == TCP_NEW)
        tcp_peer_dial(peer);
    if (peer->state == TCP_UP && !peer->asking && now - peer->asked > ask_time) {
        peer->asked = now;
        peer->asking = true;
        tcp_peer_control(peer, &question, NULL);
    }
    if (peer->state == TCP_GONE) {
        base->culprit = rank;
        result = tcp_peer_lost(peer);
    }
    pthread_mutex_unlock(&network->lock);
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
    pthread_mutex_lock(&network->lock);
    if (peer->state == TCP_NEW)
        tcp_peer_dial(peer);
    if (peer->state != TCP_GONE)
        tcp_peer_control(peer, &frame, bytes);
    if (peer->state == TCP_GONE)
        result = tcp_peer_lost(peer);
    pthread_mutex_unlock(&network->lock);
    return result;
}

/* ---- The end --------------------------------------------------------------------------------- */

void tcp_tell_peer(struct tcp_peer *peer)
{
    const struct tcp_network *network = peer->network;
    const struct network_failure *failure = &network->failure;
    const struct tcp_frame frame = {.kind = TCP_FAIL,
                                    .bytes = (uint32_t)strlen(failure->sentence),
                                    .flag = (uint64_t)(uint32_t)failure->culprit << 32 |
                                            (uint32_t)failure->result};

    if (peer->state == TCP_UP)
        tcp_peer_control(peer, &frame, failure->sentence);
}

static void stop_listening(struct tcp_network *network)
{
    if (network->listener >= 0)
        close(network->listener);
    network->listener = -1;
    while (network->strangers)
        tcp_hello_drop(network->strangers);
}

/* Of those whom we have not talked to, ranks at distances of powers of 2: each tells its own. */
static bool is_neighbour(const struct tcp_network *network, int rank)
{
    int ahead = (rank - network->rank + network->size) % network->size;
    int behind = network->size - ahead;

    return (ahead & (ahead - 1)) == 0 || (behind & (behind - 1)) == 0;
}

static bool all_told(const struct tcp_network *network)
{
    for (int rank = 0; rank < network->size; rank++) {
        const struct tcp_peer *peer = network->peers[rank];

        if (peer &&
            (peer->control_bytes || peer->state == TCP_DIALING || peer->state == TCP_AWAITED))
            return false;
    }
    return !network->strangers;
}

/* Who dials after that finds nobody listening, and knows from it. */
static void tell(struct network *base, const struct network_failure *failure)
{
    struct tcp_network *network = (struct tcp_network *)base;
    double until = clock_seconds() + tell_time;

    pthread_mutex_lock(&network->lock);
    if (!network->broken) {
        network->broken = true;
        network->failure = *failure;
        snprintf(network->sentence, sizeof(network->sentence), "%s", failure->sentence);
        network->failure.sentence = network->sentence;
        for (int rank = 0; rank < network->size; rank++) {
            struct tcp_peer *peer = network->peers[rank];

            if (peer && peer->state == TCP_NEW && is_neighbour(network, rank))
                tcp_peer_dial(peer);
            else if (peer)
                tcp_tell_peer(peer);
        }
        while (!all_told(network) && clock_seconds() < until)
            work(network, 5);
        stop_listening(network);
    }
    pthread_mutex_unlock(&network->lock);
}

/* Has everything that was sent arrived on the other host? */
static bool delivered(const struct tcp_network *network)
{
    for (int rank = 0; rank < network->size; rank++) {
        const struct tcp_peer *peer = network->peers[rank];

        for (int i = 1; peer && i < TCP_LINES; i++) {
            int bytes = 0;

            if (peer->lines[i] && peer->lines[i]->state == TCP_OPEN &&
                !ioctl(peer->lines[i]->fd, SIOCOUTQ, &bytes) && bytes)
                return false;
        }
    }
    return network->unsent == 0;
}

/* Peers that close as well wait for just that: see below. */
static void acknowledge_all(const struct tcp_network *network)
{
    for (int rank = 0; rank < network->size; rank++) {
        const struct tcp_peer *peer = network->peers[rank];

        for (int i = 1; peer && i < TCP_LINES; i++)
            if (peer->lines[i] && peer->lines[i]->state == TCP_OPEN)
                tcp_acknowledge(peer->lines[i]->fd);
    }
}

/*
 * A socket that is closed over unread bytes, or that gets some later, answers with a reset, which
 * throws away what the peer has not taken yet. So: read until all is delivered.
 */
static void say_goodbye(struct tcp_network *network)
{
    const struct tcp_frame bye = {.kind = TCP_BYE};
    double until = clock_seconds() + leave_time;

    for (int rank = 0; rank < network->size; rank++)
        if (network->peers[rank] && network->peers[rank]->state == TCP_UP)
            tcp_peer_control(network->peers[rank], &bye, NULL);
    acknowledge_all(network);
    for (int wait = 0; !delivered(network) && clock_seconds() < until; wait += wait < 10) {
        work(network, wait);
        acknowledge_all(network);
    }
}

static void free_peer(struct tcp_peer *peer)
{
    if (!peer)
        return;
    for (int i = 0; i < TCP_LINES; i++)
        if (peer->lines[i])
            tcp_line_close(peer->lines[i]);
    free(peer->queue);
    free(peer->control);
    free(peer);
}

static void tcp_close(struct network *base)
{
    struct tcp_network *network = (struct tcp_network *)base;

    if (!network)
        return;
    pthread_mutex_lock(&network->lock);
    if (network->peers && !network->broken)
        say_goodbye(network);
    stop_listening(network);
    for (int rank = 0; network->peers && rank < network->size; rank++)
        free_peer(network->peers[rank]);
    bury(network);
    pthread_mutex_unlock(&network->lock);
    if (network->epoll >= 0)
        close(network->epoll);
    if (network->rings)
        munmap(network->rings, network->rings_bytes);
    pthread_mutex_destroy(&network->lock);
    free(network->peers);
    free(network);
}

const struct network_ops tcp_network_ops = {
    .name = "tcp",
    .progress = progress,
    .flushed = flushed,
    .doze = doze,
    .watch = watch,
    .tell = tell,
    .note = note,
    .close = tcp_close,
};
