/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_tcp_links.c - what passes through the lines between ranks: messages in any order, frames of
 * a peer that has the key and is wrong all the same, notes, and that a peer has left.
 */
#include "tests/transport/tcp/tcp_nodes.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void begin(void)
{
    cr_assert_eq(proof_init(), RONDO_OK);
    cr_assert_eq(nodes_open(), RONDO_OK, "%s", fail_sentence());
}

static void end(void)
{
    nodes_close();
}

static unsigned draw(unsigned below)
{
    static uint64_t state = 3;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

TestSuite(links, .init = begin, .fini = end);

/* The number that was before the first message; all count from there. */
static uint32_t before;

static bool all_received(uint32_t limit)
{
    for (int to = 0; to < NODES; to++)
        for (int channel = 0; channel < NODE_CHANNELS; channel++)
            for (int from = 0; from < NODES; from++)
                if (from != to && nodes[to].in[channel * NODES + from].received - before != limit)
                    return false;
    return true;
}

/* So many messages on every channel of every pair, in random order. */
static void exchange_many(uint32_t limit)
{
    double until = clock_seconds() + 40;

    while (!all_received(limit) && clock_seconds() < until) {
        int from = (int)draw(NODES), to = (from + 1 + (int)draw(NODES - 1)) % NODES;
        int channel = (int)draw(NODE_CHANNELS);

        if (nodes[from].out[channel * NODES + to].sent - before < limit)
            node_send(from, to, channel);
        cr_assert_geq(node_receive(from, to, channel), 0, "a message is wrong");
        if (draw(3) == 0)
            cr_assert_eq(nodes_progress(), RONDO_OK, "%s", fail_sentence());
    }
    cr_assert(all_received(limit), "messages are missing");
    for (int rank = 0; rank < NODES; rank++) {
        int peer = -1;

        cr_expect(traffic_heard(rank));
        for (int i = 0; i < 100 && !nodes[rank].network->ops->flushed(nodes[rank].network, &peer);
             i++)
            nodes_progress();
        cr_expect(nodes[rank].network->ops->flushed(nodes[rank].network, &peer), "%d", peer);
    }
}

Test(links, carry_messages_of_all_lengths_in_any_order)
{
    exchange_many(60);
}

Test(links, carry_messages_whose_numbers_wrap)
{
    before = UINT32_MAX - 20;
    for (int rank = 0; rank < NODES; rank++)
        for (int peer = 0; peer < NODES; peer++)
            for (int channel = 0; channel < NODE_CHANNELS && peer != rank; channel++) {
                struct tcp_link *link = &node_tcp(rank)->peers[peer]->links[channel];
                int at = channel * NODES + peer;

                nodes[rank].out[at].sent = nodes[rank].in[at].received = before;
                link->pushed = link->given = link->told = before;
                atomic_store_explicit(&link->credit->consumed, before, memory_order_relaxed);
            }
    exchange_many(30);
}

/* ---- A peer that has the key, and is wrong --------------------------------------------------- */

/* Lines 0 and 1 from "rank 1" to rank 0. */
static void pose_as_peer(int fds[2])
{
    for (unsigned line = 0; line < 2; line++) {
        struct tcp_hello hello = rogue_hello(1, 0, line);

        fds[line] = rogue_dial(0);
        cr_assert_eq(rogue_pass(fds[line], &hello), TCP_WELCOME);
    }
    cr_assert_eq(node_tcp(0)->peers[1]->state, TCP_UP);
}

/* A rank that hears of one peer only looks at its line first, and still hears of the others. */
Test(links, serve_all_peers_while_one_talks_alone)
{
    const struct tcp_network *network = node_tcp(0);
    double until = clock_seconds() + 20;

    cr_assert(node_pass(2, 0), "%s", fail_sentence());
    for (int i = 0; i < 100; i++)
        cr_assert(node_pass(1, 0), "%s", fail_sentence());
    cr_assert_eq(network->hot, network->peers[1]->lines[1], "rank 1 talked alone");
    cr_assert(node_pass(2, 0), "%s", fail_sentence());
    cr_expect_neq(network->hot, network->peers[1]->lines[1], "it no longer did");
    for (int i = 0; i < 100; i++)
        cr_assert(node_pass(1, 0), "%s", fail_sentence());
    cr_assert_eq(network->hot, network->peers[1]->lines[1]);
    node_close(1);
    while (network->hot && clock_seconds() < until)
        nodes_progress();
    cr_expect_null(network->hot, "its line is closed");
}

/* Bytes that wait in the system are sent by whichever processor acknowledgements come to, and
 * overtake what this one sends. */
Test(links, leave_little_unsent_with_the_system)
{
    unsigned most = 0;
    socklen_t length = sizeof(most);

    cr_assert(node_pass(0, 1), "%s", fail_sentence());
    cr_assert(!getsockopt(node_tcp(0)->peers[1]->lines[1]->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT,
                          &most, &length));
    cr_expect_eq(most, 65536);
}

Test(links, end_when_a_peer_sends_what_no_rank_sends)
{
    static const struct {
        int line;
        struct tcp_frame frame;
    } wrong[] = {
        {1, {.kind = TCP_DATA, .channel = NODE_CHANNELS, .flag = 1}},
        {1, {.kind = TCP_DATA, .channel = 255, .flag = 1}},
        {1, {.kind = TCP_DATA, .flag = 0}},              /* messages are counted from 1 */
        {1, {.kind = TCP_DATA, .flag = NODE_SLOTS + 1}}, /* there are no slots for it */
        {1, {.kind = TCP_DATA, .flag = UINT32_MAX}},
        {1, {.kind = TCP_DATA, .flag = 1, .bytes = NODE_SLOT_BYTES + 1}},
        {1, {.kind = TCP_DATA, .flag = 1, .bytes = UINT32_MAX}},
        {1, {.kind = TCP_DATA, .flag = 1, .inlined = 1, .bytes = LINK_INLINE + 1}},
        {1, {.kind = TCP_CREDIT, .bytes = FAIL_SENTENCE_MAX}},
        {1, {.kind = TCP_FAIL}}, /* not on a data line */
        {1, {.kind = 0}},
        {0, {.kind = TCP_DATA, .flag = 1}}, /* not on the control line */
        {0, {.kind = TCP_FAIL, .bytes = FAIL_SENTENCE_MAX}},
        {0, {.kind = TCP_NOTE, .bytes = UINT32_MAX}},
        {0, {.kind = TCP_ASK, .channel = NODE_CHANNELS}},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        int fds[2];
        const struct tcp_peer *peer;

        pose_as_peer(fds);
        peer = node_tcp(0)->peers[1];
        rogue_say_frame(fds[wrong[i].line], wrong[i].frame, NULL);
        cr_assert(nodes_await(0, 1, TCP_GONE), "frame %zu", i);
        cr_assert_str_eq(peer->why, "it sent what no rank of this job sends", "frame %zu", i);
        cr_assert_eq(nodes[0].network->ops->watch(nodes[0].network, 1), RONDO_ERROR_PEER);
        cr_assert_eq(nodes[0].network->culprit, 1);
        close(fds[0]);
        close(fds[1]);
        nodes_close();
        cr_assert_eq(nodes_open(), RONDO_OK);
    }
}

Test(links, believe_no_credit_for_what_was_never_sent)
{
    _Atomic uint32_t *consumed;
    int fds[2];

    pose_as_peer(fds);
    consumed = &node_tcp(0)->peers[1]->links[0].credit->consumed;
    node_send(0, 1, 0);
    node_send(0, 1, 0);
    rogue_say_frame(fds[1], (struct tcp_frame){.kind = TCP_CREDIT, .consumed = 3}, NULL);
    rogue_say_frame(fds[1], (struct tcp_frame){.kind = TCP_CREDIT, .consumed = UINT32_MAX}, NULL);
    nodes_progress_for(0.02);
    cr_assert_eq(atomic_load_explicit(consumed, memory_order_relaxed), 0);
    rogue_say_frame(fds[1], (struct tcp_frame){.kind = TCP_CREDIT, .consumed = 2}, NULL);
    nodes_progress_for(0.02);
    cr_assert_eq(atomic_load_explicit(consumed, memory_order_relaxed), 2);
    rogue_say_frame(fds[1], (struct tcp_frame){.kind = TCP_CREDIT, .consumed = 1},
                    NULL); /* overtaken */
    nodes_progress_for(0.02);
    cr_assert_eq(atomic_load_explicit(consumed, memory_order_relaxed), 2);
    close(fds[0]);
    close(fds[1]);
}

Test(links, take_frames_that_come_byte_by_byte)
{
    struct tcp_frame frame = {
        .kind = TCP_FAIL, .bytes = 9, .flag = (uint64_t)1 << 32 | RONDO_ERROR_TIMEOUT};
    const char *sentence = "too\nlate\x80";
    char records[256];
    size_t count;
    int fds[2];

    pose_as_peer(fds);
    count = rogue_seal(fds[0], &frame, sentence, records);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(nodes[0].failed_from, -1);
        rogue_say(fds[0], records + i, 1);
        nodes_progress_for(0.001);
    }
    nodes_progress_for(0.02);
    cr_assert_eq(nodes[0].failed_from, 1);
    cr_assert_eq(nodes[0].failure.result, RONDO_ERROR_TIMEOUT);
    cr_assert_eq(nodes[0].failure.culprit, 1);
    cr_assert_str_eq(nodes[0].sentence, "too?late?");
    close(fds[0]);
    close(fds[1]);
}

