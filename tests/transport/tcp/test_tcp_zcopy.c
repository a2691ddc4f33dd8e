/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_tcp_zcopy.c - messages that leave from memory of the caller, and that come to it: what is
 * sent is what was there when it was sent zero-copy, and nothing is touched after the call that it
 * was for.
 */
#include "tests/transport/tcp/tcp_nodes.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>

enum { BYTES = 100000, FINGERPRINT = 77 };

static char zcopy[BYTES], place[BYTES];

static void begin(void)
{
    cr_assert_eq(proof_init(), RONDO_OK);
    cr_assert_eq(nodes_open(), RONDO_OK, "%s", fail_sentence());
    memset(zcopy, 'a', BYTES);
    memset(place, 'p', BYTES);
}

TestSuite(zcopy, .init = begin, .fini = nodes_close);

static bool is_all(const char *at, char letter)
{
    return at[0] == letter && memcmp(at, at + 1, BYTES - 1) == 0;
}

static uint64_t flag_of(uint32_t number)
{
    return (uint64_t)FINGERPRINT << 32 | number;
}

static struct connection *reader(void)
{
    return nodes[1].in[0].connection;
}

static struct connection *writer(void)
{
    return nodes[0].out[1].connection;
}

static void send_zcopy(uint32_t number, size_t bytes)
{
    struct link_out *out = &nodes[0].out[1];
    char *slot = out->slots + (number - 1) % out->slot_count * out->stride;

    connection_push(writer(), (struct link_slot *)(void *)slot, zcopy, bytes, flag_of(number));
}

/* Finds where the payload of a message has come to; NULL: it has not. */
static const char *come(uint32_t number)
{
    struct link_in *in = &nodes[1].in[0];
    struct link_slot *slot =
        (struct link_slot *)(void *)(in->slots + (number - 1) % in->slot_count * in->stride);
    double until = clock_seconds() + 20;

    while (clock_seconds() < until) {
        cr_assert_eq(nodes_progress(), RONDO_OK, "%s", fail_sentence());
        if (atomic_load_explicit(&slot->head.flag, memory_order_acquire) == flag_of(number))
            return reader()->delivered == flag_of(number) ? reader()->delivered_to : slot->payload;
    }
    return NULL;
}

Test(zcopy, memory_is_sent_as_it_was_when_it_is_written_again)
{
    const char *at;

    send_zcopy(1, BYTES);
    writer()->ops->reclaim(writer(), zcopy + BYTES - 1, 1);
    memset(zcopy, 'b', BYTES);
    at = come(1);
    cr_assert(at && is_all(at, 'a'));
}

Test(zcopy, memory_is_read_where_it_is_until_then)
{
    const char *at;

    send_zcopy(1, BYTES);
    writer()->ops->reclaim(writer(), zcopy + BYTES, 1);
    memset(zcopy, 'b', BYTES);
    at = come(1);
    cr_assert(at && is_all(at, 'b'), "a copy that is not needed was made");
}

Test(zcopy, memory_is_not_touched_after_a_call_has_failed)
{
    const char *at;

    send_zcopy(1, BYTES);
    nodes[0].network->ops->let_go(nodes[0].network);
    memset(zcopy, 'b', BYTES);
    at = come(1);
    cr_assert(at && is_all(at, 'a'));
}

Test(zcopy, messages_come_to_where_they_are_expected)
{
    reader()->ops->post_receive(reader(), flag_of(1), place, BYTES);
    send_zcopy(1, BYTES);
    cr_assert_eq(come(1), place);
    cr_assert(is_all(place, 'a'));
    memset(place, 'p', BYTES);
    memset(zcopy, 'b', BYTES);
    send_zcopy(2, BYTES);
    cr_assert_neq(come(2), place, "nobody expected it there");
    cr_assert(is_all(come(2), 'b') && is_all(place, 'p'));
}

Test(zcopy, messages_of_other_calls_and_lengths_go_to_slots)
{
    reader()->ops->post_receive(reader(), flag_of(1) ^ (uint64_t)1 << 32, place, BYTES);
    send_zcopy(1, BYTES);
    cr_assert_neq(come(1), place);
    reader()->ops->post_receive(reader(), flag_of(2), place, BYTES - 1);
    send_zcopy(2, BYTES);
    cr_assert_neq(come(2), place);
    cr_assert(is_all(come(2), 'a') && is_all(place, 'p'));
}

