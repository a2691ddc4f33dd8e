/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tag.c - no line of a rank gets lost where the reader of ours takes its time. */
#include "cli/run/job.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static int output[2], looks; /* at the room in it */
static char text[1 << 17];
static size_t length;

static void read_all(void)
{
    ssize_t done;

    while ((done = read(output[0], text + length, sizeof(text) - 1 - length)) > 0)
        length += (size_t)done;
}

/* The reader empties the pipe between the second look and the third. */
int __real_poll(struct pollfd *files, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *files, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *files, nfds_t count, int timeout)
{
    if (looks++ == 2)
        read_all();
    return __real_poll(files, count, timeout);
}

Test(tag, what_a_rank_said_last_goes_out_though_the_pipe_was_full_for_a_moment)
{
    static const char said[] = "first\nsecond without an end";
    static const char *const lines = "[7] first\n[7] second without an end\n";
    struct run_tag tag;
    int rank_end;

    cr_assert(!pipe2(output, O_NONBLOCK) && run_tag_init(&tag, 7, output[1], &rank_end));
    while (write(output[1], "................", 16) == 16)
        ;
    cr_assert_eq(write(rank_end, said, strlen(said)), (ssize_t)strlen(said));
    close(rank_end);
    run_tag_move(&tag); /* reads it, and looks for room once */
    run_tag_done(&tag, false);
    run_tag_done(&tag, true);
    read_all();
    cr_expect(looks > 1 && length > strlen(lines));
    cr_expect_str_eq(text + length - strlen(lines), lines);
    close(output[0]);
    close(output[1]);
}
