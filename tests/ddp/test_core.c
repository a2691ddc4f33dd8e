/* SPDX-License-Identifier: BSD-3-Clause */
/* test_core.c - the core of the data-parallel layer, as threads and as processes. */
#include "bodies.h"

#include <criterion/criterion.h>

static struct world_report report;

static void run_on(world_body body, int first, int last)
{
    int failed = world_run_processes(last, body, NULL, &report);

    cr_assert(failed == 0, "%d processes: %s", last, report.summary);
    for (int size = first; size <= last; size++) {
        failed = world_run_threads(size, body, NULL, &report);
        cr_assert(failed == 0, "%d threads: %s", size, report.summary);
    }
}

Test(ddp_start, all_ranks_get_the_values_of_rank_0)
{
    run_on(start_gives_all_the_values_of_rank_0, 1, 4);
}

Test(ddp_start, models_that_differ_are_refused_on_every_rank_naming_rank_and_tensor)
{
    run_on(start_refuses_other_models, 2, 4);
}

Test(ddp_start, a_bad_argument_of_one_rank_is_told_to_all)
{
    run_on(start_refuses_bad_arguments, 1, 3);
}

Test(ddp_steps, gradients_of_all_types_are_summed_and_buckets_follow_their_order)
{
    run_on(steps_sum_and_rebuild, 1, 4);
}

Test(ddp_steps, gradients_are_averaged_over_ranks)
{
    run_on(steps_average, 1, 4);
}

Test(ddp_steps, passes_without_exchange_accumulate)
{
    run_on(steps_accumulate, 1, 3);
}

Test(ddp_steps, buffers_of_rank_0_are_broadcast_before_a_pass_that_exchanges)
{
    run_on(steps_broadcast_buffers, 1, 3);
}

Test(ddp_steps, what_was_exchanged_is_counted_and_buckets_are_described)
{
    run_on(steps_are_counted_and_described, 1, 3);
}
