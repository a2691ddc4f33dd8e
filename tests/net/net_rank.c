/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_rank.c - one rank of a job that test_net.py starts on several hosts; its first argument says
 * what it does. Prints a line that begins with "rank"; ends with 0 if all was right.
 *
 *     matrix SEED [K] the matrix of calls (tests/api/values/matrix.h), or every Kth of them
 *     bodies          groups, streams, splits
 *     calls BYTES     all_reduce without end, until an error; prints it, and seconds the call took;
 *                     of memory that an adapter may read
 *     sleep SECONDS   one call, nothing for so long, another call
 *     deaf            every rank waits for a message of the next one's, which never comes
 *     sums COUNT      so many sums of threes; ends with 3 if one was RONDO_OK and wrong
 *     lives COUNT     so many communicators, one after another; nothing may be left of them
 */
#include "../api/bodies.h"
#include "tests/api/values/matrix.h"

#include <limits.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    LEAST_CALLS = 1000, /* that a matrix has, by far */
    MEMORY_NOISE = 1024 /* KiB */
};

static char sentence[WORLD_SENTENCE];

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int say(const rondo_comm *comm, rondo_result result, const char *what)
{
    printf("rank %d of %d: %s: %s\n", rondo_comm_rank(comm), rondo_comm_size(comm), what,
           result ? sentence[0] ? sentence : rondo_last_error(comm) : "good");
    fflush(stdout);
    return result != RONDO_OK;
}

/* Fails unless each form has been called at least once. */
static rondo_result check_forms(const struct matrix *matrix)
{
    for (int i = 0; i < matrix->list.forms; i++)
        if (!matrix->ran[i] && !matrix->refused[i])
            return world_say(sentence, RONDO_ERROR_INTERNAL, "no call of %s by %s",
                             rondo_collective_name(matrix->list.form[i].collective),
                             matrix->list.form[i].algorithm);
    return RONDO_OK;
}

static int run_matrix(rondo_comm *comm, const char *seed, int every)
{
    static struct matrix matrix;
    struct matrix_part part = {&matrix, true};
    int calls = 0;

    rondo_result result = matrix_choose(&matrix, strtoul(seed, NULL, 10), comm, sentence);

    /* The cases of all numbers of ranks, with this number. */
    for (int i = 0; i < matrix.list.count; i++) {
        matrix.list.at[i].size = i % every ? 0 : rondo_comm_size(comm);
        matrix.list.at[i].processes = true;
    }
    if (!result)
        result = matrix_run(comm, &part, sentence);
    for (int i = 0; i < matrix.list.forms; i++)
        calls += matrix.ran[i];
    if (!result && rondo_comm_rank(comm) == 0)
        result = calls < LEAST_CALLS / every
                     ? world_say(sentence, RONDO_ERROR_INTERNAL, "only %d calls ran", calls)
                     : check_forms(&matrix);
    if (!result && rondo_comm_rank(comm) == 0)
        printf("%d of %d calls\n", calls, matrix.list.count);
    return say(comm, result, "matrix");
}

static int run_bodies(rondo_comm *comm)
{
    const world_body bodies[] = {
        groups_fuse_many_calls,       groups_exchange_with_all,
        groups_send_recv_chain,       streams_keep_order,
        streams_wait_for_events,      streams_overlap_with_others,
        splits_odd_and_even,          splits_nest,
        splits_dup_has_its_own_order, operations_affine_maps_in_rank_order};
    rondo_result result = RONDO_OK;

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]) && !result; i++)
        result = bodies[i](comm, NULL, sentence);
    return say(comm, result, "bodies");
}

