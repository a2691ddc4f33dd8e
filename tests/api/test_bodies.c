/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bodies.c - groups, streams, split and dup, operations:
 * as threads and as processes, on several rank counts. */
#include "bodies.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>

static struct world_report report;

static void run_on(world_body body, int first, int last)
{
    for (int size = first; size <= last; size += size < 5 ? 1 : 3) {
        int failed = world_run_processes(size, body, NULL, &report);

        cr_assert(failed == 0, "%d processes: %s", size, report.summary);
    }
    for (int size = first; size <= last; size += size < 5 ? 1 : 3) {
        int failed = world_run_threads(size, body, NULL, &report);

        cr_assert(failed == 0, "%d threads: %s", size, report.summary);
    }
}

Test(groups, many_calls_run_as_one)
{
    run_on(groups_fuse_many_calls, 1, 8);
}

Test(groups, exchanges_do_not_wait_for_each_others_order)
{
    run_on(groups_exchange_with_all, 1, 8);
}

Test(groups, only_the_outermost_end_runs_the_calls)
{
    run_on(groups_nest, 1, 5);
}

Test(groups, send_and_receive_block_without_a_group)
{
    run_on(groups_send_recv_chain, 2, 8);
}

Test(groups, a_repeated_group_moves_what_is_there_at_the_time)
{
    run_on(groups_repeat, 1, 5);
}

Test(groups, a_repeated_group_may_have_messages_of_any_two_lengths)
{
    run_on(groups_repeat_two_lengths, 2, 2);
}

Test(groups, a_repeated_group_is_of_its_communicator)
{
    static char sentence[WORLD_SENTENCE];

    cr_assert(groups_repeat_after_opening(sentence) == RONDO_OK, "%s", sentence);
}

Test(groups, one_thread_can_be_all_ranks)
{
    static char sentence[WORLD_SENTENCE];

    for (int size = 1; size <= 9; size++)
        cr_assert(groups_run_in_one_thread(size, false, sentence) == RONDO_OK, "%s", sentence);
}

Test(groups, one_thread_can_open_all_ranks_by_id)
{
    static char sentence[WORLD_SENTENCE];

    for (int size = 1; size <= 5; size++)
        cr_assert(groups_run_in_one_thread(size, true, sentence) == RONDO_OK, "%s", sentence);
}

Test(streams, calls_run_in_the_order_they_were_queued)
{
    run_on(streams_keep_order, 1, 5);
}

Test(streams, functions_run_between_the_calls_they_were_queued_between)
{
    run_on(streams_call_functions_in_order, 1, 5);
}

Test(streams, events_hand_work_from_stream_to_stream)
{
    run_on(streams_wait_for_events, 1, 5);
}

Test(streams, blocking_calls_go_on_beside_a_busy_stream)
{
    run_on(streams_overlap_with_others, 1, 5);
}

Test(streams, several_threads_may_queue_calls_on_one)
{
    run_on(streams_take_calls_of_several_threads, 1, 2);
}

Test(splits, several_threads_may_copy_one_at_a_time)
{
    run_on(splits_by_several_threads, 2, 3);
}

Test(splits, odd_and_even_ranks_part)
{
    run_on(splits_odd_and_even, 1, 8);
}

Test(splits, keys_order_the_ranks_and_color_minus_one_stays_out)
{
    run_on(splits_reverse_and_leave_out, 1, 8);
}

Test(splits, parts_can_be_split_again)
{
    run_on(splits_nest, 1, 8);
}

Test(splits, a_copy_has_its_own_order_of_calls)
{
    run_on(splits_dup_has_its_own_order, 1, 5);
}

Test(kinds, plain_and_mapped_memory_may_take_turns)
{
    run_on(kinds_change, 1, 5);
}

Test(in_use, deregistering_waits_for_queued_calls)
{
    run_on(in_use_deregister, 2, 2);
}

Test(in_use, closing_what_holds_a_registration_waits_for_queued_calls_of_others)
{
    run_on(in_use_close_another, 2, 2);
}

Test(in_use, freeing_waits_for_queued_calls)
{
    run_on(in_use_free, 2, 2);
}

Test(operations, maps_that_do_not_commute_are_combined_in_rank_order)
{
    run_on(operations_affine_maps_in_rank_order, 1, 11);
}

Test(operations, a_commutative_one_gets_its_context)
{
    run_on(operations_commutative, 1, 8);
}

/* On one processor, so that the root gets ahead as far as it can before anybody reads. */
Test(kinds, messages_of_all_lengths_arrive_whole_while_the_root_is_ahead)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    cr_assert(sched_setaffinity(0, sizeof(one), &one) == 0);
    run_on(kinds_of_messages_take_turns, 2, 8);
}

Test(operations, ranks_may_have_made_different_numbers_of_them)
{
    run_on(operations_differ_in_number, 2, 3);
}

Test(operations, ranks_whose_own_ones_differ_are_told_how)
{
    for (int size = 2; size <= 3; size++) {
        world_run_processes(size, operations_differ_in_kind, NULL, &report);
        for (int rank = 0; rank < size; rank++) {
            cr_expect(report.results[rank] == RONDO_ERROR_MISMATCH, "rank %d of %d: %s", rank, size,
                      report.sentences[rank]);
            cr_expect(strstr(report.sentences[rank], "that does not commute"), "%s",
                      report.sentences[rank]);
        }
    }
}

Test(operations, the_pre_multiplied_sum_takes_each_ranks_scalar)
{
    run_on(operations_premul_sum, 1, 8);
}

Test(operations, minimum_and_maximum_keep_nan_and_order_zeros)
{
    run_on(operations_min_max_of_special_values, 1, 8);
}

Test(operations, sums_of_8_bit_floats_saturate)
{
    run_on(operations_narrow_sums_saturate, 2, 5);
}
