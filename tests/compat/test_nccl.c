/* SPDX-License-Identifier: BSD-3-Clause */
/* test_nccl.c - a client of NCCL that knows nothing of Rondo, over our libnccl.so.2. */
#include "bodies.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void run(const struct client_world *world, client_body body)
{
    const char *said = client_run(world, body);

    cr_assert(!said[0], "%d %s: %s", world->size, world->processes ? "processes" : "threads", said);
}

static void as_threads(int size, client_body body)
{
    run(&(struct client_world){.size = size}, body);
}

static void as_processes(int size, client_body body)
{
    run(&(struct client_world){.size = size, .processes = true}, body);
}

static void alone(int size, bool all_at_once, bool (*body)(struct client *))
{
    const char *said = client_run_alone(size, all_at_once, body);

    cr_assert(!said[0], "%d ranks in one thread: %s", size, said);
}

Test(matrix, every_collective_type_and_operation_on_two_processes)
{
    as_processes(2, matrix_run);
}

Test(matrix, every_collective_type_and_operation_on_four_processes)
{
    as_processes(4, matrix_run);
}

Test(matrix, every_collective_type_and_operation_on_threads)
{
    as_threads(1, matrix_run);
    as_threads(3, matrix_run);
}

Test(groups, many_tensors_are_one_group)
{
    as_threads(3, groups_of_many_tensors);
    as_threads(4, groups_of_many_tensors);
}

Test(groups, many_tensors_are_one_group_of_processes)
{
    as_processes(8, groups_of_many_tensors);
}

Test(groups, sends_and_receives_nest_and_do_not_wait_for_an_order)
{
    as_threads(4, groups_nest_and_exchange);
}

Test(groups, with_a_mistake_inside_nothing_is_done)
{
    as_processes(2, groups_with_an_error_do_nothing);
}

Test(groups, left_open_are_aborted)
{
    as_processes(2, groups_left_open_are_aborted);
}

Test(groups, make_their_calls_also_when_a_split_goes_on_in_the_background)
{
    as_processes(2, groups_call_beside_a_split);
}

Test(groups, are_simulated_and_dropped)
{
    as_processes(1, groups_are_simulated_alike);
    as_processes(2, groups_are_simulated);
}

Test(groups, are_simulated_alike_on_all_ranks)
{
    as_threads(3, groups_are_simulated_alike);
}

Test(groups, one_thread_is_all_ranks)
{
    alone(4, true, groups_alone);
    alone(3, false, groups_alone);
}

Test(groups, one_thread_splits_all_ranks)
{
    alone(4, false, groups_split_alone);
}

Test(streams, share_a_communicator)
{
    as_threads(2, streams_share_a_communicator);
}

Test(streams, are_captured_in_a_graph)
{
    if (!client_on_device())
        cr_skip_test("graphs are of the device");
    /* Graphs that wait for each other must not share a hardware channel: docs/standin.md. */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    as_threads(2, streams_are_captured);
}

Test(derive, a_split_has_the_ranks_of_a_color_in_the_order_of_keys)
{
    as_threads(5, derive_split);
    as_threads(2, derive_split);
}

Test(derive, a_split_of_processes)
{
    as_processes(4, derive_split);
}

Test(derive, who_is_left_out_has_no_part_in_shrinking)
{
    /* As an H200 does at times. */
    setenv("CUDA_STANDIN_STREAMS_WAIT", "1", 1);
    as_threads(3, derive_shrink);
    as_threads(5, derive_shrink);
}

Test(derive, processes_shrink_after_one_has_died)
{
    run(&(struct client_world){.size = 4, .processes = true, .leaves = 2},
        derive_shrink_after_a_death);
}

Test(derive, ranks_with_and_without_a_part_shrink_after_their_split_has_failed)
{
    run(&(struct client_world){.size = 3,
                               .processes = true,
                               .apart = true,
                               .leaves = 3,
                               .argument = client_share(4096)},
        derive_shrink_after_a_failed_split);
}

