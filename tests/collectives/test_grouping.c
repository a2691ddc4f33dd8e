/* SPDX-License-Identifier: BSD-3-Clause */
/* test_grouping.c - groups of ranks: made, read, described; and plans in two levels proved in all
 * shapes of groups. */
#include "ranks.h"

#include "base/collective.h"
#include "base/fail.h"
#include "collectives/levels/grouping.h"

#include <criterion/criterion.h>

#include <string.h>

static struct grouping *parse(const char *text, int size)
{
    struct grouping *groups = NULL;

    cr_assert_eq(grouping_parse(text, size, &groups), RONDO_OK, "%s", fail_sentence());
    return groups;
}

Test(grouping, groups_are_numbered_by_their_lowest_rank_and_members_stand_in_order)
{
    struct grouping *groups = parse("7,3,7,5,3", 5);
    const int group_of[] = {0, 1, 0, 2, 1}, members[] = {0, 2, 1, 4, 3};

    cr_expect_eq(groups->groups, 3);
    cr_expect_eq(groups->rails, 2);
    cr_expect_arr_eq(groups->group_of, group_of, sizeof(group_of));
    cr_expect_arr_eq(groups->members, members, sizeof(members));
    cr_expect_not(groups->runs);
    cr_expect_not(groups->aligned);
    grouping_close(groups);
}

Test(grouping, what_is_written_is_read_again)
{
    static const struct {
        const char *text;
        int size;
        const char *again;
        bool runs, aligned;
    } cases[] = {
        {"4x2", 8, "4x2", true, true},        {"2+2+1", 5, "2+2+1", true, true},
        {"4+3+1", 8, "4+3+1", true, false},   {"1+2", 3, "1+2", true, false},
        {"3+3", 6, "2x3", true, false},       {"0,1,0,1", 4, "0,1,0,1", false, false},
        {"2*", 5, "0,1,0,1,0", false, false}, {"5", 5, "1x5", true, false},
        {"8", 8, "1x8", true, true},          {"2+1+3", 6, "2+1+3", true, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct grouping *groups = parse(cases[i].text, cases[i].size);
        char text[64];

        grouping_describe(groups, text, sizeof(text));
        cr_expect_str_eq(text, cases[i].again, "%s", cases[i].text);
        cr_expect_eq(groups->runs, cases[i].runs, "%s", cases[i].text);
        cr_expect_eq(groups->aligned, cases[i].aligned, "%s", cases[i].text);
        grouping_close(groups);
    }
}

Test(grouping, what_names_no_groups_or_other_ranks_is_refused_in_a_sentence)
{
    static const char *const bad[] = {"",     "x",   "4x",  "x4",    "0x4",
                                      "4+",   "+4",  "4+0", "1,,",   "1,2x",
                                      "-1,2", "4**", "0*",  "4x2x1", "2048x2048"};
    struct grouping *groups = NULL;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect_eq(grouping_parse(bad[i], 8, &groups), RONDO_ERROR_INVALID, "%s", bad[i]);
        cr_expect_null(groups);
        cr_expect_eq(grouping_text_size(bad[i]), -1, "%s", bad[i]);
    }
    cr_expect_eq(grouping_parse("4x2", 6, &groups), RONDO_ERROR_INVALID);
    cr_expect(strstr(fail_sentence(), "8 ranks"), "%s", fail_sentence());
}

Test(grouping, every_rank_has_rails_of_its_own_and_every_rail_one_rank_of_each_group)
{
    for (int size = 1; size < 40; size++)
        for (int shape = 0; shape < GROUPING_SHAPES; shape++) {
            struct grouping *groups;
            int owners = 0;

            cr_assert_eq(grouping_shape(size, shape, &groups), RONDO_OK);
            for (int rank = 0; rank < size; rank++) {
                int group = groups->group_of[rank], index = groups->index_of[rank];
                int rail = grouping_first_rail(groups, group, index);
                int end = grouping_first_rail(groups, group, index + 1);

                cr_assert_lt(rail, end);
                cr_assert_leq(end, groups->rails);
                for (int r = rail; r < end; r++)
                    cr_assert_eq(grouping_on_rail(groups, group, r), rank);
            }
            for (int g = 0; g < groups->groups; g++)
                for (int r = 0; r < groups->rails; r++)
                    owners += grouping_owner(groups, g, r) >= 0;
            cr_assert_eq(owners, size);
            grouping_close(groups);
        }
}

/* ---- Plans in every shape -------------------------------------------------------------------- */

static struct ranks ranks;