Test(links, take_results_out_of_range_for_internal_errors_and_ignore_later_kinds)
{
    struct tcp_frame frame = {.kind = TCP_FAIL, .bytes = 2, .flag = UINT64_MAX};
    int fds[2];

    pose_as_peer(fds);
    rogue_say_frame(fds[0], (struct tcp_frame){.kind = 99, .bytes = 5}, "hello");
    rogue_say_frame(fds[0], frame, "no");
    nodes_progress_for(0.02);
    cr_assert_eq(nodes[0].failure.result, RONDO_ERROR_INTERNAL);
    cr_assert_eq(nodes[0].failure.culprit, -1);
    cr_assert_str_eq(nodes[0].sentence, "no");
    cr_assert_eq(node_tcp(0)->peers[1]->state, TCP_UP);
    close(fds[0]);
    close(fds[1]);
}

/* A failure that is none, and a culprit that is no rank: the peer that says so is the culprit. */
Test(links, take_a_failure_without_an_error_for_one_of_the_peer)
{
    struct tcp_frame frame = {.kind = TCP_FAIL, .bytes = 2, .flag = (uint64_t)99 << 32 | RONDO_OK};
    int fds[2];

    pose_as_peer(fds);
    rogue_say_frame(fds[0], frame, "no");
    nodes_progress_for(0.02);
    cr_assert_eq(nodes[0].failed_from, 1);
    cr_assert_eq(nodes[0].failure.result, RONDO_ERROR_INTERNAL);
    cr_assert_eq(nodes[0].failure.culprit, 1);
    close(fds[0]);
    close(fds[1]);
}

