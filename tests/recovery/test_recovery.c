/* SPDX-License-Identifier: BSD-3-Clause */
/* test_recovery.c - agreements and what goes with them as users see them; ranks that fail at random
 * moments are soak.c's. */
#include "cases.h"
#include "tests/log_copy.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 17 };

/* ---- Nobody fails ---------------------------------------------------------------------------- */

static rondo_result agree_often(rondo_comm *comm, void *argument, char *sentence)
{
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm), failed[MOST], count;

    for (int i = 0; i < 20; i++) {
        uint64_t flags = ~((uint64_t)1 << (rank + i)), expected = UINT64_MAX;
        rondo_result result = rondo_comm_agree(comm, &flags, failed, &count);

        for (int other = 0; other < size; other++)
            expected &= ~((uint64_t)1 << (other + i));
        if (result || count || flags != expected)
            return world_say(sentence, RONDO_ERROR_INTERNAL, "agreement %d: %d failed, %s", i,
                             count, rondo_last_error(comm));
        result = all_reduce_ones(comm, size, sentence);
        if (result)
            return result;
    }
    return rondo_comm_agree(comm, NULL, NULL, NULL);
}

static const int sizes[] = {1, 2, 3, 5, 8, MOST};

Test(recovery, flags_are_anded_between_calls)
{
    struct world_report report;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        for (int k = 0; k < 3; k++)
            cr_expect(!recovery_run(sizes[i], k == 1, k == 2 ? "tcp" : "auto", 20, agree_often,
                                    NULL, &report),
                      "%d ranks, %d: %s", sizes[i], k, report.summary);
}

static rondo_result mix(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_comm *shrunk = NULL;
    rondo_result result = rondo_comm_rank(comm) ? rondo_comm_agree(comm, NULL, NULL, NULL)
                                                : rondo_comm_shrink(comm, NULL, &shrunk);

    if (result != RONDO_ERROR_MISMATCH || !strstr(rondo_last_error(comm), "same functions"))
        return world_say(sentence, RONDO_ERROR_INTERNAL, "%d: %s", result, rondo_last_error(comm));
    return rondo_comm_agree(comm, NULL, NULL, NULL);
}

Test(recovery, different_functions_are_told_apart)
{
    struct world_report report;

    cr_expect(!recovery_run(3, false, "auto", 20, mix, NULL, &report), "%s", report.summary);
}

/* Rank 1 comes when the others have said in their log that they wait for it. */
static rondo_result come_when_told(rondo_comm *comm, void *argument, char *sentence)
{
    if (rondo_comm_rank(comm) == 1 &&
        (!log_copy_awaits(*(int *)argument, "Rank 0 has waited ") ||
         !log_copy_awaits(*(int *)argument, " s for rank 1 in agreement ")))
        return world_say(sentence, RONDO_ERROR_INTERNAL, "nobody says that it waits");
    return rondo_comm_agree(comm, NULL, NULL, NULL);
}

Test(recovery, who_waits_in_an_agreement_says_so_in_the_log)
{
    int log = log_copy_open("0.05");
    struct world_report report;

    cr_expect(!recovery_run(3, false, "auto", 120, come_when_told, &log, &report), "%s",
              report.summary);
    close(log);
}

static rondo_result shrink_sound(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_config own = RONDO_CONFIG_INIT;
    rondo_comm *shrunk = NULL, *again = NULL;
    rondo_result result = rondo_comm_shrink(comm, NULL, &shrunk);

    own.timeout = 9;
    if (!result)
        result = all_reduce_ones(shrunk, rondo_comm_size(comm), sentence);
    if (!result)
        result = rondo_comm_shrink(shrunk, &own, &again);
    if (!result && rondo_comm_rank(again) != rondo_comm_rank(comm))
        result = RONDO_ERROR_INTERNAL;
    if (!result)
        result = all_reduce_ones(comm, rondo_comm_size(comm), sentence);
    rondo_comm_close(again);
    rondo_comm_close(shrunk);
    return world_say(sentence, result, "%s", rondo_last_error(comm));
}

Test(recovery, a_sound_communicator_shrinks_to_all_of_it)
{
    struct world_report report;

    cr_expect(!recovery_run(4, false, "auto", 20, shrink_sound, NULL, &report), "%s",
              report.summary);
    cr_expect(!recovery_run(3, true, "tcp", 20, shrink_sound, NULL, &report), "%s", report.summary);
}

