/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_stranger.c - those who do not belong to the job, at the meeting point.
 *
 * In each test rank 0 serves in a thread, strangers do their worst, and then the other ranks come:
 * all must meet as if nobody had been there.
 */
#include "tests/comm/rendezvous/party.h"

#include "comm/rendezvous/socket.h"
#include "comm/rendezvous/wire.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <endian.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static double soon(void)
{
    return clock_seconds() + 10;
}

/* A connection to the place, as soon as somebody listens. */
static int knock(const struct bootstrap_place *place)
{
    int fd = -1;

    for (int i = 0; i < 1000 && fd < 0; i++) {
        if (socket_connect(place->address, 0, soon(), &fd, NULL))
            return -1;
        if (fd < 0)
            poll(NULL, 0, 10);
    }
    return fd;
}

static void send_garbage(const struct bootstrap_place *place, int *ret_fd)
{
    unsigned char noise[4096];

    *ret_fd = knock(place);
    randombytes_buf(noise, sizeof(noise));
    socket_send(*ret_fd, noise, sizeof(noise), soon());
}

static void say_nothing(const struct bootstrap_place *place, int *ret_fd)
{
    *ret_fd = knock(place);
}

static void half_open(const struct bootstrap_place *place, int *ret_fd)
{
    *ret_fd = knock(place);
    socket_send(*ret_fd, "RNDO", 4, soon());
    shutdown(*ret_fd, SHUT_WR);
}

static void scan(const struct bootstrap_place *place, int *ret_fd)
{
    for (int i = 0; i < 100; i++)
        close(knock(place));
    *ret_fd = knock(place);
}

static void stop_in_hello(const struct bootstrap_place *place, int *ret_fd)
{
    struct wire_hello hello = {.nonce = {1}};

    wire_header_set(&hello.header, WIRE_HELLO, 0);
    *ret_fd = knock(place);
    socket_send(*ret_fd, &hello, sizeof(hello) - 1, soon());
}

/* Say hello properly, then claim `bytes` of a blob; with a right or a wrong proof. */
static void claim(const struct bootstrap_place *place, uint64_t bytes, bool prove, int *ret_fd)
{
    struct wire_session session = {.secret = place->secret};
    struct wire_hello hello = {.nonce = {1}};
    struct wire_claim frame = {.rank = htole32(1), .size = htole32(3), .host = "elsewhere"};

    memcpy(session.rank_nonce, hello.nonce, WIRE_NONCE);
    wire_header_set(&hello.header, WIRE_HELLO, 0);
    *ret_fd = knock(place);
    socket_send(*ret_fd, &hello, sizeof(hello), soon());
    socket_receive(*ret_fd, &hello, sizeof(hello), soon());
    memcpy(session.server_nonce, hello.nonce, WIRE_NONCE);
    wire_header_set(&frame.header, WIRE_CLAIM, bytes);
    if (prove)
        wire_prove(&session, WIRE_CLAIM, &frame);
    socket_send(*ret_fd, &frame, sizeof(frame), soon());
}

static void claim_huge_unproved(const struct bootstrap_place *place, int *ret_fd)
{
    claim(place, UINT64_MAX - 7, false, ret_fd);
}

static void claim_huge_proved(const struct bootstrap_place *place, int *ret_fd)
{
    claim(place, (uint64_t)1 << 60, true, ret_fd);
}

static void claim_unproved(const struct bootstrap_place *place, int *ret_fd)
{
    claim(place, PARTY_BLOB, false, ret_fd);
}

static void speak_another_version(const struct bootstrap_place *place, int *ret_fd)
{
    struct wire_hello hello = {.nonce = {1}};
    struct wire_refusal answer;

    wire_header_set(&hello.header, WIRE_HELLO, 0);
    hello.header.version = htole16(WIRE_VERSION + 1);
    *ret_fd = knock(place);
    socket_send(*ret_fd, &hello, sizeof(hello), soon());
    if (socket_receive(*ret_fd, &answer, sizeof(answer), soon()) != SOCKET_DONE ||
        le32toh(answer.reason) != WIRE_WRONG_VERSION) {
        close(*ret_fd);
        *ret_fd = -1; /* the caller sees that something is wrong */
    }
}

typedef void stranger(const struct bootstrap_place *place, int *ret_fd);

/* All strangers at once, each several times, over both
 * kinds of sockets; they hang on to the end. */
Test(strangers, do_no_harm_whatever_they_send)
{
    static stranger *const strangers[] = {
        send_garbage,         say_nothing,         half_open,         scan,
        stop_in_hello,        claim_huge_unproved, claim_huge_proved, claim_unproved,
        speak_another_version};
    enum { STRANGERS = sizeof(strangers) / sizeof(strangers[0]) };

    for (int tcp = 0; tcp < 2; tcp++) {
        int before = party_files();
        int connections[STRANGERS];
        struct bootstrap_place place;
        struct party_rank *ranks;

        party_place(&place, tcp);
        ranks = party_new(&place, 3, 20);
        party_start(ranks, 1);
        for (int i = 0; i < STRANGERS; i++) {
            strangers[i](&place, &connections[i]);
            cr_assert_geq(connections[i], 0, "stranger %d got no connection", i);
        }
        party_start(ranks + 1, 2);
        party_join(ranks, 3);
        for (int i = 0; i < 3; i++)
            cr_assert(ranks[i].right, "rank %d: '%s'", i, ranks[i].sentence);
        for (int i = 0; i < STRANGERS; i++)
            close(connections[i]);
        cr_assert_eq(party_files(), before, "descriptors leaked");
        party_free(ranks);
    }
}

