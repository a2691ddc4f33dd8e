/* SPDX-License-Identifier: BSD-3-Clause */
/* test_wait.c - when a waiter spins, and how often it says that it is time to look. */
#include "base/clock.h"
#include "comm/state/wait.h"

#include <criterion/criterion.h>

static const struct wait_policy spinning = {
    .ranks_per_core = 1, .polls = 16, .spins = 100, .network_spins = 20};
static const struct wait_policy looking = {.ranks_per_core = 1, .spins = 0};
static const struct wait_policy crowded = {.ranks_per_core = 2, .spins = 1, .network_spins = 1};

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
