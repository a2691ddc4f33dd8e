/* SPDX-License-Identifier: BSD-3-Clause */
/* text.c - the page that `rondo explain` prints: cost, promises, then round by round. */
#include "cli/common/output.h"
#include "cli/explain/auto.h"
#include "cli/explain/load.h"

#include "base/fail.h"
#include "plan/explain/explain.h"

#include <langinfo.h>
#include <math.h>
#include <string.h>

void subject_bytes(double bytes, char *text, size_t size)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    int unit = 0;

    while (bytes >= 1000 && unit < 5) {
        bytes /= 1000;
        unit++;
    }
    snprintf(text, size, unit ? "%.3g %s" : "%.0f %s", bytes, units[unit]);
}

/* "1 round", "4 rounds" */
static void print_count(unsigned long count, const char *what)
{
    printf("%lu %s%s", count, what, count == 1 ? "" : "s");
}

/* Long vectors go in segments, as slots are only so long; ranks that wait for each other in every
 * round wait again for each segment. */
static void print_prediction(const struct subject *subject, const struct link_costs *costs,
                             double bytes)
{
    const struct cost_subject counted = {subject->algorithm, subject->collective, subject->ranks,
                                         subject->groups};
    char block[40];
    double seconds;
    struct count count;
    struct cost cost, across;

    if (cost_count(&counted, NULL, &count) || auto_predict(subject, costs, &seconds))
        return;
    cost_of(&count, bytes, &cost, &across);
    subject_bytes(bytes, block, sizeof(block));
    printf("With n = %d and a count of %.0f float32 (%s) the cost model predicts %.4g us:\n"
           "waiting for ",
           subject->ranks, subject->count, block, 1e6 * seconds);
    print_count((unsigned long)ceil(cost.steps), "message");
    printf(" one after another, %.3g us each (--costs)", 1e6 * costs->latency);
    if (count.message * bytes > COST_SLOT)
        printf(", as the vector goes in %.0f segments", ceil(count.message * bytes / COST_SLOT));
    printf(";\n");
}

static void print_load(const struct subject *subject)
{
    struct load load = load_most(subject->plans, subject->plan_count, subject->count);
    char sent[40], copied[40], reduced[40];

    subject_bytes(load.sent * ELEMENT_BYTES, sent, sizeof(sent));
    subject_bytes(load.copied * ELEMENT_BYTES, copied, sizeof(copied));
    subject_bytes(load.reduced * ELEMENT_BYTES, reduced, sizeof(reduced));
    printf("no rank sends more than %s, copies more than %s, or reads more than %s to reduce.\n",
           sent, copied, reduced);
}

static void print_cost(const struct subject *subject, const struct link_costs *costs,
                       const struct form *form, const struct explain_totals *totals)
{
    if (form->formula)
        printf("Cost: %s.\n", form->formula);
    if (subject->collective != RONDO_BARRIER) {
        print_prediction(subject, costs, subject->count * ELEMENT_BYTES);
        print_load(subject);
    }
    printf("The plan below has ");
    print_count((unsigned long)totals->rounds, "round");
    printf(" and ");
    print_count(totals->messages, "message");
    if (totals->data_messages)
        printf(", %lu with data.\n", totals->data_messages);
    else
        printf(", none with data.\n");
}

static void print_groups(const struct grouping *groups)
{
    const char *semicolon = "";

    if (!groups)
        return;
    printf("Groups: ");
    for (int g = 0; g < groups->groups; g++, semicolon = "; ") {
        printf("%s%d", semicolon, grouping_rank(groups, g, 0));
        for (int i = 1; i < grouping_members(groups, g); i++)
            printf(" %d", grouping_rank(groups, g, i));
    }
    printf(".\n");
}

static void print_promises(unsigned promises)
{
    static const struct {
        unsigned promise;
        const char *sentence;
    } sentences[] = {
        {PROMISE_BALANCED,
         "Sums associate as one balanced tree over the ranks, so bits do not depend on the "
         "algorithm."},
        {PROMISE_RANK_ORDER, "Operands stay in rank order, so operations need not commute."},
        {PROMISE_ONE_ROUND,
         "Every result comes from one single reduction, so narrow floats are rounded once."},
        {PROMISE_PEER_MEMORY,
         "Ranks read and write each other's buffers, without copies in between."},
    };

    for (size_t i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++)
        if (promises & sentences[i].promise)
            printf("%s\n", sentences[i].sentence);
}

int subject_print(const struct subject *subject, const struct link_costs *costs)
{
    const struct algorithm *algorithm = subject->algorithm;
    const struct form *form = &algorithm->forms[subject->collective];
    struct explain_style style = {.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8"),
                                  .bold = *output_colour(OUTPUT_BOLD) != 0};
    struct explain_totals totals;

    if (explain_plans(subject->plans, subject->ranks, &style, NULL, &totals)) {
        fprintf(stderr, "rondo explain: %s\n", fail_sentence());
        return 1;
    }
    printf(style.bold ? "\033[1m%s by %s, %d rank%s\033[0m\n\n" : "%s by %s, %d rank%s\n\n",
           rondo_collective_name(subject->collective), subject->plans[0]->algorithm, subject->ranks,
           subject->ranks == 1 ? "" : "s");
    printf("%s\n", algorithm->summary);
    if (subject->automatic)
        auto_print(subject, costs);
    print_groups(subject->groups);
    print_promises(algorithm_promises(algorithm, subject->collective, subject->groups));
    printf("\n");
    print_cost(subject, costs, form, &totals);
    printf("\n");
    explain_plans(subject->plans, subject->ranks, &style, stdout, &totals);
    return 0;
}
