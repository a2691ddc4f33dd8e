/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_tcp_hello.c - who gets in at the port of a rank, and who does not.
 *
 * Whatever a stranger does, ranks must exchange messages afterwards as if it had not been there.
 */
#include "tests/patience.h"
#include "tests/transport/tcp/tcp_nodes.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct net_addresses loopback = {
    .at[0] = {.family = 4, .prefix = 8, .bytes = {127, 0, 0, 1}}, .count = 1};
static int files;

static int count_files(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;

    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count;
}

static void begin(void)
{
    cr_assert_eq(proof_init(), RONDO_OK);
    files = count_files();
    cr_assert_eq(nodes_open(), RONDO_OK, "%s", fail_sentence());
}

/* A message between any two ranks arrives. */
static void check_links(void)
{
    double until = clock_seconds() + 80;
    int left = 0;

    for (int from = 0; from < NODES; from++)
        for (int to = 0; to < NODES; to++)
            left += from != to && node_send(from, to, 1);
    cr_assert_eq(left, NODES * (NODES - 1));
    while (left && clock_seconds() < until) {
        cr_assert_eq(nodes_progress(), RONDO_OK, "%s", fail_sentence());
        for (int from = 0; from < NODES; from++)
            for (int to = 0; to < NODES; to++) {
                int got = from == to ? 0 : node_receive(to, from, 1);

                cr_assert_geq(got, 0, "a message from %d to %d is wrong", from, to);
                left -= got;
            }
    }
    cr_assert_eq(left, 0, "%d messages are missing", left);
}

static void end(void)
{
    nodes_close();
    cr_expect_eq(count_files(), files, "descriptors leaked");
}

TestSuite(hello, .init = begin, .fini = end);

Test(hello, a_rank_with_the_key_is_welcome_once)
{
    struct tcp_hello hello = rogue_hello(1, 0, 0);
    int first = rogue_dial(0), second = rogue_dial(0);

    cr_assert_eq(rogue_pass(first, &hello), TCP_WELCOME);
    cr_assert_eq(node_tcp(0)->peers[1]->state, TCP_UP);
    hello = rogue_hello(1, 0, 0);
    cr_assert_eq(rogue_pass(second, &hello), 0, "the line is there already");
    cr_assert(rogue_is_dropped(second));
    close(first);
    close(second);
}

Test(hello, with_a_wrong_proof_is_dropped)
{
    struct tcp_hello hello = rogue_hello(1, 0, 0);
    struct tcp_challenge challenge;
    int fd = rogue_dial(0);

    rogue_say(fd, &hello, sizeof(hello));
    cr_assert(rogue_hear(fd, &challenge, sizeof(challenge)));
    rogue_say(fd, challenge.proof, PROOF_BYTES); /* its own, sent back */
    cr_assert(rogue_is_dropped(fd));
    cr_assert_eq(node_tcp(0)->peers[1]->state, TCP_NEW);
    cr_assert_eq(node_tcp(0)->stranger_count, 0);
    close(fd);
    check_links();
}

Test(hello, that_makes_no_sense_is_dropped_before_anything_is_proved)
{
    struct tcp_hello wrong[12];

    for (int i = 0; i < 12; i++)
        wrong[i] = rogue_hello(1, 0, 0);
    wrong[0].from = 0; /* ourselves */
    wrong[1].from = -1;
    wrong[2].from = NODES;
    wrong[3].from = INT32_MAX;
    wrong[4].from = INT32_MIN;
    wrong[5].to = 1;
    wrong[6].size = NODES + 1;
    wrong[7].comm++;
    wrong[8].line = 1000;
    wrong[9].line = UINT32_MAX;
    wrong[10].magic[7]++; /* another version */
    wrong[11].magic[0] = '\0';
    for (int i = 0; i < 12; i++) {
        int fd = rogue_dial(0);

        cr_assert_eq(rogue_pass(fd, &wrong[i]), 0, "hello %d", i);
        cr_assert(rogue_is_dropped(fd), "hello %d", i);
        close(fd);
    }
    cr_assert_eq(node_tcp(0)->stranger_count, 0);
    check_links();
}

