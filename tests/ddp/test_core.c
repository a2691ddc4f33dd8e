/* SPDX-License-Identifier: BSD-3-Clause */
/* test_core.c - the core of the data-parallel layer, as threads and as processes. */
#include "bodies.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <string.h>

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

Test(ddp_steps, sums_of_all_types_are_divided_by_the_number_of_passes)
{
    for (int size = 1; size <= 4; size *= 2)
        run_on(steps_divide_all_types, size, size);
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
    run_on(steps_describe_in_short, 1, 1);
}

Test(ddp_steps, the_rank_that_holds_the_others_up_is_named)
{
    run_on(steps_name_the_latest_rank, 2, 4);
}

Test(ddp_steps, losses_of_20_steps_are_those_of_one_process_with_all_batches)
{
    run_on(linear_learns_like_one_process, 1, 4);
}

Test(ddp_steps, sums_are_right_for_random_models_settings_and_orders)
{
    run_on(random_models_and_orders, 1, 4);
}

Test(ddp_unused, a_parameter_that_only_some_ranks_use_is_averaged_with_zeros)
{
    run_on(unused_here_counts_as_zero, 1, 4);
}

Test(ddp_unused, a_parameter_that_nobody_uses_keeps_its_gradient)
{
    run_on(unused_everywhere_is_kept, 1, 3);
}

Test(ddp_unused, what_an_earlier_pass_accumulated_counts_though_the_last_one_leaves_it_out)
{
    run_on(unused_in_the_last_pass_only_counts, 1, 3);
}

Test(ddp_mistakes, a_missing_gradient_is_named_on_every_rank)
{
    run_on(mistakes_missing_gradient, 1, 3);
}

Test(ddp_mistakes, a_forked_child_is_refused_and_nobody_else_notices)
{
    cr_assert(world_run_processes(3, forked_child_is_refused, NULL, &report) == 0, "%s",
              report.summary);
}

Test(ddp_mistakes, a_gradient_announced_twice_is_named_on_every_rank)
{
    run_on(mistakes_twice, 1, 3);
}

Test(ddp_mistakes, a_gradient_that_is_not_finite_is_named_on_every_rank)
{
    run_on(mistakes_nan, 1, 3);
}

Test(ddp_mistakes, calls_at_the_wrong_time_are_refused_and_change_nothing)
{
    run_on(mistakes_out_of_order, 1, 2);
}

Test(ddp_mistakes, different_numbers_of_passes_are_told_to_all)
{
    run_on(mistakes_passes, 2, 3);
}

Test(ddp_mistakes, a_rank_that_closes_within_a_pass_ends_it_for_all)
{
    run_on(mistakes_leaving, 2, 3);
}

Test(ddp_mistakes, a_model_that_could_not_move_has_no_gradients)
{
    run_on(mistakes_moving, 1, 3);
}

Test(ddp_mistakes, a_rank_that_dies_is_an_error_of_the_others_and_not_a_hang)
{
    int failed = world_run_processes(3, mistakes_dead_peer, NULL, &report);

    cr_assert(failed == 3);
    cr_assert(report.signals[2] == SIGKILL);
    for (int rank = 0; rank < 2; rank++)
        cr_assert(strncmp(report.sentences[rank], "told", 4) == 0, "%s", report.sentences[rank]);
}

Test(ddp_join, ranks_with_fewer_steps_count_as_zero)
{
    run_on(joins_by_size, 1, 4);
}

Test(ddp_join, the_average_may_be_over_ranks_that_still_have_data)
{
    run_on(joins_by_remaining, 1, 4);
}

Test(ddp_join, a_rank_that_joined_may_update_its_own_parameters)
{
    run_on(joins_step_everywhere, 1, 4);
}

Test(ddp_join, a_failing_step_of_a_rank_that_joined_is_told_to_all)
{
    run_on(joins_whose_step_fails, 2, 3);
}

Test(ddp_join, who_waits_for_a_rank_with_fewer_steps_is_told_of_join_modes)
{
    run_on(joins_are_not_chosen, 2, 3);
}

Test(ddp_join, what_a_rank_has_accumulated_when_it_joins_counts)
{
    run_on(joins_within_a_step, 2, 3);
}

Test(ddp_join, a_step_that_all_join_in_is_forgotten)
{
    run_on(joins_forget_a_step, 1, 3);
}

Test(ddp_join, ranks_that_disagree_about_exchanging_are_told_so)
{
    int failed = world_run_threads(3, joins_in_mixed_passes, NULL, &report);

    cr_assert(failed == 0, "%s", report.summary);
}

Test(ddp_hooks, a_hook_replaces_the_all_reduce)
{
    run_on(hooks_replace_the_all_reduce, 1, 3);
}

Test(ddp_hooks, a_hook_that_fails_is_told_to_all)
{
    run_on(hooks_fail_on_all, 1, 3);
}

Test(ddp_hooks, gradients_travel_in_16_bits)
{
    run_on(hooks_compress, 1, 4);
}

Test(ddp_hooks, compression_rounds_to_the_nearest_and_ties_to_even)
{
    int failed = world_run_threads(1, hooks_round_to_nearest, NULL, &report);

    cr_assert(failed == 0, "%s", report.summary);
}

Test(ddp_norm, batch_normalisation_over_ranks_is_that_of_the_whole_batch)
{
    run_on(norms_like_one_process, 1, 4);
}
