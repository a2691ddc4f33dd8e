/* SPDX-License-Identifier: BSD-3-Clause */
/* test_socket.c - where one listens, who may connect, and what waits how long. */
#include "comm/rendezvous/socket.h"

#include "tests/comm/rendezvous/party.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <sys/un.h>
#include <sys/stat.h>
#include <stdlib.h>
#include <stddef.h>
#include <signal.h>
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
static void check_way(const char *host, bool everywhere, const char *through)
{
    char address[128], word[5] = "";
    int listener, port, from, to = -1;

    snprintf(address, sizeof(address), "%s:0", host);
    cr_assert_eq(socket_listen(address, everywhere, &listener, &port), RONDO_OK, "%s",
                 fail_sentence());
    cr_assert_gt(port, 0);
    snprintf(address, sizeof(address), "%s:%d", through, port);
    cr_assert_eq(socket_connect(address, 0, clock_seconds() + 5, &from, NULL), RONDO_OK);
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

    check_way("127.0.0.1", false, "127.0.0.1");
    check_way("localhost", false, "127.0.0.1");
    check_way("localhost", false, "localhost");
    check_way("localhost", true, "127.0.0.2");
    gethostname(name, sizeof(name) - 1);
    check_way(name, false, "127.0.0.1"); /* a name: on all addresses */
    if (!getaddrinfo(name, NULL, NULL, &found)) {
        check_way(name, false, name);
        freeaddrinfo(found);
    }
}

Test(sockets, an_address_that_is_translated_on_the_way_is_listened_for_everywhere)
{
    check_way("203.0.113.77", false, "127.0.0.1");
}

Test(sockets, ipv6_works_where_there_is_ipv6)
{
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 where = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    if (fd < 0 || bind(fd, (struct sockaddr *)&where, sizeof(where)))
        cr_skip_test("this machine has no IPv6");
    close(fd);
    check_way("[::1]", false, "[::1]");
}

Test(sockets, the_time_of_poll_is_rounded_up_and_never_negative)
{
    cr_assert_eq(socket_poll_time(INFINITY), -1);
    cr_assert_eq(socket_poll_time(0), 0);
    cr_assert_gt(socket_poll_time(clock_seconds() + 60), 0);
    cr_assert_leq(socket_poll_time(clock_seconds() + 60), 60001);
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

    return socket_connect(address, 0, clock_seconds() + 5, &fd, NULL) == RONDO_ERROR_AUTH &&
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
    cr_assert_eq(socket_listen(place.address, false, &listener, NULL), RONDO_OK);
    cr_assert_eq(as_nobody(connect_as_nobody, place.address), 0);
    cr_assert_eq(as_nobody(knock_as_nobody, place.address), 0);
    for (int i = 0; i < 2; i++) { /* and those who knocked are sent away on this side, too */
        fd = socket_accept(listener);
        cr_assert_eq(fd, -1);
        cr_assert_eq(errno, EACCES);
    }
    close(listener);
}

/* ---- Names that another user holds ----------------------------------------------------------- */

/* Another user takes the abstract name, and listens or not, until it is killed. */
static pid_t squat(const char *address, bool listens)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    size_t length = strlen(address + 5);
    int ready[2], fd;
    char byte = 0;
    pid_t pid;

    memcpy(where.sun_path + 1, address + 5, length);
    cr_assert_eq(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        byte = setgid(65534) || setuid(65534) ||
               bind(fd, (struct sockaddr *)&where,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) ||
               (listens && listen(fd, 16));
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    cr_assert(read(ready[0], &byte, 1) == 1 && byte == 0, "the name could not be taken");
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void meet_beside_a_squatter(bool listens)
{
    char folder[] = "/tmp/rondo_runtime_XXXXXX", inside[64];
    struct bootstrap_place place;
    struct party_rank *ranks;
    pid_t pid;

    cr_assert_not_null(mkdtemp(folder));
    setenv("XDG_RUNTIME_DIR", folder, 1);
    party_place(&place, false);
    pid = squat(place.address, listens);
    ranks = party_new(&place, 3, 20);
    cr_expect_eq(party_run(ranks, 3), 3, "'%s', '%s'", ranks[0].sentence, ranks[1].sentence);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    snprintf(inside, sizeof(inside), "%s/rondo", folder);
    cr_expect_eq(rmdir(inside), 0, "a socket is left in %s", inside);
    cr_expect_eq(rmdir(folder), 0);
    party_free(ranks);
}

Test(sockets, a_name_that_another_user_holds_keeps_no_ranks_apart)
{
    if (geteuid() != 0)
        cr_skip_test("only root can be two users");
    meet_beside_a_squatter(true);
    meet_beside_a_squatter(false);
}

/* A killed rank 0 leaves its file: the next one takes its place. */
Test(sockets, a_file_that_nobody_listens_at_is_no_hindrance)
{
    char folder[] = "/tmp/rondo_runtime_XXXXXX", inside[64];
    struct bootstrap_place place;
    int first = -1, second = -1, found = -1;
    pid_t pid;

    if (geteuid() != 0)
        cr_skip_test("only root can be two users");
    cr_assert_not_null(mkdtemp(folder));
    setenv("XDG_RUNTIME_DIR", folder, 1);
    party_place(&place, false);
    pid = squat(place.address, true);
    cr_assert_eq(socket_listen(place.address, false, &first, NULL), RONDO_OK, "%s",
                 fail_sentence());
    close(first); /* and not socket_unlisten() */
    cr_assert_eq(socket_listen(place.address, false, &second, NULL), RONDO_OK, "%s",
                 fail_sentence());
    cr_assert_eq(socket_connect(place.address, 0, clock_seconds() + 5, &found, NULL), RONDO_OK);
    cr_expect_geq(found, 0);
    close(found);
    socket_unlisten(second);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    snprintf(inside, sizeof(inside), "%s/rondo", folder);
    cr_expect(rmdir(inside) == 0 && rmdir(folder) == 0);
}

/* A folder that others can enter is none of ours. */
Test(sockets, a_folder_that_others_may_enter_is_not_used)
{
    char folder[] = "/tmp/rondo_runtime_XXXXXX", inside[64];
    struct bootstrap_place place;
    int fd = -1;
    pid_t pid;

    if (geteuid() != 0)
        cr_skip_test("only root can be two users");
    cr_assert_not_null(mkdtemp(folder));
    setenv("XDG_RUNTIME_DIR", folder, 1);
    snprintf(inside, sizeof(inside), "%s/rondo", folder);
    cr_assert(mkdir(inside, 0700) == 0 && chmod(inside, 0755) == 0);
    party_place(&place, false);
    pid = squat(place.address, true);
    socket_listen(place.address, false, &fd, NULL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (fd >= 0)
        socket_unlisten(fd); /* in /tmp/rondo-UID */
    cr_expect(rmdir(inside) == 0 && rmdir(folder) == 0, "it was used");
}
