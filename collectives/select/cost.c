/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cost.c - counts what the plans of a few ranks do: see cost.h.
 *
 * Which ranks: rank 0, which is the root, and its neighbour, where all others do what one of the
 * two does. In a chain also its last rank and one in the middle. In a tree ranks 1, 2, 4, ...: each
 * has a longer way to the leaves than the one before, so together they are a way down; and the last
 * one, which may be a leaf of all trees. In two levels two members of each group that can differ.
 */
#include "collectives/select/cost.h"

#include "base/collective.h"
#include "base/fail.h"
#include "collectives/core.h"
#include "collectives/levels/hierarchy.h"
#include "collectives/select/tally.h"

#include <math.h>
#include <stdlib.h>

/* ---- Several ranks --------------------------------------------------------------------------- */

/* Load sums up how much several ranks copy, or reduce. */
struct load {
    double most, second;               /* of the two busiest ranks */
    double root, others_sum;           /* of rank 0, and of all others that are read */
    double busiest[PLAN_PROGRAMS_MAX]; /* the busiest one, by programs */
    double others[PLAN_PROGRAMS_MAX];  /* sum of the other ones, by programs */
    double last;                       /* of the rank added last, its busiest program */
};

static void load_add(struct load *load, const double *programs, bool is_root, bool aside)
{
    double sum = 0;

    load->last = 0;
    for (int p = 0; p < PLAN_PROGRAMS_MAX; p++) {
        sum += programs[p];
        load->last = fmax(load->last, programs[p]);
    }
    for (int p = 0; p < PLAN_PROGRAMS_MAX && !aside; p++) {
        load->others[p] += sum > load->most ? load->busiest[p] : programs[p];
        if (sum > load->most)
            load->busiest[p] = programs[p];
    }
    if (is_root)
        load->root = sum;
    else
        load->others_sum += sum;
    load->second = fmax(load->second, fmin(sum, load->most));
    load->most = fmax(load->most, sum);
}

/* The first segment passes one program of each other rank: returns their work on it. */
static double load_before(const struct load *load)
{
    double most = 0;

    for (int p = 0; p < PLAN_PROGRAMS_MAX; p++)
        most = fmax(most, load->others[p]);
    return most;
}

enum { RANKS_MAX = 40 };

struct survey {
    const struct cost_subject *subject;
    const struct form *form;
    const struct grouping *groups; /* of a form in two levels, else NULL */
    int ranks[RANKS_MAX], count;   /* whose plans are read */
    int aside;                     /* the one of them that is on nobody's way; -1: none */
    struct load copied, reduced;   /* in atoms, as all below */
    double steps[REACHES], longest[REACHES], sent, copied_far, reduced_far, sent_far;
    double first_sent_far; /* by the first member of the group that is being read */
    bool mutual[REACHES];  /* a rank both sends and takes */
    double parts, message;
};

static void add_rank(struct survey *survey, int rank)
{
    for (int i = 0; i < survey->count; i++)
        if (survey->ranks[i] == rank)
            return;
    if (rank < survey->subject->size && survey->count < RANKS_MAX)
        survey->ranks[survey->count++] = rank;
}

static void add_members(struct survey *survey, int group)
{
    const struct grouping *groups = survey->groups;

    for (int i = 0; i < 2 && group < groups->groups && i < grouping_members(groups, group); i++)
        add_rank(survey, grouping_rank(groups, group, i));
}

static void find_ranks(struct survey *survey)
{
    const struct grouping *groups = survey->groups;
    int size = survey->subject->size, smallest = 0, largest = 0;

    add_rank(survey, 0);
    for (int rank = 1; survey->subject->algorithm->given && rank < size; rank++)
        add_rank(survey, rank); /* nothing says which of them do the same */
    if (groups) {
        for (int g = 1; g < groups->groups; g++) {
            if (grouping_members(groups, g) < grouping_members(groups, smallest))
                smallest = g;
            if (grouping_members(groups, g) > grouping_members(groups, largest))
                largest = g;
        }
        add_members(survey, 0);
        add_members(survey, 1);
        add_members(survey, smallest);
        add_members(survey, largest);
        return;
    }
    if (!collective_is_pair(survey->subject->collective))
        add_rank(survey, 1);
    if (survey->form->way == WAY_CHAIN) {
        add_rank(survey, size - 1);
        add_rank(survey, size / 2);
    }
    if (survey->form->way == WAY_TREE) {
        for (int rank = 2; rank < size && rank > 0; rank *= 2)
            add_rank(survey, rank);
        if (core_members(size - 1) != size - 1)
            survey->aside = size - 1;
        add_rank(survey, size - 1);
    }
}

/* A group sends what its first member does, and all others do as the second one. */
static void add_sent_far(struct survey *survey, int rank, double sent_far)
{
    const struct grouping *groups = survey->groups;
    int members = grouping_members(groups, groups->group_of[rank]);

    if (groups->index_of[rank] == 0)
        survey->first_sent_far = sent_far;
    else
        sent_far = survey->first_sent_far + (members - 1) * sent_far;
    survey->sent_far = fmax(survey->sent_far, sent_far);
}

