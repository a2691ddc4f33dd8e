/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_matrix.c - every collective by every algorithm, at every number of ranks, as threads and as processes, with
 * types, operations, counts, alignments, kinds of memory and roots so that every pair of them meets. See cases.h.
 */
#include "matrix.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

enum { SEED = 2026 };

/* The forms that must be there, whatever else is: the collectives of the data-parallel mission by ring and by tree. */
static const struct form promised[] = {
    {RONDO_ALL_REDUCE, "ring"},     {RONDO_ALL_REDUCE, "tree"},     {RONDO_ALL_REDUCE, "direct"},
    {RONDO_REDUCE, "ring"},         {RONDO_REDUCE, "tree"},         {RONDO_BROADCAST, "ring"},
    {RONDO_BROADCAST, "tree"},      {RONDO_ALL_GATHER, "ring"},     {RONDO_ALL_GATHER, "tree"},
    {RONDO_REDUCE_SCATTER, "ring"}, {RONDO_REDUCE_SCATTER, "tree"},
};

static struct world_report report;
static char sentence[WORLD_SENTENCE];

static struct matrix *open_matrix(void)
{
    struct matrix *matrix = world_share(sizeof(*matrix));

    matrix_init(matrix, SEED, sentence);
    cr_assert(!sentence[0], "%s", sentence);
    return matrix;
}

static int run_matrix(struct matrix *matrix, int size, bool processes)
{
    struct matrix_part part = {matrix, processes};
    struct world world = {.size = size, .processes = processes};

    return world_run(&world, matrix_run, &part, &report);
}

static int sizes[CASES_RANKS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};

ParameterizedTestParameters(matrix, every_form_is_right_on_n_threads)
{
    return cr_make_param_array(int, sizes, CASES_RANKS);
}

ParameterizedTest(int *size, matrix, every_form_is_right_on_n_threads)
{
    struct matrix *matrix = open_matrix();
    int failed = run_matrix(matrix, *size, false);

    cr_assert(failed == 0, "%s", report.summary);
}

ParameterizedTestParameters(matrix, every_form_is_right_on_n_processes)
{
    return cr_make_param_array(int, sizes, CASES_RANKS);
}

ParameterizedTest(int *size, matrix, every_form_is_right_on_n_processes)
{
    struct matrix *matrix = open_matrix();
    int failed = run_matrix(matrix, *size, true);

    cr_assert(failed == 0, "%s", report.summary);
}

Test(matrix, the_choice_of_cases_leaves_out_no_pair_and_no_promised_form)
{
    struct matrix *matrix = open_matrix();
    struct case_list *list = &matrix->list;

    cr_expect(list->pairs_missing == 0, "%d pairs are missing", list->pairs_missing);
    for (size_t p = 0; p < sizeof(promised) / sizeof(promised[0]); p++) {
        bool found = false;

        for (int f = 0; f < list->forms; f++)
            found = found || (list->form[f].collective == promised[p].collective &&
                              !strcmp(list->form[f].algorithm, promised[p].algorithm));
        cr_expect(found, "%s has no form by %s", rondo_collective_name(promised[p].collective),
                  promised[p].algorithm);
    }
    for (int c = 0; c <= RONDO_BARRIER; c++) {
        bool found = false;

        for (int f = 0; f < list->forms; f++)
            found = found || list->form[f].collective == (rondo_collective)c;
        cr_expect(found, "%s has no form", rondo_collective_name((rondo_collective)c));
    }
}

Test(matrix, every_form_runs_with_some_buffers)
{
    struct matrix *matrix = open_matrix();

    for (int size = 2; size <= 5; size++)
        cr_assert(run_matrix(matrix, size, true) == 0, "%s", report.summary);
    for (int f = 0; f < matrix->list.forms; f++)
        cr_expect(matrix->ran[f] > 0, "%s by %s was refused %d times and never ran",
                  rondo_collective_name(matrix->list.form[f].collective),
                  matrix->list.form[f].algorithm, matrix->refused[f]);
}
