/* SPDX-License-Identifier: BSD-3-Clause */
/* test_estimate.c - rondo_estimate(): the cost model's time of calls that are not made. */
#include "bodies.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>

static struct world_report report;

static void as_processes(int size, world_body body, void *argument)
{
    cr_assert(!world_run_processes(size, body, argument, &report), "%d ranks: %s", size,
              report.summary);
}

static void as_threads(int size, world_body body, void *argument)
{
    cr_assert(!world_run_threads(size, body, argument, &report), "%d ranks: %s", size,
              report.summary);
}

Test(estimate, is_equal_on_all_ranks_and_grows_with_the_count)
{
    as_processes(1, estimates_are_equal_and_grow, NULL);
    as_processes(2, estimates_are_equal_and_grow, NULL);
    as_processes(5, estimates_are_equal_and_grow, NULL);
}

Test(estimate, is_of_groups_of_ranks_too)
{
    setenv("RONDO_GROUPS", "3+2", 1);
    setenv("RONDO_COSTS", "1,10,8,20,1,1", 1);
    as_processes(5, estimates_are_equal_and_grow, NULL);
}

Test(estimate, of_one_rank_alone_runs_nothing)
{
    as_processes(3, estimates_run_nothing, NULL);
    as_threads(3, estimates_run_nothing, NULL);
}

Test(estimate, is_given_beside_a_call_that_waits)
{
    static atomic_int asked;

    as_threads(2, estimates_need_no_turn, &asked);
}

Test(estimate, of_a_group_is_the_sum_of_its_calls_and_the_longest_of_its_communicators)
{
    as_threads(3, estimates_of_groups_add_up, NULL);
}

Test(estimate, refuses_what_a_call_refuses)
{
    as_threads(2, estimates_refuse_mistakes, NULL);
}

/* Everything ten times as slow: so is the call. */
Test(estimate, follows_the_costs)
{
    double *quick = world_share(2 * sizeof(*quick)), *slow = quick + 1;

    setenv("RONDO_COSTS", "1,10,8", 1);
    as_processes(3, estimates_tell, quick);
    setenv("RONDO_COSTS", "10,1,0.8", 1);
    as_processes(3, estimates_tell, slow);
    cr_assert(*slow > 9.99 * *quick && *slow < 10.01 * *quick, "%g us and %g us", *quick, *slow);
    cr_assert(*quick > 100, "a million floats, of which each is read, in %g us", *quick);
}
