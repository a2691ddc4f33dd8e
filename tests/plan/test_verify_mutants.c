/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_verify_mutants.c - every step of every plan, changed in every way that matters, one at a
 * time: the verifier must refuse each of these mutants, nearly always naming the broken step's
 * rank. What is left alive is shown.
 */
#include "tests/plan/verify_forms.h"
#include "tests/plan/verify_mutations.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

struct hunt {
    mutation *change;
    unsigned long mutants, survivors;
    unsigned long nameless; /* refusals that do not name the rank of the broken step */
    char first[1100];       /* survivor, in words */
};

/* True if the survivor is all right after all. */
typedef bool verdict(const struct verify_report *before, const struct verify_report *after);

static bool never(const struct verify_report *before, const struct verify_report *after)
{
    (void)before;
    (void)after;
    return false;
}

/* Sources in another order: what was claimed about order must be taken back. */
static bool order_is_lost(const struct verify_report *before, const struct verify_report *after)
{
    return !before->rank_order || (!after->rank_order && !after->balanced);
}

static bool balance_is_lost(const struct verify_report *before, const struct verify_report *after)
{
    return !before->balanced || !after->balanced;
}

static void note_survivor(struct hunt *hunt, const struct forms *forms, int rank, uint32_t step,
                          int variant)
{
    const struct plan *plan = forms->plans[rank];
    char words[200];

    if (hunt->survivors++)
        return;
    plan_describe_step(plan, &plan->steps[step], words, sizeof(words));
    snprintf(hunt->first, sizeof(hunt->first), "%s %s, %d ranks, rank %d, step %u (%s), place %d",
             plan->algorithm, rondo_collective_name(plan->collective), forms->size, rank, step,
             words, variant);
}

/* True if the sentence names this rank (and not only rank 12 when it is rank 1). */
static bool names_rank(const char *sentence, int rank)
{
    char name[24];
    int length = snprintf(name, sizeof(name), "rank %d", rank);

    for (const char *at = strstr(sentence, name); at; at = strstr(at + 1, name))
        if (at[length] < '0' || at[length] > '9')
            return true;
    return false;
}

/* All mutants of one rank's plan. */
static void hunt_rank(struct hunt *hunt, struct forms *forms, int rank, verdict *is_good,
                      const struct verify_report *before)
{
    struct plan *whole = forms->plans[rank];
    struct verify_report after;

    for (uint32_t step = 0; step < whole->step_count; step++)
        for (int variant = 0;; variant++) {
            struct plan *mutant = forms_copy_plan(whole);
            bool made = hunt->change(mutant, step, variant);
            bool proved = false;

            if (made) {
                forms->plans[rank] = mutant;
                proved = forms_prove(forms, false, &after);
                forms->plans[rank] = whole;
                hunt->mutants++;
                if (!proved && !names_rank(after.failure, rank) && !hunt->nameless++)
                    snprintf(hunt->first, sizeof(hunt->first), "rank %d, step %u: %s", rank, step,
                             after.failure);
            }
            plan_close(mutant);
            if (proved && !is_good(before, &after))
                note_survivor(hunt, forms, rank, step, variant);
            if (!made && variant >= whole->steps[step].sources + whole->steps[step].destinations)
                break;
        }
}

static void hunt_form(struct hunt *hunt, const struct algorithm *algorithm,
                      rondo_collective collective, int size, verdict *is_good)
{
    struct verify_report before;
    struct forms forms;

    if (!forms_make(algorithm->name, collective, size, size > 2 ? 1 : 0, &forms))
        return;
    cr_assert(forms_prove(&forms, false, &before), "%s %s over %d: %s", algorithm->name,
              rondo_collective_name(collective), size, before.failure);
    for (int r = 0; r < size; r++)
        if (forms.plans[r])
            hunt_rank(hunt, &forms, r, is_good, &before);
    forms_close(&forms);
}

static void hunt_all(mutation *change, verdict *is_good)
{
    static const int sizes[] = {2, 3, 4, 6};
    struct hunt hunt = {.change = change};

    for (int i = 0; algorithms[i]; i++)
        for (int c = 0; c < RONDO_COLLECTIVES; c++)
            for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
                if (c != RONDO_RECV)
                    hunt_form(&hunt, algorithms[i], (rondo_collective)c, sizes[s], is_good);
    cr_assert_gt(hunt.mutants, 0);
    cr_log_info("%lu mutants, %lu refusals that miss the rank", hunt.mutants, hunt.nameless);
    cr_assert_eq(hunt.survivors, 0, "%lu of %lu mutants live; the first: %s", hunt.survivors,
                 hunt.mutants, hunt.first);
    /*
     * The place that is blamed may lie behind the broken step, as when a peer's output was not
     * written.
     */
    cr_assert_lt(8 * hunt.nameless, hunt.mutants,
                 "%lu of %lu refusals miss the rank; the first: %s", hunt.nameless, hunt.mutants,
                 hunt.first);
}

