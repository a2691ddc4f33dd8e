/* SPDX-License-Identifier: BSD-3-Clause */
/* test_p2p.c - messages with tags (rondo/p2p.h). */
#include "tests/api/p2p/p2p.h"
#include "tests/log_copy.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static struct world_report report;

TestSuite(p2p, .timeout = 120);

static void run_on(world_body body, int from, int to)
{
    for (int size = from; size <= to; size += size < 5 ? 1 : 4)
        cr_assert(world_run_threads(size, body, NULL, &report) == 0, "%s", report.summary);
    cr_assert(world_run_processes(from + 1, body, NULL, &report) == 0, "%s", report.summary);
}

/* A receive from any source does not ask ranks of other hosts. */
static bool distant(void)
{
    return getenv("RONDO_TRANSPORT") != NULL;
}

Test(p2p, messages_are_found_by_source_and_tag_whatever_their_order)
{
    run_on(p2p_take_in_any_order, 1, 17);
}

Test(p2p, crossed_sends_of_any_length_do_not_deadlock)
{
    run_on(p2p_cross, 2, 9);
}

Test(p2p, any_source_and_any_tag_take_each_message_once)
{
    run_on(p2p_take_from_any, 2, 9);
}

Test(p2p, messages_of_one_sender_are_taken_in_their_order)
{
    run_on(p2p_keep_order, 2, 5);
}

Test(p2p, a_probe_tells_what_comes_and_leaves_it)
{
    run_on(p2p_probe_first, 2, 5);
}

Test(p2p, several_threads_wait_each_for_its_own)
{
    run_on(p2p_wait_by_threads, 1, 5);
}

Test(p2p, they_go_on_while_ranks_are_in_collectives)
{
    run_on(p2p_beside_collectives, 2, 5);
}

Test(p2p, they_come_while_their_receiver_waits_for_none)
{
    run_on(p2p_send_to_busy, 2, 3);
}

Test(p2p, a_message_that_is_too_long_ends_its_receive_only)
{
    run_on(p2p_refuse_long_ones, 2, 3);
}

Test(p2p, a_message_that_is_too_long_and_was_offered_is_not_read)
{
    run_on(p2p_refuse_unread, 2, 2);
}

Test(p2p, a_message_to_a_rank_that_has_closed_its_end_is_refused_alone)
{
    run_on(p2p_send_to_closed, 2, 3);
}

Test(p2p, ranks_that_close_over_sends_that_nobody_takes_do_not_wait_for_each_other)
{
    cr_expect(!world_run_threads(2, p2p_close_over_sends, NULL, &report), "%s", report.summary);
    cr_expect(!world_run_processes(2, p2p_close_over_sends, NULL, &report), "%s", report.summary);
}

Test(p2p, closing_gives_up_receives_and_delivers_what_was_sent)
{
    run_on(p2p_close_early, 2, 5);
}

Test(p2p, wrong_arguments_are_refused)
{
    run_on(p2p_refuse_arguments, 2, 2);
}

Test(p2p, a_killed_rank_is_named_by_who_waits_for_it)
{
    static const struct p2p_wait waits[] = {{1, 7, P2P_RECEIVE},     {1, 7, P2P_PROBE},
                                            {-1, 7, P2P_RECEIVE},    {-1, 7, P2P_PROBE},
                                            {1, 7, P2P_PROBE_AGAIN}, {-1, 7, P2P_PROBE_AGAIN}};

    for (int i = 0; i < 6; i++) {
        world_run_processes(3, p2p_lose_a_rank, (void *)&waits[i], &report);
        for (int r = 0; r < 3; r += 2) {
            cr_expect(report.results[r] == RONDO_ERROR_PEER, "%s", report.summary);
            cr_expect(strstr(report.sentences[r], "ank 1"), "%s", report.summary);
            cr_expect(distant() || strstr(report.sentences[r], "for a message with tag 7 from"),
                      "%s", report.summary);
        }
    }
}

Test(p2p, a_rank_of_another_host_that_dies_unmet_is_missed_by_what_names_it_alone)
{
    enum { SIZE = 6 };
    atomic_int *done = world_share(sizeof(*done));

    if (!distant())
        cr_skip_test("a rank of this host is met from the start");
    setenv("RONDO_ALGORITHM", "direct", 1); /* of the barrier when the ends are opened */
    world_run_processes(SIZE, p2p_lose_a_stranger, done, &report);
    world_unshare(done, sizeof(*done));
    for (int r = 0; r < SIZE; r++)
        cr_expect(r == 1 || strstr(report.sentences[r], "finalize: ") == report.sentences[r], "%s",
                  report.summary);
}

Test(p2p, a_wait_ends_with_the_timeout)
{
    static const struct {
        struct p2p_wait wait;
        const char *words;
    } waits[] = {{{1, 7, P2P_RECEIVE}, " with tag 7 from rank 1."},
                 {{1, -1, P2P_PROBE}, " with any tag from rank 1."},
                 {{-1, -1, P2P_RECEIVE}, " with any tag from any rank."},
                 {{-1, 7, P2P_PROBE}, " with tag 7 from any rank."},
                 {{0, 7, P2P_RECEIVE}, " with tag 7 from itself."},
                 {{0, -1, P2P_PROBE}, " with any tag from itself."}};

    for (int i = 0; i < 6; i++) {
        world_run_threads(2, p2p_wait_in_vain, (void *)&waits[i].wait, &report);
        cr_expect(report.results[0] == RONDO_ERROR_TIMEOUT, "%d: %s", i, report.summary);
        cr_expect(strstr(report.sentences[0], waits[i].words), "%d: %s", i, report.summary);
    }
}

Test(p2p, a_probe_ends_when_those_that_it_waits_for_have_closed_their_ends)
{
    static const struct p2p_wait waits[] = {
        {1, 7, P2P_PROBE}, {1, 7, P2P_PROBE_AGAIN}, {-1, 7, P2P_PROBE}, {-1, 7, P2P_PROBE_AGAIN}};
    const char *words[] = {"from rank 1, but rank 1 has closed", "from any rank, but all others"};

    for (int i = 0; i < (distant() ? 2 : 4); i++) {
        world_run_threads(2, p2p_wait_for_closed, (void *)&waits[i], &report);
        cr_expect(report.results[0] == RONDO_ERROR_PEER, "%d: %s", i, report.summary);
        cr_expect(distant() || strstr(report.sentences[0], words[i / 2]), "%d: %s", i,
                  report.summary);
    }
}

Test(p2p, who_waits_says_so_in_the_log)
{
    struct p2p_wait_told waits[] = {
        {.source = 1, .line = " s for a message with tag 7 from rank 1."},
        {.source = RONDO_ANY_SOURCE, .line = " s for a message with tag 7 from any rank."},
        {.sends = true, .line = " s until rank 1 asks for a message of 65537 bytes with tag 7."}};
    int log = log_copy_open("0.05");

    for (int i = 0; i < 3; i++) {
        waits[i].log = log;
        cr_expect(!world_run_threads(2, p2p_wait_told, &waits[i], &report), "%s", report.summary);
    }
    close(log);
}

Test(p2p, an_abort_ends_waits_everywhere)
{
    world_run_threads(3, p2p_abort, NULL, &report);
    for (int r = 0; r < 3; r++) {
        cr_expect(report.results[r] == RONDO_ERROR_ABORTED, "%s", report.summary);
        cr_expect(strstr(report.sentences[r], "Rank 1 aborted"), "%s", report.summary);
    }
}
