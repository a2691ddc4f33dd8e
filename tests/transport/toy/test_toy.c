/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_toy.c - a transport that the library does not know, but for the line in table.c: all
 * collectives by all algorithms run on it, between threads and between processes.
 */
#include "tests/api/bodies.h"
#include "tests/api/values/matrix.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdlib.h>

static struct world_report report;

static void run(int size, bool processes)
{
    static char sentence[WORLD_SENTENCE];
    struct matrix *matrix = world_share(sizeof(*matrix));
    struct matrix_part part = {matrix, processes};
    struct world world = {.size = size, .processes = processes};

    setenv("RONDO_TRANSPORT", "toy", 1);
    matrix_init(matrix, 7, sentence);
    cr_assert(!sentence[0], "%s", sentence);
    cr_expect_eq(world_run(&world, matrix_run, &part, &report), 0, "%s", report.summary);
}

Test(toy, carries_all_collectives_between_threads, .timeout = 100)
{
    run(3, false);
}

Test(toy, carries_all_collectives_between_processes, .timeout = 100)
{
    run(4, true);
}

Test(toy, is_the_network_that_was_asked_for)
{
    setenv("RONDO_TRANSPORT", "toi", 1);
    cr_expect_gt(world_run_threads(2, groups_nest, NULL, &report), 0);
    cr_expect(strstr(report.summary, "RONDO_TRANSPORT"), "%s", report.summary);
}

Test(toy, of_a_rank_that_has_ended_is_told, .timeout = 60)
{
    rondo_comm *comms[2] = {NULL, NULL};
    int32_t one = 1, sum;

    setenv("RONDO_TRANSPORT", "toy", 1);
    cr_assert(rondo_comm_open_all(2, NULL, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
    rondo_comm_close(comms[1]);
    cr_expect(rondo_all_reduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comms[0], NULL) ==
              RONDO_ERROR_PEER);
    cr_expect(strstr(rondo_last_error(comms[0]), "(toy)"), "%s", rondo_last_error(comms[0]));
    rondo_comm_close(comms[0]);
}
