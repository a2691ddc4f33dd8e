/* SPDX-License-Identifier: BSD-3-Clause */
/* test_behind.c - CUDA streams that come late to calls which were queued long ago. */
#include "behind.h"

#include <criterion/criterion.h>

static void expect(world_body body, int size, bool processes, bool host)
{
    const char *wrong = gpu_ranks_fail(body, size, processes, host);

    cr_assert(!wrong, "%s", wrong);
}

/* Processes first: those of a process that has used CUDA cannot. */
Test(gpu_behind, the_time_in_the_queue_does_not_count_as_a_wait_for_peers)
{
    expect(gpu_calls_older_than_the_timeout, 2, true, false);
    expect(gpu_calls_older_than_the_timeout, 2, false, false);
}

Test(gpu_behind, closing_awaits_calls_that_streams_have_still_to_hand_over)
{
    expect(gpu_closes_before_a_call, 2, true, true);
}
