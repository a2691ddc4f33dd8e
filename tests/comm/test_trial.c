/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trial.c - trials of ways to do the same, with times that are made up. */
#include "comm/state/trial.h"

#include <criterion/criterion.h>
#include <math.h>

enum { ALL = 15, LONGEST = 128 };

static const struct trial_rules often = {
    .first = 8, .pause = 32, .longest = LONGEST, .skipped = 1, .timed = 1, .as_one = 1};
static const struct trial_rules seldom = {
    .first = 8, .pause = 32, .longest = 1024, .skipped = 1, .timed = 2, .as_one = 1};
static const struct trial_rules at_once = {
    .pause = 58, .longest = 58, .skipped = 1, .timed = 2, .as_one = 1};
static const struct trial_rules pair = {
    .first = 8, .pause = 32, .longest = 4096, .skipped = 8, .timed = 16, .as_one = 8};

/* Calls that take what their way takes; which way they went is counted. */
static void run(struct trial *trial, const double *seconds, int calls, int *ret_went)
{
    for (int i = 0; i < calls; i++) {
        if (ret_went)
            ret_went[trial->now]++;
        trial_note(trial, trial->now, seconds[trial->now]);
    }
}

Test(trial, the_quickest_way_is_found_and_kept)
{
    for (unsigned quickest = 0; quickest < TRIAL_WAYS; quickest++) {
        double seconds[TRIAL_WAYS] = {2, 2, 2, 2};
        struct trial trial;
        int went[TRIAL_WAYS] = {0};

        seconds[quickest] = 1;
        trial_init(&trial, quickest % 2 ? &often : &seldom, ALL, 3 - quickest);
        run(&trial, seconds, 30, NULL);
        cr_expect(trial.way == quickest);
        run(&trial, seconds, 1000, went);
        cr_expect(trial.way == quickest && went[quickest] > 800, "%d", went[quickest]);
    }
}

Test(trial, ways_that_make_no_difference_here_are_never_gone)
{
    const double seconds[TRIAL_WAYS] = {5, 4, 3, 2};
    int went[TRIAL_WAYS] = {0};
    struct trial trial;

    trial_init(&trial, &often, 1 | 2, 3);
    cr_expect(trial_matters(&trial));
    run(&trial, seconds, 500, went);
    cr_expect(trial.way == 1 && went[2] == 0 && went[3] == 0);
    trial_init(&trial, &often, 4, 0);
    cr_expect(trial.now == 2 && !trial_matters(&trial));
    trial_init(&trial, &often, 0, 0);
    cr_expect(trial.now == 0 && !trial_matters(&trial));
}

Test(trial, times_that_change_change_the_way)
{
    const double near[TRIAL_WAYS] = {1, 3, 3, 3}, far[TRIAL_WAYS] = {9, 1, 9, 9};
    struct trial trial;

    trial_init(&trial, &often, ALL, 0);
    run(&trial, near, 300, NULL);
    cr_expect(trial.way == 0);
    run(&trial, far, LONGEST + 20, NULL);
    cr_expect(trial.way == 1);
    run(&trial, near, LONGEST + 20, NULL);
    cr_expect(trial.way == 0);
}

/* Two ranks whose times differ are on trial in the same calls, with the same way. */
Test(trial, ranks_try_the_same_way_in_the_same_calls)
{
    const double one[TRIAL_WAYS] = {1, 2, 3, 4}, other[TRIAL_WAYS] = {4, 3, 2, 1};
    struct trial a, b;

    trial_init(&a, &often, ALL, 0);
    trial_init(&b, &often, ALL, 2);
    for (int i = 0; i < 2000; i++) {
        cr_assert(a.trying == b.trying && (!a.trying || a.now == b.now));
        trial_note(&a, a.now, one[a.now]);
        trial_note(&b, b.now, other[b.now]);
    }
    cr_expect(a.way == 0 && b.way == 3);
}