Test(hello, for_a_data_line_comes_after_that_for_the_control_line)
{
    struct tcp_hello hello = rogue_hello(1, 0, 1);
    int fd = rogue_dial(0);

    cr_assert_eq(rogue_pass(fd, &hello), 0);
    cr_assert(rogue_is_dropped(fd));
    close(fd);
    check_links();
}

Test(hello, of_garbage_or_less_is_dropped)
{
    unsigned char noise[5000];
    struct tcp_hello hello = rogue_hello(1, 0, 0);
    int garbage = rogue_dial(0), truncated = rogue_dial(0), half_open = rogue_dial(0);

    randombytes_buf(noise, sizeof(noise));
    rogue_say(garbage, noise, sizeof(noise));
    cr_assert(rogue_is_dropped(garbage));
    rogue_say(truncated, &hello, sizeof(hello) - 1);
    shutdown(truncated, SHUT_WR);
    cr_assert(rogue_is_dropped(truncated));
    shutdown(half_open, SHUT_WR);
    cr_assert(rogue_is_dropped(half_open));
    close(garbage);
    close(truncated);
    close(half_open);
    check_links();
}

Test(hello, that_is_not_said_is_waited_for_ten_seconds)
{
    struct tcp_hello hello = rogue_hello(1, 0, 0);
    double began = clock_seconds();
    int silent = rogue_dial(0), slow = rogue_dial(0);

    rogue_say(slow, &hello, sizeof(hello) / 2);
    nodes_progress_for(0.05);
    cr_assert_eq(node_tcp(0)->stranger_count, 2);
    for (struct tcp_line *line = node_tcp(0)->strangers; line; line = line->next) {
        cr_assert(line->deadline >= began + 10 && line->deadline <= clock_seconds() + 10);
        line->deadline = clock_seconds(); /* ten seconds later */
    }
    cr_assert(rogue_is_dropped(silent));
    cr_assert(rogue_is_dropped(slow));
    cr_assert_eq(node_tcp(0)->stranger_count, 0);
    close(silent);
    close(slow);
    check_links();
}

Test(hello, of_a_crowd_is_heard_up_to_a_number)
{
    enum { CROWD = TCP_STRANGERS + 20 };
    int fds[CROWD];

    for (int i = 0; i < CROWD; i++) {
        fds[i] = rogue_dial(0);
        cr_assert_geq(fds[i], 0);
        nodes_progress();
    }
    nodes_progress_for(0.1);
    cr_assert_eq(node_tcp(0)->stranger_count, TCP_STRANGERS);
    for (int i = 0; i < CROWD; i++)
        close(fds[i]);
    for (int i = 0; i < 100 && node_tcp(0)->stranger_count; i++)
        nodes_progress_for(0.02);
    cr_assert_eq(node_tcp(0)->stranger_count, 0);
    check_links();
}

/* Strangers who are silent keep nobody out, neither before a line is dialed nor after. */
Test(hello, is_heard_in_a_crowd_that_says_nothing)
{
    enum { CROWD = TCP_STRANGERS + 50 };
    static int fds[2 * CROWD];

    for (int i = 0; i < 2 * CROWD; i++) {
        fds[i] = rogue_dial(i % 2);
        cr_assert_geq(fds[i], 0);
        if (i < CROWD)
            nodes_progress();
    }
    check_links();
    cr_expect_leq(node_tcp(0)->stranger_count, TCP_STRANGERS);
    for (int i = 0; i < 2 * CROWD; i++)
        close(fds[i]);
}

/* Also who speaks the protocol, as far as it can be spoken without the key. */
Test(hello, is_heard_in_a_crowd_that_proves_nothing)
{
    enum { CROWD = 2 * TCP_STRANGERS + 20 };
    static int fds[CROWD];

    for (int i = 0; i < CROWD; i++) {
        struct tcp_hello hello = rogue_hello(2, i % 2, 0);

        fds[i] = rogue_dial(i % 2);
        cr_assert_geq(fds[i], 0);
        rogue_say(fds[i], &hello, sizeof(hello));
        nodes_progress();
    }
    check_links();
    for (int i = 0; i < CROWD; i++)
        close(fds[i]);
}

