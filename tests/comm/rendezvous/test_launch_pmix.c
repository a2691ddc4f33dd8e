/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_launch_pmix.c - ranks whose launcher speaks nothing but PMIx: rank, size and where to meet.
 * The library is that of fake_pmix.c; test_launch_mpi.c has a real one.
 */
#include "comm/rendezvous/bootstrap.h"

#include "base/fail.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VARIABLES = 10, RANKS = 2 };

/* A rank says this in the end. */
struct said {
    rondo_result result;
    struct launch launch;
    char launcher[16], sentence[FAIL_SENTENCE_MAX];
};

static char folder[] = "/tmp/rondo-pmix-XXXXXX";

static void be_rank(int rank, const char *const *variables, struct said *said)
{
    char text[80];

    clearenv();
    setenv("RONDO_LOG", "none", 1);
    setenv("PMIX_NAMESPACE", folder, 1);
    snprintf(text, sizeof(text), "%s/said", folder);
    setenv("FAKE_FILE", text, 1);
    snprintf(text, sizeof(text), "%d", rank);
    setenv("PMIX_RANK", text, 1);
    setenv("FAKE_LOCAL_RANK", text, 1);
    for (; *variables; variables++)
        putenv((char *)*variables); /* which copies nothing and changes nothing */
    said->result = launch_read(&said->launch);
    if (said->result)
        snprintf(said->sentence, sizeof(said->sentence), "%s", fail_sentence());
    else
        snprintf(said->launcher, sizeof(said->launcher), "%s", said->launch.launcher);
}

static void make_folder(void)
{
    cr_assert(mkdtemp(strcpy(folder, "/tmp/rondo-pmix-XXXXXX")));
}

static void remove_folder(void)
{
    for (int i = 0; i < 2; i++) {
        char path[80];

        snprintf(path, sizeof(path), "%s/said%s", folder, i ? ".done" : "");
        unlink(path);
    }
    cr_assert_eq(rmdir(folder), 0);
}

/* Each rank is a process: the library is initialised once in each. */
static void run_ranks(const char *const *variables, struct said said[RANKS])
{
    int ends[RANKS][2];

    make_folder();
    for (int rank = 0; rank < RANKS; rank++) {
        cr_assert_eq(pipe(ends[rank]), 0);
        if (fork() == 0) {
            static struct said mine;

            be_rank(rank, variables, &mine);
            _exit(write(ends[rank][1], &mine, sizeof(mine)) != sizeof(mine));
        }
        close(ends[rank][1]);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        cr_assert_eq(read(ends[rank][0], &said[rank], sizeof(said[rank])),
                     (ssize_t)sizeof(said[rank]));
        close(ends[rank][0]);
        wait(NULL);
    }
    remove_folder();
}

static void expect_ranks(const struct said *said, int local_size)
{
    for (int rank = 0; rank < RANKS; rank++) {
        const struct launch *launch = &said[rank].launch;

        cr_assert_eq(said[rank].result, RONDO_OK, "%s", said[rank].sentence);
        cr_assert_str_eq(said[rank].launcher, "PMIx");
        cr_assert_eq(launch->rank, rank);
        cr_assert_eq(launch->size, RANKS);
        cr_assert_eq(launch->local_size, local_size);
        cr_assert_str_eq(launch->place.address, said[0].launch.place.address);
        cr_assert_arr_eq(launch->place.secret, said[0].launch.place.secret, BOOTSTRAP_SECRET);
    }
}

Test(launch_pmix, ranks_of_one_host_meet_at_a_socket_of_their_job)
{
    static const char *const variables[] = {"FAKE_SIZE=2", "FAKE_LOCAL_SIZE=2", NULL};
    struct said said[RANKS];

    run_ranks(variables, said);
    expect_ranks(said, RANKS);
    cr_assert_eq(strncmp(said[0].launch.place.address, "unix:", 5), 0);
    cr_assert_not(said[0].launch.served);
}

/* These are like two hosts: nobody has set an address or a secret. */
Test(launch_pmix, ranks_of_several_hosts_meet_where_rank_0_says)
{
    static const char *const variables[] = {"FAKE_SIZE=2", "RONDO_INTERFACE=lo", NULL};
    struct said said[RANKS];
    unsigned char nothing[BOOTSTRAP_SECRET] = {0};

    run_ranks(variables, said);
    expect_ranks(said, -1);
    cr_assert_eq(strncmp(said[0].launch.place.address, "127.0.0.1:", 10), 0, "%s",
                 said[0].launch.place.address);
    cr_assert_arr_neq(said[0].launch.place.secret, nothing, BOOTSTRAP_SECRET);
    cr_assert(said[0].launch.served && said[1].launch.served);
}

Test(launch_pmix, ranks_of_several_hosts_also_use_the_secret_that_they_have)
{
    static const char *const variables[] = {"FAKE_SIZE=2", "RONDO_INTERFACE=lo",
                                            "RONDO_SECRET=a secret of some length", NULL};
    struct said said[RANKS];

    run_ranks(variables, said);
    expect_ranks(said, -1);
    cr_assert(said[0].launch.served && said[1].launch.served);
}

Test(launch_pmix, a_lone_size_may_be_anybodys)
{
    static const char *const variables[] = {"FAKE_SIZE=2", "FAKE_LOCAL_SIZE=2", "WORLD_SIZE=4",
                                            NULL};
    struct said said[RANKS];

    run_ranks(variables, said);
    expect_ranks(said, RANKS);
}

Test(launch_pmix, an_address_that_is_set_counts_more)
{
    static const char *const variables[] = {"FAKE_SIZE=2", "RONDO_ADDRESS=host:4711",
                                            "RONDO_SECRET=a secret of some length", NULL};
    struct said said[RANKS];

    run_ranks(variables, said);
    expect_ranks(said, -1);
    cr_assert_str_eq(said[1].launch.place.address, "host:4711");
}

