/* SPDX-License-Identifier: BSD-3-Clause */
/* file.c - `rondo verify --plan`: proves plans of a file, says what they keep and cost. */
#include "cli/plans.h"
#include "cli/verify/outcome.h"

#include "base/fail.h"
#include "collectives/file/file.h"
#include "plan/explain/explain.h"

static void print_promises(unsigned promises)
{
    static const struct {
        unsigned promise;
        const char *words;
    } words[] = {{PROMISE_BALANCED, "balanced"},
                 {PROMISE_RANK_ORDER, "rank order"},
                 {PROMISE_ONE_ROUND, "one rounding"},
                 {PROMISE_IN_PLACE, "in place"},
                 {PROMISE_PEER_MEMORY, "zero copy"}};
    const char *comma = "   ";

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (promises & words[i].promise) {
            printf("%s%s", comma, words[i].words);
            comma = ", ";
        }
    printf("\n");
}

/*
 * Prints what a plan costs whatever the count is, so that two plans of a collective can be
 * compared. It is counted with the fewest slots, so a plan that needs more has none.
 */
static void print_cost(const struct plan_file *file)
{
    static const struct explain_style style = {0};
    struct explain_totals totals;
    double blocks;

    if (explain_plans(file->plans, file->size, &style, NULL, &totals)) {
        printf("no cost: it is counted with the fewest slots, with which this plan fails\n");
        return;
    }
    blocks = (double)totals.most_sent / totals.parts;
    printf("%d round%s, %lu message%s; a rank sends at most %.4g block%s\n", totals.rounds,
           totals.rounds == 1 ? "" : "s", totals.messages, totals.messages == 1 ? "" : "s", blocks,
           blocks == 1 ? "" : "s");
}

int verify_file(const char *path, int slots)
{
    struct plan_file *file = NULL;
    struct verify_report report;
    unsigned promises = 0;
    rondo_result result = file_read(path, &file);

    if (!result)
        result = file_prove(file, path, slots, &report, &promises);
    if (result) {
        fprintf(stderr, "rondo verify: %s\n", fail_sentence());
    } else {
        printf("%s: %s by %s proved for %d ranks, root %d: %lu steps, %lu messages", path,
               rondo_collective_name(file->collective), file->name, file->size, file->root,
               report.steps, report.messages);
        print_promises(promises);
        print_cost(file);
    }
    plan_file_close(file);
    return result != RONDO_OK;
}
