/* SPDX-License-Identifier: BSD-3-Clause */
/* test_open.c - joining: wrong sizes, a number claimed twice, a rank that never comes. */
#include "../world.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX = 4, SECONDS = 300 /* until the alarm: a guard */ };

/* Each process has said this when it joined, and got that. In shared memory. */
struct joining {
    rondo_unique_id id;
    int size[MAX], rank[MAX];
    int slots[MAX];    /* 0: not set */
    bool hidden;       /* no process may look at another one */
    atomic_bool begun; /* they may join */
    rondo_result results[MAX];
    char sentences[MAX][WORLD_SENTENCE];
};

static void join(struct joining *joining, int who, double timeout)
{
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_comm *comm = NULL;

    alarm(SECONDS);
    while (!atomic_load_explicit(&joining->begun, memory_order_acquire))
        usleep(200);
    if (joining->hidden && !world_hide())
        return;
    config.timeout = timeout;
    config.slots = joining->slots[who];
    joining->results[who] =
        rondo_comm_open_id(&joining->id, joining->size[who], joining->rank[who], &config, &comm);
    world_say(joining->sentences[who], RONDO_OK, "%s", rondo_last_error(NULL));
    rondo_comm_close(comm);
}

/*
 * Until the thread that serves the id sleeps. The C library gives a child of fork() an allocator
 * that works, whatever other threads were doing; that of AddressSanitizer may be locked for ever.
 */
static void await_server(void)
{
    bool sleeps = false;

    while (!sleeps) {
        DIR *tasks = opendir("/proc/self/task");

        cr_assert(tasks != NULL);
        for (struct dirent *task; (task = readdir(tasks));) {
            char path[300], number[16] = "";
            FILE *file;

            snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", task->d_name);
            file = fopen(path, "r");
            if (file && fscanf(file, "%15s", number) == 1)
                sleeps |= atoi(number) == SYS_poll;
            if (file)
                fclose(file);
        }
        closedir(tasks);
    }
}

/* The parent makes the id, and so serves it; `count` children join, none before all are there. */
static void join_all(struct joining *joining, int count, double timeout)
{
    pid_t children[MAX];
    int status;

    cr_assert(rondo_unique_id_create(&joining->id) == RONDO_OK, "%s", rondo_last_error(NULL));
    await_server();
    for (int i = 0; i < count; i++) {
        joining->results[i] = RONDO_RESULTS;
        children[i] = fork();
        if (!children[i]) {
            join(joining, i, timeout);
            _exit(0);
        }
    }
    atomic_store_explicit(&joining->begun, true, memory_order_release);
    for (int i = 0; i < count; i++) {
        status = 0;
        waitpid(children[i], &status, 0);
        cr_expect(WIFEXITED(status), "process %d ended by signal %d", i, WTERMSIG(status));
    }
}

static struct joining *open_joining(int count, const int *sizes, const int *ranks)
{
    struct joining *joining = world_share(sizeof(*joining));

    memcpy(joining->size, sizes, (size_t)count * sizeof(int));
    memcpy(joining->rank, ranks, (size_t)count * sizeof(int));
    return joining;
}

Test(open, by_id_works_for_children_of_the_process_that_made_it)
{
    struct joining *joining = open_joining(3, (int[]){3, 3, 3}, (int[]){2, 0, 1});

    join_all(joining, 3, 20);
    for (int i = 0; i < 3; i++)
        cr_expect(joining->results[i] == RONDO_OK, "%s", joining->sentences[i]);
}

/* A program of mode 711 is protected like this, and one that has file capabilities. */
Test(open, processes_that_may_not_look_at_each_other_talk_over_a_network)
{
    struct joining *joining = open_joining(3, (int[]){3, 3, 3}, (int[]){2, 0, 1});

    joining->hidden = true;
    join_all(joining, 3, 20);
    for (int i = 0; i < 3; i++)
        cr_expect(joining->results[i] == RONDO_OK, "%s", joining->sentences[i]);
}

Test(open, different_sizes_are_refused_on_every_rank)
{
    struct joining *joining = open_joining(3, (int[]){3, 3, 2}, (int[]){0, 1, 1});

    join_all(joining, 3, world_patience(5));
    for (int i = 0; i < 3; i++) {
        cr_expect(joining->results[i] != RONDO_OK && joining->results[i] != RONDO_RESULTS,
                  "process %d: %s", i, rondo_result_string(joining->results[i]));
        cr_expect(strlen(joining->sentences[i]) > 10, "process %d said nothing", i);
    }
}

Test(open, a_number_claimed_twice_is_refused_and_named)
{
    struct joining *joining = open_joining(3, (int[]){3, 3, 3}, (int[]){0, 1, 1});
    bool named = false;

    join_all(joining, 3, world_patience(5));
    for (int i = 0; i < 3; i++) {
        cr_expect(joining->results[i] != RONDO_OK, "process %d joined", i);
        named = named || strstr(joining->sentences[i], "number 1") ||
                strstr(joining->sentences[i], "rank 1");
    }
    cr_expect(named, "nobody named rank 1: \"%s\"", joining->sentences[0]);
}