/* A rank that has no communicator says so to all: nobody keeps one. */
static rondo_result shrink_badly(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_config bad = RONDO_CONFIG_INIT;
    rondo_comm *shrunk = NULL;
    rondo_result result;

    bad.algorithm = "no such algorithm";
    bad.timeout = 20;
    result = rondo_comm_shrink(comm, rondo_comm_rank(comm) == 1 ? &bad : NULL, &shrunk);
    if (!result || shrunk)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "rank 1 had none");
    result = rondo_comm_shrink(comm, NULL, &shrunk);
    rondo_comm_close(shrunk);
    return world_say(sentence, result, "%s", rondo_last_error(comm));
}

Test(recovery, all_have_the_new_communicator_or_none)
{
    struct world_report report;

    cr_expect(!recovery_run(3, false, "auto", 20, shrink_badly, NULL, &report), "%s",
              report.summary);
}

/* ---- Revoking, and waiting ------------------------------------------------------------------- */

static rondo_result be_revoked(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_comm *shrunk = NULL;
    uint64_t flags = 3;
    rondo_result result;

    if (rondo_comm_rank(comm) == 0) {
        await_ranks(1, rondo_comm_size(comm));
        result = rondo_comm_revoke(comm);
        if (result || rondo_comm_revoke(comm))
            return world_say(sentence, RONDO_ERROR_INTERNAL, "%s", rondo_last_error(comm));
    } else {
        uint32_t in = 1, out;

        world_will_wait(rondo_comm_rank(comm));
        result = rondo_all_reduce(&in, &out, 1, RONDO_UINT32, RONDO_SUM, comm, NULL);
        if (result != RONDO_ERROR_ABORTED ||
            !strstr(rondo_last_error(comm), "Rank 0 revoked the communicator"))
            return world_say(sentence, RONDO_ERROR_INTERNAL, "%d: %s", result,
                             rondo_last_error(comm));
    }
    result = rondo_comm_agree(comm, &flags, NULL, NULL);
    if (!result && flags == 3)
        result = rondo_comm_shrink(comm, NULL, &shrunk);
    if (!result)
        result = all_reduce_ones(shrunk, rondo_comm_size(comm), sentence);
    rondo_comm_close(shrunk);
    world_say(sentence, result, "%s", rondo_last_error(comm));
    return result ? result : AS_EXPECTED;
}

static void expect_revoked(int size, bool processes, const char *transport)
{
    struct world_report report;

    recovery_run(size, processes, transport, 20, be_revoked, NULL, &report);
    for (int rank = 0; rank < size; rank++)
        cr_expect(report.results[rank] == AS_EXPECTED, "rank %d of %d, %s: %s", rank, size,
                  transport, report.sentences[rank]);
}

Test(recovery, revoking_ends_the_calls_of_peers_and_all_go_on)
{
    expect_revoked(4, false, "auto");
    expect_revoked(3, true, "auto");
    expect_revoked(4, true, "tcp");
}

/* Rank 1 never comes: the others go on without it, and it is told so when it does. */
static rondo_result come_late(rondo_comm *comm, void *argument, char *sentence)
{
    atomic_int *done = argument;
    int failed[3], known[3], count = -1, known_count = -1;
    rondo_result result = rondo_comm_set_timeout(comm, world_patience(0.5));

    if (rondo_comm_rank(comm) == 1) {
        while (atomic_load_explicit(done, memory_order_acquire) < 2)
            usleep(1000);
        result = rondo_comm_agree(comm, NULL, NULL, NULL);
        if (result != RONDO_ERROR_PEER || !strstr(rondo_last_error(comm), "without rank 1"))
            return world_say(sentence, RONDO_ERROR_INTERNAL, "%d: %s", result,
                             rondo_last_error(comm));
        result = rondo_comm_agree(comm, NULL, NULL, NULL);
        return result == RONDO_ERROR_PEER ? AS_EXPECTED : RONDO_ERROR_INTERNAL;
    }
    if (!result)
        result = rondo_comm_agree(comm, NULL, failed, &count);
    if (!result)
        result = rondo_comm_failed(comm, known, &known_count);
    atomic_fetch_add_explicit(done, 1, memory_order_release);
    while (atomic_load_explicit(done, memory_order_acquire) < 2)
        usleep(1000); /* who closes has failed as well */
    if (result || count != 1 || failed[0] != 1 || known_count != 1 || known[0] != 1)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "%d failed, %d known: %s", count,
                         known_count, rondo_last_error(comm));
    return AS_EXPECTED;
}

