/* SPDX-License-Identifier: BSD-3-Clause */
/* test_uniform.c - RONDO_UNIFORM: a collective returns the same result on every rank that is left;
 * ranks that fail at random moments are soak.c's, with --uniform. */
#include "cases.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 8 };

/* Ranks tell each other this beside the library. */
struct aside {
    _Atomic rondo_result results[MOST]; /* of the call, + 1; 0: it has not returned */
    _Atomic uint64_t failed[MOST];      /* the list of the agreement after it, as bits */
};

static struct aside *aside;

static void begin(void)
{
    aside = world_share(sizeof(*aside));
    setenv("RONDO_ADDRESS", "127.0.0.1:0", 1);
    setenv("RONDO_INTERFACE", "lo", 1);
}

static void end(void)
{
    world_unshare(aside, sizeof(*aside));
}

TestSuite(uniform, .init = begin, .fini = end, .timeout = 100);

static int run(int size, bool uniform, const char *transport, world_body body, void *argument,
               struct world_report *ret_report)
{
    rondo_config config = RONDO_CONFIG_INIT;
    struct world world = {.size = size, .processes = true, .config = &config};

    config.timeout = world_patience(20);
    config.uniform = uniform;
    memset(aside, 0, sizeof(*aside));
    setenv("RONDO_TRANSPORT", transport, 1);
    return world_run(&world, body, argument, ret_report);
}

static rondo_result unexpected(rondo_comm *comm, char *sentence, rondo_result result)
{
    return world_say(sentence, RONDO_ERROR_INTERNAL, "%d: %s", result, rondo_last_error(comm));
}

/* ---- A rank ends while some have completed the call ------------------------------------------ */

static void await_results(int count)
{
    for (int rank = 0; rank < count; rank++) /* relaxed: only the number matters */
        while (!atomic_load_explicit(&aside->results[rank], memory_order_relaxed))
            usleep(1000);
}

/* Goes on with who is left. */
static rondo_result recover(rondo_comm *comm, char *sentence)
{
    int failed[MOST], count = 0, rank = rondo_comm_rank(comm);
    rondo_comm *shrunk = NULL;
    uint64_t set = 0;
    rondo_result result = rondo_comm_agree(comm, NULL, failed, &count);

    for (int i = 0; i < count; i++)
        set |= (uint64_t)1 << failed[i];
    atomic_store_explicit(&aside->failed[rank], set, memory_order_relaxed);
    if (!result)
        result = rondo_comm_shrink(comm, NULL, &shrunk);
    if (result)
        return unexpected(comm, sentence, result);
    for (int i = 0; i < 5 && !result; i++)
        result = all_reduce_ones(shrunk, rondo_comm_size(shrunk), sentence);
    rondo_comm_close(shrunk);
    return result ? result : AS_EXPECTED;
}

/* The last rank never calls; the leaves of the reduction wait for nobody. */
static rondo_result reduce_without_the_last(rondo_comm *comm, void *argument, char *sentence)
{
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm);
    uint32_t one = 1, sum = 0;
    rondo_result result = all_reduce_ones(comm, rondo_comm_size(comm), sentence);

    if (result || size == 1)
        return result;
    if (rank == size - 1) {
        await_ranks(0, size - 1); /* those who wait for nobody are done, and wait for results */
        raise(SIGKILL);
    }
    world_will_wait(rank);
    result = rondo_reduce(&one, &sum, 1, RONDO_UINT32, RONDO_SUM, 0, comm, NULL);
    atomic_store_explicit(&aside->results[rank], (rondo_result)(result + 1), memory_order_relaxed);
    await_results(size - 1);
    return recover(comm, sentence);
}

static bool results_differ(int survivors)
{
    bool differ = false;

    for (int rank = 1; rank < survivors; rank++)
        differ |= aside->results[rank] != aside->results[0];
    return differ;
}

static void expect_survivors(int size, const char *transport, const struct world_report *report)
{
    for (int rank = 0; rank < size - 1; rank++) {
        cr_expect(report->results[rank] == AS_EXPECTED, "rank %d of %d, %s: %s", rank, size,
                  transport, report->sentences[rank]);
        cr_expect(aside->failed[rank] == (uint64_t)1 << (size - 1), "rank %d of %d, %s", rank, size,
                  transport);
    }
}

static const char *const transports[] = {"auto", "tcp"};

Test(uniform, all_survivors_have_the_same_result)
{
    struct world_report report;

    for (int size = 1; size <= MOST; size++)
        for (int k = 0; k < 2; k++) {
            run(size, true, transports[k], reduce_without_the_last, NULL, &report);
            cr_expect(!results_differ(size - 1), "%d ranks, %s", size, transports[k]);
            cr_expect(size == 1 || aside->results[0] == RONDO_ERROR_PEER + 1, "%d ranks, %s: %d",
                      size, transports[k], aside->results[0] - 1);
            expect_survivors(size, transports[k], &report);
        }
}

Test(uniform, without_it_they_differ)
{
    struct world_report report;

    for (int size = 3; size <= MOST; size += 2)
        for (int k = 0; k < 2; k++) {
            run(size, false, transports[k], reduce_without_the_last, NULL, &report);
            cr_expect(results_differ(size - 1), "%d ranks, %s", size, transports[k]);
            expect_survivors(size, transports[k], &report);
        }
}

/* ---- Nobody fails ---------------------------------------------------------------------------- */

