/* SPDX-License-Identifier: BSD-3-Clause */
/* test_messages.c - sends and receives that are too long for a slot: where peers can map the
 * sender's memory, the receiver reads it there. */
#include "messages.h"

#include <criterion/criterion.h>
#include <string.h>

static struct world_report report;

TestSuite(messages, .timeout = 120);

static void run_on(world_body body)
{
    for (int size = 2; size <= 5; size++)
        cr_assert(world_run_threads(size, body, NULL, &report) == 0, "%s", report.summary);
    for (int size = 2; size <= 3; size++)
        cr_assert(world_run_processes(size, body, NULL, &report) == 0, "%s", report.summary);
}

Test(messages, are_right_whatever_memory_they_come_from)
{
    run_on(messages_go_round);
}

Test(messages, several_and_a_collective_do_not_mix)
{
    run_on(messages_beside_a_collective);
}

Test(messages, who_has_one_may_close_before_its_sender_knows)
{
    run_on(messages_before_closing);
}

Test(messages, may_go_to_their_sender)
{
    run_on(messages_to_oneself);
}

Test(messages, of_many_bytes_come_in_pieces)
{
    cr_assert(world_run_threads(2, messages_in_pieces, NULL, &report) == 0, "%s", report.summary);
    cr_assert(world_run_processes(2, messages_in_pieces, NULL, &report) == 0, "%s", report.summary);
}

Test(messages, of_a_sender_that_has_given_up_are_an_error)
{
    rondo_config config = RONDO_CONFIG_INIT;

    config.timeout = world_patience(0.3);
    for (int processes = 0; processes < 2; processes++) {
        struct world world = {.size = 2, .processes = processes, .config = &config};

        world_run(&world, messages_given_up, NULL, &report);
        for (int r = 0; r < 2; r++)
            cr_expect(report.results[r] == RONDO_ERROR_TIMEOUT, "rank %d: %s", r,
                      report.sentences[r]);
    }
}
