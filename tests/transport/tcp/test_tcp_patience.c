/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_tcp_patience.c - what is no sign of a peer's end: that this rank made no calls for a while,
 * or that it is short of something itself.
 */
#include "tests/transport/tcp/tcp_nodes.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static const double patience = 60; /* seconds until the event that is awaited: a guard */

static void begin(void)
{
    cr_assert_eq(proof_init(), RONDO_OK);
    cr_assert_eq(nodes_open(), RONDO_OK, "%s", fail_sentence());
}

TestSuite(tcp_patience, .init = begin, .fini = nodes_close);

static void progress_alone(int rank)
{
    bool moved;

    cr_assert_eq(nodes[rank].network->ops->progress(nodes[rank].network, &moved), RONDO_OK, "%s",
                 fail_sentence());
}

/* Rank 0 wants a line to rank 1, and has no other address to go on to. */
static struct tcp_peer *dial_rank_1(void)
{
    struct tcp_peer *peer = node_tcp(0)->peers[1];

    peer->endpoint.addresses.count = 1;
    cr_assert_eq(nodes[0].network->ops->watch(nodes[0].network, 1), RONDO_OK);
    return peer;
}

/* ---- Ranks that make no calls ---------------------------------------------------------------- */

/* Rank 1 accepts rank 0, which makes no calls and so says nothing, and drops it like a stranger. */
static void wait_in_vain(void)
{
    const struct tcp_network *network = node_tcp(1);
    double until = clock_seconds() + patience;

    while (!network->stranger_count && clock_seconds() < until)
        progress_alone(1);
    cr_assert_eq(network->stranger_count, 1);
    network->strangers->deadline -= 11; /* seconds later */
    while (network->stranger_count && clock_seconds() < until)
        progress_alone(1);
    cr_assert_eq(network->stranger_count, 0);
}

/* Rank 0 is away twice in a row, each time for longer than it has patience with a peer. */
Test(tcp_patience, is_not_over_because_a_rank_made_no_calls)
{
    struct tcp_peer *peer = dial_rank_1();
    double until = clock_seconds() + patience;

    for (int times = 0; times < 2; times++) {
        while (peer->state == TCP_AWAITED && clock_seconds() < until)
            progress_alone(0);
        cr_assert(peer->state == TCP_DIALING && peer->lines[0]->state == TCP_CONNECTING);
        wait_in_vain();
        peer->began -= 15;
        peer->troubled -= times ? 15 : 0; /* not yet, the first time */
        peer->lines[0]->deadline -= 15;
        while (peer->state == TCP_DIALING && clock_seconds() < until)
            progress_alone(0);
        cr_assert_eq(peer->state, TCP_AWAITED, "'%s'", peer->why);
    }
    cr_assert(nodes_await(0, 1, TCP_UP), "'%s'", peer->why);
    cr_expect(node_pass(0, 1), "%s", fail_sentence());
}

static void await_ready(int fd, short events)
{
    cr_assert_eq(poll(&(struct pollfd){.fd = fd, .events = events}, 1, (int)(patience * 1e3)), 1);
}

/* The line stands, but more sockets are ready before it than the system tells of at once. */
Test(tcp_patience, with_a_line_does_not_end_before_its_turn)
{
    enum { CROWD = 40 };
    struct tcp_network *network = node_tcp(0);
    double until = clock_seconds() + patience;
    struct tcp_peer *peer;
    int fds[CROWD];

    for (int i = 0; i < CROWD; i++)
        fds[i] = rogue_dial(0);
    while (network->stranger_count < CROWD && clock_seconds() < until)
        progress_alone(0);
    for (int i = 0; i < CROWD; i++)
        cr_assert_eq(send(fds[i], "Rondo", 5, MSG_NOSIGNAL), 5);
    for (struct tcp_line *line = network->strangers; line; line = line->next)
        await_ready(line->fd, POLLIN);
    peer = dial_rank_1();
    await_ready(peer->lines[0]->fd, POLLOUT);
    peer->lines[0]->deadline = network->timed = 0;
    progress_alone(0);
    cr_assert_neq(peer->state, TCP_GONE, "'%s'", peer->why);
    cr_assert(nodes_await(0, 1, TCP_UP), "'%s'", peer->why);
    for (int i = 0; i < CROWD; i++)
        close(fds[i]);
}

/* ---- Ranks without descriptors --------------------------------------------------------------- */

/* So many descriptors may be open; those that are stay so. Returns how many could be. */
static rlim_t limit_descriptors(rlim_t count)
{
    struct rlimit limit;
    rlim_t before_it;

    cr_assert(!getrlimit(RLIMIT_NOFILE, &limit));
    before_it = limit.rlim_cur;
    limit.rlim_cur = count;
    cr_assert(!setrlimit(RLIMIT_NOFILE, &limit));
    return before_it;
}

