/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bodies.h - the bodies of the stand-in's tests, by subject.
 */
#pragma once

#include "tests/standin/check.h"

/* clang-format off */
#define STREAM_BODIES(use) \
    use(call_returns_before_the_work_is_done) \
    use(blocked_stream_does_not_block_another) \
    use(legacy_stream_waits_for_blocking_streams) \
    use(blocking_stream_waits_for_the_legacy_stream) \
    use(event_stands_for_the_latest_record) \
    use(event_orders_streams_of_two_devices) \
    use(elapsed_time_needs_two_timed_and_reached_events) \
    use(wait_value_compares_in_four_ways) \
    use(wait_value_of_64_bits_is_cyclic_too) \
    use(batch_of_memory_operations_runs_in_order) \
    use(host_function_runs_in_order_and_may_not_call_the_driver) \
    use(each_thread_has_its_own_per_thread_stream) \
    use(destroyed_stream_finishes_its_work)

#define MEMORY_BODIES(use) \
    use(call_without_a_context_is_refused) \
    use(primary_context_lives_as_long_as_it_is_retained) \
    use(device_says_what_it_can) \
    use(peer_access_is_enabled_once) \
    use(memory_runs_out_and_comes_back) \
    use(use_of_freed_or_foreign_memory_is_refused) \
    use(addresses_are_known_by_their_kind) \
    use(registered_memory_is_used_in_place) \
    use(managed_memory_is_the_programs_too) \
    use(pageable_source_is_taken_at_the_call) \
    use(synchronous_copies_of_pageable_memory_can_be_overtaken) \
    use(rows_are_copied_with_their_pitches) \
    use(free_waits_for_work_under_way) \
    use(pinning_waits_for_host_functions)

#define GRAPH_BODIES(use) \
    use(captured_work_runs_at_each_launch_only) \
    use(branches_of_a_graph_run_side_by_side) \
    use(launches_of_one_graph_follow_each_other) \
    use(graph_of_a_graph_runs_it_in_its_place) \
    use(waiting_for_a_captured_stream_spoils_the_capture) \
    use(unsafe_calls_are_forbidden_as_the_mode_says) \
    use(capture_of_another_thread_is_respected) \
    use(legacy_stream_is_closed_while_a_blocking_one_is_captured) \
    use(capture_must_be_joined_and_ended_where_it_began) \
    use(events_do_not_lead_in_or_out_of_a_capture) \
    use(capture_info_names_the_graph_and_the_last_nodes)

#define KERNEL_BODIES(use) \
    use(kernel_runs_every_block_of_its_grid) \
    use(resident_blocks_run_side_by_side) \
    use(kernel_waits_for_a_word_of_the_host) \
    use(module_has_variables_and_shared_memory) \
    use(illegal_launches_are_refused) \
    use(captured_kernel_keeps_its_parameters)

#define VMM_BODIES(use) \
    use(mapping_keeps_released_memory) \
    use(wrong_mappings_are_refused) \
    use(descriptor_is_another_handle_of_the_memory) \
    use(memory_is_freed_in_stream_order)

/* clang-format on */

#define BODY_DECLARE(name) check_body body_##name;
STREAM_BODIES(BODY_DECLARE)
MEMORY_BODIES(BODY_DECLARE)
GRAPH_BODIES(BODY_DECLARE)
KERNEL_BODIES(BODY_DECLARE)
VMM_BODIES(BODY_DECLARE)
