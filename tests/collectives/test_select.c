/* SPDX-License-Identifier: BSD-3-Clause */
/* test_select.c - the algorithm that a call gets, and the sentences when it can't get one. */
#include "base/fail.h"
#include "collectives/levels/grouping.h"
#include "collectives/select/select.h"

#include <criterion/criterion.h>

#include <string.h>

static const struct link_costs links = {
    .latency = 3e-7, .copy_bw = 8e9, .direct_bw = 10e9, .reduce_bw = 16e9, .cores = 64};

/* The name of the winner; "" with a sentence set. */
static const char *pick(struct selection selection)
{
    const struct algorithm *algorithm = NULL;
    rondo_result result = select_algorithm(&selection, &links, &algorithm);

    cr_assert(!result == (algorithm != NULL));
    if (result)
        cr_assert_eq(result, RONDO_ERROR_UNSUPPORTED);
    return algorithm ? algorithm->name : "";
}

static struct selection call(rondo_collective collective, int size, double bytes)
{
    return (struct selection){.collective = collective,
                              .size = size,
                              .bytes = bytes,
                              .forbid = PROMISE_PEER_MEMORY,
                              .wanted = "auto"};
}

static unsigned promises(const char *name, rondo_collective collective)
{
    return algorithm_find(name)->forms[collective].promises;
}

Test(select, a_short_vector_takes_one_round)
{
    cr_expect_str_eq(pick(call(RONDO_ALL_REDUCE, 2, 8)), "one_shot");
    cr_expect_str_eq(pick(call(RONDO_ALL_REDUCE, 4, 8)), "one_shot");
    cr_expect_str_eq(pick(call(RONDO_ALL_REDUCE, 8, 64)), "one_shot");
}

Test(select, a_long_vector_does_not)
{
    for (int size = 3; size <= 64; size++) {
        const char *name = pick(call(RONDO_ALL_REDUCE, size, 64e6));

        cr_expect_str_neq(name, "one_shot", "%d ranks", size);
        cr_expect_str_neq(name, "binomial", "%d ranks", size);
        cr_expect_str_neq(name, "doubling", "%d ranks", size);
    }
}

Test(select, many_ranks_with_short_vectors_avoid_a_message_to_everybody)
{
    const char *name = pick(call(RONDO_ALL_REDUCE, 512, 8));

    cr_expect_str_neq(name, "one_shot");
    cr_expect_str_neq(name, "direct");
    cr_expect_str_neq(name, "ring");
}

Test(select, few_ranks_tell_everybody_and_many_pass_it_on)
{
    cr_expect_str_eq(pick(call(RONDO_BARRIER, 4, 0)), "one_shot");
    cr_expect_str_eq(pick(call(RONDO_BARRIER, 8, 0)), "one_shot");
    cr_expect_str_eq(pick(call(RONDO_BARRIER, 64, 0)), "direct");
    cr_expect_str_eq(pick(call(RONDO_ALL_TO_ALL, 8, 64)), "direct");
    cr_expect_str_eq(pick(call(RONDO_ALL_TO_ALL, 64, 8)), "bruck");
    cr_expect_str_eq(pick(call(RONDO_ALL_TO_ALL, 64, 1e6)), "direct");
}

Test(select, memory_that_peers_reach_is_used_where_it_may_be)
{
    struct selection selection = call(RONDO_ALL_REDUCE, 4, 64e6);

    cr_expect_eq(promises(pick(selection), RONDO_ALL_REDUCE) & PROMISE_PEER_MEMORY, 0);
    selection.forbid = 0;
    cr_expect_str_eq(pick(selection), "zero_copy");
}

Test(select, what_is_needed_is_kept_for_every_length)
{
    static const unsigned needs[] = {PROMISE_BALANCED, PROMISE_RANK_ORDER, PROMISE_ONE_ROUND,
                                     PROMISE_BALANCED | PROMISE_IN_PLACE};

    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
        for (double bytes = 0; bytes < 1e10; bytes = bytes * 16 + 1) {
            struct selection selection = call(RONDO_ALL_REDUCE, 48, bytes);

            selection.need = needs[i];
            cr_expect_eq(needs[i] & ~promises(pick(selection), RONDO_ALL_REDUCE), 0);
        }
    }
}