static void two_die(int second, bool in_shrink)
{
    struct deaths *shared = client_share(sizeof(*shared));

    shared->second = second;
    shared->in_shrink = in_shrink;
    run(&(struct client_world){.size = 5,
                               .processes = true,
                               .leaves = 2,
                               .leaves_too = second + 1,
                               .argument = shared},
        derive_shrink_after_two_deaths);
}

Test(derive, a_second_death_before_the_others_shrink_is_named_and_left_out)
{
    two_die(3, false);
    two_die(0, false);
}

Test(derive, a_second_death_while_the_others_shrink_is_named_and_left_out)
{
    two_die(4, true);
    two_die(0, true);
}

Test(derive, a_second_death_on_another_host_is_named_and_left_out)
{
    setenv("RONDO_TRANSPORT", "tcp", 1);
    two_die(3, false);
    two_die(0, true);
}

Test(derive, shrinking_ends_the_calls_in_flight)
{
    run(&(struct client_world){.size = 3, .argument = client_share(4096)},
        derive_shrink_in_mid_flight);
}

Test(derive, a_revoked_communicator_can_be_split)
{
    run(&(struct client_world){.size = 3, .argument = client_share(4096)}, derive_revoke);
}

Test(derive, new_ranks_come_to_old_ones)
{
    run(&(struct client_world){.size = 4, .apart = true, .argument = client_share(4096)},
        derive_grow);
}

Test(beside, a_second_thread_is_refused_while_a_first_one_splits)
{
    run(&(struct client_world){.size = 2, .processes = true, .argument = client_share(4096)},
        beside_another_split);
}

Test(beside, a_refused_call_takes_no_id_and_ends_no_call)
{
    run(&(struct client_world){.size = 3, .processes = true, .argument = client_share(4096)},
        beside_refused_calls_do_nothing);
}

static void shrink_beside(bool blocks, bool grouped)
{
    struct hang *hang = client_share(sizeof(*hang));

    hang->blocks = blocks;
    hang->grouped = grouped;
    run(&(struct client_world){.size = 4, .processes = true, .argument = hang},
        beside_a_split_that_hangs);
}

Test(beside, shrinking_ends_a_split_that_hangs)
{
    shrink_beside(true, false);
    shrink_beside(false, false);
    shrink_beside(true, true);
    shrink_beside(false, true);
}

Test(beside, shrinking_ends_a_split_that_hangs_between_hosts)
{
    setenv("RONDO_TRANSPORT", "tcp", 1);
    shrink_beside(true, false);
    shrink_beside(false, false);
}

Test(ends, joining_and_splitting_need_not_be_waited_for)
{
    run(&(struct client_world){.size = 3, .apart = true, .argument = client_share(4096)},
        ends_join_in_the_background);
}

Test(ends, a_join_is_aborted)
{
    run(&(struct client_world){.size = 1, .apart = true}, ends_abort_a_join);
}

Test(ends, a_join_that_blocks_is_aborted)
{
    void *aborted = client_share(sizeof(int));

    run(&(struct client_world){.size = 2, .apart = true, .argument = aborted},
        ends_abort_a_join_that_blocks);
}

Test(ends, communicators_of_a_group_are_aborted_before_it_ends)
{
    run(&(struct client_world){.size = 1, .apart = true}, ends_abort_in_groups);
}

Test(ends, who_asks_for_the_error_of_what_is_gone_gets_the_last_one)
{
    run(&(struct client_world){.size = 1, .apart = true}, ends_ask_after_the_end);
}

/* A thread might be in the library when that is unloaded. */
Test(ends, a_communicator_leaves_no_thread)
{
    run(&(struct client_world){.size = 1, .apart = true}, ends_leave_no_thread);
}

Test(ends, splits_without_a_color_leave_no_stacks)
{
    run(&(struct client_world){.size = 1, .apart = true}, ends_keep_no_stacks);
}

