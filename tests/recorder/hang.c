/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hang.c - a rank of a job that hangs in a way of one's choice: `hang WAY RANK`, where RANK is the
 * one that does it. All make some calls before; nobody ever closes the communicator.
 */
#include "rondo/rondo.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 64, WARM_UP = 40, MANY = 1 << 21, LONG = 32 << 8 };

static rondo_comm *comm, *second;
static float values[COUNT], sums[COUNT], many[MANY];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void stay(void)
{
    for (;;)
        pause();
}

static rondo_result all_reduce(rondo_comm *on)
{
    return rondo_all_reduce(values, sums, COUNT, RONDO_FLOAT32, RONDO_SUM, on, NULL);
}

static rondo_result broadcast(size_t count, int root)
{
    return rondo_broadcast(values, sums, count, RONDO_FLOAT32, root, comm, NULL);
}

/* A parent of vfork() is in state D until its child has ended, as one that waits for a disk. */
static void hold_parent(void)
{
    struct timespec second_long = {1, 0};

    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < 120; i++)
            nanosleep(&second_long, NULL);
        _exit(0);
    }
}

static void *hold_lock(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&lock);
    stay();
    return NULL;
}

static void wait_for_lock(void)
{
    pthread_t holder;

    if (pthread_create(&holder, NULL, hold_lock, NULL))
        return;
    while (!pthread_mutex_trylock(&lock)) { /* until the holder has it */
        pthread_mutex_unlock(&lock);
        sched_yield();
    }
    pthread_mutex_lock(&lock);
}

_Noreturn static rondo_result compute(void)
{
    (void)!nice(19); /* other tests may need the processor */
    for (;;)
        clock();
}

/* More than fits into the slots between two ranks. */
static rondo_result send_many(int to)
{
    return rondo_send(many, MANY, RONDO_FLOAT32, to, comm, NULL);
}

static rondo_result receive(int from)
{
    return rondo_recv(sums, COUNT, RONDO_FLOAT32, from, comm, NULL);
}

static rondo_result misbehave(const char *way)
{
    if (strcmp(way, "absent") == 0)
        stay();
    if (strcmp(way, "dead") == 0)
        raise(SIGKILL);
    if (strcmp(way, "stopped") == 0)
        raise(SIGSTOP);
    if (strcmp(way, "disk") == 0)
        hold_parent();
    if (strcmp(way, "lock") == 0)
        wait_for_lock();
    if (strcmp(way, "root") == 0)
        return broadcast(COUNT, 1);
    if (strcmp(way, "count") == 0)
        return broadcast(COUNT / 2, 0);
    return broadcast(COUNT, 0);
}

/* Calls of two communicators, in an order that depends on the rank. */
static rondo_result cross(int rank)
{
    rondo_result result = all_reduce(rank % 2 ? second : comm);

    return result ? result : all_reduce(rank % 2 ? comm : second);
}

/* Calls without end, until messages do not arrive any more. */
static rondo_result go_on(void)
{
    struct timespec pause_time = {0, 1000 * 1000};
    rondo_result result = RONDO_OK;

    while (!result) {
        result = all_reduce(comm);
        nanosleep(&pause_time, NULL);
    }
    return result;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* One rank comes late to calls that are long enough that each is timed, and as many as are kept. On
 * a busy machine others come late as well: then it comes twice as late to as many more. */
static rondo_result be_late(bool late)
{
    enum { KEPT = 256 };
    static float output[LONG];
    struct timespec pause_time = {0, 3 * 1000 * 1000};
    float more = 0, any = 0;
    rondo_result result;

    do {
        double paused = 0, waited = 0;

        for (int i = 0; i < KEPT; i++) {
            double began = now(), came;

            if (late)
                nanosleep(&pause_time, NULL);
            came = now();
            result = rondo_all_reduce(many, output, LONG, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
            if (result)
                return result;
            paused += came - began;
            waited += now() - came;
        }
        more = late && paused < 4 * waited;
        pause_time.tv_nsec *= 2;
        result = rondo_all_reduce(&more, &any, 1, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    } while (!result && any > 0 && pause_time.tv_nsec < 200 * 1000 * 1000);
    return result;
}

static rondo_result hang(const char *way, int culprit, int rank)
{
    rondo_result result;

    if (strcmp(way, "deadlock") == 0)
        return cross(rank);
    if (strcmp(way, "send") == 0)
        return send_many(!rank);
    if (strcmp(way, "message") == 0)
        return rank == culprit ? all_reduce(comm) : receive(culprit);
    if (strcmp(way, "compute") == 0)
        return rank == culprit ? compute() : all_reduce(comm);
    if (strcmp(way, "chain") == 0)
        return rank == culprit ? compute() : receive(rank + 1);
    if (strcmp(way, "link") == 0)
        return go_on();
    if (strcmp(way, "late") == 0)
        return be_late(rank == culprit);
    result = rank == culprit ? misbehave(way) : broadcast(COUNT, 0);
    return result ? result : all_reduce(comm); /* nobody waits in a short broadcast */
}

/* A rank that is in trouble already would trouble those that still make the calls before. */
static void await_the_others(void)
{
    const char *go = getenv("HANG_GO"); /* a file, made when all are ready */
    struct timespec doze = {0, 1000 * 1000};

    while (go && access(go, F_OK))
        nanosleep(&doze, NULL);
}

int main(int argc, char **argv)
{
    rondo_result result = argc == 3 ? rondo_comm_open(NULL, &comm) : RONDO_ERROR_INVALID;
    int rank;

    if (!result && strcmp(argv[1], "deadlock") == 0)
        result = rondo_comm_dup(comm, &second);
    for (int i = 0; i < WARM_UP && !result; i++)
        result = all_reduce(comm);
    if (result) {
        fprintf(stderr, "hang: %s\n", comm ? rondo_last_error(comm) : rondo_last_error(NULL));
        return 1;
    }
    rank = rondo_comm_rank(comm);
    printf("ready\n");
    fflush(stdout);
    await_the_others();
    result = hang(argv[1], atoi(argv[2]), rank);
    printf("%s\n", result ? rondo_last_error(comm) : "ended");
    fflush(stdout);
    stay();
}
