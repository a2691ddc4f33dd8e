/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mixed.c - groups of calls on several CUDA streams, and streams that await each other. The
 * stand-in runs host functions one after the other, so one that waited would wait for ever.
 */
#include "mixed.h"

#include <criterion/criterion.h>

static void expect(world_body body, int size, bool processes, bool host)
{
    const char *wrong = gpu_ranks_fail(body, size, processes, host);

    cr_assert(!wrong, "%s", wrong);
}

/* Processes first: those of a process that has used CUDA cannot. */
static void expect_both_ways(world_body body)
{
    for (int size = 1; size <= 3; size++) {
        expect(body, size, true, false);
        expect(body, size, true, true);
    }
    expect(body, 2, false, false);
    expect(body, 3, false, true);
}

Test(gpu_mixed, messages_of_a_group_come_after_all_of_its_streams)
{
    expect_both_ways(gpu_mixes_streams);
}

Test(gpu_mixed, so_they_do_in_graphs_which_know_no_events_of_ours)
{
    for (int size = 1; size <= 3; size++) {
        expect(gpu_mixes_streams_in_graphs, size, true, false);
        expect(gpu_mixes_streams_in_graphs, size, true, true);
    }
}

Test(gpu_mixed, a_communicator_with_one_stream_stays_there)
{
    expect(gpu_keeps_homes_apart, 2, true, false);
    expect(gpu_keeps_homes_apart, 3, true, true);
}

Test(gpu_mixed, streams_await_events_that_others_reach_later)
{
    expect_both_ways(gpu_awaits_events);
}