Test(recovery, a_rank_that_does_not_come_has_failed_for_good)
{
    struct world_report report;
    atomic_int *done = world_share(sizeof(*done));

    for (int k = 0; k < 2; k++) {
        atomic_store_explicit(done, 0, memory_order_relaxed);
        recovery_run(3, k, k ? "tcp" : "auto", 20, come_late, done, &report);
        for (int rank = 0; rank < 3; rank++)
            cr_expect(report.results[rank] == AS_EXPECTED, "%d, rank %d: %s", k, rank,
                      report.sentences[rank]);
    }
    world_unshare(done, sizeof(*done));
}

/* The whole job is stopped for longer than anybody may be silent: nobody holds that against
 * others. */
static rondo_result be_stopped(rondo_comm *comm, void *argument, char *sentence)
{
    atomic_int *pids = argument;
    int size = rondo_comm_size(comm), count = -1;
    rondo_result result;

    atomic_store_explicit(&pids[rondo_comm_rank(comm)], getpid(), memory_order_release);
    if (rondo_comm_rank(comm) == 0) {
        pid_t helper;

        await_ranks(1, size); /* they are in the agreement */
        helper = fork();
        if (!helper) {
            for (int i = 0; i < size; i++)
                kill(atomic_load_explicit(&pids[i], memory_order_acquire), SIGSTOP);
            usleep((useconds_t)(world_patience(1.5) * 1e6));
            for (int i = 0; i < size; i++)
                kill(atomic_load_explicit(&pids[i], memory_order_acquire), SIGCONT);
            _exit(0);
        }
        waitpid(helper, NULL, 0);
    }
    world_will_wait(rondo_comm_rank(comm));
    result = rondo_comm_agree(comm, NULL, NULL, &count);
    if (result || count)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "%d failed: %s", count,
                         rondo_last_error(comm));
    return RONDO_OK;
}

Test(recovery, a_job_that_was_stopped_as_a_whole_loses_nobody)
{
    struct world_report report;
    atomic_int *pids = world_share(MOST * sizeof(*pids));

    cr_expect(!recovery_run(4, true, "auto", 1, be_stopped, pids, &report), "%s", report.summary);
    world_unshare(pids, MOST * sizeof(*pids));
}

/* ---- Wrong use ------------------------------------------------------------------------------- */

static rondo_result misuse(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_unique_id id = {{0}}; /* none */
    rondo_comm *shrunk = NULL;
    bool refused;

    rondo_group_start();
    refused = rondo_comm_agree(comm, NULL, NULL, NULL) == RONDO_ERROR_INVALID &&
              rondo_comm_shrink(comm, NULL, &shrunk) == RONDO_ERROR_INVALID &&
              rondo_comm_grow(NULL, &id, 3, 2, NULL, &shrunk) == RONDO_ERROR_INVALID &&
              strstr(rondo_last_error(NULL), "inside of a group");
    rondo_group_end();
    refused &= rondo_comm_shrink(comm, NULL, NULL) == RONDO_ERROR_INVALID &&
               rondo_comm_grow(comm, NULL, 3, -1, NULL, &shrunk) == RONDO_ERROR_INVALID &&
               rondo_comm_grow(comm, &id, 1, -1, NULL, &shrunk) == RONDO_ERROR_INVALID &&
               rondo_comm_grow(comm, &id, 3, 2, NULL, &shrunk) == RONDO_ERROR_INVALID &&
               rondo_comm_grow(NULL, &id, 3, -1, NULL, &shrunk) == RONDO_ERROR_INVALID &&
               rondo_comm_grow(comm, &id, 3, -1, NULL, &shrunk) == RONDO_ERROR_INVALID &&
               rondo_comm_set_timeout(comm, -1) == RONDO_ERROR_INVALID &&
               rondo_comm_agree(NULL, NULL, NULL, NULL) == RONDO_ERROR_INVALID &&
               rondo_comm_failed(NULL, NULL, NULL) == RONDO_ERROR_INVALID &&
               rondo_comm_revoke(NULL) == RONDO_ERROR_INVALID &&
               rondo_comm_set_timeout(NULL, 1) == RONDO_ERROR_INVALID;
    if (!refused)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "%s", rondo_last_error(NULL));
    return all_reduce_ones(comm, rondo_comm_size(comm), sentence);
}

Test(recovery, wrong_use_is_refused_and_breaks_nothing)
{
    struct world_report report;

    cr_expect(!recovery_run(2, false, "auto", 20, misuse, NULL, &report), "%s", report.summary);
}