static rondo_result use_everything(rondo_comm *comm, void *argument, char *sentence)
{
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm);
    uint32_t one = 1, sum[2] = {0}, came = 0;
    rondo_stream *stream = NULL;
    rondo_comm *half = NULL;
    rondo_result result = rondo_comm_split(comm, rank % 2, 0, NULL, &half);

    for (int i = 0; i < 3 && !result; i++)
        result = all_reduce_ones(i ? comm : half, rondo_comm_size(i ? comm : half), sentence);
    if (!result)
        result = rondo_comm_agree(comm, NULL, NULL, NULL);
    rondo_group_start();
    rondo_all_reduce(&one, &sum[0], 1, RONDO_UINT32, RONDO_SUM, comm, NULL);
    rondo_send(&one, 1, RONDO_UINT32, (rank + 1) % size, comm, NULL);
    rondo_recv(&came, 1, RONDO_UINT32, (rank + size - 1) % size, comm, NULL);
    if (rondo_group_end() || sum[0] != (uint32_t)size || came != 1)
        return unexpected(comm, sentence, result);
    if (!result)
        result = rondo_stream_open(&stream);
    if (!result)
        result = rondo_all_reduce(&one, &sum[1], 1, RONDO_UINT32, RONDO_SUM, comm, stream);
    if (!result)
        result = rondo_stream_synchronize(stream);
    rondo_stream_close(stream);
    rondo_comm_close(half);
    return result || sum[1] != (uint32_t)size ? unexpected(comm, sentence, result) : RONDO_OK;
}

Test(uniform, calls_of_every_kind_are_as_before)
{
    struct world_report report;

    for (int size = 1; size <= MOST; size += 1 + size / 4)
        for (int k = 0; k < 2; k++)
            cr_expect(!run(size, true, transports[k], use_everything, NULL, &report),
                      "%d ranks, %s: %s", size, transports[k], report.summary);
}

/* ---- Errors that are no deaths --------------------------------------------------------------- */

/* The last rank's output is missing: that is an error of all, in its words. */
static rondo_result refuse(rondo_comm *comm, void *argument, char *sentence)
{
    bool last = rondo_comm_rank(comm) == rondo_comm_size(comm) - 1;
    uint32_t one = 1, sum;
    rondo_result result =
        rondo_all_reduce(&one, last ? NULL : &sum, 1, RONDO_UINT32, RONDO_SUM, comm, NULL);

    if (result != RONDO_ERROR_INVALID || !strstr(rondo_last_error(comm), "gave no output"))
        return unexpected(comm, sentence, result);
    result = rondo_barrier(comm, NULL);
    if (result != RONDO_ERROR_INVALID)
        return unexpected(comm, sentence, result);
    return recover(comm, sentence);
}

/* Rank 0 has given up, as it was told by other means, and the others are in a call that it never
 * makes; with `argument` it has revoked the communicator. */
static rondo_result leave_for_the_agreement(rondo_comm *comm, void *argument, char *sentence)
{
    const bool *revokes = argument;
    uint32_t one = 1, sum;

    if (rondo_comm_rank(comm) == 0) {
        await_ranks(1, rondo_comm_size(comm));
        if (*revokes)
            rondo_comm_revoke(comm);
    } else {
        rondo_result result;

        world_will_wait(rondo_comm_rank(comm));
        /* who sends to the root waits for nobody */
        result = rondo_reduce(&one, &sum, 1, RONDO_UINT32, RONDO_SUM, 0, comm, NULL);
        if (result != RONDO_ERROR_ABORTED)
            return unexpected(comm, sentence, result);
    }
    return recover(comm, sentence);
}

/* The library refuses what one thread cannot agree on. */
static rondo_result group_two(rondo_comm *comm, void *argument, char *sentence)
{
    uint32_t one = 1, sums[2];
    rondo_comm *other = NULL;
    rondo_result result = rondo_comm_dup(comm, &other);

    if (result)
        return unexpected(comm, sentence, result);
    rondo_group_start();
    rondo_all_reduce(&one, &sums[0], 1, RONDO_UINT32, RONDO_SUM, comm, NULL);
    rondo_all_reduce(&one, &sums[1], 1, RONDO_UINT32, RONDO_SUM, other, NULL);
    result = rondo_group_end();
    if (result != RONDO_ERROR_UNSUPPORTED || !strstr(rondo_last_error(NULL), "RONDO_UNIFORM"))
        return unexpected(comm, sentence, result);
    result = all_reduce_ones(other, rondo_comm_size(other), sentence);
    rondo_comm_close(other);
    return result ? result : all_reduce_ones(comm, rondo_comm_size(comm), sentence);
}

static void expect_all(int size, world_body body, void *argument)
{
    struct world_report report;

    for (int k = 0; k < 2; k++) {
        run(size, true, transports[k], body, argument, &report);
        for (int rank = 0; rank < size; rank++)
            cr_expect(report.results[rank] == AS_EXPECTED, "rank %d of %d, %s: %s", rank, size,
                      transports[k], report.sentences[rank]);
    }
}

Test(uniform, a_wrong_argument_of_one_rank_is_an_error_of_all)
{
    expect_all(3, refuse, NULL);
}

Test(uniform, who_goes_to_the_agreement_finds_those_in_a_call_there)
{
    for (int size = 2; size <= 5; size++)
        for (int k = 0; k < 2; k++) {
            bool revokes = k;

            expect_all(size, leave_for_the_agreement, &revokes);
        }
}

Test(uniform, a_group_of_several_communicators_is_refused)
{
    struct world_report report;

    cr_expect(!run(3, true, "auto", group_two, NULL, &report), "%s", report.summary);
}
