/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.c - the lines to another rank, from the first attempt to the end.
 *
 *     NEW --dial--> DIALING --> UP --all lines ended, or its host is silent--> GONE
 *                      ^ |      ^
 *                 later| |busy  | its line is accepted
 *                     AWAITED --+
 *
 * A rank that finished its part and left is no failure: only who needs it is told
 * (tcp_peer_lost()). What it had sent before comes first: a peer is gone when all of its lines have
 * ended, since each of them ends behind its last byte.
 */
#include "transport/tcp/engine.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/net/socket.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct net_address *address_in_turn(const struct tcp_peer *peer)
{
    const struct net_addresses *addresses = &peer->endpoint.addresses;

    return &addresses->at[peer->order[(unsigned)peer->attempt % addresses->count]];
}

rondo_result tcp_peer_lost(const struct tcp_peer *peer)
{
    const struct tcp_endpoint *endpoint = &peer->endpoint;
    char text[64];

    net_address_text(address_in_turn(peer), endpoint->port, text, sizeof(text));
    if (peer->tampered)
        return rondo_fail(RONDO_ERROR_AUTH,
                          "What came to rank %d from rank %d (tcp, %s) is not what it sent (%s): "
                          "bytes were changed, dropped, repeated or moved on the way. Look at what "
                          "lies between the two hosts: a proxy, a faulty adapter or switch, "
                          "somebody else.",
                          peer->network->rank, peer->rank, text, peer->why);
    return rondo_fail(RONDO_ERROR_PEER, "Rank %d has lost rank %d (tcp, %s): %s.",
                      peer->network->rank, peer->rank, text, peer->why);
}

const char *tcp_dial_error(int error)
{
    if (error == ECONNREFUSED)
        return "nobody listens there: its process or its communicator has ended";
    return strerror(error);
}

/* ---- Opening lines --------------------------------------------------------------------------- */

/* At an address that this host has, too, its own kernel answers for a peer of another one. */
static bool is_own_address(const struct tcp_peer *peer, const struct net_address *address)
{
    const struct net_addresses *own = &peer->network->endpoint.addresses;
    bool same = false;

    for (unsigned i = 0; i < own->count; i++)
        same |= own->at[i].family == address->family &&
                !memcmp(own->at[i].bytes, address->bytes, sizeof(address->bytes));
    return same && peer->endpoint.space != peer->network->endpoint.space;
}

void tcp_note_refusal(struct tcp_peer *peer, int index, int number)
{
    if (number == ECONNREFUSED && index == 0 && !is_own_address(peer, address_in_turn(peer)))
        peer->refused = peer->attempt + 1;
}

/* A rank listens at all of its addresses: where its host refused at one of them, it is gone,
 * whatever kept this rank from the others. */
static void give_up_dialing(struct tcp_peer *peer, const char *why)
{
    if (peer->refused)
        peer->attempt = peer->refused - 1;
    tcp_peer_gone(peer, peer->refused ? tcp_dial_error(ECONNREFUSED) : why);
}

/*
 * No line could be dialed. What this rank lacks itself says nothing of the peer: the attempt is
 * made again, and tcp.c says so if that lasts. Of data lines the first one is enough.
 */
static void miss_line(struct tcp_peer *peer, int index, int family, int number)
{
    /* In IPv6 it may also mean that this host has no address of that kind. */
    bool no_port = number == EADDRNOTAVAIL && family == AF_INET;
    double again = clock_seconds() + LOOK_DIAL;

    if (!no_port && !tcp_is_shortage(number)) {
        tcp_note_refusal(peer, index, number);
        give_up_dialing(peer, tcp_dial_error(number));
        return;
    }
    if (index > 1)
        return;
    tcp_note_shortage(&peer->network->dial_shortage, number);
    if (index == 0) {
        peer->state = TCP_AWAITED;
        peer->since = again;
    } else {
        peer->again = again;
    }
}

/* Begin one line to the address in turn. */
static void dial_line(struct tcp_peer *peer, int index)
{
    struct tcp_network *network = peer->network;
    int count = (int)peer->endpoint.addresses.count;
    double share = network->patience / count;
    struct tcp_line *line;
    struct sockaddr_storage where;
    socklen_t length = net_address_socket(address_in_turn(peer), peer->endpoint.port, &where);
    int fd = socket_dial((struct sockaddr *)&where, length);

    if (fd < 0 && index == 0 && ++peer->attempt < count) {
        dial_line(peer, index);
        return;
    }
    if (fd < 0) {
        miss_line(peer, index, where.ss_family, errno);
        return;
    }
    network->dial_shortage.since = 0;
    tcp_tune(fd, index == 0, network);
    line = tcp_line_new(network, fd, TCP_CONNECTING);
    if (!line) {
        tcp_peer_gone(peer, "no memory for a connection");
        return;
    }
    line->peer = peer;
    line->index = index;
    line->dialed = true;
    line->deadline = clock_seconds() + (share > PATIENCE_DIAL ? share : PATIENCE_DIAL);
    peer->lines[index] = line;
}

