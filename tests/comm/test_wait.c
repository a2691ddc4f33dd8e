/* SPDX-License-Identifier: BSD-3-Clause */
/* test_wait.c - when a waiter spins, and how often it says that it is time to look. */
#include "base/clock.h"
#include "comm/state/wait.h"

#include <criterion/criterion.h>

Test(wait, spins_so_many_rounds_before_it_looks_at_anything)
{
    struct waiter waiter;

    waiter_init(&waiter, 100);
    for (int i = 0; i < 100; i++)
        cr_assert(!waiter_pause(&waiter) && waiter.yields == 0);
    cr_expect(waiter.now == 0, "no look at the clock yet");
    waiter_pause(&waiter);
    cr_expect(waiter.yields == 1);
}

/* Time goes by as it likes on a busy machine: only what holds whatever it does is asked for. */
Test(wait, says_at_most_once_a_millisecond_that_it_is_time_to_look)
{
    double began = clock_seconds(), last = 0;
    struct waiter waiter;
    int looks = 0;

    waiter_init(&waiter, 0);
    while (clock_seconds() - began < 0.06) {
        if (!waiter_pause(&waiter))
            continue;
        looks++;
        cr_assert(waiter.now >= last + 1e-3, "%g s after the last", waiter.now - last);
        cr_expect(waiter.now <= clock_seconds() && waiter.since > 0);
        last = waiter.now;
    }
    cr_expect(looks >= 1);
}

Test(wait, begins_anew_after_something_moved)
{
    struct waiter waiter;

    waiter_init(&waiter, 1);
    while (!waiter_pause(&waiter))
        continue;
    cr_expect(waiter.since > 0);
    waiter_reset(&waiter);
    cr_expect(waiter.since == 0 && waiter.rounds == 0);
    cr_expect(!waiter_pause(&waiter), "it spins again");
    cr_expect(waiter.rounds == 1);
}