/* Rails that a rank serves, side by side. */
static int rails_of(const struct grouping *groups, int rank)
{
    int group = groups->group_of[rank], index = groups->index_of[rank];

    return grouping_first_rail(groups, group, index + 1) -
           grouping_first_rail(groups, group, index);
}

static void add_tally(struct survey *survey, const struct plan *plan, struct tally *tally)
{
    bool flags = plan->message_atoms == 0;

    tally_close(tally);
    /* Memory of peers is read and written by the same rank. */
    survey->sent =
        fmax(survey->sent, flags ? tally->sent + tally->taken : fmax(tally->sent, tally->taken));
    for (int reach = 0; reach < REACHES; reach++) {
        double rails = reach == FAR && survey->groups ? rails_of(survey->groups, plan->rank) : 1;

        survey->steps[reach] = fmax(survey->steps[reach], tally->steps[reach] / rails);
        survey->longest[reach] = fmax(survey->longest[reach], tally->longest[reach]);
        survey->mutual[reach] =
            survey->mutual[reach] || (tally->sends[reach] && tally->takes[reach]);
    }
    survey->copied_far = fmax(survey->copied_far, tally->copied_far);
    survey->reduced_far = fmax(survey->reduced_far, tally->reduced_far);
    load_add(&survey->copied, tally->copied, plan->rank == 0, plan->rank == survey->aside);
    load_add(&survey->reduced, tally->reduced, plan->rank == 0, plan->rank == survey->aside);
    if (survey->groups) {
        add_sent_far(survey, plan->rank,
                     flags ? tally->sent_far + tally->taken_far
                           : fmax(tally->sent_far, tally->taken_far));
    }
    survey->parts = plan->parts;
    survey->message = plan->message_atoms;
}

static rondo_result read_rank(struct survey *survey, int rank)
{
    const struct cost_subject *subject = survey->subject;
    struct tally tally;
    struct plan_request request = {.collective = subject->collective,
                                   .size = subject->size,
                                   .rank = rank,
                                   .groups = survey->groups};
    struct plan *plan;
    rondo_result result;

    tally_open(&tally, survey->groups);
    if (collective_is_pair(subject->collective))
        request.root = subject->size - 1;
    if (subject->algorithm->given)
        request.root = subject->algorithm->given->root;
    result = algorithm_read(subject->algorithm, &request, &tally.reader, &plan);
    if (result)
        return result;
    add_tally(survey, plan, &tally);
    plan_close(plan);
    return RONDO_OK;
}

/* ---- All of them ----------------------------------------------------------------------------- */

/* ceil(log2(size)) */
static int levels_of_tree(int size)
{
    int levels = 0;

    while ((size - 1) >> levels)
        levels++;
    return levels;
}

/* Steps of subsets that pass segments on; those counted in a rank's plan, where they don't. */
static struct count_steps find_steps(const struct survey *survey, enum way way, int subsets,
                                     enum reach reach)
{
    int passes = survey->subject->collective == RONDO_ALL_REDUCE ? 2 : 1; /* up and down */
    double messages = survey->message ? fmax(survey->parts / survey->message, 1) : 1;

    switch (way) {
    case WAY_CHAIN:
        return (struct count_steps){.steps = subsets - 1, .once = true};
    case WAY_TREE:
        return (struct count_steps){
            .steps = passes * levels_of_tree(subsets) * tally_round(messages), .once = true};
    default:
        return (struct count_steps){.steps = survey->steps[reach], .once = !survey->mutual[reach]};
    }
}

/* Several blocks in a message: it leaves when all have come, while the ranks before are busy. */
static bool is_bundle(const struct survey *survey)
{
    return survey->message > survey->parts;
}

static void count_one_level(struct survey *survey, struct count *count)
{
    enum way way = survey->form->way;
    int passed = survey->subject->size - survey->count; /* ranks of a chain that were not read */

    count->near = find_steps(survey, way, survey->subject->size, NEAR);
    count->near.message = survey->message;
    if (!count->near.once || !survey->message || is_bundle(survey))
        return;
    count->copied_before = load_before(&survey->copied);
    count->reduced_before = load_before(&survey->reduced);
    if (way == WAY_CHAIN) {
        count->copied_before += passed * survey->copied.last;
        count->reduced_before += passed * survey->reduced.last;
    }
}

/* Returns what all ranks do together: the ones that are read stand for the others. */
static double load_of_all(const struct load *load, const struct survey *survey)
{
    double others = survey->subject->size - 1, read = survey->count - 1;

    return load->root + (read > 0 ? load->others_sum * others / read : 0);
}