static const struct {
    const char *parts[RANKS]; /* of their sentences */
    const char *variables[VARIABLES];
} bad[] = {
    {{"PMIx does not answer: UNREACHABLE", "PMIx does not answer: UNREACHABLE"},
     {"FAKE_BROKEN=PMIx_Init", NULL}},
    {{"does not say how many ranks the job has", "does not say how many ranks the job has"},
     {NULL}},
    {{"", "calls this rank 1 and the job one of 1 ranks"}, {"FAKE_SIZE=1", NULL}},
    {{"not all ranks came to a fence of the launcher's PMIx (TIMEOUT)", "not all ranks came"},
     {"FAKE_SIZE=2", "FAKE_BROKEN=PMIx_Fence", "RONDO_INTERFACE=lo", NULL}},
    {{"PMIx takes no words for other ranks: UNREACHABLE", "not all ranks came"},
     {"FAKE_SIZE=2", "FAKE_BROKEN=PMIx_Put", "RONDO_INTERFACE=lo", NULL}},
    {{"RONDO_INTERFACE is \"none-such\"", "rank 0 could not open a place where ranks meet"},
     {"FAKE_SIZE=2", "RONDO_INTERFACE=none-such", NULL}},
};

Test(launch_pmix, whatever_is_missing_gets_a_sentence_on_every_rank)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct said said[RANKS];

        run_ranks(bad[i].variables, said);
        for (int rank = 0; rank < RANKS; rank++) {
            cr_assert_eq(said[rank].result != RONDO_OK, *bad[i].parts[rank] != '\0', "%zu: %s", i,
                         said[rank].sentence);
            cr_assert(strstr(said[rank].sentence, bad[i].parts[rank]), "'%s' should be '%s'",
                      said[rank].sentence, bad[i].parts[rank]);
        }
    }
}

/* ---- One process only is the rank ------------------------------------------------------------ */

static const char *const two_hosts[] = {"FAKE_SIZE=2", "RONDO_INTERFACE=lo", NULL};

/* Rank 0, then as rank 0 again its child (`forks`) or another process. What the second one heard
 * comes back. */
static void be_rank_twice(bool forks, struct said *ret_said, pid_t *ret_first)
{
    static struct said first, second;
    int ends[2];

    make_folder();
    cr_assert_eq(pipe(ends), 0);
    *ret_first = fork();
    if (!*ret_first) {
        be_rank(0, two_hosts, &first);
        if (forks && !first.result && fork() == 0) {
            second.result = launch_read(&second.launch);
            snprintf(second.sentence, sizeof(second.sentence), "%s", fail_sentence());
            _exit(write(ends[1], &second, sizeof(second)) < 0);
        }
        if (!forks)
            first.result = write(ends[1], &first, sizeof(first)) < 0;
        pause(); /* it is the rank until it is killed */
        _exit(0);
    }
    cr_assert_eq(read(ends[0], ret_said, sizeof(*ret_said)), (ssize_t)sizeof(*ret_said));
    if (!forks) {
        if (fork() == 0) {
            be_rank(0, two_hosts, &second);
            _exit(write(ends[1], &second, sizeof(second)) < 0);
        }
        cr_assert_eq(read(ends[0], ret_said, sizeof(*ret_said)), (ssize_t)sizeof(*ret_said));
    }
    kill(*ret_first, SIGKILL);
    while (wait(NULL) > 0)
        ;
    close(ends[0]);
    close(ends[1]);
    remove_folder();
}

Test(launch_pmix, a_child_of_a_rank_is_refused_before_it_talks_to_the_daemon)
{
    struct said said;
    char part[80];
    pid_t first;

    be_rank_twice(true, &said, &first);
    snprintf(part, sizeof(part), "process %d is rank 0 of this job, and this one", (int)first);
    cr_expect_eq(said.result, RONDO_ERROR_INVALID);
    cr_expect(strstr(said.sentence, part), "%s", said.sentence);
}

Test(launch_pmix, a_second_process_for_a_rank_is_refused_before_the_daemon_takes_it_for_the_first)
{
    struct said said;
    char part[120];
    pid_t first;

    be_rank_twice(false, &said, &first);
    snprintf(part, sizeof(part),
             "process %d of this host is rank 0 of the job at PMIX_NAMESPACE %s", (int)first,
             folder);
    cr_expect_eq(said.result, RONDO_ERROR_INVALID);
    cr_expect(strstr(said.sentence, part), "%s", said.sentence);
}

/* ---- What is left of an open that failed ----------------------------------------------------- */

static int count_files(void)
{
    DIR *folder_of_files = opendir("/proc/self/fd");
    int count = 0;

    while (folder_of_files && readdir(folder_of_files))
        count++;
    closedir(folder_of_files);
    return count;
}

/* The first open takes the name of the rank, which stays. */
static int fail_three_times(void)
{
    static const char *const broken[] = {"FAKE_SIZE=2", "FAKE_BROKEN=PMIx_Fence",
                                         "RONDO_INTERFACE=lo", NULL};
    static struct said said;
    int files = 0;

    for (int i = 0; i < 3; i++) {
        be_rank(0, broken, &said);
        if (!said.result)
            return 1;
        files = i ? files : count_files();
    }
    return count_files() == files ? 0 : 2;
}

Test(launch_pmix, an_open_that_fails_leaves_no_server_behind)
{
    int status = -1;

    make_folder();
    if (fork() == 0)
        _exit(fail_three_times());
    wait(&status);
    remove_folder();
    cr_expect_eq(WEXITSTATUS(status), 0, "%d (1: it did not fail, 2: files are left)",
                 WEXITSTATUS(status));
}