/* A hello that came while the rank was busy elsewhere counts, although it had not been read. */
Test(hello, that_was_said_in_time_keeps_its_place)
{
    enum { CROWD = TCP_STRANGERS };
    static int fds[CROWD];
    struct tcp_hello hello = rogue_hello(1, 0, 0);
    struct tcp_challenge challenge;
    int rank = rogue_dial(0);

    nodes_progress();
    for (int i = 0; i < CROWD - 1; i++)
        fds[i] = rogue_dial(0);
    nodes_progress_for(0.05);
    cr_assert_eq(node_tcp(0)->stranger_count, TCP_STRANGERS);
    rogue_say(rank, &hello, sizeof(hello));
    fds[CROWD - 1] = rogue_dial(0);
    for (struct tcp_line *line = node_tcp(0)->strangers; line; line = line->next)
        line->deadline -= 1; /* a second later */
    tcp_hello_accept(node_tcp(0));
    cr_assert(rogue_hear(rank, &challenge, sizeof(challenge)), "the oldest of all had spoken");
    close(rank);
    for (int i = 0; i < CROWD; i++)
        close(fds[i]);
}

Test(hello, from_both_sides_at_once_makes_one_line)
{
    for (int from = 0; from < NODES; from++)
        for (int to = 0; to < NODES; to++)
            if (from != to)
                cr_assert_eq(nodes[from].network->ops->watch(nodes[from].network, to), RONDO_OK);
    for (int from = 0; from < NODES; from++)
        for (int to = 0; to < NODES; to++)
            if (from != to)
                cr_assert(nodes_await(from, to, TCP_UP), "%d to %d", from, to);
    for (int from = 0; from < NODES; from++)
        for (int to = 0; to < from; to++)
            cr_assert_neq(node_tcp(from)->peers[to]->dials, node_tcp(to)->peers[from]->dials);
    check_links();
}

/* Rank 0 dials rank 2, at this port of another socket. */
static void dial_elsewhere(uint16_t port)
{
    struct tcp_peer *peer = node_tcp(0)->peers[2];

    peer->endpoint.port = port;
    peer->endpoint.addresses = loopback;
    cr_assert_eq(nodes[0].network->ops->watch(nodes[0].network, 2), RONDO_OK);
}

