/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - what came out of many runs: a line per run, and counts per fate, memory, transport. */
#include "soak.h"

#include <stdlib.h>
#include <string.h>

/* "mixed" comes behind the kinds of memory. */
enum { MIXED = SOAK_MEMORIES, MEMORIES };

struct tally {
    int runs, bad, missed, late_ok, spared;
    int defects[SOAK_DEFECTS];
};

static int memory_index(const struct scene *scene)
{
    const char *name = scene_memory(scene);

    for (int m = 0; m < SOAK_MEMORIES; m++)
        if (strcmp(name, soak_memories[m]) == 0)
            return m;
    return MIXED;
}

static void count(struct tally *tally, const struct outcome *outcome)
{
    tally->runs++;
    tally->bad += outcome->defects != 0;
    tally->missed += outcome->missed;
    tally->late_ok += outcome->late_ok;
    tally->spared += outcome->spared;
    for (int d = 0; d < SOAK_DEFECTS; d++)
        tally->defects[d] += outcome->defects >> d & 1;
}

static void print_tally(const char *fate, const char *memory, const char *transport,
                        const struct tally *tally)
{
    printf("%-6s %-10s %-6s %5d", fate, memory, transport, tally->runs);
    for (int d = 0; d < SOAK_DEFECTS; d++)
        printf(" %7d", tally->defects[d]);
    printf("  | %7d %6d %6d\n", tally->late_ok, tally->spared, tally->missed);
}

int report_summary(const struct report_options *options, const struct outcome *outcomes, int number)
{
    struct tally tallies[SOAK_FATES][MEMORIES] = {0}, all = {0};
    const char *transport = soak_transports[options->transport];

    for (int i = 0; i < number; i++) {
        struct scene scene;

        if (!outcomes[i].ran)
            continue;
        scene_make(outcomes[i].seed, options->transport, 1, &scene);
        count(&tallies[scene.fate.kind][memory_index(&scene)], &outcomes[i]);
        count(&all, &outcomes[i]);
    }
    printf("%-6s %-10s %-6s %5s", "fate", "memory", "links", "runs");
    for (int d = 0; d < SOAK_DEFECTS; d++)
        printf(" %7s", soak_defects[d]);
    printf("  | %7s %6s %6s\n", "late_ok", "all_ok", "missed");
    for (int f = 0; f < SOAK_FATES; f++)
        for (int m = 0; m < MEMORIES; m++)
            if (tallies[f][m].runs)
                print_tally(soak_fates[f], m == MIXED ? "mixed" : soak_memories[m], transport,
                            &tallies[f][m]);
    print_tally("all", "all", transport, &all);
    return all.bad;
}

void report_csv_head(FILE *csv)
{
    fprintf(csv, "seed,transport,ranks,as,collective,algorithm,type,op,count,root,placement,memory,"
                 "fate,victim,defects,changed_words,late_ok,all_ok,missed,seconds\n");
}

static void csv_row(const struct report_options *options, const struct scene *scene,
                    const struct outcome *outcome)
{
    char defects[128] = "";
    size_t used = 0;

    for (int d = 0; d < SOAK_DEFECTS; d++)
        if (outcome->defects >> d & 1)
            used += (size_t)snprintf(defects + used, sizeof(defects) - used, "%s%s",
                                     used ? "+" : "", soak_defects[d]);
    fprintf(options->csv, "%llu,%s,%d,%s,%s,%s,%s,%s,%zu,%d,%s,%s,%s,%d,%s,%zu,%d,%d,%d,%.3f\n",
            (unsigned long long)outcome->seed, soak_transports[options->transport], scene->size,
            scene->threads ? "threads" : "processes", rondo_collective_name(scene->collective),
            scene->algorithm ? scene->algorithm : "auto", rondo_type_name(scene->type),
            scene->op < 0 ? "" : rondo_op_name(scene->op), scene->count, scene->root,
            scene->in_place      ? "in_place"
            : scene->shares_page ? "side_by_side"
                                 : "apart",
            scene_memory(scene), soak_fates[scene->fate.kind], scene->fate.victim, defects,
            outcome->changed, outcome->late_ok, outcome->spared, outcome->missed, outcome->seconds);
    fflush(options->csv);
}

void report_run(const struct report_options *options, const struct outcome *outcome)
{
    struct scene scene;
    char text[SOAK_TEXT];

    scene_make(outcome->seed, options->transport, 1, &scene);
    if (options->csv)
        csv_row(options, &scene, outcome);
    if (!outcome->defects)
        return;
    scene_describe(&scene, text, sizeof(text));
    printf("%s\n    %s\n", text, outcome->text);
}
