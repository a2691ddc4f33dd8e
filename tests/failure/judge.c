/* SPDX-License-Identifier: BSD-3-Clause */
/* judge.c - what was wrong in a run: changed memory, wrong results, sentences without a name. */
#include "soak.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *const soak_defects[SOAK_DEFECTS] = {"changed", "wrong",   "untold", "hung",
                                                "crashed", "unnamed", "spoiled"};

/* A rank that complains is no culprit: "Rank 2 has waited 0.4 s for rank 1 in ...". */
static bool only_complains(const char *behind)
{
    return strncmp(behind, " has waited", 11) == 0 || strncmp(behind, " waited", 7) == 0 ||
           strncmp(behind, " waits", 6) == 0;
}

/* True if the sentence blames this rank. If a wait was given up it is the one that was waited for;
 * the step also names the peer that it is with. */
static bool blames(const char *sentence, int rank)
{
    static const char waited[] = " s for rank ";
    const char *at = strstr(sentence, waited);

    if (at)
        return strtol(at + strlen(waited), NULL, 10) == rank;
    at = sentence;
    while ((at = strcasestr(at, "rank "))) {
        char *behind;
        long number;

        at += 5;
        number = strtol(at, &behind, 10);
        if (behind == at || only_complains(behind))
            continue;
        if (number == rank)
            return true;
    }
    return false;
}

/* A rank that waits for a message of a slow one may name another rank, which was late before that:
 * a chain of messages goes on behind it. */
static void judge_sentence(const struct scene *scene, const struct rank_report *report, int rank,
                           struct outcome *outcome)
{
    int victim = scene->fate.victim;

    if (scene->collective == RONDO_SEND && scene->fate.kind == FATE_SLOW)
        return;
    if (rank != victim && report->called && report->result && !blames(report->sentence, victim))
        outcome_add(outcome, DEFECT_UNNAMED, "rank %d says \"%s\"", rank, report->sentence);
}

static void judge_rank(const struct scene *scene, const struct rank_report *report, int rank,
                       struct outcome *outcome)
{
    if (report->early[0] && outcome->defects == 0)
        outcome_add(outcome, DEFECT_SPOILED, "rank %d: %s", rank, report->early);
    if (report->called && !report->result && report->wrong[0])
        outcome_add(outcome, DEFECT_WRONG, "rank %d got RONDO_OK, but %s", rank, report->wrong);
    if (report->untold)
        outcome_add(outcome, DEFECT_UNTOLD, "rank %d got RONDO_OK of its stream, but %s", rank,
                    report->wrong);
    if (report->changed)
        outcome_add(outcome, DEFECT_CHANGED, "rank %d: %s", rank, report->touched);
    outcome->changed += report->changed;
    outcome->missed |= report->missed;
    outcome->late_ok |= report->called && !report->result && report->after_errors;
    outcome->spared &= report->called && !report->result;
    judge_sentence(scene, report, rank, outcome);
}

void judge_run(const struct scene *scene, const struct stage *stage, struct outcome *outcome)
{
    outcome->spared = true;
    for (int r = 0; r < scene->size; r++)
        judge_rank(scene, &stage->reports[r], r, outcome);
}
