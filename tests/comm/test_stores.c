/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stores.c - trials of ways to store, with times that are made up. */
#include "comm/state/stores.h"

#include <criterion/criterion.h>

enum { ALL = 15, LONGEST = 128 }; /* pause between trials of long calls */

/* Calls that take what their way takes; which way they went is counted. */
static void run(struct stores *stores, const double *seconds, int calls, int *ret_went)
{
    for (int i = 0; i < calls; i++) {
        if (ret_went)
            ret_went[stores->now]++;
        stores_note(stores, seconds[stores->now]);
    }
}

Test(stores, the_quickest_way_is_found_and_kept)
{
    for (unsigned quickest = 0; quickest < STORES_WAYS; quickest++) {
        double seconds[STORES_WAYS] = {2, 2, 2, 2};
        struct stores stores;
        int went[STORES_WAYS] = {0};

        seconds[quickest] = 1;
        stores_open(&stores, ALL, 3 - quickest, quickest % 2);
        run(&stores, seconds, 30, NULL);
        cr_expect(stores.way == quickest);
        run(&stores, seconds, 1000, went);
        cr_expect(stores.way == quickest && went[quickest] > 800, "%d", went[quickest]);
    }
}

Test(stores, ways_that_make_no_difference_here_are_never_gone)
{
    const double seconds[STORES_WAYS] = {5, 4, 3, 2};
    int went[STORES_WAYS] = {0};
    struct stores stores;

    stores_open(&stores, 1 | 2, 3, true);
    cr_expect(stores_matter(&stores));
    run(&stores, seconds, 500, went);
    cr_expect(stores.way == 1 && went[2] == 0 && went[3] == 0);
    stores_open(&stores, 4, 0, true);
    cr_expect(stores.now == 2 && !stores_matter(&stores));
    stores_open(&stores, 0, 0, true);
    cr_expect(stores.now == 0 && !stores_matter(&stores));
}

Test(stores, times_that_change_change_the_way)
{
    const double near[STORES_WAYS] = {1, 3, 3, 3}, far[STORES_WAYS] = {9, 1, 9, 9};
    struct stores stores;

    stores_open(&stores, ALL, 0, true);
    run(&stores, near, 300, NULL);
    cr_expect(stores.way == 0);
    run(&stores, far, LONGEST + 20, NULL);
    cr_expect(stores.way == 1);
    run(&stores, near, LONGEST + 20, NULL);
    cr_expect(stores.way == 0);
}

/* Two ranks whose times differ are on trial in the same calls, with the same way. */
Test(stores, ranks_try_the_same_way_in_the_same_calls)
{
    const double one[STORES_WAYS] = {1, 2, 3, 4}, other[STORES_WAYS] = {4, 3, 2, 1};
    struct stores a, b;

    stores_open(&a, ALL, 0, true);
    stores_open(&b, ALL, 2, true);
    for (int i = 0; i < 2000; i++) {
        cr_assert(a.trying == b.trying && (!a.trying || a.now == b.now));
        stores_note(&a, one[a.now]);
        stores_note(&b, other[b.now]);
    }
    cr_expect(a.way == 0 && b.way == 3);
}

Test(stores, one_disturbed_call_does_not_decide)
{
    const double seconds[STORES_WAYS] = {1, 2, 2, 2};
    struct stores stores;

    stores_open(&stores, ALL, 0, false);
    run(&stores, seconds, 100, NULL);
    for (int i = 0; i < 2000; i++) {
        stores_note(&stores, i % 7 ? seconds[stores.now] : 50);
        cr_assert(stores.way == 0);
    }
}
