/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_explain.c - properties of the printed page: it tells what the plan does, completely, for
 * every algorithm.
 */
#include "plan/explain/explain.h"

#include "base/fail.h"
#include "tests/plan/verify_forms.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

struct printed {
    char *text;
    struct explain_totals totals;
};

/* The page of a form; text NULL if there is none. */
static struct printed print_page(const char *algorithm, rondo_collective collective, int size,
                                 bool utf8)
{
    struct explain_style style = {.utf8 = utf8};
    struct printed printed = {.text = NULL};
    struct forms forms;
    size_t length;
    FILE *to;

    if (!forms_make(algorithm, collective, size, 0, &forms))
        return printed;
    to = open_memstream(&printed.text, &length);
    cr_assert_not_null(to);
    cr_assert_eq(explain_plans(forms.plans, size, &style, to, &printed.totals), RONDO_OK, "%s",
                 fail_sentence());
    fclose(to);
    forms_close(&forms);
    return printed;
}

static int count_of(const char *text, const char *word)
{
    int count = 0;

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        count++;
    return count;
}

/*
 * Lines about messages: "rank 0 -> rank 1   ..."; a step that writes to "rank 1's output" is none.
 */
static int count_messages(const char *text)
{
    static const char way[] = " -> rank ";
    int count = 0;

    for (const char *at = strstr(text, way); at; at = strstr(at + 1, way)) {
        const char *after = at + sizeof(way) - 1;

        count += after[strspn(after, "0123456789")] == ' ';
    }
    return count;
}

/* The text from the last `word` on. */
static const char *last_of(const char *text, const char *word)
{
    const char *found = NULL;

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        found = at;
    return found;
}

Test(explain, a_ring_of_three_takes_four_rounds_of_three_messages)
{
    struct printed page = print_page("ring", RONDO_ALL_REDUCE, 3, false);

    cr_assert_eq(page.totals.rounds, 4);
    cr_assert_eq(page.totals.messages, 12);
    cr_assert_eq(page.totals.data_messages, 12);
    cr_assert_eq(page.totals.most_sent, 4);
    cr_assert_eq(page.totals.parts, 3);
    cr_assert(strstr(page.text, "Round 1 of 4"));
    cr_assert(strstr(page.text, "Round 4 of 4"));
    cr_assert(!strstr(page.text, "Round 5"));
    for (int rank = 0; rank < 3; rank++) {
        char way[40];

        snprintf(way, sizeof(way), "rank %d -> rank %d   c", rank, (rank + 1) % 3);
        cr_assert_eq(count_of(page.text, way), 4, "'%s' should be there 4 times", way);
    }
    free(page.text);
}

Test(explain, a_ring_of_three_tells_whose_shares_a_chunk_has_on_its_way)
{
    struct printed page = print_page("ring", RONDO_ALL_REDUCE, 3, false);

    cr_assert(strstr(page.text, "rank 0 -> rank 1   c0 = {0}   (added, passed on)"));
    cr_assert(strstr(page.text, "rank 1 -> rank 2   c0 = {0,1}   (added, kept, passed on)"));
    cr_assert(strstr(page.text, "rank 2 -> rank 0   c0 = {0-2}*   (kept, passed on)"));
    cr_assert(strstr(page.text, "rank 0 -> rank 1   c0 = {0-2}*   (kept)"));
    free(page.text);
}

Test(explain, every_all_reduce_ends_with_everything_finished_everywhere)
{
    for (int i = 0; algorithms[i]; i++)
        for (int size = 1; size <= EXPLAIN_FULL; size++) {
            struct printed page = print_page(algorithms[i]->name, RONDO_ALL_REDUCE, size, false);
            const char *table = page.text ? last_of(page.text, "has now") : NULL;

            if (!page.text)
                continue;
            cr_assert_not_null(table);
            cr_assert_eq(count_of(table, "}*"), size * (int)page.totals.parts, "%s over %d: %s",
                         algorithms[i]->name, size, table);
            cr_assert_eq(count_of(table, "}"), count_of(table, "}*"));
            free(page.text);
        }
}

Test(explain, every_all_gather_ends_with_everything_everywhere)
{
    for (int i = 0; algorithms[i]; i++)
        for (int size = 1; size <= EXPLAIN_FULL; size++) {
            struct printed page = print_page(algorithms[i]->name, RONDO_ALL_GATHER, size, false);
            const char *table = page.text ? last_of(page.text, "has now") : NULL;

            if (!page.text)
                continue;
            cr_assert_not_null(table);
            cr_assert_eq(count_of(table, "all"), size * size, "%s over %d: %s", algorithms[i]->name,
                         size, table);
            free(page.text);
        }
}

