/* SPDX-License-Identifier: BSD-3-Clause */
/* stress_comm.c - threaded parts of the executor's and of
 * comm's tests without Criterion, for ThreadSanitizer. */
#include "comm_bodies.h"
#include "reads_bodies.h"
#include "fast_path_bodies.h"

#include "../plan/exec_world.h"

#include <stdio.h>

static int say(const char *what, const char *wrong)
{
    printf("%s %s%s%s\n", wrong ? "FAILED" : "passed", what, wrong ? ": " : "", wrong ? wrong : "");
    fflush(stdout);
    return wrong != NULL;
}

int main(void)
{
    int failed = say("status pages", status_pages_are_never_torn(20000));

    failed += say("failures on status pages", failures_are_whole(50));
    failed += say("closing", closing_is_the_last_store(60));
    failed += say("events", events_keep_their_point());
    failed += say("streams that close", streams_close_while_queued(10));
    failed += say("streams that close themselves", streams_close_themselves(10));
    failed += say("groups", groups_mix_streams_and_ranks(10));
    failed += say("ranks that hide", ranks_may_hide_in_any_set(3));
    failed += say("ranks that measure noise", ranks_may_measure_anything(3, 300));
    failed += say("repetitions", repetitions_do_what_is_asked(40));
    failed += say("repetitions of two threads", threads_repeat_each_other(500));
    failed +=
        say("closing beside a repetition", a_repetition_ends_in_a_communicator_that_is_closed());
    failed += say("relays", trial_check_relay(3000, 7, 512, UINT32_MAX - 5));
    failed += say("programs", trial_check_two_programs(3000, 256, 0));
    return failed != 0;
}
