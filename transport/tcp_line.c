/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_line.c - bytes through one socket, both ways, without waiting.
 *
 * Sending: a few messages at a time become one list of pieces, frames from the batch and payloads
 * from their slots. Receiving: what is asked for goes where it belongs, and what came beside it
 * into `ahead`, where the next frame is found; so a small message takes one system call, and a
 * large one is hardly ever copied on its way.
 */
#include "transport/tcp_engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    AT_ONCE = 1 << 20, /* bytes received before others get their turn */
    LARGE = 64 << 10,  /* bytes of a message that has a line for itself, if there are several */
    ALONE = 16 << 10,  /* bytes of a message behind which no other's payload is read */
    SHORT = 2048,      /* bytes of a frame and payload that are quicker sent as one piece */
};

struct tcp_line *tcp_line_new(struct tcp_network *network, int fd, enum tcp_line_state state)
{
    struct tcp_line *line = calloc(1, sizeof(*line));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = line};

    if (line) {
        line->network = network;
        line->fd = fd;
        line->state = state;
        if (state == TCP_CONNECTING)
            event.events = EPOLLOUT;
        if (!epoll_ctl(network->epoll, EPOLL_CTL_ADD, fd, &event))
            return line;
    }
    close(fd);
    free(line);
    return NULL;
}

void tcp_line_watch(struct tcp_line *line, bool writable)
{
    struct epoll_event event = {.events = EPOLLIN | (writable ? EPOLLOUT : 0), .data.ptr = line};

    line->blocked = writable;
    epoll_ctl(line->network->epoll, EPOLL_CTL_MOD, line->fd, &event);
}

void tcp_line_close(struct tcp_line *line)
{
    if (line->state == TCP_CLOSED)
        return;
    close(line->fd);
    line->fd = -1;
    line->state = TCP_CLOSED;
    if (line->network->hot == line)
        line->network->hot = NULL;
    tcp_count_unsent(line->network, -(size_t)line->batched);
    line->batched = 0;
    line->next = line->network->closed;
    line->network->closed = line;
}

/* ---- Sending --------------------------------------------------------------------------------- */

static void refill(struct tcp_line *line)
{
    struct tcp_peer *peer = line->peer;
    uint32_t mask = line->network->queue_room - 1;
    size_t bytes = 0, most = peer->lines[2] ? LARGE : SIZE_MAX;

    while (line->batched < TCP_BATCH && peer->head != peer->tail) {
        const struct tcp_message *next = &peer->queue[peer->head & mask];

        bytes += next->frame.bytes;
        if (line->batched && bytes > most)
            break;
        line->batch[line->batched++] = *next;
        peer->head++;
    }
}

/* The pieces of the batch that are still to be sent. */
static int gather(const struct tcp_line *line, struct iovec *pieces)
{
    size_t skip = line->sent;
    int count = 0;

    for (int i = 0; i < line->batched; i++) {
        const struct tcp_message *message = &line->batch[i];
        const struct iovec both[2] = {{(void *)(uintptr_t)&message->frame, sizeof(message->frame)},
                                      {(void *)(uintptr_t)message->payload, message->frame.bytes}};

        for (int k = 0; k < 2; k++) {
            if (skip >= both[k].iov_len) {
                skip -= both[k].iov_len;
                continue;
            }
            pieces[count].iov_base = (char *)both[k].iov_base + skip;
            pieces[count++].iov_len = both[k].iov_len - skip;
            skip = 0;
        }
    }
    return count;
}

/* So many bytes more are with the system. */
static void advance(struct tcp_line *line, size_t bytes)
{
    int done = 0;

    line->sent += bytes;
    while (done < line->batched) {
        size_t whole = sizeof(struct tcp_frame) + line->batch[done].frame.bytes;

        if (line->sent < whole)
            break;
        line->sent -= whole;
        done++;
    }
    if (!done)
        return;
    line->batched -= done;
    memmove(line->batch, line->batch + done, (size_t)line->batched * sizeof(line->batch[0]));
    tcp_count_unsent(line->network, -(size_t)done);
}

