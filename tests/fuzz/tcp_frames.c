/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_frames.c - frames of a peer that is a rank of the job, but not right: any kind, channel,
 * length, number, on control and data lines, sealed or not, whole or in pieces, and bytes that are
 * no frames at all (transport/tcp/{line,take,seal,zcopy}.c).
 */
#include "tests/fuzz/tcp_lines.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAYLOAD = 2 * LINES_SLOT_BYTES };

static char payload[PAYLOAD], expected[LINES_SLOT_BYTES];

static struct tcp_line *theirs(unsigned index)
{
    struct tcp_line *line = lines_peer(1)->lines[index];

    return line && line->state == TCP_OPEN ? line : NULL;
}

static struct tcp_frame any_frame(struct fuzz_input *input)
{
    struct tcp_frame frame = {.kind = (uint8_t)fuzz_byte(input)};

    frame.channel = (uint8_t)fuzz_byte(input);
    frame.inlined = (uint8_t)fuzz_byte(input);
    frame.bytes = (uint32_t)fuzz_number(input, 2);
    frame.flag = fuzz_number(input, 1) | fuzz_number(input, 1) << 32;
    frame.consumed = (uint32_t)fuzz_number(input, 1);
    if (frame.inlined & 0x80) { /* numbers of any size */
        frame.flag ^= fuzz_number(input, 8);
        frame.consumed ^= (uint32_t)fuzz_number(input, 4);
    }
    if (frame.inlined & 0x40)
        fuzz_bytes(input, frame.call_header, sizeof(frame.call_header));
    return frame;
}

/* A frame as a rank sends it, sealed if the line is. */
static void say_frame(struct fuzz_input *input)
{
    struct tcp_frame frame = any_frame(input);
    struct tcp_peer *peer = lines_peer(1);
    bool control = frame.kind != TCP_DATA && frame.kind != TCP_CREDIT;

    if (frame.inlined & 0x20)
        control = !control; /* on the line where it does not belong */
    frame.bytes %= PAYLOAD + 1;
    if (!theirs(!control))
        return;
    if (control) {
        tcp_peer_control(peer, &frame, payload);
        return;
    }
    if (peer->tail - peer->head >= lines_network(1)->queue_room)
        return;
    *tcp_peer_append(peer) =
        (struct tcp_message){.frame = frame, .payload = frame.bytes ? payload : NULL};
    tcp_peer_send(peer);
}

/* Bytes beside all order: the line is not sealed, or they spoil it. */
static void say_garbage(struct fuzz_input *input)
{
    struct tcp_line *line = theirs(fuzz_byte(input) & 1);
    unsigned char bytes[256];
    size_t count = fuzz_byte(input);

    fuzz_bytes(input, bytes, count);
    if (line && send(line->fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return;
}

/* The executor's side of rank 0. */
static void act(struct fuzz_input *input)
{
    struct tcp_peer *peer = lines_peer(0);
    unsigned what = fuzz_byte(input);
    struct connection *connection = &peer->links[what & 1].base;
    struct link_out *out = &lines_ranks[0].out[(int)(what & 1) * LINES_RANKS + 1];
    struct link_slot *slot = (struct link_slot *)(void *)out->slots;

    switch (what >> 1 & 3) {
    case 0: /* it expects a message */
        tcp_link_ops.post_receive(connection, fuzz_number(input, 1) | fuzz_number(input, 1) << 32,
                                  expected, fuzz_number(input, 2) % (sizeof(expected) + 1));
        break;
    case 1: /* it has read one */
        tcp_link_ops.give_back(connection, peer->links[what & 1].given + 1);
        break;
    case 2:
        tcp_link_ops.reclaim(connection, expected, sizeof(expected));
        break;
    default: /* it sends one: then the peer may give it back */
        if (peer->tail - peer->head < lines_network(0)->queue_room && peer->state == TCP_UP)
            tcp_link_ops.push(connection, slot, slot->payload, 64,
                              peer->links[what & 1].pushed + 1);
    }
}

static void receive_all(void)
{
    struct tcp_peer *peer = lines_peer(0);

    for (int i = 0; i < TCP_LINES; i++)
        if (peer->lines[i] && peer->lines[i]->state == TCP_OPEN)
            tcp_line_receive(peer->lines[i]);
    for (int i = 0; i < TCP_LINES; i++)
        if (theirs((unsigned)i)) {
            fuzz_drain(theirs((unsigned)i)->fd);
            tcp_line_send(theirs((unsigned)i));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct fuzz_input input = {bytes, bytes + count};
    unsigned options = fuzz_byte(&input);
    int end;

    fuzz_environment(NULL);
    fuzz_seed_nonces();
    lines_open((enum seal_mode)(options % SEAL_MODES));
    lines_shake(lines_accept(&end, 0, true));
    lines_shake(lines_accept(&end, 1, true));
    fuzz_expect(theirs(0) && theirs(1), "both lines open");
    while (fuzz_has_more(&input)) {
        unsigned what = fuzz_byte(&input);

        if ((what & 3) == 0)
            say_garbage(&input);
        else if ((what & 3) == 1)
            act(&input);
        else
            say_frame(&input);
        if (what & 4)
            receive_all();
    }
    receive_all();
    receive_all();
    lines_close();
    return 0;
}
