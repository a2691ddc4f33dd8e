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

/* The text without the time and the room that lines at info and debug have. */
static const char *without_stamps(const char *text)
{
    static char plain[1 << 20];
    char *to = plain;

    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        size_t length = strcspn(line, "\n");
        int date[6], behind = 0, head = 0;

        sscanf(line, "rondo%*[^ ] %n", &head);
        sscanf(line, "rondo %*[a-z]: %n", &head);
        sscanf(line + head, "%d-%d-%d %d:%d:%d.%*d tests/base: %n", &date[0], &date[1], &date[2],
               &date[3], &date[4], &date[5], &behind);
        to += sprintf(to, "%.*s%.*s\n", head, line, (int)length - head - behind,
                      line + head + behind);
    }
    *to = '\0';
    return plain;
}

static void check_level(const char *level, const char *wanted)
{
    int from = redirect();

    if (level)
        setenv("RONDO_LOG", level, 1);
    else
        unsetenv("RONDO_LOG");
    say_all();
    cr_assert_str_eq(without_stamps(read_all(from)), wanted);
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
    cr_assert(strstr(read_all(from), " base: rank 2 is gone\n"));
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

/* ---- Rooms, files, what all would say alike -------------------------------------------------- */

Test(log, rooms_that_are_not_named_are_silent_but_for_warnings)
{
    int from = redirect();
    const char *text;

    setenv("RONDO_LOG", "debug", 1);
    setenv("RONDO_LOG_ROOMS", "comm/engine,transport", 1);
    log_write(LOG_INFO, "../comm/engine/choose.c", "one");
    log_write(LOG_INFO, "../comm/engineer/choose.c", "two");
    log_write(LOG_INFO, "../transport/tcp/line.c", "three");
    log_write(LOG_DEBUG, "../comm/open.c", "four");
    log_write(LOG_WARN, "../comm/open.c", "five");
    text = read_all(from);
    cr_expect(strstr(text, "comm/engine: one\n"), "%s", text);
    cr_expect_not(strstr(text, "two"), "%s", text);
    cr_expect(strstr(text, "transport/tcp: three\n"), "%s", text);
    cr_expect_not(strstr(text, "four"), "%s", text);
    cr_expect(strstr(text, "rondo warn: five\n"), "%s", text);
}

Test(log, what_all_would_say_alike_is_said_by_rank_0)
{
    int from = redirect();

    setenv("RONDO_LOG", "info", 1);
    log_alike("no rank yet");
    log_set_rank(3);
    log_alike("rank 3");
    log_set_rank(-1);
    log_alike("a thread of rank 3's process");
    cr_expect_eq(log_alike_level(), LOG_DEBUG);
    cr_expect_not(strstr(read_all(from), "rank 3"));
}

/* The text of a file that is removed then; NULL: there is none. */
static const char *text_of(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "re");
    size_t length;

    if (!file)
        return NULL;
    length = fread(text, 1, sizeof(text) - 1, file);
    text[length] = '\0';
    fclose(file);
    unlink(path);
    return text;
}

Test(log, each_rank_has_a_file_and_all_its_lines_have_stamps)
{
    char folder[] = "/tmp/test-log-XXXXXX", path[256];
    int from = redirect();
    const char *text;

    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/job.%%r.log", folder);
    setenv("RONDO_LOG", "info", 1);
    setenv("RONDO_LOG_FILE", path, 1);
    for (int round = 0; round < 2; round++)
        for (int rank = 0; rank < 3; rank++) {
            log_set_rank(rank);
            log_warn("line %d of %d", round, rank);
        }
    for (int rank = 0; rank < 3; rank++) {
        char wanted[64];

        snprintf(path, sizeof(path), "%s/job.%d.log", folder, rank);
        text = text_of(path);
        cr_assert(text, "%s", path);
        snprintf(wanted, sizeof(wanted), "rondo[%d] warn: 2", rank);
        cr_expect_eq(strncmp(text, wanted, strlen(wanted)), 0, "%s", text);
        snprintf(wanted, sizeof(wanted), "tests/base: line 1 of %d\n", rank);
        cr_expect(strstr(text, wanted), "%s", text);
    }
    cr_expect_str_empty(read_all(from), "nothing is left for stderr");
    cr_expect_eq(rmdir(folder), 0, "no other file");
}

Test(log, a_name_without_a_rank_gets_one)
{
    char folder[] = "/tmp/test-log-XXXXXX", path[256];

    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/log", folder);
    setenv("RONDO_LOG", "warn", 1);
    setenv("RONDO_LOG_FILE", path, 1);
    log_set_rank(12);
    log_warn("here");
    snprintf(path, sizeof(path), "%s/log.12", folder);
    cr_expect(text_of(path));
    cr_expect_eq(rmdir(folder), 0);
}

Test(log, a_file_that_cannot_be_opened_is_told_once_and_stderr_has_the_lines)
{
    int from = redirect();
    const char *text;

    setenv("RONDO_LOG", "warn", 1);
    setenv("RONDO_LOG_FILE", "/nowhere/at/all", 1);
    log_set_rank(0);
    log_warn("one");
    log_warn("two");
    text = read_all(from);
    cr_expect(strstr(text, "rondo warn: cannot open /nowhere/at/all.0, of RONDO_LOG_FILE"), "%s",
              text);
    cr_expect(strstr(text, "one\n") && strstr(text, "two\n"), "%s", text);
    cr_expect_not(strstr(strstr(text, "cannot") + 1, "cannot"), "%s", text);
}

static void *say_with_a_file(void *argument)
{
    log_set_rank((int)(size_t)argument);
    for (int i = 0; i < LINES; i++)
        log_warn("line %d", i);
    return NULL;
}

Test(log, threads_that_race_for_a_file_lose_no_line)
{
    char folder[] = "/tmp/test-log-XXXXXX", path[256];
    pthread_t threads[THREADS];
    int count = 0;

    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/%%r", folder);
    setenv("RONDO_LOG", "warn", 1);
    setenv("RONDO_LOG_FILE", path, 1);
    for (size_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, say_with_a_file, (void *)(i / 2)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int rank = 0; rank < THREADS / 2; rank++) {
        const char *text;

        snprintf(path, sizeof(path), "%s/%d", folder, rank);
        text = text_of(path);
        cr_assert(text);
        for (; (text = strchr(text, '\n')); text++)
            count++;
    }
    cr_expect_eq(count, THREADS * LINES);
    rmdir(folder);
}