/* One write; false if the line can't take more now, or has ended. */
static bool write_some(struct tcp_line *line, struct iovec *pieces, int count, size_t *ret_bytes)
{
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)count};
    char flat[SHORT];
    ssize_t sent;

    if (count == 2 && pieces[0].iov_len + pieces[1].iov_len <= SHORT) {
        memcpy(flat, pieces[0].iov_base, pieces[0].iov_len);
        memcpy(flat + pieces[0].iov_len, pieces[1].iov_base, pieces[1].iov_len);
        sent = send(line->fd, flat, pieces[0].iov_len + pieces[1].iov_len,
                    MSG_NOSIGNAL | MSG_DONTWAIT);
    } else {
        sent = sendmsg(line->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }

    *ret_bytes = sent > 0 ? (size_t)sent : 0;
    if (sent >= 0 || errno == EINTR)
        return true;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        if (!line->blocked)
            tcp_line_watch(line, true);
        return false;
    }
    tcp_peer_ended(line, errno);
    return false;
}

static void send_control(struct tcp_line *line)
{
    struct tcp_peer *peer = line->peer;

    while (peer->control_bytes) {
        struct iovec piece = {peer->control, peer->control_bytes};
        size_t sent;

        if (!write_some(line, &piece, 1, &sent))
            return;
        peer->control_bytes -= sent;
        tcp_count_unsent(line->network, -sent);
        memmove(peer->control, peer->control + sent, peer->control_bytes);
    }
    if (line->blocked)
        tcp_line_watch(line, false);
}

void tcp_line_send(struct tcp_line *line)
{
    struct iovec pieces[2 * TCP_BATCH];

    if (line->index == 0) {
        send_control(line);
        return;
    }
    for (;;) {
        size_t sent;

        refill(line);
        if (!line->batched)
            break;
        if (!write_some(line, pieces, gather(line, pieces), &sent))
            return;
        advance(line, sent);
    }
    if (line->blocked)
        tcp_line_watch(line, false);
}

/* ---- Receiving ------------------------------------------------------------------------------- */

/* Use what is in `ahead`; false if the line has ended meanwhile. */
static bool digest(struct tcp_line *line)
{
    size_t at = 0;

    for (;;) {
        size_t bytes = line->have - at;

        if (line->left) {
            if (!bytes)
                break;
            if (bytes > line->left)
                bytes = line->left;
            if (!line->aimed)
                tcp_take_aim(line);
            memcpy(line->to, line->ahead + at, bytes);
            line->to += bytes;
            line->left -= bytes;
            at += bytes;
            if (line->left)
                break;
        } else {
            if (bytes < sizeof(line->frame))
                break;
            memcpy(&line->frame, line->ahead + at, sizeof(line->frame));
            at += sizeof(line->frame);
            if (!tcp_take_expect(line)) {
                tcp_peer_gone(line->peer, "it sent what no rank of this job sends");
                return false;
            }
        }
        if (!line->left && !tcp_take(line))
            return false;
    }
    line->have -= at;
    memmove(line->ahead, line->ahead + at, line->have);
    return true;
}

/* What a read of `got` bytes filled: first the payload, then `ahead`. */
static bool arrived(struct tcp_line *line, size_t got)
{
    size_t direct = got < line->left ? got : line->left;

    line->to += direct;
    line->left -= direct;
    line->have += got - direct;
    if (direct && !line->left && !tcp_take(line))
        return false;
    return digest(line);
}

/* Behind a long message only the next frame is read, and then nothing until the executor has had
 * a look: it may say where the payload of that frame shall go. */
void tcp_line_receive(struct tcp_line *line)
{
    size_t all = 0;
    bool last = false;

    while (all < AT_ONCE && !last) {
        bool alone = line->left >= ALONE;
        size_t ahead = alone ? sizeof(line->frame) : sizeof(line->ahead);
        struct iovec pieces[2] = {{NULL, line->left},
                                  {line->ahead + line->have, ahead - line->have}};
        size_t room = line->left + pieces[1].iov_len;
        struct msghdr message = {.msg_iov = line->left ? pieces : pieces + 1,
                                 .msg_iovlen = line->left ? 2 : 1};
        ssize_t got;

        if (line->left && !line->aimed)
            tcp_take_aim(line);
        pieces[0].iov_base = line->to;
        last = alone;
        got = line->left ? recvmsg(line->fd, &message, MSG_DONTWAIT)
                         : recv(line->fd, pieces[1].iov_base, room, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (got <= 0) {
            tcp_peer_ended(line, got < 0 ? errno : 0);
            return;
        }
        if (!arrived(line, (size_t)got))
            return;
        if ((size_t)got < room)
            return; /* that was all there is; if not, we are told */
        all += (size_t)got;
    }
}