static void count_two_levels(struct survey *survey, struct count *count)
{
    int groups = survey->groups->groups;
    const struct recipe *recipe = recipe_for(survey->form->recipe, groups);
    enum way way = recipe->across->forms[survey->subject->collective].way;

    count->near = find_steps(survey, WAY_ROUNDS, 0, NEAR);
    count->far = find_steps(survey, way, groups, FAR);
    count->near.message = survey->longest[NEAR];
    count->far.message = survey->longest[FAR];
    if (way == WAY_CHAIN && groups > 2) {
        count->copied_before = (groups - 2) * survey->copied_far;
        count->reduced_before = (groups - 2) * survey->reduced_far;
    }
}

void count_numbers(struct count *count, double *numbers[COUNT_NUMBERS])
{
    double *const all[COUNT_NUMBERS] = {
        &count->near.steps, &count->far.steps,     &count->near.message,   &count->far.message,
        &count->message,    &count->copied,        &count->reduced,        &count->sent,
        &count->sent_far,   &count->copied_before, &count->reduced_before, &count->relayed,
        &count->all_copied, &count->all_reduced};

    for (int i = 0; i < COUNT_NUMBERS; i++)
        numbers[i] = all[i];
}

/* From atoms to parts of a call's bytes: all but the steps, which come first. */
static void divide(struct count *count, double parts)
{
    double *numbers[COUNT_NUMBERS];

    count_numbers(count, numbers);
    for (int i = 2; i < COUNT_NUMBERS; i++)
        *numbers[i] /= parts;
}

static rondo_result take_count(const struct cost_subject *subject, const struct grouping *groups,
                               struct count *ret_count)
{
    struct survey survey = {.subject = subject,
                            .form = &subject->algorithm->forms[subject->collective],
                            .groups = groups,
                            .aside = -1};
    struct count count = {0};
    rondo_result result = RONDO_OK;

    find_ranks(&survey);
    for (int i = 0; i < survey.count && !result; i++)
        result = read_rank(&survey, survey.ranks[i]);
    if (result)
        return result;
    count.message = survey.message;
    count.copied = survey.copied.most;
    count.reduced = survey.reduced.most;
    count.all_copied = load_of_all(&survey.copied, &survey);
    count.all_reduced = load_of_all(&survey.reduced, &survey);
    count.sent = survey.sent;
    count.sent_far = survey.sent_far;
    if (groups)
        count_two_levels(&survey, &count);
    else
        count_one_level(&survey, &count);
    if (count.near.once && is_bundle(&survey))
        count.relayed = survey.copied.second;
    divide(&count, survey.parts);
    *ret_count = count;
    return RONDO_OK;
}

rondo_result cost_count_plans(const struct cost_subject *subject, struct count *ret_count)
{
    struct grouping *square = NULL;
    rondo_result result;

    if (!subject->algorithm->levels)
        return take_count(subject, NULL, ret_count);
    if (subject->groups)
        return take_count(subject, subject->groups, ret_count);
    result = grouping_square(subject->size, &square);
    if (!result)
        result = take_count(subject, square, ret_count);
    grouping_close(square);
    return result;
}

/* ---- Memory of counts ------------------------------------------------------------------------ */

struct count_entry {
    struct count_entry *next;
    struct cost_subject subject;
    struct count count;
};

static bool is_same(const struct cost_subject *a, const struct cost_subject *b)
{
    return a->algorithm == b->algorithm && a->collective == b->collective && a->size == b->size &&
           a->groups == b->groups;
}

rondo_result cost_count(const struct cost_subject *subject, struct counts *counts,
                        struct count *ret_count)
{
    struct count_entry *entry;
    rondo_result result;

    for (entry = counts ? counts->entries : NULL; entry; entry = entry->next)
        if (is_same(&entry->subject, subject)) {
            *ret_count = entry->count;
            return RONDO_OK;
        }
    result = cost_count_many(subject, ret_count);
    if (result || !counts)
        return result;
    entry = malloc(sizeof(*entry));
    if (!entry)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the cost of a collective.");
    *entry = (struct count_entry){counts->entries, *subject, *ret_count};
    counts->entries = entry;
    return RONDO_OK;
}

void counts_done(struct counts *counts)
{
    while (counts->entries) {
        struct count_entry *entry = counts->entries;

        counts->entries = entry->next;
        free(entry);
    }
}

/* ---- A call ---------------------------------------------------------------------------------- */

static double segments_of(double message)
{
    return message > COST_SLOT ? message / COST_SLOT : 1;
}

static double times(const struct count_steps *steps, double bytes)
{
    return steps->steps * (steps->once ? 1 : segments_of(steps->message * bytes));
}

void cost_of(const struct count *count, double bytes, struct cost *ret_cost, struct cost *ret_far)
{
    double segment = bytes / segments_of(count->message * bytes);
    double far = times(&count->far, bytes);

    *ret_cost = (struct cost){.steps = times(&count->near, bytes) + far,
                              .copied = (count->copied + count->relayed) * bytes +
                                        count->copied_before * segment,
                              .reduced = count->reduced * bytes + count->reduced_before * segment,
                              .all_copied = count->all_copied * bytes,
                              .all_reduced = count->all_reduced * bytes,
                              .sent = count->sent * bytes};
    *ret_far = (struct cost){.steps = far, .sent = count->sent_far * bytes};
}