static int run_calls(rondo_comm *comm, const char *bytes)
{
    size_t count = strtoul(bytes, NULL, 10) / sizeof(float);
    void *values = NULL;
    rondo_result result = rondo_mem_alloc((count + 1) * sizeof(float), &values);
    double began = now();

    for (int call = 0; !result; call++) {
        began = now();
        result = rondo_all_reduce(values, values, count, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
        if (call == 10) {
            printf("rank %d calls\n", rondo_comm_rank(comm));
            fflush(stdout);
        }
    }
    printf("rank %d: after %.1f s: %s\n", rondo_comm_rank(comm), now() - began,
           rondo_last_error(comm));
    rondo_mem_free(values);
    return result != RONDO_ERROR_PEER;
}

/* Slow ranks are no dead ranks. */
static int run_sleep(rondo_comm *comm, const char *seconds)
{
    rondo_result result = bodies_all_reduce(comm, 1 << 16, sentence);

    if (rondo_comm_rank(comm) == rondo_comm_size(comm) - 1)
        sleep((unsigned)atoi(seconds));
    if (!result)
        result = bodies_all_reduce(comm, 1 << 16, sentence);
    return say(comm, result, "sleep");
}

static int run_deaf(rondo_comm *comm)
{
    int next = (rondo_comm_rank(comm) + 1) % rondo_comm_size(comm);
    double began = now();
    float value;
    rondo_result result = rondo_recv(&value, 1, RONDO_FLOAT32, next, comm, NULL);

    printf("rank %d: after %.1f s: %s\n", rondo_comm_rank(comm), now() - began,
           rondo_last_error(comm));
    return result != RONDO_ERROR_TIMEOUT;
}

static bool are_all(const float *values, size_t count, float wanted)
{
    for (size_t i = 0; i < count; i++)
        if (values[i] != wanted)
            return false;
    return true;
}

static int run_sums(rondo_comm *comm, const char *text)
{
    enum { VALUES = 100000 };
    static float threes[VALUES], sums[VALUES];
    float wanted = 3.0f * (float)rondo_comm_size(comm);
    rondo_result result = RONDO_OK;
    bool right = true;

    for (size_t i = 0; i < VALUES; i++)
        threes[i] = 3;
    for (int i = 0; i < atoi(text) && !result && right; i++) {
        size_t count = i % 2 ? 1000 : VALUES;

        result = rondo_all_reduce(threes, sums, count, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
        right = result || are_all(sums, count, wanted);
    }
    if (!right) {
        printf("rank %d: RONDO_OK and wrong\n", rondo_comm_rank(comm));
        return 3;
    }
    return say(comm, result, "sums");
}

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* KiB of memory that this process has, private and shared. */
static long count_memory(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long all = 0, resident = 0;

    if (file && fscanf(file, "%ld %ld", &all, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* AddressSanitizer keeps what was freed, and looks for leaks itself. */
static long memory_noise(void)
{
#ifdef __SANITIZE_ADDRESS__
    return LONG_MAX / 2;
#else
    return MEMORY_NOISE;
#endif
}

/* Queues, completion queues, memory and all else that adapters of a guest (tests/vm) hold for both
 * ranks. No rank has, or opens, a communicator beside `comm` meanwhile. */
static rondo_result count_resources(rondo_comm *comm, long *ret_count)
{
    rondo_result result = rondo_barrier(comm, NULL);
    FILE *said = getenv("RXE_DEV") ? popen("rdma resource show", "r") : NULL;
    char word[64], *end;

    *ret_count = 0;
    while (said && fscanf(said, "%63s", word) == 1) {
        long number = strtol(word, &end, 10);

        *ret_count += *end ? 0 : number;
    }
    if (said)
        pclose(said);
    return result ? result : rondo_barrier(comm, NULL);
}

static int run_lives(rondo_comm *comm, const char *text)
{
    int lives = atoi(text), before = count_descriptors();
    long memory = 0, resources = 0, left = 0;
    rondo_result result = RONDO_OK;

    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* else the kernel makes its heap a page of 2 MiB */
    for (int i = 0; i < lives && !result; i++) {
        rondo_comm *life = NULL;

        result = rondo_comm_dup(comm, &life);
        if (!result)
            result = bodies_all_reduce(life, 1000, sentence);
        rondo_comm_close(life);
        if (i <= lives / 4) /* by then all there will be is there */
            memory = count_memory();
        if (i == lives / 4 && !result)
            result = count_resources(comm, &resources);
    }
    if (!result)
        result = count_resources(comm, &left);
    if (!result && left != resources)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "%ld resources of adapters became %ld",
                           resources, left);
    if (!result && count_memory() > memory + memory_noise())
        result =
            world_say(sentence, RONDO_ERROR_INTERNAL, "%ld KiB became %ld", memory, count_memory());
    if (!result && count_descriptors() > before + 4) /* lines of `comm` that were not there yet */
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "%d descriptors became %d", before,
                           count_descriptors());
    return say(comm, result, "lives");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *more = argc > 2 ? argv[2] : "1";
    rondo_comm *comm = NULL;
    int status = 2;

    if (rondo_comm_open(NULL, &comm)) {
        printf("rank ?: %s\n", rondo_last_error(NULL));
        return 1;
    }
    if (!strcmp(what, "matrix"))
        status = run_matrix(comm, more, argc > 3 ? atoi(argv[3]) : 1);
    else if (!strcmp(what, "bodies"))
        status = run_bodies(comm);
    else if (!strcmp(what, "calls"))
        status = run_calls(comm, more);
    else if (!strcmp(what, "sleep"))
        status = run_sleep(comm, more);
    else if (!strcmp(what, "deaf"))
        status = run_deaf(comm);
    else if (!strcmp(what, "sums"))
        status = run_sums(comm, more);
    else if (!strcmp(what, "lives"))
        status = run_lives(comm, more);
    rondo_comm_close(comm);
    return status;
}
