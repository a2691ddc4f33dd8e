/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * line.c - bytes through one socket, both ways, without waiting.
 *
 * Sending: a few messages at a time become one list of pieces, frames from the batch and payloads
 * from their slots. Receiving: what is asked for goes where it belongs, and what came beside it
 * into `ahead`, where the next frame is found; so a small message takes one system call, and a
 * large one is hardly ever copied on its way.
 */
#include "transport/tcp/engine.h"

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

    if (line) {
        line->network = network;
        line->fd = fd;
        line->state = state;
        if (tcp_socket_watch(network, fd, state == TCP_CONNECTING ? EPOLLOUT : EPOLLIN, line))
            return line;
    }
    close(fd);
    free(line);
    return NULL;
}

void tcp_line_watch(struct tcp_line *line, bool writable)
{
    struct epoll_event event = {.events = (line->spoiled ? 0 : EPOLLIN) | (writable ? EPOLLOUT : 0),
                                .data.ptr = line};

    line->blocked = writable;
    epoll_ctl(line->network->epoll, EPOLL_CTL_MOD, line->fd, &event);
}

void tcp_line_close(struct tcp_line *line)
{
    if (line->state == TCP_CLOSED)
        return;
    tcp_socket_close(line->network, line->fd);
    line->fd = -1;
    line->state = TCP_CLOSED;
    tcp_seal_end(line);
    if (line->network->hot == line)
        line->network->hot = NULL;
    tcp_count_unsent(line->network, -((size_t)line->batched + line->staged));
    line->batched = 0;
    line->staged = 0;
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

/* Note that so many bytes more are with the system. */
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

static void send_records(struct tcp_line *line)
{
    for (;;) {
        struct iovec piece = {line->stage, 0};
        size_t sent;

        if (line->index > 0)
            refill(line);
        if (!line->stage_end && line->index > 0)
            tcp_seal_batch(line);
        else if (!line->stage_end)
            tcp_seal_control(line);
        if (!line->stage_end)
            break;
        piece.iov_base = line->stage + line->stage_begin;
        piece.iov_len = line->stage_end - line->stage_begin;
        if (!write_some(line, &piece, 1, &sent))
            return;
        tcp_seal_sent(line, sent);
    }
    if (line->blocked)
        tcp_line_watch(line, false);
}

void tcp_line_send(struct tcp_line *line)
{
    struct iovec pieces[2 * TCP_BATCH];

    if (line->sealed) {
        send_records(line);
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

enum outcome { GOES_ON, STARVES, ENDED };

/* Note that so many bytes more of the payload are where they belong; false if the line has
 * ended. */
static bool filled(struct tcp_line *line, size_t bytes)
{
    line->to += bytes;
    line->left -= bytes;
    line->part -= bytes;
    if (line->part)
        return true;
    line->due = line->sealed;
    return line->due || tcp_take(line);
}

static enum outcome take_part(struct tcp_line *line, const char *from, size_t *bytes)
{
    if (!*bytes)
        return STARVES;
    if (*bytes > line->part)
        *bytes = line->part;
    if (!line->aimed)
        tcp_take_aim(line);
    memcpy(line->to, from, *bytes);
    return filled(line, *bytes) ? GOES_ON : ENDED;
}

static enum outcome take_tag(struct tcp_line *line, const char *from, size_t *bytes)
{
    if (*bytes < SEAL_TAG)
        return STARVES;
    *bytes = SEAL_TAG;
    if (!tcp_seal_open_part(line, from))
        return ENDED;
    tcp_seal_next_part(line);
    return line->part || tcp_take(line) ? GOES_ON : ENDED;
}

static size_t frame_bytes(const struct tcp_line *line)
{
    return sizeof(line->frame) + (line->sealed ? SEAL_TAG : 0);
}

static enum outcome take_frame(struct tcp_line *line, const char *from, size_t *bytes)
{
    if (*bytes < frame_bytes(line))
        return STARVES;
    *bytes = frame_bytes(line);
    if (!tcp_seal_open_frame(line, from))
        return ENDED;
    if (!tcp_take_post(line)) {
        tcp_peer_gone(line->peer, "it sent what no rank of this job sends");
        return ENDED;
    }
    tcp_seal_next_part(line);
    return line->part || tcp_take(line) ? GOES_ON : ENDED;
}

/* Use what is in `ahead`; false if the line has ended meanwhile. */
static bool digest(struct tcp_line *line)
{
    enum outcome outcome = GOES_ON;
    size_t at = 0;

    line->digests = true;
    while (outcome == GOES_ON) {
        size_t bytes = line->have - at;
        const char *from = line->ahead + at;

        outcome = line->part  ? take_part(line, from, &bytes)
                  : line->due ? take_tag(line, from, &bytes)
                              : take_frame(line, from, &bytes);
        at += outcome == GOES_ON ? bytes : 0;
    }
    line->digests = false;
    if (outcome == ENDED)
        return false;
    line->have -= at;
    memmove(line->ahead, line->ahead + at, line->have);
    return true;
}

/* Account for a read of `got` bytes, which filled first the payload, then `ahead`. */
static bool arrived(struct tcp_line *line, size_t got)
{
    size_t direct = got < line->part ? got : line->part;

    line->have += got - direct;
    return (!direct || filled(line, direct)) && digest(line);
}

/* True if the line is at a long message, behind which no other message's payload is read. */
static bool is_alone(const struct tcp_line *line)
{
    return line->sealed ? tcp_line_is_amid(line) && line->frame.bytes >= ALONE
                        : line->left >= ALONE;
}

/* Bytes that may lie in `ahead` behind the part that is coming. */
static size_t ahead_room(const struct tcp_line *line, bool alone)
{
    if (!alone)
        return sizeof(line->ahead);
    return (line->sealed ? SEAL_TAG : 0) + (line->left == line->part ? frame_bytes(line) : 0);
}

/* Behind a long message only the next frame is read, and then nothing until the executor has had
 * a look: it may say where the payload of that frame shall go. */
void tcp_line_receive(struct tcp_line *line)
{
    size_t all = 0;
    bool last = false;

    while (all < AT_ONCE && !last && !line->spoiled) {
        bool alone = is_alone(line);
        size_t ahead = ahead_room(line, alone);
        struct iovec pieces[2] = {{NULL, line->part},
                                  {line->ahead + line->have, ahead - line->have}};
        size_t room = line->part + pieces[1].iov_len;
        struct msghdr message = {.msg_iov = line->part ? pieces : pieces + 1,
                                 .msg_iovlen = line->part ? 2 : 1};
        ssize_t got;

        if (line->part && !line->aimed)
            tcp_take_aim(line);
        pieces[0].iov_base = line->to;
        last = alone && line->left == line->part;
        got = line->part ? recvmsg(line->fd, &message, MSG_DONTWAIT)
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
