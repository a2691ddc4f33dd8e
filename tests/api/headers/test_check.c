/* SPDX-License-Identifier: BSD-3-Clause */
/* test_check.c - what RONDO_CHECK() says, and that it ends the program (rondo/check.h). */
#include "rondo/check.h"
#include "rondo/ddp.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(check, .timeout = 60);

struct outcome {
    int status;
    char said[1000]; /* on stderr */
};

/* Runs the program in a process of its own, which ends with 7 if nothing else ends it. */
static struct outcome outcome_of(void (*program)(void))
{
    struct outcome outcome = {0};
    int ends[2];
    size_t length = 0;
    ssize_t got;
    pid_t child;

    cr_assert(pipe(ends) == 0);
    child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        program();
        _exit(7);
    }
    close(ends[1]);
    while ((got = read(ends[0], outcome.said + length, sizeof(outcome.said) - 1 - length)) > 0)
        length += (size_t)got;
    close(ends[0]);
    cr_assert(waitpid(child, &outcome.status, 0) == child && WIFEXITED(outcome.status));
    outcome.status = WEXITSTATUS(outcome.status);
    return outcome;
}

static void expect_end(void (*program)(void), int line, const char *sentence)
{
    struct outcome outcome = outcome_of(program);
    char wanted[1000];

    snprintf(wanted, sizeof(wanted), "%s:%d: %s\n", __FILE__, line, sentence);
    cr_expect(outcome.status == 1, "status %d", outcome.status);
    cr_expect(strcmp(outcome.said, wanted) == 0, "\"%s\" instead of \"%s\"", outcome.said, wanted);
}

static int calls; /* that a program made */

static rondo_result call_without_error(void)
{
    calls++;
    return RONDO_OK;
}

static void program_without_error(void)
{
    if (calls == 0) /* a statement like any other: this else is that of this if */
        RONDO_CHECK(call_without_error());
    else
        _exit(2);
    _exit(calls == 1 ? 7 : 3);
}

Test(check, says_nothing_and_goes_on_where_there_is_no_error)
{
    struct outcome outcome = outcome_of(program_without_error);

    cr_expect(outcome.status == 7 && outcome.said[0] == '\0', "status %d, \"%s\"", outcome.status,
              outcome.said);
}

static void program_with_an_error(void)
{
    RONDO_CHECK(rondo_barrier(NULL, NULL));
}
enum { LINE_OF_ERROR = __LINE__ - 2 };

Test(check, says_file_line_and_sentence_and_ends_the_program)
{
    const char *sentence;

    cr_assert(rondo_barrier(NULL, NULL) == RONDO_ERROR_INVALID);
    sentence = rondo_last_error(NULL);
    cr_assert(strlen(sentence) > 10);
    expect_end(program_with_an_error, LINE_OF_ERROR, sentence);
}

static void *thread_with_an_error(void *nothing)
{
    program_with_an_error();
    return nothing;
}

static void program_with_a_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, thread_with_an_error, NULL) == 0)
        pthread_join(thread, NULL);
}

Test(check, ends_the_program_from_any_of_its_threads)
{
    cr_assert(rondo_barrier(NULL, NULL) == RONDO_ERROR_INVALID);
    expect_end(program_with_a_thread, LINE_OF_ERROR, rondo_last_error(NULL));
}

static void program_that_does_not_wait(void)
{
    (void)rondo_barrier(NULL, NULL); /* its sentence is not that of the next line */
    RONDO_CHECK(RONDO_IN_PROGRESS);
}
enum { LINE_OF_PROGRESS = __LINE__ - 2 };

Test(check, names_a_result_that_has_no_sentence)
{
    expect_end(program_that_does_not_wait, LINE_OF_PROGRESS,
               rondo_result_string(RONDO_IN_PROGRESS));
}

static void program_with_an_error_of_ddp(void)
{
    RONDO_DDP_CHECK(rondo_ddp_wait(NULL));
}
enum { LINE_OF_DDP = __LINE__ - 2 };

Test(check, has_the_sentences_of_the_data_parallel_layer)
{
    cr_assert(rondo_ddp_wait(NULL) == RONDO_ERROR_INVALID);
    cr_assert(strlen(rondo_ddp_last_error()) > 10);
    expect_end(program_with_an_error_of_ddp, LINE_OF_DDP, rondo_ddp_last_error());
}
