/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cost.c - cost functions and formulas say what the plans do. */
#include "ranks.h"

#include <criterion/criterion.h>

#include <math.h>

static struct ranks ranks;

/* So many that the first window no longer counts. */
static const double LONG = 1e15;

static struct cost claimed(const struct subject *subject, int size, double bytes)
{
    struct cost cost;

    subject->form->cost(size, bytes, &cost);
    return cost;
}

static struct cost counted(const struct subject *subject, int size)
{
    struct cost work;

    cr_assert(ranks_open(&ranks, subject, size, 0));
    work = ranks_work(&ranks);
    ranks_close(&ranks);
    return work;
}

/*
 * Only a gather or scatter may say more: one through relays also waits for them; and a reduce in
 * two levels, whose busiest ranks of the two are not the same.
 */
static bool is_bound(const struct subject *subject)
{
    return subject->collective == RONDO_GATHER || subject->collective == RONDO_SCATTER ||
           (subject->collective == RONDO_REDUCE && subject->algorithm->levels);
}

static void compare_powers_of_two(const struct subject *subject)
{
    for (int size = 2; size <= 64; size *= 2) {
        struct cost cost = claimed(subject, size, LONG), work = counted(subject, size);

        if (is_bound(subject))
            cr_expect_geq(cost.copied / LONG + 1e-6, work.copied, "%s copies %g, says %g",
                          subject_name(subject, size, 0), work.copied, cost.copied / LONG);
        else
            cr_expect_float_eq(cost.copied / LONG, work.copied, 1e-6, "%s copies %g, says %g",
                               subject_name(subject, size, 0), work.copied, cost.copied / LONG);
        cr_expect_float_eq(cost.sent / LONG, work.sent, 1e-6, "%s sends %g, says %g",
                           subject_name(subject, size, 0), work.sent, cost.sent / LONG);
        cr_expect_float_eq(cost.reduced / LONG, work.reduced, 1e-6, "%s reduces %g, says %g",
                           subject_name(subject, size, 0), work.reduced, cost.reduced / LONG);
    }
}

Test(cost, for_powers_of_two_the_bytes_are_those_that_the_plans_move)
{
    each_form(compare_powers_of_two);
}

/* In between some forms only give a bound; forms in two levels are rough where groups differ. */
static void compare_all(const struct subject *subject)
{
    for (int size = 2; size <= 40; size++) {
        struct cost cost = claimed(subject, size, LONG), work = counted(subject, size);
        double bytes = (cost.copied + cost.reduced) / LONG, moved = work.copied + work.reduced;
        double less = subject->algorithm->levels ? 1.4 : 1.05;
        double more = subject->algorithm->levels ? 2.1 : 1.5;

        cr_expect(moved <= less * bytes + 1e-6 && bytes <= more * moved + 1e-6,
                  "%s moves %g, says %g", subject_name(subject, size, 0), moved, bytes);
    }
}

Test(cost, for_any_size_the_bytes_are_close_to_those_that_the_plans_move)
{
    each_form(compare_all);
}

static void grow(const struct subject *subject)
{
    struct cost previous = claimed(subject, 8, 0);

    cr_expect_eq(previous.copied + previous.reduced, 0, "%s", subject_name(subject, 8, 0));
    for (double bytes = 1; bytes < 1e10; bytes *= 8) {
        struct cost cost = claimed(subject, 8, bytes);

        cr_expect_geq(cost.steps, previous.steps, "%s", subject_name(subject, 8, 0));
        if (subject->collective != RONDO_BARRIER)
            cr_expect_gt(cost.copied + cost.reduced, previous.copied + previous.reduced, "%s",
                         subject_name(subject, 8, 0));
        previous = cost;
    }
    cr_expect(subject->form->formula && subject->form->formula[0], "%s has no formula",
              subject_name(subject, 8, 0));
}

Test(cost, more_bytes_cost_more_and_every_form_has_a_formula_for_people)
{
    each_form(grow);
}

static void alone(const struct subject *subject)
{
    struct cost cost = claimed(subject, 1, 100);

    cr_expect_eq(cost.steps, 0, "%s", subject_name(subject, 1, 0));
    cr_expect(cost.copied + cost.reduced < 500, "%s", subject_name(subject, 1, 0));
}

static void shorter(const struct subject *subject)
{
    for (int size = 2; size <= 64; size *= 2) {
        struct cost brief = claimed(subject, size, 1), cost = claimed(subject, size, LONG);

        cr_expect_geq(brief.copied + 1e-9, cost.copied / LONG, "%s",
                      subject_name(subject, size, 0));
        cr_expect_geq(brief.reduced + 1e-9, cost.reduced / LONG, "%s",
                      subject_name(subject, size, 0));
    }
}

Test(cost, a_byte_of_a_short_vector_costs_no_less_than_one_of_a_long_one)
{
    each_form(shorter);
}

Test(cost, one_rank_waits_for_nobody)
{
    each_form(alone);
}

static int messages(const char *algorithm, rondo_collective collective, int size)
{
    const struct algorithm *found = algorithm_find(algorithm);
    struct subject subject = {found, collective, &found->forms[collective]};
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

Test(cost, a_rank_of_very_many_plans_only_its_own_steps)
{
    static const char *const logarithmic[] = {"tree", "binomial", "doubling"};
    const int size = 1 << 20;

    for (size_t i = 0; i < sizeof(logarithmic) / sizeof(logarithmic[0]); i++) {
        for (int rank = 0; rank < size; rank += size / 7) {
            struct plan *plan;

            cr_assert_eq(algorithm_plan(algorithm_find(logarithmic[i]), RONDO_ALL_REDUCE, size,
                                        rank, 0, &plan),
                         RONDO_OK);
            cr_expect_lt(plan->step_count, 200u, "%s, rank %d: %u steps", logarithmic[i], rank,
                         plan->step_count);
            plan_close(plan);
        }
    }
}
