/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tuning.c - what is tuned: equal on all ranks, inherited by those that split off. */
#include "comm/engine/threads.h"
#include "comm/rendezvous/host.h"
#include "comm/state/comm.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

enum { RANKS = 4 };

static rondo_comm *comms[RANKS], *parts[RANKS];

static void open_ranks(void)
{
    rondo_config config = RONDO_CONFIG_INIT;

    cr_assert(rondo_comm_open_all(RANKS, &config, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
}

static void close_ranks(rondo_comm **ranks)
{
    for (int r = 0; r < RANKS; r++)
        rondo_comm_close(ranks[r]);
}

static rondo_result split_off(void *argument)
{
    int rank = *(int *)argument;

    return rondo_comm_split(comms[rank], 0, rank, NULL, &parts[rank]);
}

static void split_all(void)
{
    int ranks[RANKS];
    void *arguments[RANKS];

    for (int r = 0; r < RANKS; r++) {
        ranks[r] = r;
        arguments[r] = &ranks[r];
    }
    cr_assert(threads_run(split_off, arguments, RANKS) == RONDO_OK, "%s", rondo_last_error(NULL));
}

static bool equal(const rondo_comm *a, const rondo_comm *b)
{
    return memcmp(&a->tuning, &b->tuning, sizeof(a->tuning)) == 0;
}

/* On one host, so what may differ between hosts is the same, too. */
Test(tuning, is_the_same_on_every_rank)
{
    open_ranks();
    for (int r = 1; r < RANKS; r++)
        cr_expect(equal(comms[0], comms[r]), "rank %d", r);
    close_ranks(comms);
}

/* A child has what follows from its ranks as before, and all else from its parent, whatever it is:
 * a member that was forgotten would be what a new communicator begins with. */
Test(tuning, is_inherited_by_a_split)
{
    open_ranks();
    for (int r = 0; r < RANKS; r++) {
        struct tuning *tuning = &comms[r]->tuning;

        tuning->costs.latency *= 3;
        tuning->costs.copy_bw *= 3;
        tuning->costs.direct_bw *= 3;
        tuning->costs.reduce_bw *= 3;
        tuning->costs.across = (struct group_costs){1, 2, 3};
        tuning->reads_across ^= true;
        tuning->tries_reads ^= true;
        tuning->streams++;
        tuning->past_cache ^= PAST_CACHE_SLOTS;
        tuning->long_output++;
        tuning->reads.longest++;
        tuning->stores.longest++;
        tuning->long_stores.longest++;
        tuning->pair_stores.longest++;
        tuning->messages.few_segments++;
    }
    split_all();
    for (int r = 0; r < RANKS; r++)
        cr_expect(equal(comms[r], parts[r]), "rank %d", r);
    close_ranks(parts);
    close_ranks(comms);
}

/* ---- Ranks and cores ------------------------------------------------------------------------- */

/* Cores of four ranks that may run on eight, with a quota of one core in each of these groups; 0:
 * there is none. */
static int count_cores_of(const uint64_t *groups)
{
    struct endpoint before[RANKS];
    int cores;

    open_ranks();
    memcpy(before, comms[0]->endpoints, sizeof(before));
    for (int r = 0; r < RANKS; r++) {
        struct endpoint *endpoint = &comms[0]->endpoints[r];

        memset(endpoint->cpus, 0, sizeof(endpoint->cpus));
        endpoint->cpus[0] = 0xff;
        endpoint->quota = groups[r] != 0;
        endpoint->quota_group = groups[r];
    }
    tuning_fit(comms[0]);
    cores = comms[0]->tuning.costs.cores;
    memcpy(comms[0]->endpoints, before, sizeof(before));
    close_ranks(comms);
    return cores;
}

Test(tuning, knows_which_ranks_share_a_quota)
{
    cr_expect_eq(count_cores_of((uint64_t[]){0, 0, 0, 0}), 8);
    cr_expect_eq(count_cores_of((uint64_t[]){7, 8, 9, 10}), 4, "four containers of one core each");
    cr_expect_eq(count_cores_of((uint64_t[]){7, 7, 7, 7}), 1);
    cr_expect_eq(count_cores_of((uint64_t[]){7, 8, 7, 8}), 2);
    cr_expect_eq(count_cores_of((uint64_t[]){7, 7, 0, 0}), 2, "as if all were like the first two");
}

static bool is_large; /* the machine has 2048 processors, and this thread has the last one and 5 */

int __real_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    if (!is_large)
        return __real_sched_getaffinity(pid, bytes, set);
    if (bytes < 2048 / 8) {
        errno = EINVAL;
        return -1;
    }
    memset(set, 0, bytes);
    CPU_SET_S(5, bytes, set);
    CPU_SET_S(2047, bytes, set);
    return 0;
}

Test(tuning, knows_the_processors_of_a_large_machine)
{
    uint64_t cpus[16];

    is_large = true;
    host_cpus(cpus);
    is_large = false;
    cr_expect_eq(cpus[0], 1 << 5);
    for (int i = 1; i < 16; i++)
        cr_expect_eq(cpus[i], 0);
}