Test(explain, every_message_has_a_line_and_every_round_a_heading)
{
    for (int i = 0; algorithms[i]; i++)
        for (int c = 0; c < RONDO_COLLECTIVES; c++)
            for (int size = 2; size <= EXPLAIN_FULL && c != RONDO_RECV; size++) {
                struct printed page =
                    print_page(algorithms[i]->name, (rondo_collective)c, size, false);

                if (!page.text)
                    continue;
                cr_assert_eq(count_messages(page.text), (int)page.totals.messages, "%s %s",
                             algorithms[i]->name, rondo_collective_name((rondo_collective)c));
                cr_assert_eq(count_of(page.text, "\nRound "), page.totals.rounds);
                cr_assert_gt(page.totals.rounds, 0);
                for (const char *at = page.text; *at; at++)
                    cr_assert_lt((unsigned char)*at, 128, "only ASCII unless asked for more");
                free(page.text);
            }
}

Test(explain, utf8_is_used_when_it_may_be)
{
    struct printed page = print_page("ring", RONDO_BROADCAST, 3, true);

    cr_assert(strstr(page.text, "rank 0 \xe2\x86\x92 rank 1   r0"));
    cr_assert(!strstr(page.text, "->"));
    free(page.text);
}

Test(explain, a_barrier_tells_who_is_known_to_have_come)
{
    struct printed page = print_page("direct", RONDO_BARRIER, 3, false);
    const char *table = last_of(page.text, "has now");

    cr_assert_eq(count_of(table, "yes"), 9);
    cr_assert_eq(page.totals.data_messages, 0);
    free(page.text);
}

/* Algorithms cut no block that goes to one rank alone; plans of a file may. */
Test(explain, pieces_of_blocks_in_chunks_have_the_name_that_messages_give_them)
{
    struct explain_style style = {.utf8 = false};
    struct explain_totals totals;
    struct forms forms;
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);

    forms_open(RONDO_SCATTER, 2, &forms);
    for (int rank = 0; rank < 2; rank++)
        plan_shape(forms.plans[rank], 2, 2, 0);
    plan_combine(forms.plans[0], 2, 0, PLAN_LIST(plan_input(forms.plans[0], 0, 0)),
                 PLAN_LIST(plan_output(forms.plans[0], 0, 0)));
    plan_combine(forms.plans[0], 2, 0, PLAN_LIST(plan_input(forms.plans[0], 1, 0)),
                 PLAN_LIST(plan_slot(1, 0)));
    plan_combine(forms.plans[1], 2, 0, PLAN_LIST(plan_slot(0, 0)),
                 PLAN_LIST(plan_output(forms.plans[1], 0, 0)));
    cr_assert_eq(explain_plans(forms.plans, 2, &style, to, &totals), RONDO_OK, "%s",
                 fail_sentence());
    fclose(to);
    cr_expect(strstr(text, "rank 0 -> rank 1   r0.b1.c0..r0.b1.c1   (kept)\n"), "%s", text);
    cr_expect(strstr(text, "  rank 1   b1.c0,b1.c1\n"), "%s", text);
    forms_close(&forms);
    free(text);
}

Test(explain, many_ranks_are_summarised)
{
    struct printed page = print_page("ring", RONDO_ALL_REDUCE, 16, false);

    cr_assert_eq(page.totals.rounds, 30);
    cr_assert(strstr(page.text, "... 16 messages in this round"));
    cr_assert(strstr(page.text, "has now: 16 to 16 of 16 pieces complete per rank"));
    cr_assert_eq(count_messages(page.text), 30 * 4);
    free(page.text);
}

Test(explain, a_wrong_plan_is_not_explained)
{
    struct explain_style style = {.utf8 = false};
    struct explain_totals totals;
    struct forms forms;

    cr_assert(forms_make("ring", RONDO_ALL_REDUCE, 3, 0, &forms));
    cr_assert(verify_drop_step(forms.plans[1], 3));
    cr_assert_eq(explain_plans(forms.plans, 3, &style, NULL, &totals), RONDO_ERROR_INTERNAL);
    cr_assert(strstr(fail_sentence(), "This plan is wrong: rank 1"), "%s", fail_sentence());
    forms_close(&forms);
}
