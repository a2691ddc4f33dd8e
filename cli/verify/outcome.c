/* SPDX-License-Identifier: BSD-3-Clause */
/* outcome.c - holds promises against proofs, and tells the result as a line and as JSON. */
#include "cli/verify/outcome.h"

#include "base/collective.h"

#include <stdio.h>

void outcome_blame(struct outcome *outcome, int ranks, int root, const char *sentence)
{
    if (outcome->failed)
        return;
    outcome->failed = true;
    outcome->ranks = ranks;
    outcome->root = root;
    snprintf(outcome->failure, sizeof(outcome->failure), "%s", sentence);
}

void outcome_judge(struct outcome *outcome, unsigned promises, int ranks, int root,
                   const struct verify_report *report)
{
    unsigned proved = (report->balanced ? PROMISE_BALANCED : 0) |
                      (report->rank_order ? PROMISE_RANK_ORDER : 0) |
                      (report->one_round ? PROMISE_ONE_ROUND : 0);

    outcome->steps += report->steps;
    outcome->messages += report->messages;
    outcome->proved &= proved | PROMISE_IN_PLACE;
    outcome->touches_peers |= report->peer_memory;
    if (promises & PROMISE_BALANCED & ~proved)
        outcome_blame(outcome, ranks, root,
                      "it promises one balanced tree over ranks and breaks it");
    if (promises & PROMISE_RANK_ORDER & ~proved)
        outcome_blame(outcome, ranks, root, "it promises rank order and breaks it");
    if (promises & PROMISE_ONE_ROUND & ~proved)
        outcome_blame(outcome, ranks, root,
                      "it promises one rounding per result and rounds more often");
    if (report->peer_memory && !(promises & PROMISE_PEER_MEMORY))
        outcome_blame(outcome, ranks, root, "it touches peers' memory without saying so");
}

/* Lists what holds, in words, with a comma between. */
static void describe(const struct algorithm *algorithm, rondo_collective collective,
                     const struct outcome *outcome, char *text, size_t size)
{
    bool reduces = collective_reduces(collective);
    unsigned promises = algorithm->forms[collective].promises;
    unsigned runs = algorithm->forms[collective].runs;
    unsigned aligned = algorithm->forms[collective].aligned;
    const struct {
        bool holds;
        const char *words;
    } properties[] = {
        {reduces && (promises & PROMISE_BALANCED), "balanced"},
        {reduces && (promises & PROMISE_RANK_ORDER), "rank order"},
        {reduces && (promises & PROMISE_ONE_ROUND), "one rounding"},
        {aligned & PROMISE_BALANCED, "balanced in aligned groups"},
        {runs & PROMISE_RANK_ORDER, "rank order in groups that are runs"},
        {promises & PROMISE_IN_PLACE, "in place"},
        {outcome->touches_peers, "zero copy"},
    };
    size_t length = 0;

    text[0] = 0;
    for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++)
        if (properties[i].holds && length < size)
            length += (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "",
                                       properties[i].words);
}

void outcome_print(const struct algorithm *algorithm, rondo_collective collective,
                   const struct outcome *outcome)
{
    char properties[160];

    if (outcome->failed) {
        printf("%-19s %-15s WRONG   with %d ranks%s%s, root %d: %s%s\n", algorithm->name,
               rondo_collective_name(collective), outcome->ranks,
               outcome->groups[0] ? " in groups " : "", outcome->groups, outcome->root,
               outcome->taken_out, outcome->failure);
        fflush(stdout);
        return;
    }
    describe(algorithm, collective, outcome, properties, sizeof(properties));
    printf("%-19s %-15s proved  %7lu plans %10lu steps   %s\n", algorithm->name,
           rondo_collective_name(collective), outcome->plans, outcome->steps, properties);
    fflush(stdout);
}

json_t *outcome_json(const struct algorithm *algorithm, rondo_collective collective,
                     const struct outcome *outcome)
{
    unsigned promises = algorithm->forms[collective].promises;
    unsigned proved = outcome->failed || !collective_reduces(collective) ? 0 : outcome->proved;
    json_t *json = json_pack(
        "{s:s, s:s, s:b, s:I, s:I, s:I, s:b, s:b, s:b, s:b, s:b}", "algorithm", algorithm->name,
        "collective", rondo_collective_name(collective), "proved", !outcome->failed, "plans",
        (json_int_t)outcome->plans, "steps", (json_int_t)outcome->steps, "messages",
        (json_int_t)outcome->messages, "balanced", !!(proved & PROMISE_BALANCED), "rank_order",
        !!(proved & PROMISE_RANK_ORDER), "one_round", !!(proved & PROMISE_ONE_ROUND), "in_place",
        !outcome->failed && (promises & PROMISE_IN_PLACE), "peer_memory", outcome->touches_peers);

    if (json && outcome->failed)
        json_object_update_new(json, json_pack("{s:s, s:i, s:i}", "failure", outcome->failure,
                                               "ranks", outcome->ranks, "root", outcome->root));
    return json;
}
