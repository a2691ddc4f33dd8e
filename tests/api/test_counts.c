/* SPDX-License-Identifier: BSD-3-Clause */
/* test_counts.c - collectives whose counts differ from rank to rank (rondo/collectives.h). */
#include "counts.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

static struct world_report report;

TestSuite(counts, .timeout = 120);

Test(counts, every_layout_type_and_length_on_1_to_17_threads)
{
    for (int size = 1; size <= 17; size += size < 9 ? 1 : 4)
        cr_assert(world_run_threads(size, counts_run_all, NULL, &report) == 0, "%s",
                  report.summary);
}

Test(counts, the_same_in_processes)
{
    for (int size = 2; size <= 5; size += 3)
        cr_assert(world_run_processes(size, counts_run_all, NULL, &report) == 0, "%s",
                  report.summary);
}

Test(counts, long_blocks_are_whole)
{
    struct counts counts = {.type = RONDO_FLOAT32, .longest = 500000};

    for (int call = 0; call < COUNTS_CALLS; call++) {
        counts.call = (enum counts_call)call;
        cr_assert(world_run_processes(3, counts_run, &counts, &report) == 0, "%s", report.summary);
    }
}

Test(counts, one_thread_can_be_all_ranks)
{
    enum { SIZE = 4 };
    rondo_comm *comms[SIZE];
    int32_t in[SIZE][8], out[SIZE][8] = {{0}};
    size_t counts[SIZE][SIZE], back[SIZE][SIZE];

    cr_assert(rondo_comm_open_all(SIZE, NULL, comms) == RONDO_OK);
    cr_assert(rondo_group_start() == RONDO_OK);
    for (int r = 0; r < SIZE; r++) {
        for (int s = 0; s < SIZE; s++) {
            counts[r][s] = (size_t)((r + s) % 3);
            back[r][s] = (size_t)((s + r) % 3);
        }
        for (int i = 0; i < 8; i++)
            in[r][i] = 10 * r + i;
        cr_assert(rondo_all_to_all_v(in[r], counts[r], NULL, out[r], back[r], NULL, RONDO_INT32,
                                     comms[r], NULL) == RONDO_OK);
    }
    cr_assert(rondo_group_end() == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int r = 0; r < SIZE; r++) {
        int place = 0;

        for (int s = 0; s < SIZE; s++) {
            int from = 0;

            for (int t = 0; t < r; t++)
                from += (s + t) % 3;
            for (int i = 0; i < (r + s) % 3; i++)
                cr_expect(out[r][place++] == 10 * s + from + i, "rank %d, block %d", r, s);
        }
        rondo_comm_close(comms[r]);
    }
}

/* ---- What goes wrong ------------------------------------------------------------------------- */

Test(counts, ranks_that_differ_in_a_count_are_named)
{
    struct counts counts = {.type = RONDO_FLOAT32, .longest = 50};
    rondo_config config = RONDO_CONFIG_INIT;
    struct world world = {.size = 4, .processes = true, .config = &config};

    config.timeout = 100;
    for (int call = 0; call < COUNTS_CALLS; call++) {
        bool named = false;

        counts.call = (enum counts_call)call;
        world_run(&world, counts_differ, &counts, &report);
        for (int r = 0; r < 4; r++) {
            cr_expect(report.results[r] == RONDO_ERROR_MISMATCH, "call %d: %s", call,
                      report.summary);
            named |= strcasestr(report.sentences[r], "rank 1") != NULL;
        }
        cr_expect(named, "call %d: rank 1 was not named: %s", call, report.summary);
    }
}

static rondo_result one_too_many(rondo_comm *comm, void *argument, char *sentence)
{
    int rank = rondo_comm_rank(comm);
    float in[64] = {0}, out[64];
    size_t sent[2] = {4, 4}, received[2] = {4, 4};
    rondo_result result;

    (void)argument;
    if (rank == 0)
        sent[1] = 7;
    result = rondo_all_to_all_v(in, sent, NULL, out, received, NULL, RONDO_FLOAT32, comm, NULL);
    if (!result)
        result = rondo_barrier(comm, NULL);
    return world_say(sentence, result, "%s", rondo_last_error(comm));
}

Test(counts, the_sentence_has_both_counts_of_a_pair)
{
    cr_assert(world_run_processes(2, one_too_many, NULL, &report) == 2, "%s", report.summary);
    for (int r = 0; r < 2; r++) {
        cr_expect(report.results[r] == RONDO_ERROR_MISMATCH, "%s", report.summary);
        cr_expect(strstr(report.sentences[r], "recv of 4 float32"), "%s", report.summary);
        cr_expect(strstr(report.sentences[r], "7 float32"), "%s", report.summary);
    }
}

