/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_tcp_ends.c - failures and what is left of connections: everybody hears of one, nobody waits
 * for a peer that has failed, and what waits for a silent one is bounded.
 */
#include "tests/transport/tcp/tcp_nodes.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void begin(void)
{
    cr_assert_eq(proof_init(), RONDO_OK);
    cr_assert_eq(nodes_open(), RONDO_OK, "%s", fail_sentence());
}

TestSuite(tcp_ends, .init = begin, .fini = nodes_close);

/* Rank 0 gets on alone until it has heard of a failure of `peer`. */
static void hear_of_failure(int peer)
{
    double until = clock_seconds() + 30;
    bool moved;

    while (nodes[0].failed_from != peer && clock_seconds() < until)
        nodes[0].network->ops->progress(nodes[0].network, &moved);
    cr_assert_eq(nodes[0].failed_from, peer);
}

/* Rank 0 sends, and rank 1 does not look, until the system has more than it can hand over to rank
 * 1: a receive buffer that is so small takes what was promised before, 64 KiB, and one packet of
 * that size. */
static void send_more_than_arrives(void)
{
    enum { RECEIVED = 4096, SENT = 1 << 20, ARRIVES = 256 << 10 };
    double until = clock_seconds() + 30;
    int from = node_tcp(0)->peers[1]->lines[1]->fd, to = node_tcp(1)->peers[0]->lines[1]->fd;
    int sent = 0, unread = 0;
    bool moved;

    cr_assert(!setsockopt(to, SOL_SOCKET, SO_RCVBUF, &(int){RECEIVED}, sizeof(int)));
    cr_assert(!setsockopt(from, SOL_SOCKET, SO_SNDBUF, &(int){SENT}, sizeof(int)));
    cr_assert(!setsockopt(from, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &(int){SENT}, sizeof(int)));
    for (int channel = 0; channel < NODE_CHANNELS; channel++)
        while (node_send(0, 1, channel)) /* until there is no slot */
            ;
    while (sent + unread <= ARRIVES && clock_seconds() < until) {
        nodes[0].network->ops->progress(nodes[0].network, &moved);
        cr_assert(!ioctl(to, FIONREAD, &unread));
        cr_assert(!ioctl(from, SIOCOUTQ, &sent));
    }
    cr_assert_gt(sent + unread, ARRIVES);
}

/* Closing does not wait for what a peer that has failed does not read any more. */
Test(tcp_ends, keep_nobody_waiting_for_a_peer_that_has_failed)
{
    const struct network_failure failure = {
        .result = RONDO_ERROR_PEER, .culprit = 1, .sentence = "Rank 1 has fallen over."};
    double began;
    int bytes = 0;

    cr_assert(node_pass(0, 1), "%s", fail_sentence());
    send_more_than_arrives();
    nodes[1].network->ops->tell(nodes[1].network, &failure);
    hear_of_failure(1);
    cr_assert(!ioctl(node_tcp(0)->peers[1]->lines[1]->fd, SIOCOUTQ, &bytes));
    cr_expect(bytes > 0, "something is left that rank 1 does not read");
    began = clock_seconds();
    node_close(0);
    cr_expect(clock_seconds() - began < 20, "%.1f s", clock_seconds() - began);
}

Test(tcp_ends, tell_all_neighbours_why_they_break)
{
    const struct network_failure failure = {
        .result = RONDO_ERROR_MISMATCH, .culprit = 2, .sentence = "rank 2 calls something else"};

    for (int to = 0; to < 2; to++)
        node_send(2, to, 0);
    cr_assert(nodes_await(0, 2, TCP_UP));
    cr_assert(nodes_await(1, 2, TCP_UP));
    nodes[2].network->ops->tell(nodes[2].network, &failure);
    nodes_progress_for(0.05);
    for (int rank = 0; rank < 2; rank++) {
        cr_assert_eq(nodes[rank].failed_from, 2);
        cr_assert_eq(nodes[rank].failure.result, RONDO_ERROR_MISMATCH);
        cr_assert_eq(nodes[rank].failure.culprit, 2);
        cr_assert_str_eq(nodes[rank].sentence, failure.sentence);
    }
    cr_assert_eq(node_tcp(2)->listener, -1, "nobody else comes in");
}

/* Frames that wait for a line that is never opened are bounded by the slots. */
Test(tcp_ends, bound_what_waits_for_a_silent_peer)
{
    const struct network_failure failure = {.result = RONDO_ERROR_ABORTED, .sentence = "enough"};
    int sent = 0;

    node_tcp(1)->peers[0]->state = TCP_GONE; /* it will not have us */
    while (sent < 100 && node_send(0, 1, 0))
        sent++;
    cr_assert_eq(sent, NODE_SLOTS);
    nodes_progress_for(0.05);
    cr_assert_not(nodes[0].network->ops->flushed(nodes[0].network, &sent));
    cr_assert_eq(sent, 1);
    cr_assert(nodes[0].network->ops->owes(nodes[0].network, 1));
    cr_assert_not(nodes[0].network->ops->owes(nodes[0].network, 0));
    nodes[0].network->ops->tell(nodes[0].network, &failure); /* or closing would wait for it */
}

