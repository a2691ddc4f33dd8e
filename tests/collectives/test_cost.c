/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cost.c - what is counted in the plans of a few ranks: it is what the busiest of all ranks
 * does, it keeps to the bounds that no algorithm can beat, and it is what the literature says.
 */
#include "collectives/select/cost.h"

#include "base/collective.h"
#include "collectives/levels/grouping.h"
#include "collectives/select/tally.h"
#include "ranks.h"

#include <criterion/criterion.h>

#include <math.h>

static struct ranks ranks;

/* So many that the first segment no longer counts. */
static const double LONG = 1e15;

static struct count counted(const struct subject *subject, int size, struct counts *counts)
{
    const struct cost_subject what = {subject->algorithm, subject->collective, size, NULL};
    struct count count;

    cr_assert_eq(cost_count(&what, counts, &count), RONDO_OK);
    return count;
}

static struct cost cost(const struct subject *subject, int size, double bytes)
{
    const struct count count = counted(subject, size, NULL);
    struct cost whole, far;

    cost_of(&count, bytes, &whole, &far);
    return whole;
}

static struct subject named(const char *algorithm, rondo_collective collective)
{
    const struct algorithm *found = algorithm_find(algorithm);

    return (struct subject){found, collective, &found->forms[collective]};
}

/* ---- The few ranks stand for all ------------------------------------------------------------- */

static double sum(const double *programs)
{
    double all = 0;

    for (int p = 0; p < PLAN_PROGRAMS_MAX; p++)
        all += programs[p];
    return all;
}

/* The most that any rank does: all of them counted. */
static struct cost busiest(const struct subject *subject, int size)
{
    struct cost most = {0};

    for (int rank = 0; rank < size; rank++) {
        const struct plan_request request = {subject->collective, size, rank, 0, NULL, NULL};
        struct plan *plan;
        struct tally tally;
        double sent;

        tally_open(&tally, NULL);
        cr_assert_eq(algorithm_read(subject->algorithm, &request, &tally.reader, &plan), RONDO_OK);
        tally_close(&tally);
        sent = plan->message_atoms ? fmax(tally.sent, tally.taken) : tally.sent + tally.taken;
        most.copied = fmax(most.copied, sum(tally.copied) / plan->parts);
        most.reduced = fmax(most.reduced, sum(tally.reduced) / plan->parts);
        most.sent = fmax(most.sent, sent / plan->parts);
        plan_close(plan);
    }
    return most;
}

static void compare_busiest(const struct subject *subject)
{
    /* Where groups differ in size, no few ranks are sure to have the busiest one among them. */
    int step = subject->algorithm->levels ? 4 : 1;

    for (int size = 1; size <= 64; size = step > 1 ? size * step : size + step) {
        struct cost most = busiest(subject, size);
        struct count few = counted(subject, size, NULL);

        cr_expect_float_eq(few.copied, most.copied, 1e-9, "%s copies %g, counted %g",
                           subject_name(subject, size, 0), most.copied, few.copied);
        cr_expect_float_eq(few.reduced, most.reduced, 1e-9, "%s reduces %g, counted %g",
                           subject_name(subject, size, 0), most.reduced, few.reduced);
        cr_expect_float_eq(few.sent, most.sent, 1e-9, "%s sends %g, counted %g",
                           subject_name(subject, size, 0), most.sent, few.sent);
    }
}

Test(cost, a_few_ranks_have_the_busiest_one_among_them)
{
    each_form(compare_busiest);
}

struct step_counter {
    struct plan_reader reader;
    uint32_t steps, operands;
};

static void count_step(struct plan_reader *reader, const struct plan *plan,
                       const struct plan_step *step)
{
    struct step_counter *counter = (struct step_counter *)reader;

    counter->steps++;
    counter->operands += step->sources + step->destinations;
}

static void compare_reading(const struct subject *subject)
{
    for (int size = 1; size <= 20; size++) {
        const struct plan_request request = {subject->collective, size, size / 3, 0, NULL, NULL};
        struct step_counter counter = {{count_step}, 0, 0};
        struct plan *kept, *read;

        cr_assert_eq(algorithm_write(subject->algorithm, &request, &kept), RONDO_OK);
        cr_assert_eq(algorithm_read(subject->algorithm, &request, &counter.reader, &read),
                     RONDO_OK);
        cr_expect_eq(counter.steps, kept->step_count, "%s", subject_name(subject, size, 0));
        cr_expect_eq(counter.operands, kept->operand_count, "%s", subject_name(subject, size, 0));
        cr_expect_eq(read->step_count, 0);
        plan_close(kept);
        plan_close(read);
    }
}