static bool open_queue(struct tcp_peer *peer)
{
    if (!peer->queue)
        peer->queue = calloc(peer->network->queue_room, sizeof(*peer->queue));
    return peer->queue != NULL;
}

void tcp_peer_dial(struct tcp_peer *peer)
{
    if (peer->state != TCP_NEW && peer->state != TCP_AWAITED)
        return;
    if (!peer->began) {
        peer->began = clock_seconds();
        net_addresses_order(&peer->network->endpoint.addresses, &peer->endpoint.addresses,
                            peer->order);
    }
    peer->state = TCP_DIALING;
    peer->attempt = peer->refused = 0;
    if (!open_queue(peer))
        tcp_peer_gone(peer, "no memory for a connection");
    else
        dial_line(peer, 0);
}

static void dial_data(struct tcp_peer *peer)
{
    int last = peer->wide ? peer->network->streams : 1;

    for (int i = 1; i <= last && peer->state == TCP_UP; i++)
        if (!peer->lines[i])
            dial_line(peer, i);
}

void tcp_peer_widen(struct tcp_peer *peer)
{
    const struct tcp_frame frame = {.kind = TCP_WIDEN};

    if (peer->wide || peer->network->streams < 2 || peer->state != TCP_UP)
        return;
    peer->wide = true;
    if (peer->dials)
        dial_data(peer);
    else
        tcp_peer_control(peer, &frame, NULL);
}

void tcp_peer_opened(struct tcp_peer *peer, struct tcp_line *line)
{
    struct tcp_network *network = peer->network;

    peer->lines[line->index] = line;
    peer->troubled = 0;
    network->moved = true;
    if (line->index > 0) {
        tcp_congest(line->fd, network->congestion);
        tcp_peer_send(peer);
        return;
    }
    log_debug("rank %d and rank %d are connected (tcp)", network->rank, peer->rank);
    peer->state = TCP_UP;
    peer->refused = 0;
    peer->since = 0;
    peer->dials = line->dialed;
    if (!peer->began)
        net_addresses_order(&network->endpoint.addresses, &peer->endpoint.addresses, peer->order);
    if (!open_queue(peer)) {
        tcp_peer_gone(peer, "no memory for a connection");
        return;
    }
    if (peer->dials)
        dial_data(peer);
    if (network->broken)
        tcp_tell_peer(peer);
    if (peer->lines[0])
        tcp_line_send(peer->lines[0]);
}

/*
 * A line was dropped: true if it is worth another attempt. Patience counts from the first time that
 * one is seen to be dropped, not from the first attempt: this rank may have been busy elsewhere
 * while the peer waited for its hello, and dropped the line as it drops a stranger's.
 */
static bool is_patient(struct tcp_peer *peer, double now)
{
    if (!peer->troubled)
        peer->troubled = now;
    return now - peer->troubled < peer->network->patience;
}

/*
 * The control line stands, so the peer is there: a line that was dropped, or got no answer, may
 * have been one too many in a crowd of strangers at its port. If nobody listens, the end of the
 * control line is on its way.
 */
static void data_refused(struct tcp_peer *peer, bool nobody, double now)
{
    if (is_patient(peer, now) && !nobody)
        peer->again = now + LOOK_DIAL;
    else if (!peer->since)
        peer->since = now;
}

void tcp_peer_refused(struct tcp_line *line, const char *why)
{
    struct tcp_peer *peer = line->peer;
    bool hung_up = line->state != TCP_CONNECTING;
    char reason[160];
    double now = clock_seconds();

    snprintf(reason, sizeof(reason), "%s", why);
    peer->lines[line->index] = NULL;
    tcp_line_close(line);
    if (hung_up)
        peer->refused = 0; /* somebody listens */
    if (line->index > 0) {
        data_refused(peer, !hung_up && now <= line->deadline, now);
        return;
    }
    if (peer->attempt + 1 < (int)peer->endpoint.addresses.count) {
        peer->attempt++;
        dial_line(peer, 0);
    } else if (hung_up && is_patient(peer, now)) {
        peer->state = TCP_AWAITED;
        peer->since = now + LOOK_DIAL;
    } else {
        give_up_dialing(peer, reason); /* nobody listens: ended, or its communicator did */
    }
}

/* ---- The end --------------------------------------------------------------------------------- */

static bool holds_data(const struct tcp_line *line)
{
    if (line->stage_holds_data)
        return true;
    for (int i = 0; i < line->batched; i++)
        if (line->batch[i].frame.kind == TCP_DATA)
            return true;
    return false;
}

static bool queue_holds_data(const struct tcp_peer *peer)
{
    for (uint32_t at = peer->head; at != peer->tail; at++)
        if (peer->queue[at & (peer->network->queue_room - 1)].frame.kind == TCP_DATA)
            return true;
    return false;
}