Test(trial, one_disturbed_call_does_not_decide)
{
    const double seconds[TRIAL_WAYS] = {1, 2, 2, 2};
    struct trial trial;

    trial_init(&trial, &seldom, ALL, 0);
    run(&trial, seconds, 100, NULL);
    for (int i = 0; i < 2000; i++) {
        trial_note(&trial, trial.now, i % 7 ? seconds[trial.now] : 50);
        cr_assert(trial.way == 0);
    }
}

/* Returns the way that a sender finds if a message takes so long to store and to read each way, and
 * it may be so many slots ahead of its receiver. */
static unsigned found_by_sender(const double store[2], const double read[2], int slots)
{
    double stored = 0, was_read[8] = {0};
    struct trial trial;

    trial_init(&trial, &pair, 3, 0);
    for (int i = 0; i < 1000; i++) {
        unsigned way = trial.now;
        double before = stored, last_read = was_read[(i + slots - 1) % slots];

        stored = fmax(stored, was_read[i % slots]) + store[way];
        was_read[i % slots] = fmax(stored, last_read) + read[way];
        trial_note(&trial, way, stored - before);
    }
    return trial.way;
}

Test(trial, a_sender_that_is_ahead_finds_what_is_quickest_for_both)
{
    for (int slots = 1; slots <= 8; slots++) {
        cr_expect(found_by_sender((double[]){1, 0.5}, (double[]){1, 3}, slots) == 0, "%d", slots);
        cr_expect(found_by_sender((double[]){1, 2}, (double[]){4, 1}, slots) == 1, "%d", slots);
    }
}

/* Calls in which any rank may decide for way 1: who wanted way 0 notes nothing of it then. */
static int run_together(struct trial *trials, int ranks, const double first[],
                        const double second[], int calls)
{
    int went_first = 0;

    for (int i = 0; i < calls; i++) {
        unsigned way = 0;

        for (int r = 0; r < ranks; r++)
            way |= trials[r].now;
        for (int r = 0; r < ranks; r++)
            trial_note(&trials[r], way, way ? second[r] : first[r]);
        went_first += !way;
    }
    return went_first;
}

static void open_two(struct trial *trials)
{
    trial_init(&trials[0], &at_once, 3, 0);
    trial_init(&trials[1], &at_once, 3, 0);
}

Test(trial, a_way_that_needs_all_ranks_is_taken_where_all_find_it_quicker)
{
    const double quick[] = {1, 1}, slow[] = {3, 3}, mixed[] = {1, 3}, between[] = {2, 2};
    struct trial trials[2];

    open_two(trials);
    cr_expect_gt(run_together(trials, 2, quick, slow, 1000), 900);
    open_two(trials);
    cr_expect_lt(run_together(trials, 2, slow, quick, 1000), 60);
    open_two(trials);
    cr_expect_lt(run_together(trials, 2, mixed, between, 1000), 60);
}

/* A peer may be out of step, because it forgot what it knew. */
Test(trial, a_way_that_was_never_gone_is_not_the_best)
{
    const double quick[] = {1, 1}, slow[] = {3, 3};
    struct trial trials[2];

    open_two(trials);
    run_together(&trials[1], 1, quick, slow, 3);
    cr_expect_lt(run_together(trials, 2, quick, slow, 6), 1);
    cr_expect(!trials[0].trying && trials[0].now == 1);
}

Test(trial, what_is_in_vain_again_and_again_rests)
{
    struct attempts attempts = {0};

    for (int i = 0; i < 3; i++)
        attempts_note(&attempts, true);
    attempts_note(&attempts, false);
    for (int i = 0; i < 3; i++)
        attempts_note(&attempts, true);
    cr_expect(!attempts.backoff);
    attempts_note(&attempts, true);
    cr_expect(attempts.backoff);
    attempts.backoff = 0;
    attempts_note(&attempts, true);
    cr_expect(attempts.backoff, "at once, until it was of use");
}
