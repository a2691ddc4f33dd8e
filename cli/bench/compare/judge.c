/* SPDX-License-Identifier: BSD-3-Clause */
/* judge.c - the cells of two runs, and which of them differ. */
#include "cli/bench/compare/compare.h"

#include "cli/bench/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct compare_row *find(const struct compare_run *run, const char *library,
                                      const char *cell)
{
    for (int i = 0; i < run->row_count; i++)
        if (!strcmp(run->rows[i].library, library) && !strcmp(run->rows[i].cell, cell))
            return &run->rows[i];
    return NULL;
}

/* A row without rounds is of a call that the library could not make. */
static bool has_times(const struct compare_row *row)
{
    return row && row->round_count > 0;
}

static int count_without(const struct compare_run *of, const char *library,
                         const struct compare_run *in, const char *other)
{
    int count = 0;

    for (int i = 0; i < of->row_count; i++) {
        const struct compare_row *row = &of->rows[i];

        count += !strcmp(row->library, library) && has_times(row) &&
                 !has_times(find(in, other, row->cell));
    }
    return count;
}

static void compare_cell(const struct comparison *comparison, struct compare_cell *cell)
{
    const struct compare_row *old = cell->old, *new = cell->new;
    int shared = old->round_count < new->round_count ? old->round_count : new->round_count;

    cell->difference = comparison->paired ? difference_of_pairs(old->rounds, new->rounds, shared)
                                          : difference_of_samples(old->rounds, old->round_count,
                                                                  new->rounds, new->round_count);
    cell->verdict = old->steady && new->steady ? COMPARE_SAME : COMPARE_UNSTEADY;
    cell->p = NAN;
}

static void pair_up(struct comparison *comparison, const char *old_library, const char *new_library)
{
    const struct compare_run *new = comparison->new;

    for (int i = 0; i < new->row_count; i++) {
        struct compare_cell *cell = &comparison->cells[comparison->cell_count];
        double least;

        if (strcmp(new->rows[i].library, new_library))
            continue;
        comparison->wrong += new->rows[i].wrong;
        cell->new = &new->rows[i];
        cell->old = find(comparison->old, old_library, new->rows[i].cell);
        if (!has_times(cell->old) || !has_times(cell->new))
            continue;
        compare_cell(comparison, cell);
        least =
            difference_least_p(cell->old->round_count, cell->new->round_count, comparison->paired);
        if (!comparison->cell_count || least < comparison->least_p)
            comparison->least_p = least;
        comparison->cell_count++;
    }
}

/* The interval of the geometric mean, out of those of steady cells, by signed ranks. */
static void judge_all(struct comparison *comparison, const double *logarithms)
{
    int count = comparison->judged < NOISE_ROUNDS_MAX ? comparison->judged : NOISE_ROUNDS_MAX;
    double ratios[NOISE_ROUNDS_MAX], ones[NOISE_ROUNDS_MAX];
    double sum = 0;

    if (count == 0)
        return;
    for (int i = 0; i < comparison->judged; i++)
        sum += logarithms[i];
    for (int i = 0; i < count; i++) { /* of more cells than there is room for, some evenly */
        ratios[i] = exp(logarithms[(size_t)i * (size_t)comparison->judged / (size_t)count]);
        ones[i] = 1;
    }
    comparison->all = difference_of_pairs(ratios, ones, count);
    comparison->all.ratio = exp(sum / comparison->judged);
}

/* Median of a row's rounds of one of the sweeps; 0: it has none. */
static double median_of_sweep(const struct compare_row *row, int sweep)
{
    double rounds[NOISE_ROUNDS_MAX];
    int count = 0;

    for (int i = 0; i < row->round_count; i++)
        if (row->sweeps[i] == sweep)
            rounds[count++] = row->rounds[i];
    return count ? bench_median(rounds, count) : 0;
}

/*
 * True if each sweep by itself has its new time on the same side of its old one. Ranks that are
 * started anew find other memory, which may cost more than what is looked for, the same way in all
 * rounds of a sweep: chance takes one side only rarely in all of them.
 */
static bool sweeps_agree(const struct comparison *comparison, const struct compare_cell *cell)
{
    bool slower = cell->difference.ratio < 1;

    for (int i = 0; i < comparison->old->sweeps; i++)
        for (int j = 0; j < comparison->new->sweeps; j++) {
            double old = median_of_sweep(cell->old, i);
            double new = median_of_sweep(cell->new, j);

            if ((i == j || !comparison->paired) && old > 0 && new > 0 && (old < new) != slower)
                return false;
        }
    return true;
}

static void decide(struct comparison *comparison, struct compare_cell *cell, double p)
{
    double ratio = cell->difference.ratio;

    cell->p = p;
    if (p > DIFFERENCE_SIGNIFICANT || fabs(log(ratio)) < log(1 + comparison->margin) ||
        !sweeps_agree(comparison, cell))
        return;
    cell->verdict = ratio < 1 ? COMPARE_SLOWER : COMPARE_FASTER;
    comparison->slower += ratio < 1;
    comparison->faster += ratio > 1;
}

static void judge_cells(struct comparison *comparison, double *logarithms, double *p)
{
    int judged = 0;

    for (int i = 0; i < comparison->cell_count; i++)
        if (comparison->cells[i].verdict != COMPARE_UNSTEADY)
            logarithms[judged++] = log(comparison->cells[i].difference.ratio);
    comparison->judged = judged;
    comparison->between_runs = difference_between_runs(logarithms, judged);
    judged = 0;
    for (int i = 0; i < comparison->cell_count; i++)
        if (comparison->cells[i].verdict != COMPARE_UNSTEADY) {
            /* Both have to say so: its rounds, and what other cells differ by. */
            double beyond = difference_beyond_runs(logarithms[judged], comparison->between_runs,
                                                   comparison->judged);

            p[judged++] = fmax(comparison->cells[i].difference.p, beyond);
        }
    difference_correct(p, judged);
    judged = 0;
    for (int i = 0; i < comparison->cell_count; i++)
        if (comparison->cells[i].verdict != COMPARE_UNSTEADY)
            decide(comparison, &comparison->cells[i], p[judged++]);
    judge_all(comparison, logarithms);
}

int compare_judge(struct comparison *comparison, const char *old_library, const char *new_library)
{
    size_t room = (size_t)comparison->new->row_count + 1;
    double *logarithms = calloc(room, sizeof(*logarithms));
    double *p = calloc(room, sizeof(*p));
    int failed = -1;

    comparison->cells = calloc(room, sizeof(*comparison->cells));
    if (comparison->cells && logarithms && p) {
        pair_up(comparison, old_library, new_library);
        judge_cells(comparison, logarithms, p);
        comparison->only_old =
            count_without(comparison->old, old_library, comparison->new, new_library);
        comparison->only_new =
            count_without(comparison->new, new_library, comparison->old, old_library);
        failed = 0;
    }
    free(p);
    free(logarithms);
    return failed;
}

void comparison_done(struct comparison *comparison)
{
    free(comparison->cells);
    comparison->cells = NULL;
}