Test(tcp_patience, lasts_while_descriptors_may_become_free)
{
    rlim_t before_it = limit_descriptors(3);

    cr_assert(node_send(0, 1, 0));
    progress_alone(0);
    limit_descriptors(before_it);
    cr_assert(nodes_await(0, 1, TCP_UP), "'%s'", node_tcp(0)->peers[1]->why);
    while (!node_receive(1, 0, 0))
        cr_assert_eq(nodes_progress(), RONDO_OK, "%s", fail_sentence());
}

Test(tcp_patience, ends_with_the_rank_that_cannot_open_a_connection_as_the_culprit)
{
    struct tcp_network *network = node_tcp(0);
    rlim_t before_it = limit_descriptors(3);
    rondo_result result;
    bool moved;

    cr_assert(node_send(0, 1, 0));
    progress_alone(0);
    network->dial_shortage.since -= 3; /* seconds later */
    result = network->base.ops->progress(nodes[0].network, &moved);
    limit_descriptors(before_it);
    cr_assert_eq(result, RONDO_ERROR_SYSTEM);
    cr_expect_eq(network->base.culprit, 0);
    cr_expect(strstr(fail_sentence(), "Rank 0 cannot open a connection") &&
                  strstr(fail_sentence(), "Too many open files"),
              "'%s'", fail_sentence());
    cr_assert(nodes_await(0, 1, TCP_UP), "'%s'", node_tcp(0)->peers[1]->why);
    while (!node_receive(1, 0, 0)) /* or closing would wait for it */
        cr_assert_eq(nodes_progress(), RONDO_OK, "%s", fail_sentence());
}

Test(tcp_patience, is_not_over_for_want_of_a_line_that_is_not_needed_any_more)
{
    struct tcp_network *network = node_tcp(0);
    rlim_t before_it = limit_descriptors(3);
    struct tcp_peer *peer = dial_rank_1();

    limit_descriptors(before_it);
    cr_assert(peer->state == TCP_AWAITED && network->dial_shortage.since > 0);
    tcp_peer_gone(peer, "it has ended");
    network->dial_shortage.since -= 3; /* seconds later */
    progress_alone(0);
    cr_expect_eq(network->dial_shortage.since, 0);
}

/* The first data line has to be; the others only make it quicker. */
Test(tcp_patience, is_not_needed_for_further_data_lines)
{
    struct tcp_network *network = node_tcp(0);
    struct tcp_peer *peer = dial_rank_1();
    rlim_t before_it;

    network->streams = 3;
    cr_assert(nodes_await(0, 1, TCP_UP));
    cr_assert(node_pass(0, 1), "%s", fail_sentence());
    before_it = limit_descriptors(3);
    tcp_peer_widen(peer);
    limit_descriptors(before_it);
    cr_assert_eq(peer->state, TCP_UP, "'%s'", peer->why);
    cr_expect(peer->dials && peer->wide && !peer->lines[2] && !network->dial_shortage.since);
    cr_expect(node_pass(0, 1), "%s", fail_sentence());
}

Test(tcp_patience, gets_the_first_data_line_later)
{
    struct tcp_network *network = node_tcp(0);
    struct tcp_peer *peer = dial_rank_1();
    double until = clock_seconds() + patience;
    struct tcp_line *line;
    rlim_t before_it;

    while (peer->lines[0]->state != TCP_PROVED && clock_seconds() < until)
        nodes_progress();
    line = peer->lines[0];
    before_it = limit_descriptors(3);
    while (peer->state == TCP_DIALING && clock_seconds() < until)
        nodes_progress();
    limit_descriptors(before_it);
    cr_assert(peer->state == TCP_UP && peer->lines[0] == line && !peer->lines[1], "'%s'",
              peer->why);
    cr_expect(network->dial_shortage.since > 0 && peer->again > 0);
    cr_expect(node_pass(0, 1), "%s", fail_sentence());
    cr_expect_eq(network->dial_shortage.since, 0);
}

/* accept() fails for want of a descriptor also where there is nobody to accept. */
Test(tcp_patience, does_not_end_for_want_of_a_descriptor_that_nobody_needs)
{
    struct tcp_network *network = node_tcp(0);
    rlim_t before_it = limit_descriptors(3);

    tcp_hello_accept(network);
    limit_descriptors(before_it);
    cr_expect_eq(network->accept_shortage.since, 0);
    network->accept_shortage = (struct tcp_shortage){clock_seconds() - 3, EMFILE};
    progress_alone(0);
    cr_expect_eq(network->accept_shortage.since, 0);
}