void tcp_peer_gone(struct tcp_peer *peer, const char *why)
{
    struct tcp_network *network = peer->network;
    bool needed;

    if (peer->state == TCP_GONE)
        return;
    peer->state = TCP_GONE;
    if (!peer->tampered)
        snprintf(peer->why, sizeof(peer->why), "%s", why);
    needed = queue_holds_data(peer);
    /* The reason may be there to be read, unless what was read has led here. */
    if (peer->lines[0] && peer->lines[0]->state == TCP_OPEN && !peer->lines[0]->digests)
        tcp_line_receive(peer->lines[0]);
    for (int i = 0; i < TCP_LINES; i++)
        if (peer->lines[i]) {
            needed |= holds_data(peer->lines[i]);
            tcp_line_close(peer->lines[i]);
            peer->lines[i] = NULL;
        }
    tcp_count_unsent(network, -(size_t)(peer->tail - peer->head));
    tcp_count_unsent(network, -peer->control_bytes);
    peer->head = peer->tail;
    peer->control_bytes = 0;
    network->moved = true;
    if (needed && !network->failed)
        network->failed = peer;
    if (network->owner.left)
        network->owner.left(network->owner.context, peer->rank,
                            (peer->bye || peer->refused) && !peer->failed && !peer->tampered);
}

static bool host_is_silent(int error)
{
    return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH ||
           error == EHOSTDOWN || error == ENETDOWN;
}

void tcp_peer_ended(struct tcp_line *line, int error)
{
    struct tcp_peer *peer = line->peer;
    struct tcp_network *network = peer->network;
    bool data = holds_data(line);
    int left = 0;

    peer->lines[line->index] = NULL;
    tcp_line_close(line);
    if (data && !network->failed)
        network->failed = peer;
    for (int i = 0; i < TCP_LINES; i++)
        left += peer->lines[i] != NULL;
    if (host_is_silent(error))
        tcp_peer_gone(peer, "its host does not answer any more; is it up, and the network?");
    else if (!left || data)
        tcp_peer_gone(peer, peer->bye ? "it has closed the communicator"
                                      : "its process has ended, or its connections were cut");
    else if (!peer->since)
        peer->since = clock_seconds();
}

/* The time of a line is over. It may stand all the same: the system tells of so many sockets at
 * once, and of this one it has not told yet. */
static void give_up(struct tcp_line *line)
{
    struct pollfd over = {.fd = line->fd, .events = POLLOUT};

    if (poll(&over, 1, 0) > 0)
        tcp_hello_begin(line);
    else
        tcp_peer_refused(line, "its host does not answer");
}

void tcp_peer_look(struct tcp_peer *peer, double now)
{
    if (peer->state == TCP_AWAITED && now > peer->since)
        tcp_peer_dial(peer);
    for (int i = 0; i < TCP_LINES && peer->state != TCP_GONE; i++) {
        struct tcp_line *line = peer->lines[i];

        if (line && line->state == TCP_CONNECTING && now > line->deadline)
            give_up(line);
    }
    if (peer->state == TCP_UP && peer->again && now > peer->again) {
        peer->again = 0;
        dial_data(peer);
    }
    if (peer->state == TCP_UP && peer->since && now - peer->since > PATIENCE_LEFTOVER)
        tcp_peer_gone(peer, peer->bye ? "it has closed the communicator"
                                      : "its process has ended, or a connection was cut");
}

/* ---- Sending --------------------------------------------------------------------------------- */

struct tcp_message *tcp_peer_append(struct tcp_peer *peer)
{
    tcp_count_unsent(peer->network, 1);
    return &peer->queue[peer->tail++ & (peer->network->queue_room - 1)];
}

void tcp_peer_send(struct tcp_peer *peer)
{
    for (int i = 1; i < TCP_LINES && peer->head != peer->tail; i++) {
        struct tcp_line *line = peer->lines[i];

        if (line && line->state == TCP_OPEN && !line->blocked)
            tcp_line_send(line);
    }
}

void tcp_peer_control(struct tcp_peer *peer, const struct tcp_frame *frame, const void *bytes)
{
    size_t more = sizeof(*frame) + frame->bytes;

    if (peer->control_bytes + more > peer->control_room) {
        size_t room = 2 * (peer->control_bytes + more);
        char *grown = realloc(peer->control, room);

        if (!grown) {
            tcp_peer_gone(peer, "no memory for what it has to be told");
            return;
        }
        peer->control = grown;
        peer->control_room = room;
    }
    memcpy(peer->control + peer->control_bytes, frame, sizeof(*frame));
    if (frame->bytes)
        memcpy(peer->control + peer->control_bytes + sizeof(*frame), bytes, frame->bytes);
    peer->control_bytes += more;
    tcp_count_unsent(peer->network, more);
    if (peer->lines[0] && peer->lines[0]->state == TCP_OPEN && !peer->lines[0]->blocked)
        tcp_line_send(peer->lines[0]);
}