Test(select, promises_about_sums_do_not_matter_where_nothing_is_summed)
{
    struct selection selection = call(RONDO_ALL_GATHER, 5, 1000);

    selection.need = PROMISE_BALANCED | PROMISE_RANK_ORDER | PROMISE_ONE_ROUND;
    cr_expect_str_neq(pick(selection), "");
}

Test(select, every_collective_of_every_size_finds_one_without_memory_of_peers)
{
    for (int c = 0; c < RONDO_COLLECTIVES; c++) {
        for (int size = 1; size <= 100; size += 9) {
            struct selection selection = call((rondo_collective)c, size, 1e5);

            selection.need =
                PROMISE_BALANCED | PROMISE_RANK_ORDER | PROMISE_ONE_ROUND | PROMISE_IN_PLACE;
            cr_expect_str_neq(pick(selection), "", "%s", fail_sentence());
        }
    }
}

Test(select, a_wanted_name_wins_against_cost)
{
    struct selection selection = call(RONDO_ALL_REDUCE, 8, 8);

    for (int i = 0; algorithms[i]; i++) {
        selection.wanted = algorithms[i]->name;
        selection.forbid = 0;
        if (algorithms[i]->forms[RONDO_ALL_REDUCE].write)
            cr_expect_str_eq(pick(selection), algorithms[i]->name);
    }
    selection.wanted = "";
    cr_expect_str_neq(pick(selection), "");
    selection.wanted = NULL;
    cr_expect_str_neq(pick(selection), "");
}

Test(select, an_unknown_name_gets_the_list_of_names)
{
    struct selection selection = call(RONDO_ALL_REDUCE, 8, 8);

    selection.wanted = "rnig";
    cr_expect_str_eq(pick(selection), "");
    cr_expect(strstr(fail_sentence(), "\"rnig\""), "%s", fail_sentence());
    for (int i = 0; algorithms[i]; i++)
        cr_expect(strstr(fail_sentence(), algorithms[i]->name), "%s", fail_sentence());
}

Test(select, a_broken_promise_is_named_with_those_that_keep_it)
{
    struct selection selection = call(RONDO_ALL_REDUCE, 8, 8);

    selection.wanted = "ring";
    selection.need = PROMISE_BALANCED;
    cr_expect_str_eq(pick(selection), "");
    cr_expect(strstr(fail_sentence(), "deterministic"), "%s", fail_sentence());
    cr_expect(strstr(fail_sentence(), "direct"), "%s", fail_sentence());
    cr_expect_not(strstr(fail_sentence(), "tree"), "%s", fail_sentence());
}

Test(select, memory_out_of_reach_is_named_with_the_remedy)
{
    struct selection selection = call(RONDO_ALL_REDUCE, 8, 8);

    selection.wanted = "zero_copy";
    cr_expect_str_eq(pick(selection), "");
    cr_expect(strstr(fail_sentence(), "rondo_mem_alloc"), "%s", fail_sentence());
}

Test(select, a_missing_form_is_named_with_those_that_have_it)
{
    struct selection selection = call(RONDO_ALL_TO_ALL, 8, 8);

    selection.wanted = "ring";
    cr_expect_str_eq(pick(selection), "");
    cr_expect(strstr(fail_sentence(), "all_to_all"), "%s", fail_sentence());
    cr_expect(strstr(fail_sentence(), "direct"), "%s", fail_sentence());
}

static double predicted(const struct algorithm *algorithm, const struct selection *selection,
                        const struct link_costs *costs)
{
    double seconds = 0;

    cr_assert_eq(select_predict(algorithm, selection, costs, &seconds), RONDO_OK);
    return seconds;
}

Test(select, ranks_that_share_a_core_take_turns)
{
    const struct algorithm *ring = algorithm_find("ring");
    struct selection selection = call(RONDO_ALL_REDUCE, 8, 1e6);
    struct link_costs oversubscribed = links;

    oversubscribed.cores = 2;
    cr_expect_float_eq(predicted(ring, &selection, &oversubscribed),
                       4 * predicted(ring, &selection, &links), 1e-9);
}