Test(strangers, more_of_them_than_the_server_keeps_still_let_members_in)
{
    enum { CROWD = 1500 };
    static int crowd[CROWD];
    struct bootstrap_place place;
    struct party_rank *ranks;

    party_place(&place, false);
    ranks = party_new(&place, 3, 30);
    party_start(ranks, 1);
    for (int i = 0; i < CROWD; i++)
        crowd[i] = knock(&place);
    party_start(ranks + 1, 2);
    party_join(ranks, 3);
    for (int i = 0; i < CROWD; i++)
        close(crowd[i]);
    for (int i = 0; i < 3; i++)
        cr_assert(ranks[i].right, "rank %d: '%s'", i, ranks[i].sentence);
    party_free(ranks);
}

/* A server with a dozen descriptors, and a crowd that wants them all. */
Test(strangers, cannot_use_up_the_descriptors_of_the_server)
{
    struct bootstrap_place place;
    struct party_rank *ranks;
    int crowd[40], status;
    pid_t pid;

    party_place(&place, false);
    ranks = party_new(&place, 3, 20);
    pid = fork();
    if (pid == 0) {
        struct rlimit limit = {24, 24};

        setrlimit(RLIMIT_NOFILE, &limit);
        party_take_part(&ranks[0]);
        _exit(ranks[0].right ? 0 : 1);
    }
    for (int i = 0; i < 40; i++)
        crowd[i] = knock(&place);
    party_start(ranks + 1, 2);
    party_join(ranks + 1, 2);
    waitpid(pid, &status, 0);
    for (int i = 0; i < 40; i++)
        close(crowd[i]);
    cr_assert(ranks[1].right, "'%s'", ranks[1].sentence);
    cr_assert(ranks[2].right, "'%s'", ranks[2].sentence);
    cr_assert(WIFEXITED(status) && !WEXITSTATUS(status));
    party_free(ranks);
}

/* Members alone need more descriptors than the server has: no hang, and the sentence says why. */
Test(strangers, a_server_without_descriptors_says_so)
{
    struct party_rank *ranks;
    int status;
    pid_t pid;

    ranks = party_at(false, 41, 2);
    pid = fork();
    if (pid == 0) {
        struct rlimit limit = {24, 24};

        setrlimit(RLIMIT_NOFILE, &limit);
        party_take_part(&ranks[0]);
        _exit(ranks[0].result == RONDO_ERROR_TIMEOUT && strstr(ranks[0].sentence, "ulimit -n") ? 0
                                                                                               : 1);
    }
    cr_assert_eq(party_run(ranks + 1, 40), 0);
    waitpid(pid, &status, 0);
    cr_assert(WIFEXITED(status) && !WEXITSTATUS(status));
    for (int i = 1; i < 41; i++)
        cr_assert_neq(ranks[i].result, RONDO_OK, "rank %d", i);
    party_free(ranks);
}

/* ---- Members that lie ------------------------------------------------------------------------ */

static void check_lie(uint32_t rank, uint32_t size, uint64_t bytes, const char *part)
{
    struct wire_session session;
    struct wire_hello hello = {.nonce = {7}};
    struct wire_claim frame = {.rank = htole32(rank), .size = htole32(size), .pid = htole32(4711)};
    struct bootstrap_place place;
    struct party_rank *ranks;
    int fd;

    memset(frame.host, 'x', sizeof(frame.host)); /* not even a final 0 */
    party_place(&place, false);
    ranks = party_new(&place, 3, 20);
    party_start(ranks, 1);
    session.secret = place.secret;
    memcpy(session.rank_nonce, hello.nonce, WIRE_NONCE);
    wire_header_set(&hello.header, WIRE_HELLO, 0);
    fd = knock(&place);
    socket_send(fd, &hello, sizeof(hello), soon());
    socket_receive(fd, &hello, sizeof(hello), soon());
    memcpy(session.server_nonce, hello.nonce, WIRE_NONCE);
    wire_header_set(&frame.header, WIRE_CLAIM, bytes);
    wire_prove(&session, WIRE_CLAIM, &frame);
    socket_send(fd, &frame, sizeof(frame), soon());
    shutdown(fd, SHUT_WR);
    party_join(ranks, 1);
    close(fd);
    cr_assert_neq(ranks[0].result, RONDO_OK);
    cr_assert(strstr(ranks[0].sentence, part), "'%s'", ranks[0].sentence);
    party_free(ranks);
}

Test(strangers, a_proven_claim_that_makes_no_sense_ends_the_job_in_a_sentence)
{
    check_lie(3, 3, PARTY_BLOB, "claims rank 3 of 3");
    check_lie(UINT32_MAX, 3, PARTY_BLOB, "claims rank 4294967295 of 3");
    check_lie(1, 0, PARTY_BLOB, "says that the job has 0 ranks");
    check_lie(1, UINT32_MAX, PARTY_BLOB, "says that the job has 4294967295 ranks");
    check_lie(1, 3, 1 << 20, "brings 1048576 bytes");
    check_lie(0, 3, PARTY_BLOB, "two ranks claimed number 0");
    check_lie(1, 3, PARTY_BLOB, "rank 1 (pid 4711 on xxx"); /* hangs up before its blob */
}