Test(ends, a_join_is_aborted_before_it_starts)
{
    run(&(struct client_world){.size = 1, .apart = true}, ends_abort_before_a_join);
}

Test(ends, a_watchdog_aborts_a_call_in_flight)
{
    as_threads(3, ends_abort_in_mid_flight);
}

Test(ends, a_watchdog_of_a_process_aborts_a_call_in_flight)
{
    as_processes(3, ends_abort_in_mid_flight);
}

Test(ends, splits_of_one_parent_in_a_group_are_the_same_on_all_ranks)
{
    static int blocking[][2] = {{1, 1}, {0, 0}, {1, 0}, {0, 1}};

    for (size_t i = 0; i < sizeof(blocking) / sizeof(blocking[0]); i++)
        run(&(struct client_world){.size = 4, .processes = true, .argument = blocking[i]},
            ends_split_twice_in_a_group);
}

Test(ends, a_split_that_begins_after_the_abort_of_its_parent_ends)
{
    run(&(struct client_world){.size = 2, .argument = client_share(4096)},
        ends_abort_before_a_split);
}

Test(ends, a_finalized_communicator_takes_no_calls)
{
    as_threads(2, ends_finalize);
}

Test(rest, inputs_are_scaled_before_a_sum)
{
    as_threads(3, rest_scaled_sums);
}

Test(rest, a_scalar_on_the_device_is_read_by_each_call)
{
    as_threads(2, rest_device_scalars);
}

Test(rest, questions_have_answers)
{
    as_threads(2, rest_asks);
}

Test(rest, configurations_of_other_versions_are_read_as_far_as_they_go)
{
    ncclUniqueId *ids = client_share(8 * sizeof(*ids));

    for (int i = 0; i < 5; i++)
        cr_assert(ncclGetUniqueId(&ids[i]) == ncclSuccess, "%s", ncclGetLastError(NULL));
    run(&(struct client_world){.size = 2, .apart = true, .argument = ids}, rest_configurations);
}

/* Alone: two threads would find each other's words in NCCL's last error. */
Test(rest, wrong_configurations_are_refused)
{
    run(&(struct client_world){.size = 1, .apart = true}, rest_wrong_configurations);
}

/* Rondo would take the device's memory for the host's. A bundle has no such driver. */
Test(rest, a_device_that_rondo_cannot_use_is_refused)
{
    const char *driver = getenv("OLD_DRIVER");
    ncclComm_t comm = NULL;
    ncclUniqueId id;

    if (!driver)
        cr_skip_test("OLD_DRIVER names no driver");
    cr_assert(dlopen(driver, RTLD_NOW), "%s", dlerror());
    cr_assert(ncclGetUniqueId(&id) == ncclSuccess, "%s", ncclGetLastError(NULL));
    cr_assert(ncclCommInitRank(&comm, 1, id, 0) == ncclInvalidUsage && !comm);
    cr_expect(strstr(ncclGetLastError(NULL), "CUDA"), "%s", ncclGetLastError(NULL));
    cr_assert(ncclCommInitAll(&comm, 1, NULL) == ncclInvalidUsage && !comm);
}

Test(rest, memory_given_and_registered)
{
    as_processes(2, rest_memory);
}

Test(rest, windows_are_memory_that_calls_work_on)
{
    as_processes(2, rest_windows);
}

Test(rest, a_forked_child_is_refused_and_nobody_else_notices)
{
    as_processes(2, forked_child_is_refused);
}

Test(rest, mistakes_are_said_in_sentences)
{
    as_processes(2, rest_mistakes);
}

Test(rest, calls_take_options)
{
    as_processes(2, later_calls_take_options);
}

Test(rest, questions_of_later_versions_have_answers)
{
    as_processes(2, later_questions_have_answers);
}

Test(rest, what_is_not_offered_says_so)
{
    as_processes(1, later_functions_say_no);
    as_processes(2, rest_what_is_not_offered);
}