/* A root makes more copies than each of the others, so all of them make less than as many times. */
Test(select, cores_share_the_work_of_all_ranks_though_one_does_most)
{
    const struct algorithm *direct = algorithm_find("direct");
    struct selection selection = call(RONDO_BROADCAST, 8, 1e5), empty = call(RONDO_BROADCAST, 8, 0);
    struct link_costs two = links, one = links;
    double steps = predicted(direct, &empty, &links);
    double root = predicted(direct, &selection, &links) - steps;
    double by_two, by_one;

    two.cores = 2;
    one.cores = 1;
    by_two = predicted(direct, &selection, &two) - 4 * steps;
    by_one = predicted(direct, &selection, &one) - 8 * steps;
    cr_expect_float_eq(by_one, 2 * by_two, 1e-9);
    cr_expect(by_two > root && by_two < 2 * root, "%g and %g s", by_two, root);
}

Test(select, a_prediction_is_steps_and_bytes)
{
    const struct algorithm *one_shot = algorithm_find("one_shot");
    struct selection selection = call(RONDO_ALL_REDUCE, 2, 1e5);
    double expected = links.latency + 1e5 / links.copy_bw + 2e5 / links.reduce_bw;

    cr_expect_float_eq(predicted(one_shot, &selection, &links), expected, 1e-12);
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static struct grouping *groups_of(const char *text)
{
    struct grouping *groups = NULL;

    cr_assert_eq(grouping_parse(text, grouping_text_size(text), &groups), RONDO_OK);
    return groups;
}

/* The winner where ways between groups are a hundred times slower than inside. */
static const char *pick_far(struct selection selection)
{
    struct link_costs far = links;
    const struct algorithm *algorithm;

    far.across = (struct group_costs){.latency = 30e-6, .bandwidth = 1e8, .rails = 1};
    cr_assert_eq(select_algorithm(&selection, &far, &algorithm), RONDO_OK, "%s", fail_sentence());
    return algorithm->name;
}

Test(select, long_vectors_over_slow_ways_between_groups_take_two_levels)
{
    static const char *const texts[] = {"4x2", "2x8", "4+3+1", "0,1,0,1,0,1,0,1"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct grouping *groups = groups_of(texts[i]);
        struct selection selection = call(RONDO_ALL_REDUCE, groups->size, 1e7);

        selection.groups = groups;
        cr_expect(strstr(pick_far(selection), "hierarchy"), "%s in groups %s", pick_far(selection),
                  texts[i]);
        grouping_close(groups);
    }
}

Test(select, groups_of_one_level_have_no_use_for_two)
{
    static const char *const texts[] = {"8", "8x1"};

    for (size_t i = 0; i < 2; i++) {
        struct grouping *groups = groups_of(texts[i]);
        struct selection selection = call(RONDO_ALL_REDUCE, 8, 1e7);

        selection.groups = groups;
        cr_expect_not(strstr(pick_far(selection), "hierarchy"), "%s", texts[i]);
        grouping_close(groups);
    }
}

Test(select, the_deterministic_order_is_kept_in_two_levels_only_where_groups_are_aligned)
{
    struct grouping *aligned = groups_of("4x2"), *dealt = groups_of("0,1,0,1,0,1,0,1");
    struct selection selection = call(RONDO_ALL_REDUCE, 8, 1e7);

    selection.need = PROMISE_BALANCED;
    selection.groups = aligned;
    cr_expect_str_eq(pick_far(selection), "hierarchy");
    selection.groups = dealt;
    cr_expect_not(strstr(pick_far(selection), "hierarchy"));
    selection.wanted = "hierarchy";
    cr_expect_str_eq(pick(selection), "");
    cr_expect(strstr(fail_sentence(), "deterministic"), "%s", fail_sentence());
    grouping_close(aligned);
    grouping_close(dealt);
}

Test(select, more_rails_make_what_goes_from_group_to_group_cheaper)
{
    const struct algorithm *algorithm = algorithm_find("hierarchy");
    struct grouping *groups = groups_of("4x2");
    struct selection selection = call(RONDO_ALL_REDUCE, 8, 1e7);
    struct link_costs one = links, two;

    selection.groups = groups;
    one.across = (struct group_costs){.latency = 30e-6, .bandwidth = 1e8, .rails = 1};
    two = one;
    two.across.rails = 2;
    /* 2 (g-1)/g of the vector out of each group */
    cr_expect_float_eq(predicted(algorithm, &selection, &one) -
                           predicted(algorithm, &selection, &two),
                       0.5 * 2 * 0.75 * 1e7 / 1e8, 1e-9);
    grouping_close(groups);
}