Test(cost, a_reader_gets_the_steps_of_the_plan_that_runs_and_none_is_kept)
{
    each_form(compare_reading);
}

/* ---- Bounds ---------------------------------------------------------------------------------- */

/* The least that the busiest rank has to send or take, in parts of a call's bytes. */
static double least_sent(rondo_collective collective, int n)
{
    switch (collective) {
    case RONDO_ALL_REDUCE:
        return 2.0 * (n - 1) / n;
    case RONDO_REDUCE:
    case RONDO_BROADCAST:
        return n > 1;
    case RONDO_BARRIER:
        return 0;
    default:
        return n - 1;
    }
}

/* The least that the busiest rank has to read: n shares go into every element of the result. */
static double least_reduced(rondo_collective collective, int n)
{
    if (n == 1 || !collective_reduces(collective))
        return 0;
    return collective == RONDO_REDUCE_SCATTER ? n : 1;
}

/*
 * After a round with k others a rank knows of 1 + k times as many ranks, for 1 + (k - 1)/4 steps;
 * that is best with k = 3, where 1.5 steps quadruple what is known.
 */
static void hold_against_bounds(const struct subject *subject)
{
    for (int n = 1; n <= 70; n++) {
        struct cost whole = cost(subject, n, LONG);
        double steps = cost(subject, n, 1).steps;
        bool scatters = subject->collective == RONDO_SCATTER;

        cr_expect_geq(whole.sent / LONG + 1e-9,
                      scatters && subject->form->promises & PROMISE_PEER_MEMORY
                          ? n > 1 /* each takes its own block */
                          : least_sent(subject->collective, n),
                      "%s sends %g", subject_name(subject, n, 0), whole.sent / LONG);
        cr_expect_geq(whole.reduced / LONG + 1e-9, least_reduced(subject->collective, n),
                      "%s reduces %g", subject_name(subject, n, 0), whole.reduced / LONG);
        cr_expect_geq(steps + 1e-9, 1.5 * log(n) / log(4), "%s takes %g steps",
                      subject_name(subject, n, 0), steps);
    }
}

Test(cost, no_algorithm_does_less_than_is_possible)
{
    each_form(hold_against_bounds);
}