Test(links, answer_a_question_with_what_is_being_called)
{
    struct tcp_frame answer;
    int fds[2];

    pose_as_peer(fds);
    nodes[0].wait = (struct network_wait){.blames = (uint64_t)2 << 32 | 1, .heartbeats = 7};
    rogue_say_frame(fds[0], (struct tcp_frame){.kind = TCP_ASK}, NULL);
    cr_assert(rogue_hear_frame(fds[0], &answer));
    cr_assert_eq(answer.kind, TCP_TELL);
    cr_assert_arr_eq(answer.call_header, (unsigned char *)traffic_calls[0].header,
                     sizeof(traffic_calls[0].header));
    cr_assert_eq(answer.flag, nodes[0].wait.blames);
    cr_assert_eq(answer.consumed, nodes[0].wait.heartbeats);
    close(fds[0]);
    close(fds[1]);
}

Test(links, hear_in_an_answer_whom_a_peer_waits_for)
{
    int fds[2];

    pose_as_peer(fds);
    rogue_say_frame(fds[0],
                    (struct tcp_frame){.kind = TCP_TELL, .flag = (uint64_t)3 << 32, .consumed = 9},
                    NULL);
    nodes_progress_for(0.02);
    cr_assert_eq(nodes[0].waited.blames, (uint64_t)3 << 32);
    cr_assert_eq(nodes[0].waited.heartbeats, 9);
    close(fds[0]);
    close(fds[1]);
}