static void prove(const struct algorithm *algorithm, struct plan_request request)
{
    unsigned promises = algorithm_promises(algorithm, request.collective, request.groups), kept = 0;
    bool sums = collective_reduces(request.collective);
    struct verify_report report;
    char text[200];

    grouping_describe(request.groups, text, sizeof(text));
    for (ranks.size = 0; ranks.size < request.size; ranks.size++) {
        request.rank = ranks.size;
        cr_assert_eq(algorithm_write(algorithm, &request, &ranks.plans[ranks.size]), RONDO_OK);
    }
    for (int in_place = 0; in_place <= 1; in_place++) {
        const struct verify_options how = {.in_place = in_place};

        cr_assert_eq(verify_plans(ranks.plans, request.size, &how, &report), RONDO_OK,
                     "%s %s, groups %s, root %d%s: %s", algorithm->name,
                     rondo_collective_name(request.collective), text, request.root,
                     in_place ? ", in place" : "", report.failure);
    }
    kept |= report.balanced ? PROMISE_BALANCED : 0;
    kept |= report.rank_order ? PROMISE_RANK_ORDER : 0;
    cr_assert(!sums || !(promises & (PROMISE_BALANCED | PROMISE_RANK_ORDER) & ~kept),
              "%s %s, groups %s, promises %#x, keeps %#x", algorithm->name,
              rondo_collective_name(request.collective), text, promises, kept);
    ranks_close(&ranks);
}

static bool looks_at_groups(const struct algorithm *algorithm)
{
    return algorithm->levels || algorithm->any_order;
}

static void prove_all(const struct grouping *groups, bool all_roots)
{
    for (int i = 0; algorithms[i]; i++)
        for (int c = 0; c < RONDO_COLLECTIVES; c++)
            for (int root = 0; root < groups->size && looks_at_groups(algorithms[i]); root++)
                if (algorithms[i]->forms[c].write &&
                    (root == 0 || (collective_has_root((rondo_collective)c) &&
                                   (all_roots || root == groups->size / 2))))
                    prove(algorithms[i], (struct plan_request){.collective = (rondo_collective)c,
                                                               .size = groups->size,
                                                               .root = root,
                                                               .groups = groups});
}

/* Every way to give five ranks group names, up to renaming: each is at most one above those before.
 */
Test(grouping, plans_are_proved_for_every_grouping_of_up_to_five_ranks)
{
    for (int size = 1; size <= 5; size++)
        for (int number = 0; number < 3125; number++) {
            int names[5], highest = -1, left = number;
            struct grouping *groups;
            bool canonical = true;

            for (int rank = 0; rank < size; rank++, left /= 5) {
                names[rank] = left % 5;
                canonical = canonical && names[rank] <= highest + 1;
                highest = names[rank] > highest ? names[rank] : highest;
            }
            if (!canonical || left)
                continue;
            cr_assert_eq(grouping_make(size, names, &groups), RONDO_OK);
            prove_all(groups, true);
            grouping_close(groups);
        }
}

Test(grouping, plans_are_proved_for_all_shapes_of_groups)
{
    for (int size = 6; size <= 32; size += size < 12 ? 1 : 5)
        for (int shape = 0; shape < GROUPING_SHAPES; shape++) {
            struct grouping *groups;

            cr_assert_eq(grouping_shape(size, shape, &groups), RONDO_OK);
            prove_all(groups, size <= 8);
            grouping_close(groups);
        }
}

Test(grouping, plans_are_proved_for_groups_of_different_sizes_in_any_place)
{
    static const char *const texts[] = {"4+3+1", "1+3+4", "5+1",  "1+1+6",         "7+7+2",
                                        "2+5+3", "8+4+4", "16x2", "0,1,2,0,1,0,3", "3,0,0,1,0,2,0"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct grouping *groups = parse(texts[i], grouping_text_size(texts[i]));

        prove_all(groups, groups->size <= 8);
        grouping_close(groups);
    }
}

Test(grouping, only_aligned_groups_promise_the_balanced_order)
{
    const struct algorithm *algorithm = algorithm_find("hierarchy");
    struct grouping *aligned = parse("4+4+3", 11), *runs = parse("3+3", 6), *dealt = parse("2*", 8);

    cr_expect(algorithm_promises(algorithm, RONDO_ALL_REDUCE, aligned) & PROMISE_BALANCED);
    cr_expect_not(algorithm_promises(algorithm, RONDO_ALL_REDUCE, runs) & PROMISE_BALANCED);
    cr_expect(algorithm_promises(algorithm, RONDO_ALL_REDUCE, runs) & PROMISE_RANK_ORDER);
    cr_expect_not(algorithm_promises(algorithm, RONDO_ALL_REDUCE, dealt) & PROMISE_RANK_ORDER);
    grouping_close(aligned);
    grouping_close(runs);
    grouping_close(dealt);
}

/* Messages of a ring's first rank of each host that leave the host, of all ranks together. */
Test(grouping, a_ring_over_ranks_that_were_dealt_in_turn_leaves_each_group_once)
{
    struct grouping *dealt = parse("3*", 12);
    int crossing = 0;

    for (int rank = 0; rank < 12; rank++) {
        struct plan_request request = {RONDO_BROADCAST, 12, rank, 5, dealt, NULL};
        struct plan *plan;

        cr_assert_eq(algorithm_write(algorithm_find("ring"), &request, &plan), RONDO_OK);
        for (uint32_t i = 0; i < plan->step_count; i++)
            crossing += plan->steps[i].verb == PLAN_SIGNAL && plan->steps[i].event == PLAN_DATA &&
                        dealt->group_of[plan->steps[i].peer] != dealt->group_of[rank];
        plan_close(plan);
    }
    cr_expect_eq(crossing, 3, "%d messages leave their group", crossing);
    grouping_close(dealt);
}
