/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bootstrap_socket.c - where one listens, who may connect, and what waits how long. */
#include "comm/bootstrap_socket.h"

#include "party.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Listen at `host` on any port, connect to `through`, and move a word both ways. */
static void check_way(const char *host, const char *through)
{
    char address[128], word[5] = "";
    int listener, port, from, to = -1;

    snprintf(address, sizeof(address), "%s:0", host);
    cr_assert_eq(socket_listen(address, &listener, &port), RONDO_OK, "%s", fail_sentence());
    cr_assert_gt(port, 0);
    snprintf(address, sizeof(address), "%s:%d", through, port);
    cr_assert_eq(socket_connect(address, clock_seconds() + 5, &from), RONDO_OK);
    cr_assert_geq(from, 0, "%s to %s: %s", through, host, strerror(errno));
    for (int i = 0; i < 500 && to < 0; i++) {
        to = socket_accept(listener);
        if (to < 0)
            usleep(10000);
    }
    cr_assert_eq(socket_send(from, "word", 5, clock_seconds() + 5), SOCKET_DONE);
    cr_assert_eq(socket_receive(to, word, 5, clock_seconds() + 5), SOCKET_DONE);
    cr_assert_str_eq(word, "word");
    cr_assert_eq(socket_receive(from, word, 1, clock_seconds() + 0.05), SOCKET_TIMED_OUT);
    close(to);
    cr_assert_eq(socket_receive(from, word, 1, clock_seconds() + 5), SOCKET_CLOSED);
    close(from);
    close(listener);
}

Test(sockets, numeric_addresses_and_names_can_be_listened_at)
{
    char name[HOST_NAME_MAX + 1] = "";
    struct addrinfo *found = NULL;

    check_way("127.0.0.1", "127.0.0.1");
    check_way("localhost", "127.0.0.1");
    check_way("localhost", "localhost");
    gethostname(name, sizeof(name) - 1);
    check_way(name, "127.0.0.1"); /* a name: on all addresses */
    if (!getaddrinfo(name, NULL, NULL, &found)) {
        check_way(name, name);
        freeaddrinfo(found);
    }
}

Test(sockets, an_address_that_is_translated_on_the_way_is_listened_for_everywhere)
{
    check_way("203.0.113.77", "127.0.0.1");
}

Test(sockets, ipv6_works_where_there_is_ipv6)
{
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 where = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    if (fd < 0 || bind(fd, (struct sockaddr *)&where, sizeof(where)))
        cr_skip_test("this machine has no IPv6");
    close(fd);
    check_way("[::1]", "[::1]");
}

Test(sockets, the_time_of_poll_is_rounded_up_and_never_negative)
{
    cr_assert_eq(socket_poll_time(INFINITY), -1);
    cr_assert_eq(socket_poll_time(0), 0);
    cr_assert_gt(socket_poll_time(clock_seconds() + 0.5), 0);
    cr_assert_leq(socket_poll_time(clock_seconds() + 0.5), 501);
    cr_assert_gt(socket_poll_time(1e300), 1000000);
}

/* Run `body` as another user in a child; its exit status. */
static int as_nobody(int (*body)(const char *address), const char *address)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(setgid(65534) || setuid(65534) ? 99 : body(address));
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

/* 0: connected, but not welcome; the kernel tells both sides who the other is. */
static int connect_as_nobody(const char *address)
{
    int fd;

    return socket_connect(address, clock_seconds() + 5, &fd) == RONDO_ERROR_AUTH &&
                   strstr(fail_sentence(), "belongs to user 0, not to us (user 65534)")
               ? 0
               : 1;
}

/* Without the check on this side: what does the server do? */
static int knock_as_nobody(const char *address)
{
    struct party_rank *ranks;
    struct bootstrap_place place = {.address = ""};

    strcpy(place.address, address);
    ranks = party_new(&place, 2, 0.5);
    party_take_part(&ranks[1]);
    return ranks[1].result == RONDO_ERROR_AUTH ? 0 : 1;
}

Test(sockets, a_unix_meeting_point_of_another_user_is_refused)
{
    struct bootstrap_place place;
    int listener, fd;

    if (geteuid() != 0)
        cr_skip_test("only root can be two users");
    party_place(&place, false);
    cr_assert_eq(socket_listen(place.address, &listener, NULL), RONDO_OK);
    cr_assert_eq(as_nobody(connect_as_nobody, place.address), 0);
    cr_assert_eq(as_nobody(knock_as_nobody, place.address), 0);
    for (int i = 0; i < 2; i++) { /* and those who knocked are sent away on this side, too */
        fd = socket_accept(listener);
        cr_assert_eq(fd, -1);
        cr_assert_eq(errno, EACCES);
    }
    close(listener);
}
