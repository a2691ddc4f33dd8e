/* SPDX-License-Identifier: BSD-3-Clause */
/* test_log.c - lines on stderr; each test is a process of its own, so each reads RONDO_LOG anew. */
#include "base/log.h"

#include "base/fail.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* stderr goes to a pipe that holds enough for every test. */
static int redirect(void)
{
    int ends[2];

    cr_assert_eq(pipe2(ends, O_NONBLOCK), 0);
    cr_assert_geq(fcntl(ends[1], F_SETPIPE_SZ, 1 << 20), 1 << 20);
    cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    return ends[0];
}

static const char *read_all(int from)
{
    static char text[1 << 20];
    size_t filled = 0;
    ssize_t done;

    while ((done = read(from, text + filled, sizeof(text) - 1 - filled)) > 0)
        filled += (size_t)done;
    text[filled] = '\0';
    return text;
}

static void say_all(void)
{
    log_warn("w %d", 1);
    log_info("i %d", 2);
    log_debug("d %d", 3);
}

static void check_level(const char *level, const char *wanted)
{
    int from = redirect();

    if (level)
        setenv("RONDO_LOG", level, 1);
    else
        unsetenv("RONDO_LOG");
    say_all();
    cr_assert_str_eq(read_all(from), wanted);
}

Test(log, says_nothing_at_level_none)
{
    check_level("none", "");
}

Test(log, warns_by_default)
{
    check_level(NULL, "rondo warn: w 1\n");
}

Test(log, explains_at_level_info)
{
    check_level("info", "rondo warn: w 1\nrondo info: i 2\n");
}

Test(log, tells_everything_at_level_debug)
{
    check_level("debug", "rondo warn: w 1\nrondo info: i 2\nrondo debug: d 3\n");
}

Test(log, an_unknown_level_is_told_once_and_warnings_remain)
{
    check_level("loud", "rondo warn: RONDO_LOG is 'loud': accepted are none, warn, info and debug; "
                        "taking warn\nrondo warn: w 1\n");
}

Test(log, level_none_is_never_wanted)
{
    setenv("RONDO_LOG", "debug", 1);
    cr_assert(!log_wants(LOG_NONE));
    cr_assert(log_wants(LOG_DEBUG));
}

Test(log, a_line_names_the_rank_of_its_thread)
{
    int from = redirect();

    setenv("RONDO_LOG", "warn", 1);
    log_set_rank(7);
    log_warn("here");
    log_set_rank(-1);
    log_warn("there");
    cr_assert_str_eq(read_all(from), "rondo[7] warn: here\nrondo warn: there\n");
}

Test(log, errors_are_for_the_caller_to_print_and_logged_only_as_information)
{
    int from = redirect();

    setenv("RONDO_LOG", "info", 1);
    rondo_fail(RONDO_ERROR_PEER, "rank 2 is gone");
    cr_assert_str_eq(read_all(from), "rondo info: rank 2 is gone\n");
}

Test(log, control_characters_cannot_forge_lines)
{
    int from = redirect();

    setenv("RONDO_LOG", "warn", 1);
    log_warn("a%sb\x1b[31m", "\nrondo warn: all is well\n");
    cr_assert_str_eq(read_all(from), "rondo warn: a?rondo warn: all is well?b?[31m\n");
}

Test(log, errno_survives)
{
    redirect();
    setenv("RONDO_LOG", "warn", 1);
    errno = EXDEV;
    log_warn("x");
    cr_assert_eq(errno, EXDEV);
}

Test(log, a_long_line_is_cut_but_ends)
{
    static char text[10000];
    int from = redirect();
    const char *got;

    setenv("RONDO_LOG", "warn", 1);
    memset(text, 'a', sizeof(text) - 1);
    log_warn("%s", text);
    got = read_all(from);
    cr_assert_eq(got[strlen(got) - 1], '\n');
    cr_assert_lt(strlen(got), 4096);
}

enum { THREADS = 4, LINES = 500 };

static void *say_much(void *argument)
{
    log_set_rank((int)(size_t)argument);
    for (int i = 0; i < LINES; i++)
        log_warn("line %d from here to there, whole", i);
    return NULL;
}

Test(log, lines_of_threads_do_not_mix)
{
    pthread_t threads[THREADS];
    int from = redirect(), count = 0;
    char *line, *rest;

    setenv("RONDO_LOG", "warn", 1);
    for (size_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, say_much, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    rest = (char *)read_all(from);
    for (; (line = strsep(&rest, "\n")) && *line; count++) {
        int rank = -1, number = -1, end = 0;

        sscanf(line, "rondo[%d] warn: line %d from here to there, whole%n", &rank, &number, &end);
        cr_assert(rank >= 0 && number >= 0 && end == (int)strlen(line), "'%s'", line);
    }
    cr_assert_eq(count, THREADS * LINES);
}