/* A way that only one of two ranks can go is enough. */
Test(hello, is_welcome_while_the_own_line_finds_no_way)
{
    struct tcp_hello hello = rogue_hello(2, 0, 0);
    uint16_t port;
    int backlog[2], fd, listener = rogue_listen(&port, 0);

    for (int i = 0; i < 2; i++) { /* then the queue is full: the system drops who comes */
        backlog[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(backlog[i],
                (struct sockaddr *)&(struct sockaddr_in){.sin_family = AF_INET,
                                                         .sin_port = htons(port),
                                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                sizeof(struct sockaddr_in));
    }
    dial_elsewhere(port);
    fd = rogue_dial(0);
    cr_expect_eq(rogue_pass(fd, &hello), TCP_WELCOME);
    cr_expect(node_tcp(0)->peers[2]->state == TCP_UP && !node_tcp(0)->peers[2]->dials);
    close(fd);
    close(listener);
    for (int i = 0; i < 2; i++)
        close(backlog[i]);
}

Test(hello, is_not_needed_while_the_line_of_the_lower_rank_is_on_its_way)
{
    struct tcp_hello hello = rogue_hello(2, 0, 0);
    uint16_t port;
    int listener = rogue_listen(&port, 5), fd = rogue_dial(0);
    double until = clock_seconds() + 60;

    dial_elsewhere(port);
    while (node_tcp(0)->peers[2]->lines[0]->state == TCP_CONNECTING && clock_seconds() < until)
        nodes_progress();
    cr_expect_eq(rogue_pass(fd, &hello), TCP_BUSY);
    close(fd);
    close(listener);
}

/* ---- Strangers that listen ------------------------------------------------------------------- */

enum manner { RUDE, WITHOUT_KEY, MUTE_THEN_GONE, UNWILLING };

/* Rank 2 is somebody else: what does rank 0 say about it, when it has something to send? */
static void check_impostor(enum manner manner, const char *clause)
{
    uint16_t port;
    int listener = rogue_listen(&port, 5), fd;
    struct tcp_peer *peer = node_tcp(0)->peers[2];
    struct tcp_hello hello;
    unsigned char noise[sizeof(struct tcp_challenge)];
    rondo_result result;

    peer->endpoint.port = port;
    peer->endpoint.addresses = loopback;
    /* Hang-ups are tried again for so long; that nobody listens is known at once. */
    node_tcp(0)->patience = manner == UNWILLING ? 100 : world_patience(0.3);
    node_send(0, 2, 0);
    do {
        fd = accept(listener, NULL, NULL);
        cr_assert(rogue_hear(fd, &hello, sizeof(hello)));
        cr_assert(hello.from == 0 && hello.to == 2 && hello.line == 0);
        randombytes_buf(noise, sizeof(noise));
        if (manner == RUDE)
            rogue_say(fd, "220 mail.example.org ready, nice to meet you. What can I do for you?",
                      64);
        else if (manner == WITHOUT_KEY)
            rogue_say(fd, noise, sizeof(noise));
        else if (manner == UNWILLING)
            shutdown(fd, SHUT_RD);
        if (manner == UNWILLING)
            close(listener);
        close(fd);
        result = nodes_progress_for(0.06);
    } while (!result && peer->state != TCP_GONE && manner != UNWILLING);
    for (int i = 0; i < 300 && !result; i++)
        result = nodes_progress_for(0.2);
    cr_assert_eq(result, RONDO_ERROR_PEER);
    cr_assert(strstr(fail_sentence(), "Rank 0 has lost rank 2 (tcp, 127.0.0.1:"), "'%s'",
              fail_sentence());
    cr_assert(strstr(fail_sentence(), clause), "'%s'", fail_sentence());
    cr_assert_eq(nodes[0].network->culprit, 2);
    if (manner != UNWILLING)
        close(listener);
}

Test(hello, is_not_believed_of_another_service)
{
    check_impostor(RUDE, "who answers there is no rank of this job");
}

Test(hello, is_not_believed_without_the_key)
{
    check_impostor(WITHOUT_KEY, "who answers there is no rank of this job");
}

Test(hello, that_gets_no_answer_is_repeated_for_a_while)
{
    check_impostor(MUTE_THEN_GONE, "it hung up");
}

Test(hello, to_a_rank_that_stops_listening_ends)
{
    check_impostor(UNWILLING, "nobody listens there");
}

/* The ranks get on until somebody knocks, who is sent away. */
static void drop_next(int listener)
{
    double until = clock_seconds() + 20;
    int fd = -1;

    while (fd < 0 && clock_seconds() < until) {
        cr_assert_eq(nodes_progress(), RONDO_OK, "%s", fail_sentence());
        fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    }
    cr_assert(fd >= 0, "nobody dials any more");
    close(fd);
}

static bool is_open(const struct tcp_line *line)
{
    return line && line->state == TCP_OPEN;
}

/* A full port drops lines; while the control line stands, that is no sign of a peer's end. */
Test(hello, of_a_data_line_that_is_dropped_is_said_again)
{
    struct tcp_network *network = node_tcp(0);
    struct tcp_peer *peer = network->peers[2];
    uint16_t port, right = peer->endpoint.port;
    int listener = rogue_listen(&port, 5);
    double until;

    cr_assert(!fcntl(listener, F_SETFL, O_NONBLOCK));
    peer->endpoint.addresses.count =
        1; /* where the listener is; there may be other loopback addresses */
    peer->endpoint.addresses.at[0] =
        (struct net_address){.family = 4, .prefix = 8, .bytes = {127, 0, 0, 1}};
    network->streams = 2;
    cr_assert_eq(network->base.ops->watch(nodes[0].network, 2), RONDO_OK);
    cr_assert(nodes_await(0, 2, TCP_UP));
    nodes_progress_for(0.1);
    cr_assert(peer->dials && is_open(peer->lines[1]));
    peer->endpoint.port = port;
    tcp_peer_widen(peer);
    for (int i = 0; i < 3; i++)
        drop_next(listener);
    peer->endpoint.port = right;
    close(listener);
    until = clock_seconds() + 20;
    while (!is_open(peer->lines[2]) && clock_seconds() < until)
        cr_assert_eq(nodes_progress(), RONDO_OK, "%s", fail_sentence());
    cr_assert_eq(peer->state, TCP_UP, "'%s'", peer->why);
    cr_assert(is_open(peer->lines[2]));
}