/* A peer knocks, and there is no descriptor left to let it in. */
Test(tcp_ends, say_that_no_connection_can_be_accepted)
{
    struct rlimit before_it, limit;
    rondo_result result;
    int fd = rogue_dial(0);

    cr_assert_geq(fd, 0);
    cr_assert(!getrlimit(RLIMIT_NOFILE, &before_it));
    limit = before_it;
    limit.rlim_cur = 3; /* all that there are stay open */
    cr_assert(!setrlimit(RLIMIT_NOFILE, &limit));
    result = nodes_progress_for(4);
    cr_assert(!setrlimit(RLIMIT_NOFILE, &before_it));
    cr_assert_eq(result, RONDO_ERROR_SYSTEM);
    cr_assert_eq(nodes[0].network->culprit, 0);
    cr_assert(strstr(fail_sentence(), "ulimit -n"), "'%s'", fail_sentence());
    nodes_progress_for(0.05);
    cr_assert_eq(nodes_progress(), RONDO_OK, "it goes on when there are some again");
    close(fd);
}

/* Without the lock of rank 1's network, as this thread may have that of rank 0's. */
static void say_more(void)
{
    tcp_peer_control(node_tcp(1)->peers[0], &(struct tcp_frame){.kind = TCP_NOTE, .bytes = 4},
                     "more");
}

/* Rank 1 wants more lines, which rank 0 cannot dial, and says something else meanwhile. */
Test(tcp_ends, within_what_the_peer_has_said_keep_their_reason)
{
    struct tcp_network *network = node_tcp(0);
    struct tcp_peer *peer = network->peers[1];
    double until = clock_seconds() + 60;
    bool moved;

    network->streams = node_tcp(1)->streams = 3;
    cr_assert_eq(network->base.ops->watch(nodes[0].network, 1), RONDO_OK);
    cr_assert(nodes_await(0, 1, TCP_UP) && nodes_await(1, 0, TCP_UP));
    peer->endpoint.addresses =
        (struct net_addresses){.at[0] = {.family = 4, .bytes = {255, 255, 255, 255}}, .count = 1};
    nodes[0].on_note = say_more;
    say_more();
    tcp_peer_widen(node_tcp(1)->peers[0]);
    while (peer->state == TCP_UP && clock_seconds() < until)
        network->base.ops->progress(nodes[0].network, &moved);
    cr_assert_eq(peer->state, TCP_GONE);
    cr_expect(!peer->tampered && nodes[0].notes == 101, "'%s', %d notes", peer->why,
              nodes[0].notes);
}

/* Copies of both ends of all lines, as a process has that was just started. */
static int copy_sockets(int copies[2 * TCP_LINES])
{
    int count = 0;

    for (int rank = 0; rank < 2; rank++)
        for (int i = 0; i < TCP_LINES; i++) {
            const struct tcp_line *line = node_tcp(rank)->peers[1 - rank]->lines[i];

            if (line)
                copies[count++] = dup(line->fd);
        }
    return count;
}

/* A socket goes on in the system while somebody has a copy of it, and may have something to say. */
Test(tcp_ends, hear_no_more_of_a_line_that_was_closed)
{
    int copies[2 * TCP_LINES], count;
    struct epoll_event event;

    cr_assert(node_pass(0, 1), "%s", fail_sentence());
    count = copy_sockets(copies);
    cr_assert_geq(count, 4);
    for (int i = 0; i < TCP_LINES; i++)
        if (node_tcp(1)->peers[0]->lines[i])
            shutdown(node_tcp(1)->peers[0]->lines[i]->fd, SHUT_RDWR);
    cr_assert(nodes_await(0, 1, TCP_GONE));
    cr_assert_eq(epoll_wait(node_tcp(0)->epoll, &event, 1, 0), 0);
    for (int i = 0; i < count; i++)
        close(copies[i]);
}

/* Rank 1 has closed, and of two addresses the second one cannot be reached from here. */
static void lose_second(void)
{
    node_close(1);
    node_tcp(0)->peers[1]->endpoint.addresses =
        (struct net_addresses){.at = {{.family = 4, .prefix = 8, .bytes = {127, 0, 0, 1}},
                                      {.family = 4, .bytes = {255, 255, 255, 255}}},
                               .count = 2};
    cr_assert_eq(node_tcp(0)->base.ops->watch(nodes[0].network, 1), RONDO_OK);
    cr_assert(nodes_await(0, 1, TCP_GONE));
    cr_expect_eq(nodes[0].left, 2);
}

Test(tcp_ends, are_those_of_a_peer_that_is_not_there_if_one_of_its_addresses_says_so)
{
    unsigned port = node_tcp(0)->peers[1]->endpoint.port;
    char place[64];

    lose_second();
    cr_expect(nodes[0].parted);
    cr_expect_eq(node_tcp(0)->base.ops->watch(nodes[0].network, 1), RONDO_ERROR_PEER);
    snprintf(place, sizeof(place), "(tcp, 127.0.0.1:%u): nobody listens there", port);
    cr_expect(strstr(fail_sentence(), place), "'%s'", fail_sentence());
}

/* A bridge may have the same address on each host: this host is the one that refused there. */
Test(tcp_ends, are_not_told_by_an_address_that_this_host_has_too)
{
    struct tcp_network *network = node_tcp(0);

    network->endpoint.addresses = (struct net_addresses){
        .at = {{.family = 4, .prefix = 8, .bytes = {127, 0, 0, 1}}}, .count = 1};
    network->peers[1]->endpoint.space = network->endpoint.space + 1;
    lose_second();
    cr_expect_not(nodes[0].parted);
    cr_expect_eq(network->base.ops->watch(nodes[0].network, 1), RONDO_ERROR_PEER);
    cr_expect_null(strstr(fail_sentence(), "nobody listens"), "'%s'", fail_sentence());
}