Test(counts, a_killed_rank_is_named_in_each_of_the_calls)
{
    struct counts counts = {.type = RONDO_FLOAT32, .longest = 3000};
    rondo_config config = RONDO_CONFIG_INIT;
    struct world world = {.size = 4, .processes = true, .config = &config};

    config.timeout = 100;
    for (int call = 0; call < COUNTS_CALLS; call++) {
        counts.call = (enum counts_call)call;
        world_run(&world, counts_lose_a_rank, &counts, &report);
        for (int r = 0; r < 4; r++)
            cr_expect(r == 1 || report.results[r] == RONDO_ERROR_PEER, "call %d: %s", call,
                      report.summary);
        cr_expect(strstr(report.sentences[0], "ank 1"), "call %d: %s", call, report.summary);
    }
}

/* ---- Arguments ------------------------------------------------------------------------------- */

enum { N = 3 };
static const size_t twos[N] = {2, 2, 2}, huge[N] = {1, SIZE_MAX / 4, 1};
static const size_t crossed[N] = {0, 1, 4}, far[N] = {0, SIZE_MAX / 2, 4};
static int32_t in[16], out[16];

static rondo_result expect_refusal(rondo_comm *comm, rondo_result result, const char *word,
                                   char *sentence)
{
    if (result != RONDO_ERROR_INVALID)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "no refusal with \"%s\", but %s", word,
                         rondo_result_string(result));
    if (!strstr(rondo_last_error(comm), word))
        return world_say(sentence, RONDO_ERROR_INTERNAL, "\"%s\" is not in: %s", word,
                         rondo_last_error(comm));
    return RONDO_OK;
}

static rondo_result are_refused(rondo_comm *comm, void *argument, char *sentence)
{
    size_t uneven[N] = {2, 2, 2};
    rondo_result result = RONDO_OK;

    (void)argument;
    uneven[rondo_comm_rank(comm)] = 1;
#define REFUSED(word, call) result = result ? result : expect_refusal(comm, call, word, sentence)
    REFUSED("no counts",
            rondo_all_to_all_v(in, NULL, NULL, out, twos, NULL, RONDO_INT32, comm, NULL));
    REFUSED("itself",
            rondo_all_to_all_v(in, uneven, NULL, out, twos, NULL, RONDO_INT32, comm, NULL));
    REFUSED("overlap",
            rondo_all_to_all_v(in, twos, NULL, in + 3, twos, NULL, RONDO_INT32, comm, NULL));
    REFUSED("blocks 0 and 1",
            rondo_all_to_all_v(in, twos, NULL, out, twos, crossed, RONDO_INT32, comm, NULL));
    REFUSED("no input",
            rondo_all_to_all_v(NULL, twos, NULL, out, twos, NULL, RONDO_INT32, comm, NULL));
    REFUSED("memory can hold", rondo_all_gather_v(in, out, huge, NULL, RONDO_INT32, comm, NULL));
    REFUSED("memory can hold", rondo_all_gather_v(in, out, twos, far, RONDO_INT32, comm, NULL));
    REFUSED("blocks 0 and 1", rondo_all_gather_v(in, out, twos, crossed, RONDO_INT32, comm, NULL));
    REFUSED("in-place", rondo_all_gather_v(out + 1, out, twos, NULL, RONDO_INT32, comm, NULL));
    REFUSED("no input", rondo_all_gather_v(NULL, out, twos, NULL, RONDO_INT32, comm, NULL));
    REFUSED("no type number", rondo_all_gather_v(in, out, twos, NULL, RONDO_TYPES, comm, NULL));
    REFUSED("no output",
            rondo_reduce_scatter_v(in, twos, NULL, NULL, RONDO_INT32, RONDO_SUM, comm, NULL));
    REFUSED("in-place",
            rondo_reduce_scatter_v(in, twos, NULL, in + 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    REFUSED("operation", rondo_reduce_scatter_v(in, twos, NULL, out, RONDO_INT32, 999, comm, NULL));
#undef REFUSED
    return result;
}

Test(counts, wrong_arguments_are_refused_and_life_goes_on)
{
    cr_assert(world_run_threads(N, are_refused, NULL, &report) == 0, "%s", report.summary);
    cr_assert(rondo_all_gather_v(in, out, twos, NULL, RONDO_INT32, NULL, NULL) ==
              RONDO_ERROR_INVALID);
}
