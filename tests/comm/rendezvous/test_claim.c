/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_claim.c - two jobs that were told one place, and children with the variables of their
 * parents: nobody gets ranks of another job, and who is refused is told which process is the rank.
 */
#include "comm/rendezvous/bootstrap.h"
#include "tests/comm/rendezvous/party.h"

#include "base/fail.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct claimant {
    pid_t pid;
    FILE *in, *out; /* of us: to write to it, to read from it */
    char line[FAIL_SENTENCE_MAX];
};

/* The variables of a job that is started by hand, on one host or over TCP, at a place of this
 * test's own. */
static void set_job(bool tcp, int size)
{
    struct bootstrap_place place;
    char number[16];

    party_place(&place, tcp);
    snprintf(number, sizeof(number), "%d", size);
    setenv("RONDO_SIZE", number, 1);
    setenv("RONDO_ADDRESS", place.address, 1);
    setenv("RONDO_SECRET", "0123456789abcdef0123456789abcdef", 1);
}

static void start(struct claimant *claimant, int rank, const char *argument)
{
    int in[2], out[2];
    char number[16];

    cr_assert(!pipe(in) && !pipe(out));
    snprintf(number, sizeof(number), "%d", rank);
    setenv("RONDO_RANK", number, 1);
    claimant->pid = fork();
    cr_assert_geq(claimant->pid, 0);
    if (!claimant->pid) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        for (int fd = 3; fd < 256; fd++)
            close(fd); /* a sibling that holds our end of a pipe would never let it end */
        execl(CLAIMANT, CLAIMANT, argument, (char *)NULL);
        _exit(9);
    }
    close(in[0]);
    close(out[1]);
    claimant->in = fdopen(in[1], "w");
    claimant->out = fdopen(out[0], "r");
}

static const char *hear(struct claimant *claimant)
{
    cr_assert_not_null(fgets(claimant->line, sizeof(claimant->line), claimant->out));
    claimant->line[strcspn(claimant->line, "\n")] = '\0';
    return claimant->line;
}

static void again(struct claimant *claimant)
{
    fputs("\n", claimant->in);
    fflush(claimant->in);
}

static void end(struct claimant *claimant)
{
    int status;

    fclose(claimant->in);
    waitpid(claimant->pid, &status, 0);
    fclose(claimant->out);
    cr_expect_eq(status, 0);
}

static void expect(struct claimant *claimant, const char *line)
{
    cr_expect_str_eq(hear(claimant), line);
}

static void expect_part(struct claimant *claimant, const char *part)
{
    cr_expect(strstr(hear(claimant), part), "'%s' should have '%s'", claimant->line, part);
}

/* "process 123 of this host is rank 1" */
static void expect_refused(struct claimant *claimant, const struct claimant *holder, int rank)
{
    char part[80];

    snprintf(part, sizeof(part), "process %d of this host is rank %d of the job", (int)holder->pid,
             rank);
    expect_part(claimant, part);
}

static void expect_both(struct claimant *claimant, const struct claimant *one,
                        const struct claimant *other)
{
    char number[16];

    hear(claimant);
    snprintf(number, sizeof(number), " %d ", (int)one->pid);
    cr_expect(strstr(claimant->line, number), "'%s' should have%s", claimant->line, number);
    snprintf(number, sizeof(number), " %d ", (int)other->pid);
    cr_expect(strstr(claimant->line, number), "'%s' should have%s", claimant->line, number);
    cr_expect(strstr(claimant->line, "give each job an address of its own"), "'%s'",
              claimant->line);
}

static void start_pair(struct claimant *pair)
{
    for (int rank = 0; rank < 2; rank++) {
        start(&pair[rank], rank, NULL);
        expect(&pair[rank], "claimed");
    }
    for (int rank = 0; rank < 2; rank++)
        expect(&pair[rank], "met 0 1");
}

static void check_late(bool tcp)
{
    struct claimant pair[2], late[2];

    set_job(tcp, 2);
    start_pair(pair);
    for (int rank = 1; rank >= 0; rank--) {
        start(&late[rank], rank, NULL);
        expect_refused(&late[rank], &pair[rank], rank);
        end(&late[rank]);
    }
    for (int rank = 0; rank < 2; rank++) /* and the first job goes on */
        again(&pair[rank]);
    for (int rank = 0; rank < 2; rank++) {
        expect(&pair[rank], "claimed");
        expect(&pair[rank], "met 0 1");
    }
    for (int rank = 0; rank < 2; rank++)
        end(&pair[rank]);
    start_pair(pair); /* the place is free again */
    for (int rank = 0; rank < 2; rank++)
        end(&pair[rank]);
}

Test(claim, who_comes_after_a_job_has_met_is_refused_and_the_job_goes_on)
{
    check_late(false);
    check_late(true);
}

static void check_two_zeros(bool tcp)
{
    struct claimant first, second;

    set_job(tcp, 2);
    start(&first, 0, NULL);
    expect(&first, "claimed");
    start(&second, 0, NULL);
    expect_refused(&second, &first, 0);
    expect_both(&first, &first, &second);
    end(&first);
    end(&second);
}

Test(claim, a_second_rank_0_is_refused_and_ends_the_meeting_that_it_disturbs)
{
    check_two_zeros(false);
    check_two_zeros(true);
}

/* The others may be there already, or come later. */
static void check_two_ones(bool early)
{
    struct claimant zero, first, second;

    set_job(false, 3);
    if (early) {
        start(&zero, 0, NULL);
        expect(&zero, "claimed");
    }
    start(&first, 1, NULL);
    expect(&first, "claimed");
    start(&second, 1, NULL);
    expect_refused(&second, &first, 1);
    if (!early) {
        start(&zero, 0, NULL);
        expect(&zero, "claimed");
    }
    expect_both(&zero, &first, &second);
    expect_both(&first, &first, &second);
    end(&zero);
    end(&first);
    end(&second);
}

Test(claim, a_rank_that_is_claimed_twice_ends_the_meeting_whoever_comes_first)
{
    check_two_ones(false);
    check_two_ones(true);
}

static void check_child(const char *when)
{
    struct claimant pair[2];
    char part[80];

    set_job(false, 2);
    start(&pair[0], 0, NULL);
    expect(&pair[0], "claimed");
    start(&pair[1], 1, when);
    snprintf(part, sizeof(part), "process %d is rank 1 of this job, and this one",
             (int)pair[1].pid);
    if (!strcmp(when, "before"))
        expect_part(&pair[1], part);
    expect(&pair[1], "claimed");
    expect(&pair[1], "met 0 1");
    if (!strcmp(when, "after"))
        expect_part(&pair[1], part);
    expect(&pair[0], "met 0 1");
    end(&pair[0]);
    end(&pair[1]);
}

Test(claim, a_child_that_inherits_the_variables_is_refused_before_its_parent_opens_and_after)
{
    check_child("before");
    check_child("after");
}

Test(claim, a_child_that_was_forked_may_be_the_rank)
{
    struct claimant pair[2];

    set_job(false, 2);
    for (int rank = 0; rank < 2; rank++)
        start(&pair[rank], rank, "forks");
    for (int rank = 0; rank < 2; rank++) {
        expect(&pair[rank], "claimed");
        expect(&pair[rank], "met 0 1");
        end(&pair[rank]);
    }
}