Test(verify_mutants, a_dropped_step_is_refused)
{
    hunt_all(mutate_drop, never);
}

Test(verify_mutants, a_repeated_step_is_refused)
{
    hunt_all(mutate_repeat, never);
}

Test(verify_mutants, a_lost_remainder_is_refused)
{
    hunt_all(mutate_shorten, never);
}

Test(verify_mutants, a_swapped_chunk_is_refused)
{
    hunt_all(mutate_atom, never);
}

Test(verify_mutants, a_wrong_block_is_refused)
{
    hunt_all(mutate_block, never);
}

Test(verify_mutants, a_wrong_peer_is_refused)
{
    hunt_all(mutate_peer, never);
}

Test(verify_mutants, a_wrong_channel_is_refused)
{
    hunt_all(mutate_channel, never);
}

Test(verify_mutants, data_taken_for_credit_is_refused)
{
    hunt_all(mutate_event, never);
}

Test(verify_mutants, finishing_never_or_twice_or_early_is_refused)
{
    hunt_all(mutate_finish, never);
}

Test(verify_mutants, addresses_that_nobody_sent_or_reads_are_refused)
{
    hunt_all(mutate_addresses, never);
}

Test(verify_mutants, who_does_not_wait_for_all_slots_or_opens_none_is_refused)
{
    hunt_all(mutate_settled, never);
}

Test(verify_mutants, a_lost_share_is_refused)
{
    hunt_all(mutate_lose_source, never);
}

Test(verify_mutants, a_lost_destination_is_refused)
{
    hunt_all(mutate_lose_destination, never);
}

Test(verify_mutants, reading_output_instead_of_input_is_refused)
{
    hunt_all(mutate_input, never);
}

Test(verify_mutants, sources_in_another_order_take_back_what_was_claimed_about_order)
{
    hunt_all(mutate_swap_sources, order_is_lost);
}

Test(verify_mutants, another_association_takes_back_that_sums_are_balanced)
{
    hunt_all(mutate_association, balance_is_lost);
}

/* ---- What a network puts into memory before the wait for it ---------------------------------- */

struct writers {
    unsigned long late, refused; /* the sender of the first of two messages was told: too late? */
    unsigned long early, proved; /* that of the second */
};

static void add_writers(struct writers *writers, struct forms *forms, int rank, uint32_t wait)
{
    struct plan *whole = forms->plans[rank], *sender;
    struct verify_report report;
    int senders[2];

    receives_at(whole, wait, senders);
    for (int i = 0; i < 2 && senders[i] >= 0; i++) {
        sender = forms->plans[senders[i]];
        if (!mutate_writer(whole, wait, sender, &forms->plans[rank], &forms->plans[senders[i]]))
            return;
        if (forms_prove(forms, false, &report))
            writers->proved += i == 1;
        else if (strstr(report.failure, "a network may put this message"))
            writers->refused += i == 0;
        else
            cr_assert_fail("%s", report.failure);
        *(i == 0 ? &writers->late : &writers->early) += 1;
        plan_close(forms->plans[rank]);
        plan_close(forms->plans[senders[i]]);
        forms->plans[rank] = whole;
        forms->plans[senders[i]] = sender;
    }
}

static void add_all_writers(struct writers *writers, const char *algorithm,
                            rondo_collective collective)
{
    for (int size = 3; size <= 6; size++) {
        struct forms forms;

        if (!forms_make(algorithm, collective, size, 1, &forms))
            return;
        for (int r = 0; r < size; r++)
            for (uint32_t wait = 0; wait < forms.plans[r]->step_count; wait++)
                add_writers(writers, &forms, r, wait);
        forms_close(&forms);
    }
}

Test(verify_mutants, a_place_that_is_written_while_a_network_may_fill_it_is_refused)
{
    struct writers writers = {0};

    add_all_writers(&writers, "direct", RONDO_ALL_GATHER);
    add_all_writers(&writers, "direct", RONDO_ALL_TO_ALL);
    add_all_writers(&writers, "direct", RONDO_GATHER);
    cr_expect_gt(writers.late, 50);
    cr_expect_eq(writers.refused, writers.late, "%lu of %lu", writers.refused, writers.late);
    cr_expect_gt(writers.early, 50);
    cr_expect_eq(writers.proved, writers.early, "%lu of %lu", writers.proved, writers.early);
}
