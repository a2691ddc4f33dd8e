/* SPDX-License-Identifier: BSD-3-Clause */
/* test_wait.c - when a waiter spins, and how often it says that it is time to look. */
#include "base/clock.h"
#include "comm/state/wait.h"

#include <criterion/criterion.h>
#include <math.h>

static const struct wait_policy spinning = {
    .ranks_per_core = 1, .polls = 16, .spins = 100, .network_spins = 20};
static const struct wait_policy looking = {.ranks_per_core = 1, .spins = 0};
static const struct wait_policy crowded = {
    .ranks_per_core = 2, .spins = 1, .network_spins = 1, .doze_part = 0.01};

Test(wait, spins_so_many_rounds_before_it_looks_at_anything)
{
    struct waiter waiter;

    waiter_init(&waiter, &spinning);
    for (int i = 0; i < 100; i++)
        cr_assert(!waiter_pause(&waiter) && waiter.yields == 0);
    cr_expect(waiter.now == 0, "no look at the clock yet");
    waiter_pause(&waiter);
    cr_expect(waiter.yields == 1);
}

/* Time goes by as it likes on a busy machine: only what holds whatever it does is asked for. */
Test(wait, says_at_most_once_a_millisecond_that_it_is_time_to_look)
{
    struct waiter waiter;
    double last = 0;
    int looks = 0;

    waiter_init(&waiter, &looking);
    while (looks < 20) {
        if (!waiter_pause(&waiter))
            continue;
        looks++;
        cr_assert(waiter.now >= last + 1e-3, "%g s after the last", waiter.now - last);
        cr_expect(waiter.now <= clock_seconds() && waiter.since > 0);
        last = waiter.now;
    }
}

Test(wait, begins_anew_after_something_moved)
{
    struct waiter waiter;

    waiter_init(&waiter, &crowded);
    while (!waiter_pause(&waiter))
        continue;
    cr_expect(waiter.since > 0);
    waiter_reset(&waiter);
    cr_expect(waiter.since == 0 && waiter.rounds == 0);
    cr_expect(!waiter_pause(&waiter), "it spins again");
    cr_expect(waiter.rounds == 1);
}

Test(wait, polls_flags_alone_only_where_nobody_shares_a_core)
{
    struct waiter waiter;
    int polls = 0;

    waiter_init(&waiter, &crowded);
    cr_expect(!waiter_polls(&waiter));
    waiter_init(&waiter, &spinning);
    while (waiter_polls(&waiter))
        polls++;
    cr_expect(polls > 0 && polls < spinning.spins, "%d times, then pauses", polls);
    cr_expect(waiter.rounds == polls, "polls count as rounds");
}

Test(wait, looks_at_networks_so_often_before_it_sleeps_and_shortly_where_nobody_wakes_it)
{
    struct waiter waiter;
    int looks = 0;

    waiter_init(&waiter, &spinning);
    while (waiter_looks_again(&waiter))
        looks++;
    cr_expect(looks == spinning.network_spins);
    cr_expect(waiter_sleep(&waiter, false) < waiter_sleep(&waiter, true));
}

Test(wait, sleeps_longer_the_longer_it_has_lasted_up_to_the_time_of_a_look)
{
    double most, before = 0;
    struct waiter waiter;

    waiter_init(&waiter, &crowded);
    most = waiter_sleep(&waiter, true);
    for (double waited = 1e-3; waited < 100; waited *= 10) {
        double sleeps;

        waiter.since = 1;
        waiter.now = waiter.since + waited;
        sleeps = waiter_sleep(&waiter, false);
        cr_expect(sleeps >= before && sleeps <= fmax(waited / 20, 1e-4) && sleeps <= most);
        before = sleeps;
    }
    cr_expect(before == most, "%g s, not %g", before, most);
}

#define TURN 0.05 /* seconds */

/* True if a wait of a millisecond dozes after its last two looks at the clock seemed to be `away`
 * seconds apart; `sleeps`: the thread left its processor in between. */
static bool dozes_after(double away, bool sleeps)
{
    struct waiter waiter;

    waiter_init(&waiter, &looking);
    while (waiter.since == 0)
        waiter_pause_slow(&waiter);
    if (sleeps)
        doze_for(1e-6);
    waiter.now -= away;
    waiter_look(&waiter);
    waiter.since -= 1e-3;
    waiter_pause_slow(&waiter);
    return waiter.yields == 0; /* a doze ends with a look, a yield counts */
}

/* True if the answer comes: what the machine does to the test may hide it for a while. */
static bool comes(bool wanted, double away, bool sleeps)
{
    for (int i = 0; i < 100000; i++)
        if (dozes_after(away, sleeps) == wanted)
            return true;
    return false;
}

static bool next_wait_dozes(void)
{
    for (int i = 0; i < 100000; i++)
        if (dozes_after(TURN, false) && dozes_after(0, false))
            return true;
    return false;
}

Test(wait, dozes_soon_where_the_host_runs_processors_in_turns)
{
    cr_expect(comes(false, 0, false), "a millisecond is spent with yields");
    cr_expect(comes(false, TURN, true),
              "who left the processor by itself was not stopped by the host");
    cr_expect(comes(true, TURN, false), "who stood still lets others have their turn");
    cr_expect(next_wait_dozes(), "and so does the next wait");
    cr_expect(comes(false, 100 * TURN, false), "a machine that was moved has no turns");
}