/* ---- Notes, leaving ------------------------------------------------------------------------ */

Test(links, carry_notes)
{
    char note[NETWORK_NOTE];

    memset(note, 'n', sizeof(note));
    cr_assert_eq(nodes[2].network->ops->note(nodes[2].network, 1, note, sizeof(note)), RONDO_OK);
    cr_assert_eq(nodes[2].network->ops->note(nodes[2].network, 1, "last", 4), RONDO_OK);
    nodes_progress_for(0.1);
    cr_assert_eq(nodes[1].notes, 2 * 201, "both, from rank 2");
    cr_assert_eq(nodes[1].note_bytes, 4);
    cr_assert_eq(nodes[2].network->ops->note(nodes[2].network, 2, "me", 2), RONDO_ERROR_INTERNAL);
    cr_assert_eq(nodes[2].network->ops->note(nodes[2].network, 1, note, NETWORK_NOTE + 1),
                 RONDO_ERROR_INTERNAL);
}

Test(links, say_whether_a_peer_has_left_or_broken_off)
{
    int fds[2];

    pose_as_peer(fds);
    close(fds[1]);
    close(fds[0]);
    cr_assert(nodes_await(0, 1, TCP_GONE));
    cr_assert_str_eq(node_tcp(0)->peers[1]->why,
                     "its process has ended, or its connections were cut");
    cr_assert_eq(nodes_progress(), RONDO_OK, "nothing was waiting for it");
    node_send(2, 0, 0);
    cr_assert(nodes_await(0, 2, TCP_UP));
    cr_assert(nodes_await(2, 0, TCP_UP));
    nodes_progress_for(0.05);
    node_close(2);
    cr_assert(nodes_await(0, 2, TCP_GONE));
    cr_assert_str_eq(node_tcp(0)->peers[2]->why, "it has closed the communicator");
    cr_assert_eq(node_receive(0, 2, 0), 1, "what it had sent before is there");
    node_send(0, 2, 0);
    cr_assert_eq(nodes_progress(), RONDO_ERROR_PEER);
    cr_assert(strstr(fail_sentence(), "Rank 0 has lost rank 2"), "'%s'", fail_sentence());
}

/* ---- Meeting again --------------------------------------------------------------------------- */

static void check_place(const char *wanted)
{
    char text[64];

    cr_assert_eq(nodes[0].network->ops->place(nodes[0].network, text, sizeof(text)), RONDO_OK);
    cr_expect_str_eq(text, wanted);
}

/* The first of two addresses is out of reach for rank 2, which is on another host; rank 1 is on
 * this one, and its line proves nothing for others. */
Test(links, show_at_which_address_ranks_of_other_hosts_meet)
{
    const struct tcp_hello hello[] = {rogue_hello(1, 0, 0), rogue_hello(2, 0, 0)};
    struct net_addresses *told = &node_tcp(0)->endpoint.addresses;
    int near = rogue_dial_from(0, 1), far = rogue_dial_from(0, 2);

    told->at[1] = told->at[0];
    told->at[0] = (struct net_address){.family = 4, .bytes = {10, 1, 2, 3}};
    told->count = 2;
    cr_assert_eq(rogue_pass(near, &hello[0]), TCP_WELCOME);
    check_place("10.1.2.3:0");
    cr_assert_eq(rogue_pass(far, &hello[1]), TCP_WELCOME);
    check_place("127.0.0.1:0");
    close(near);
    close(far);
}