Test(cost, the_algorithms_that_are_optimal_in_bytes_reach_the_bound)
{
    static const char *const names[] = {"ring", "direct"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (int n = 1; n <= 40; n++) {
            struct subject subject = named(names[i], RONDO_ALL_REDUCE);

            cr_expect_float_eq(counted(&subject, n, NULL).sent, 2.0 * (n - 1) / n, 1e-9);
            subject = named(names[i], RONDO_ALL_GATHER);
            cr_expect_float_eq(counted(&subject, n, NULL).sent, n - 1, 1e-9);
        }
}

static double steps_of(const char *algorithm, rondo_collective collective, int n)
{
    struct subject subject = named(algorithm, collective);

    return cost(&subject, n, 8).steps;
}

Test(cost, steps_are_those_of_the_literature)
{
    for (int n = 2; n <= 64; n *= 2) {
        double levels = log2(n), round = 1 + 0.25 * (n - 2);

        cr_expect_eq(steps_of("ring", RONDO_ALL_REDUCE, n), 2 * (n - 1));
        cr_expect_eq(steps_of("ring", RONDO_REDUCE_SCATTER, n), n - 1);
        cr_expect_eq(steps_of("ring", RONDO_BROADCAST, n), n - 1);
        cr_expect_eq(steps_of("one_shot", RONDO_ALL_REDUCE, n), round);
        cr_expect_eq(steps_of("direct", RONDO_ALL_REDUCE, n), 2 * round);
        cr_expect_eq(steps_of("direct", RONDO_BARRIER, n), levels);
        cr_expect_eq(steps_of("one_shot", RONDO_BARRIER, n), round);
        cr_expect_eq(steps_of("direct", RONDO_ALL_TO_ALL, n), round);
        cr_expect_eq(steps_of("bruck", RONDO_ALL_TO_ALL, n), levels);
        cr_expect_eq(steps_of("zero_copy", RONDO_ALL_REDUCE, n), 2 * round);
        cr_expect_eq(steps_of("doubling", RONDO_ALL_REDUCE, n), levels);
        cr_expect_eq(steps_of("halving", RONDO_ALL_REDUCE, n), 2 * levels);
        cr_expect_eq(steps_of("binomial", RONDO_ALL_REDUCE, n), 2 * levels);
        cr_expect_eq(steps_of("binomial", RONDO_BROADCAST, n), levels);
        cr_expect_eq(steps_of("tree", RONDO_REDUCE, n), 1.25 * levels);
    }
    cr_expect_eq(steps_of("doubling", RONDO_ALL_REDUCE, 11), 3 + 2);
    cr_expect_eq(steps_of("halving", RONDO_ALL_REDUCE, 11), 6 + 4);
}

/* ---- Lengths --------------------------------------------------------------------------------- */

static void grow(const struct subject *subject)
{
    struct cost previous = cost(subject, 8, 0);

    cr_expect_eq(previous.copied + previous.reduced, 0, "%s", subject_name(subject, 8, 0));
    for (double bytes = 1; bytes < 1e10; bytes *= 8) {
        struct cost longer = cost(subject, 8, bytes);

        cr_expect_geq(longer.steps, previous.steps, "%s", subject_name(subject, 8, 0));
        if (subject->collective != RONDO_BARRIER)
            cr_expect_gt(longer.copied + longer.reduced, previous.copied + previous.reduced, "%s",
                         subject_name(subject, 8, 0));
        previous = longer;
    }
}

Test(cost, more_bytes_cost_more)
{
    each_form(grow);
}

static void shorten(const struct subject *subject)
{
    for (int size = 2; size <= 64; size *= 2) {
        struct cost brief = cost(subject, size, 1), whole = cost(subject, size, LONG);

        cr_expect_geq(brief.copied + 1e-9, whole.copied / LONG, "%s",
                      subject_name(subject, size, 0));
        cr_expect_geq(brief.reduced + 1e-9, whole.reduced / LONG, "%s",
                      subject_name(subject, size, 0));
    }
}

Test(cost, a_byte_of_a_short_vector_costs_no_less_than_one_of_a_long_one)
{
    each_form(shorten);
}

static void alone(const struct subject *subject)
{
    struct cost single = cost(subject, 1, 100);

    cr_expect_eq(single.steps, 0, "%s", subject_name(subject, 1, 0));
    cr_expect(single.copied + single.reduced < 500, "%s", subject_name(subject, 1, 0));
}

Test(cost, one_rank_waits_for_nobody)
{
    each_form(alone);
}

/* ---- Many ranks ------------------------------------------------------------------------------ */

static uint32_t read_steps;

static void count_read(struct plan_reader *reader, const struct plan *plan,
                       const struct plan_step *step)
{
    read_steps++;
}

Test(cost, a_rank_of_very_many_plans_only_its_own_steps)
{
    static const char *const logarithmic[] = {"tree", "binomial", "doubling", "halving"};
    const int size = 1 << 20;

    for (size_t i = 0; i < sizeof(logarithmic) / sizeof(logarithmic[0]); i++) {
        for (int rank = 0; rank < size; rank += size / 7) {
            const struct plan_request request = {RONDO_ALL_REDUCE, size, rank, 0, NULL, NULL};
            struct plan_reader reader = {count_read};
            struct plan *plan;

            read_steps = 0;
            cr_assert_eq(algorithm_read(algorithm_find(logarithmic[i]), &request, &reader, &plan),
                         RONDO_OK);
            cr_expect(read_steps > 0 && read_steps < 300, "%s, rank %d: %u steps", logarithmic[i],
                      rank, read_steps);
            plan_close(plan);
        }
    }
}

Test(cost, what_doubles_grows_by_the_same_or_ends_goes_on_as_it_began)
{
    struct count samples[3] = {{.copied = 32, .sent = 5, .reduced = 1 + 1.0 / 32, .relayed = 7},
                               {.copied = 64, .sent = 6, .reduced = 1 + 1.0 / 64, .relayed = 7},
                               {.copied = 128, .sent = 7, .reduced = 1 + 1.0 / 128, .relayed = 7}};
    struct count count;

    for (int i = 0; i < 3; i++)
        samples[i].sent_far = (16 << i) * (5 + i); /* n log n */
    cost_go_on(samples, 10, &count);
    cr_expect_float_eq(count.sent_far, 65536 * 17, 1e-6);
    cr_expect_float_eq(count.copied, 131072, 1e-6);
    cr_expect_float_eq(count.sent, 17, 1e-9);
    cr_expect_float_eq(count.reduced, 1 + 1.0 / 131072, 1e-12);
    cr_expect_eq(count.relayed, 7);
}

static void expect_near(double exact, double guess, const char *what, const char *name)
{
    cr_expect(guess >= 0.9 * exact - 1e-9 && guess <= 1.1 * exact + 1e-9,
              "%s of %s: %g, counted %g", what, name, guess, exact);
}

/* Not of odd sizes: there no rank is a leaf of both trees, which copies half a vector more. */
static void count_both_ways(const struct subject *subject)
{
    static const int sizes[] = {1000, 1024, 1536, 2048, 3000};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const struct cost_subject what = {subject->algorithm, subject->collective, sizes[i], NULL};
        const char *name = subject_name(subject, sizes[i], 0);
        struct count exact, guess;

        if (subject->algorithm->levels)
            return;
        cr_assert_eq(cost_count_plans(&what, &exact), RONDO_OK);
        cr_assert_eq(cost_count_many(&what, &guess), RONDO_OK);
        expect_near(exact.near.steps, guess.near.steps, "steps", name);
        expect_near(exact.copied, guess.copied, "copied", name);
        expect_near(exact.reduced, guess.reduced, "reduced", name);
        expect_near(exact.sent, guess.sent, "sent", name);
        expect_near(exact.message, guess.message, "message", name);
    }
}