Test(zcopy, messages_go_to_slots_once_the_call_has_failed)
{
    reader()->ops->post_receive(reader(), flag_of(1), place, BYTES);
    nodes[1].network->ops->let_go(nodes[1].network);
    send_zcopy(1, BYTES);
    cr_assert_neq(come(1), place);
    cr_assert(is_all(place, 'p'));
}

/* In the middle of one that comes: no more of it goes there. */
Test(zcopy, what_is_left_of_a_message_goes_to_its_slot)
{
    struct tcp_line *line = NULL;
    const char *at;

    send_zcopy(1, 8);
    cr_assert(come(1));
    line = node_tcp(1)->peers[0]->lines[1];
    reader()->ops->post_receive(reader(), flag_of(2), place, BYTES);
    line->frame = (struct tcp_frame){.kind = TCP_DATA, .flag = flag_of(2), .bytes = BYTES};
    cr_assert(tcp_take_post(line));
    tcp_take_aim(line);
    cr_assert_eq(line->to, place);
    line->to += 1000;
    line->left -= 1000;
    nodes[1].network->ops->let_go(nodes[1].network);
    at = line->slot->payload;
    cr_assert_eq(line->to, at + 1000);
    cr_assert(is_all(place, 'p'));
    line->left = 0; /* it never came */
}

/* The rest is right even if its bytes are verified together: what came before is part of that. */
Test(zcopy, what_is_left_of_a_record_goes_to_its_slot_and_is_right)
{
    struct tcp_line *line;
    double until = clock_seconds() + 20;
    int little = 4096;
    size_t begun;
    const char *at;

    send_zcopy(1, 8);
    cr_assert(come(1));
    line = node_tcp(1)->peers[0]->lines[1];
    cr_assert(!setsockopt(line->fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)));
    reader()->ops->post_receive(reader(), flag_of(2), place, BYTES);
    send_zcopy(2, BYTES);
    while ((!line->delivered || line->left > BYTES / 2 || line->part == line->record) &&
           clock_seconds() < until)
        cr_assert_eq(nodes_progress(), RONDO_OK, "%s", fail_sentence());
    cr_assert(line->delivered && line->part && line->part < line->record);
    begun = BYTES - line->left;
    nodes[1].network->ops->let_go(nodes[1].network);
    memset(place, 'p', BYTES);
    at = come(2);
    cr_assert(at && at != place, "%s", fail_sentence());
    cr_expect(is_all(place, 'p'));
    cr_expect(at[begun] == 'a' && memcmp(at + begun, at + begun + 1, BYTES - 1 - begun) == 0);
}

/* A message may belong where something is sent zero-copy from that is not sent yet. */
Test(zcopy, memory_is_copied_before_a_message_comes_to_it)
{
    struct connection *back = nodes[0].in[1].connection; /* rank 0 reads from rank 1 */
    struct tcp_line *line;

    send_zcopy(1, 8);
    cr_assert(come(1));
    line = node_tcp(0)->peers[1]->lines[1];
    send_zcopy(2, BYTES); /* not before progress() */
    back->ops->post_receive(back, flag_of(1), zcopy, BYTES);
    line->frame = (struct tcp_frame){.kind = TCP_DATA, .flag = flag_of(1), .bytes = BYTES};
    cr_assert(tcp_take_post(line));
    tcp_take_aim(line);
    cr_assert_eq(line->to, zcopy);
    memset(zcopy, 'b', BYTES);
    nodes[0].network->ops->let_go(nodes[0].network);
    line->left = 0; /* it never came */
    cr_assert(is_all(come(2), 'a'));
}

/* Else the caller would go on when one is complete, and the other still come to its memory. */
Test(zcopy, a_message_that_comes_on_two_lines_at_once_is_refused)
{
    struct tcp_line *line, other = {.index = 2};

    send_zcopy(1, 8);
    cr_assert(come(1));
    line = node_tcp(1)->peers[0]->lines[1];
    reader()->ops->post_receive(reader(), flag_of(2), place, BYTES);
    line->frame = (struct tcp_frame){.kind = TCP_DATA, .flag = flag_of(2), .bytes = BYTES};
    cr_assert(tcp_take_post(line));
    tcp_take_aim(line);
    other.network = line->network;
    other.peer = line->peer;
    other.frame = line->frame;
    cr_expect_not(tcp_take_post(&other));
    other.frame.flag = flag_of(3);
    cr_expect(tcp_take_post(&other));
    line->left = 0; /* it never came */
    other.frame.flag = flag_of(2);
    cr_expect(tcp_take_post(&other));
}
