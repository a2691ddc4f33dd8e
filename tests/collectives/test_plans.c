/* SPDX-License-Identifier: BSD-3-Clause */
/* test_plans.c - every form of every algorithm is proved, and keeps exactly what it promises. */
#include "ranks.h"

#include "base/collective.h"

#include <criterion/criterion.h>

enum {
    ALL_SIZES = 17, /* up to here every size, and every root */
    ABOUT_SUMS = PROMISE_BALANCED | PROMISE_RANK_ORDER | PROMISE_ONE_ROUND,
};

static struct ranks ranks;

/* Returns what the verifier finds the plans of one size and root to keep. */
static unsigned proved(const struct subject *subject, int size, int root)
{
    const struct verify_options apart = {.slots = 2}, in_place = {.slots = 2, .in_place = true};
    struct verify_report report = {0}, alias_report = {0};
    unsigned kept = 0;

    cr_assert(ranks_open(&ranks, subject, size, root), "%s", subject_name(subject, size, root));
    cr_assert_eq(verify_plans(ranks.plans, size, &apart, &report), RONDO_OK, "%s: %s",
                 subject_name(subject, size, root), report.failure);
    kept |= report.balanced ? PROMISE_BALANCED : 0;
    kept |= report.rank_order ? PROMISE_RANK_ORDER : 0;
    kept |= report.one_round ? PROMISE_ONE_ROUND : 0;
    kept |= report.peer_memory ? PROMISE_PEER_MEMORY : 0;
    if (!verify_plans(ranks.plans, size, &in_place, &alias_report))
        kept |= PROMISE_IN_PLACE;
    if (subject->form->promises & PROMISE_IN_PLACE)
        cr_assert(kept & PROMISE_IN_PLACE, "in place, %s: %s", subject_name(subject, size, root),
                  alias_report.failure);
    ranks_close(&ranks);
    return kept;
}

/* Promises hold in every case; one that is not made fails in some case, or it should be made. */
static void prove(const struct subject *subject, int first, int last)
{
    unsigned relevant = collective_reduces(subject->collective) ? ~0u : ~(unsigned)ABOUT_SUMS;
    unsigned promises = algorithm_promises(subject->algorithm, subject->collective, NULL);
    unsigned always = ~0u, ever = 0;

    for (int size = first; size <= last; size++) {
        for (int root = 0; root < (collective_has_root(subject->collective) ? size : 1); root++) {
            unsigned kept = proved(subject, size, root);

            always &= kept;
            ever |= kept;
        }
    }
    cr_expect_eq(promises & ~PROMISE_PEER_MEMORY & ~always, 0, "%s promises %#x, keeps %#x",
                 subject_name(subject, last, 0), promises, always);
    cr_expect_eq(always & relevant & ~promises, 0, "%s could promise %#x, promises %#x",
                 subject_name(subject, last, 0), always & relevant, promises);
    cr_expect_eq(ever & PROMISE_PEER_MEMORY, promises & PROMISE_PEER_MEMORY,
                 "%s touches memory of peers", subject_name(subject, last, 0));
}

static void prove_all_sizes(const struct subject *subject)
{
    prove(subject, 1, ALL_SIZES);
}

Test(plans, every_form_is_right_for_all_sizes_and_roots_and_keeps_its_promises)
{
    each_form(prove_all_sizes);
}

static void prove_large(const struct subject *subject)
{
    static const int sizes[] = {24, 31, 32, 33, 48, 63, 64};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int root = collective_has_root(subject->collective) ? sizes[i] / 3 : 0;
        unsigned broken = subject->form->promises & ~proved(subject, sizes[i], root);

        cr_expect_eq(broken, 0, "%s breaks %#x", subject_name(subject, sizes[i], root), broken);
    }
}

Test(plans, every_form_is_right_for_larger_sizes)
{
    each_form(prove_large);
}

Test(plans, a_send_meets_its_receive_on_the_channel_for_pairs)
{
    struct plan *send, *recv;

    cr_assert_eq(algorithm_plan(algorithm_find("direct"), RONDO_SEND, 4, 1, 3, &send), RONDO_OK);
    cr_assert_eq(algorithm_plan(algorithm_find("direct"), RONDO_RECV, 4, 3, 1, &recv), RONDO_OK);
    cr_assert_eq(send->step_count, 3, "acquire, copy, signal");
    cr_assert_eq(recv->step_count, 3, "wait, copy, release");
    cr_expect_eq(send->steps[0].event, PLAN_CREDIT);
    cr_expect_eq(send->steps[2].event, PLAN_DATA);
    cr_expect_eq(send->steps[2].peer, 3);
    cr_expect_eq(recv->steps[0].event, PLAN_DATA);
    cr_expect_eq(recv->steps[0].peer, 1);
    cr_expect_eq(recv->steps[2].event, PLAN_CREDIT);
    for (int i = 0; i < 3; i += 2) {
        cr_expect_eq(send->steps[i].channel, PLAN_CHANNEL_P2P);
        cr_expect_eq(recv->steps[i].channel, PLAN_CHANNEL_P2P);
    }
    cr_expect_eq(plan_sources(send, &send->steps[1])->buffer, PLAN_INPUT);
    cr_expect_eq(plan_destinations(recv, &recv->steps[1])->buffer, PLAN_OUTPUT);
    plan_close(send);
    plan_close(recv);
}

/* The most operands of a kind that a step has; of a plan for the last of `size` ranks. */
static void count_operands(const char *algorithm, rondo_collective collective, int size,
                           int *ret_sources, int *ret_destinations)
{
    struct plan *plan;

    *ret_sources = *ret_destinations = 0;
    cr_assert_eq(
        algorithm_plan(algorithm_find(algorithm), collective, size, size - 1, size - 1, &plan),
        RONDO_OK);
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct plan_step *step = &plan->steps[i];

        if (step->sources > *ret_sources)
            *ret_sources = step->sources;
        if (step->destinations > *ret_destinations)
            *ret_destinations = step->destinations;
        if (step->sources > 1)
            cr_expect_eq(plan_destinations(plan, step)->buffer, PLAN_OUTPUT, "%s", algorithm);
    }
    plan_close(plan);
}

Test(plans, a_step_has_as_many_operands_as_there_are_ranks_also_beyond_16_bits)
{
    static const struct {
        const char *algorithm;
        rondo_collective collective;
        bool sums, spreads; /* a step takes from all ranks, gives to all */
    } cases[] = {
        {"direct", RONDO_ALL_REDUCE, true, true},    {"direct", RONDO_REDUCE_SCATTER, true, false},
        {"direct", RONDO_ALL_GATHER, false, true},   {"direct", RONDO_BROADCAST, false, true},
        {"one_shot", RONDO_ALL_REDUCE, true, false}, {"one_shot", RONDO_REDUCE, true, false},
        {"zero_copy", RONDO_ALL_REDUCE, true, true},
    };
    const int size = 70000;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int sources, destinations;

        count_operands(cases[i].algorithm, cases[i].collective, size, &sources, &destinations);
        if (cases[i].sums)
            cr_expect_eq(sources, size, "%s: %d sources", cases[i].algorithm, sources);
        if (cases[i].spreads)
            cr_expect_geq(destinations, size - 1, "%s: %d destinations", cases[i].algorithm,
                          destinations);
    }
}