Test(cost, many_ranks_cost_what_their_plans_say_though_fewer_are_counted)
{
    each_form(count_both_ways);
}

Test(cost, many_groups_cost_what_their_plans_say_though_fewer_are_counted)
{
    static const char *const names[] = {"hierarchy", "hierarchy_ring", "leaders"};
    struct grouping *groups = NULL;

    cr_assert_eq(grouping_parse("200x4", 800, &groups), RONDO_OK);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct cost_subject what = {algorithm_find(names[i]), RONDO_ALL_REDUCE, 800, groups};
        struct count exact, guess;

        cr_assert_eq(cost_count_plans(&what, &exact), RONDO_OK);
        cr_assert_eq(cost_count_many(&what, &guess), RONDO_OK);
        expect_near(exact.near.steps, guess.near.steps, "near steps", names[i]);
        expect_near(exact.far.steps, guess.far.steps, "far steps", names[i]);
        expect_near(exact.copied, guess.copied, "copied", names[i]);
        expect_near(exact.reduced, guess.reduced, "reduced", names[i]);
        expect_near(exact.sent_far, guess.sent_far, "sent far", names[i]);
    }
    grouping_close(groups);
}

static struct counts kept;

static void count_many(const struct subject *subject)
{
    struct count first, second;

    first = counted(subject, 100000, &kept);
    second = counted(subject, 100000, &kept);
    cr_expect(kept.entries && first.copied == second.copied && first.sent == second.sent, "%s",
              subject_name(subject, 100000, 0));
    cr_expect(isfinite(first.near.steps + first.far.steps + first.copied + first.reduced), "%s",
              subject_name(subject, 100000, 0));
}

Test(cost, a_hundred_thousand_ranks_are_counted_once)
{
    each_form(count_many);
    counts_done(&kept);
    cr_expect_null(kept.entries);
}

static int messages(const char *algorithm, rondo_collective collective, int size)
{
    struct subject subject = named(algorithm, collective);
    int most;

    cr_assert(ranks_open(&ranks, &subject, size, 0));
    most = ranks_messages(&ranks);
    ranks_close(&ranks);
    return most;
}

Test(cost, messages_are_as_many_as_the_formulas_say)
{
    for (int n = 2; n <= 32; n *= 2) {
        int log = (int)log2(n);

        cr_expect_eq(messages("ring", RONDO_ALL_REDUCE, n), 2 * (n - 1));
        cr_expect_eq(messages("ring", RONDO_ALL_GATHER, n), n - 1);
        cr_expect_eq(messages("ring", RONDO_REDUCE_SCATTER, n), n - 1);
        cr_expect_eq(messages("ring", RONDO_BROADCAST, n), 1);
        cr_expect_eq(messages("direct", RONDO_ALL_REDUCE, n), 2 * (n - 1));
        cr_expect_eq(messages("direct", RONDO_BARRIER, n), log);
        cr_expect_eq(messages("one_shot", RONDO_ALL_REDUCE, n), n - 1);
        cr_expect_eq(messages("zero_copy", RONDO_ALL_REDUCE, n), 2 * (n - 1));
        cr_expect_eq(messages("doubling", RONDO_ALL_REDUCE, n), log);
        cr_expect_eq(messages("doubling", RONDO_ALL_GATHER, n), log);
        cr_expect_eq(messages("halving", RONDO_ALL_REDUCE, n), 2 * log);
        cr_expect_eq(messages("halving", RONDO_REDUCE_SCATTER, n), log);
        cr_expect_eq(messages("binomial", RONDO_BROADCAST, n), log);
        cr_expect_eq(messages("binomial", RONDO_GATHER, n), 1);
        cr_expect_eq(messages("tree", RONDO_ALL_GATHER, n), n - 1);
        cr_expect_leq(messages("tree", RONDO_ALL_REDUCE, n), 4);
    }
}