Test(open, a_rank_that_never_comes_is_named_after_the_timeout)
{
    struct joining *joining = open_joining(2, (int[]){3, 3}, (int[]){0, 2});
    double timeout = world_patience(1);
    char text[32];

    snprintf(text, sizeof(text), "%.1f", timeout);
    setenv("RONDO_TIMEOUT", text, 1); /* of the process that serves the id */
    join_all(joining, 2, timeout);
    for (int i = 0; i < 2; i++) {
        cr_expect(joining->results[i] == RONDO_ERROR_TIMEOUT, "process %d: %s: \"%s\"", i,
                  rondo_result_string(joining->results[i]), joining->sentences[i]);
        cr_expect(strstr(joining->sentences[i], "1"), "\"%s\"", joining->sentences[i]);
    }
}

Test(open, a_rank_that_cannot_take_part_is_named_without_waiting_for_the_timeout)
{
    struct joining *joining = open_joining(3, (int[]){3, 3, 3}, (int[]){0, 1, 2});

    joining->slots[1] = 1;
    join_all(joining, 3, 10 * SECONDS); /* longer than a process may take */
    cr_expect(joining->results[1] == RONDO_ERROR_INVALID, "\"%s\"", joining->sentences[1]);
    cr_expect(strstr(joining->sentences[1], "RONDO_SLOTS"), "\"%s\"", joining->sentences[1]);
    for (int i = 0; i < 3; i += 2) {
        cr_expect(joining->results[i] == RONDO_ERROR_PEER, "\"%s\"", joining->sentences[i]);
        cr_expect(strstr(joining->sentences[i], "Rank 1"), "\"%s\"", joining->sentences[i]);
    }
}

Test(open, alone_a_process_is_rank_0_of_1)
{
    static const char *const variables[] = {
        "RONDO_RANK",           "RONDO_SIZE", "RANK",     "WORLD_SIZE",   "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE", "PMI_RANK",   "PMI_SIZE", "SLURM_PROCID", "SLURM_NTASKS"};
    rondo_comm *comm = NULL;
    int value = 42;

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        unsetenv(variables[i]);
    cr_assert(rondo_comm_open(NULL, &comm) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_expect(rondo_comm_rank(comm) == 0 && rondo_comm_size(comm) == 1);
    cr_expect(rondo_comm_local_rank(comm) == 0 && rondo_comm_local_size(comm) == 1);
    cr_expect(rondo_all_reduce(&value, &value, 1, RONDO_INT32, RONDO_SUM, comm, NULL) == RONDO_OK);
    cr_expect(value == 42);
    rondo_comm_close(comm);
}

/* ---- By the environment ---------------------------------------------------------------------- */

/* A job of two ranks, in shared memory. */
struct retrying {
    char address[40];
    atomic_bool failed; /* rank 1 was there alone, and has given up */
    rondo_result results[2][2];
    char sentences[2][WORLD_SENTENCE];
};

/* Opens two communicators, one after the other; rank 1 tries before rank 0 is there. */
static void open_job(struct retrying *job, int rank)
{
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_comm *comm = NULL;

    alarm(SECONDS);
    setenv("RONDO_RANK", rank ? "1" : "0", 1);
    setenv("RONDO_SIZE", "2", 1);
    setenv("RONDO_ADDRESS", job->address, 1);
    config.timeout = 0.1;
    if (rank && rondo_comm_open(&config, &comm) == RONDO_ERROR_TIMEOUT)
        atomic_store_explicit(&job->failed, true, memory_order_release);
    while (!atomic_load_explicit(&job->failed, memory_order_acquire))
        usleep(200);
    config.timeout = world_patience(5);
    for (int i = 0; i < 2; i++) {
        job->results[rank][i] = rondo_comm_open(&config, &comm);
        world_say(job->sentences[rank], RONDO_OK, "%s", rondo_last_error(NULL));
        if (!job->results[rank][i])
            rondo_comm_close(comm);
    }
}

Test(open, a_rank_that_came_too_early_meets_the_others_when_it_tries_again)
{
    struct retrying *job = world_share(sizeof(*job));
    pid_t children[2];

    snprintf(job->address, sizeof(job->address), "unix:test_open-%d", (int)getpid());
    for (int rank = 0; rank < 2; rank++) {
        children[rank] = fork();
        if (!children[rank]) {
            open_job(job, rank);
            _exit(0);
        }
    }
    for (int rank = 0; rank < 2; rank++) {
        int status = 0;

        waitpid(children[rank], &status, 0);
        cr_expect(WIFEXITED(status), "rank %d ended by signal %d", rank, WTERMSIG(status));
        for (int i = 0; i < 2; i++)
            cr_expect(job->results[rank][i] == RONDO_OK, "rank %d: %s", rank, job->sentences[rank]);
    }
}
