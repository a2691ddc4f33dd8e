/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * end.c - the end of a network: what peers are told, and closing without taking away from them
 * what they have not read yet.
 */
#include "transport/tcp/engine.h"

#include "base/clock.h"
#include "base/fork.h"
#include "base/lock.h"

#include <linux/sockios.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

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
        tcp_socket_close(network, network->listener);
    network->listener = -1;
    while (network->strangers)
        tcp_hello_drop(network->strangers);
}

/* A rank that fails also tells ranks that it has not talked to, at distances of powers of 2, and
 * each of them tells its own. */
static bool is_neighbour(const struct tcp_network *network, int rank)
{
    int ahead = (rank - network->rank + network->size) % network->size;
    int behind = network->size - ahead;

    return (ahead & (ahead - 1)) == 0 || (behind & (behind - 1)) == 0;
}

static bool is_told(const struct tcp_peer *peer)
{
    return !peer->control_bytes && !(peer->lines[0] && peer->lines[0]->staged) &&
           peer->state != TCP_DIALING && peer->state != TCP_AWAITED;
}

/* True if all have been told but the one that has ended, which hears nothing any more. */
static bool all_told(const struct tcp_network *network)
{
    int ended = network->failure.result == RONDO_ERROR_PEER ? network->failure.culprit : -1;

    for (int rank = 0; rank < network->size; rank++) {
        const struct tcp_peer *peer = network->peers[rank];

        if (peer && rank != ended && !is_told(peer))
            return false;
    }
    return !network->strangers;
}

/* Closing does not wait until that rank has taken what was sent to it, which is no failure. */
static void forsake(struct tcp_network *network, int rank)
{
    lock_take(&network->lock);
    if (network->peers && network->peers[rank]) {
        network->peers[rank]->failed = true;
        if (network->failed == network->peers[rank])
            network->failed = NULL;
    }
    lock_give(&network->lock);
}

/* Ranks that dial after that are told, too. If nobody is there any more to do so they find nobody
 * listening: for a call that is a failure, for messages with tags a peer that has parted. */
void tcp_tell(struct network *base, const struct network_failure *failure)
{
    struct tcp_network *network = (struct tcp_network *)base;
    double until = clock_seconds() + PATIENCE_TELL;

    if (failure->forsakes) {
        forsake(network, failure->culprit);
        return;
    }
    lock_take(&network->lock);
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
            tcp_work(network, LOOK_TELL_MS);
        if (!failure->answered)
            stop_listening(network);
    }
    lock_give(&network->lock);
}

/* True if everything that was sent has arrived on other hosts, but for peers that have failed. */
static bool delivered(const struct tcp_network *network)
{
    for (int rank = 0; rank < network->size; rank++) {
        const struct tcp_peer *peer = network->peers[rank];

        if (!peer || peer->failed)
            continue;
        if (tcp_peer_waits(peer))
            return false;
        for (int i = 1; i < TCP_LINES; i++) {
            int bytes = 0;

            if (peer->lines[i] && peer->lines[i]->state == TCP_OPEN &&
                !ioctl(peer->lines[i]->fd, SIOCOUTQ, &bytes) && bytes)
                return false;
        }
    }
    return true;
}

/* Acknowledge at once, as a peer that closes waits for just that: see say_goodbye(). */
static void acknowledge_all(const struct tcp_network *network)
{
    for (int rank = 0; rank < network->size; rank++) {
        const struct tcp_peer *peer = network->peers[rank];

        for (int i = 1; peer && i < TCP_LINES; i++)
            if (peer->lines[i] && peer->lines[i]->state == TCP_OPEN)
                tcp_acknowledge(peer->lines[i]->fd);
    }
}

/* Ranks of this process: who closes them one after another waits for those that nobody runs. */
static struct lock open_lock = LOCK_AT(LOCK_TCP_LIST);
FORK_RENEWS({.lock = &open_lock});
static struct tcp_network *open_networks;

void tcp_enlist(struct tcp_network *network)
{
    lock_take(&open_lock);
    network->next = open_networks;
    open_networks = network;
    lock_give(&open_lock);
}

static void strike_off(struct tcp_network *network)
{
    struct tcp_network **link = &open_networks;

    lock_take(&open_lock);
    while (*link && *link != network)
        link = &(*link)->next;
    if (*link)
        *link = network->next;
    lock_give(&open_lock);
}

/* Their hosts would do so within 40 ms. One that is busy has somebody who runs it. */
static void let_others_acknowledge(const struct tcp_network *network)
{
    lock_take(&open_lock);
    for (struct tcp_network *other = open_networks; other; other = other->next) {
        if (other == network || other->comm != network->comm || !lock_try(&other->lock))
            continue;
        acknowledge_all(other);
        lock_give(&other->lock);
    }
    lock_give(&open_lock);
}

/*
 * A socket that is closed over unread bytes, or that gets some later, answers with a reset, which
 * throws away what the peer has not taken yet. So: read until all is delivered.
 */
static void say_goodbye(struct tcp_network *network)
{
    const struct tcp_frame bye = {.kind = TCP_BYE};
    double until = clock_seconds() + PATIENCE_CLOSE;

    for (int rank = 0; rank < network->size; rank++)
        if (network->peers[rank] && network->peers[rank]->state == TCP_UP)
            tcp_peer_control(network->peers[rank], &bye, NULL);
    acknowledge_all(network);
    let_others_acknowledge(network);
    for (int wait = 0; !delivered(network) && clock_seconds() < until; wait += wait < LOOK_BYE_MS) {
        tcp_work(network, wait);
        acknowledge_all(network);
    }
}

/* This rank may leave: what others need for an agreement may be the last thing that it said. */
static bool controls_are_delivered(const struct tcp_network *network)
{
    for (int rank = 0; rank < network->size; rank++) {
        const struct tcp_peer *peer = network->peers[rank];
        int bytes = 0;

        if (!peer || peer->state != TCP_UP || !peer->lines[0])
            continue;
        if (!is_told(peer) || (!ioctl(peer->lines[0]->fd, SIOCOUTQ, &bytes) && bytes))
            return false;
    }
    return true;
}

static void deliver_controls(struct tcp_network *network)
{
    double until = clock_seconds() + PATIENCE_TELL;

    while (!controls_are_delivered(network) && clock_seconds() < until)
        tcp_work(network, LOOK_CONTROLS_MS);
}

static void free_peer(struct tcp_peer *peer)
{
    if (!peer)
        return;
    for (int i = 0; i < TCP_LINES; i++)
        if (peer->lines[i])
            tcp_line_close(peer->lines[i]);
    sodium_memzero(peer->secret, sizeof(peer->secret));
    free(peer->queue);
    free(peer->control);
    free(peer);
}

void tcp_close(struct network *base)
{
    struct tcp_network *network = (struct tcp_network *)base;

    if (!network)
        return;
    strike_off(network);
    lock_take(&network->lock);
    if (network->peers && !network->broken)
        say_goodbye(network);
    else if (network->peers && network->failure.answered)
        deliver_controls(network);
    stop_listening(network);
    for (int rank = 0; network->peers && rank < network->size; rank++)
        free_peer(network->peers[rank]);
    tcp_bury(network);
    lock_give(&network->lock);
    if (network->epoll >= 0)
        close(network->epoll);
    if (network->rings)
        munmap(network->rings, network->rings_bytes);
    lock_done(&network->lock);
    sodium_memzero(network->key, sizeof(network->key));
    sodium_memzero(network->private_key, sizeof(network->private_key));
    free(network->peers);
    free(network);
}
