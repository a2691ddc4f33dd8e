/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fork.c - which descriptors a child of fork() keeps. */
#include "base/fork.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static bool child_has(int fd)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(fcntl(fd, F_GETFD) >= 0);
    cr_assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

Test(fork, a_child_closes_the_sockets_that_were_noted)
{
    int ends[2];

    cr_assert(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    fork_note_socket(ends[0]);
    cr_expect_not(child_has(ends[0]));
    cr_expect(child_has(ends[1]));
    cr_expect_geq(fcntl(ends[0], F_GETFD), 0);
    fork_close_socket(ends[0]);
    cr_expect_lt(fcntl(ends[0], F_GETFD), 0);
    close(ends[1]);
}

Test(fork, a_child_closes_a_socket_of_any_number_that_a_process_can_have)
{
    int high = 100000, ends[2];
    struct rlimit limit = {(rlim_t)high + 1, (rlim_t)high + 1};

    if (setrlimit(RLIMIT_NOFILE, &limit))
        cr_skip_test("this process may not have so many descriptors");
    cr_assert(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    cr_assert_eq(dup2(ends[0], high), high);
    fork_note_socket(high);
    cr_expect_not(child_has(high));
    fork_close_socket(high);
    cr_expect_lt(fcntl(high, F_GETFD), 0);
}

Test(fork, a_child_keeps_a_file_that_has_the_number_of_a_closed_socket)
{
    int ends[2], number;

    cr_assert(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    number = ends[0];
    fork_note_socket(number);
    cr_assert_eq(dup2(ends[1], number), number); /* the program's, which knows nothing of ours */
    cr_expect(child_has(number));
    fork_close_socket(number);
    cr_assert_eq(dup2(ends[1], number), number);
    cr_expect(child_has(number));
    close(number);
    close(ends[1]);
}
