/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_matrix.c - every collective by every algorithm, at every number of ranks, as threads and as
 * processes, with types, operations, counts, alignments, kinds of memory and roots so that every
 * pair of them meets. See cases.h.
 */
#include "tests/api/values/matrix.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 2026 };

/* Each algorithm claims to have these collectives, by their bits; more is fine, less is not. */
#define HAS(c) (1u << RONDO_##c)
static const struct {
    const char *algorithm;
    unsigned collectives;
} claims[] = {
    {"ring",
     HAS(ALL_REDUCE) | HAS(REDUCE) | HAS(BROADCAST) | HAS(ALL_GATHER) | HAS(REDUCE_SCATTER)},
    {"tree",
     HAS(ALL_REDUCE) | HAS(REDUCE) | HAS(BROADCAST) | HAS(ALL_GATHER) | HAS(REDUCE_SCATTER)},
    {"direct", (1u << (RONDO_BARRIER + 1)) - 1},
    {"zero_copy", (1u << (RONDO_SCATTER + 1)) - 1},
    {"one_shot", HAS(ALL_REDUCE) | HAS(REDUCE) | HAS(BARRIER)},
    {"bruck", HAS(ALL_TO_ALL)},
    {"halving", HAS(ALL_REDUCE) | HAS(REDUCE_SCATTER)},
    {"doubling", HAS(ALL_REDUCE) | HAS(ALL_GATHER)},
    {"hierarchy", (1u << (RONDO_BARRIER + 1)) - 1},
    {"hierarchy_ring",
     HAS(ALL_REDUCE) | HAS(REDUCE) | HAS(BROADCAST) | HAS(ALL_GATHER) | HAS(REDUCE_SCATTER)},
    {"hierarchy_zero_copy", HAS(ALL_REDUCE)},
    {"leaders", HAS(ALL_REDUCE) | HAS(REDUCE) | HAS(BROADCAST)},
    {"binomial", HAS(ALL_REDUCE) | HAS(REDUCE) | HAS(BROADCAST) | HAS(GATHER) | HAS(SCATTER)},
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

/* Groups of ranks: of different sizes, of single ranks, dealt in turn, in any place. */
static struct grouped {
    char text[32];
    int size;
} grouped[] = {{"4x2", 8},       {"4+3+1", 8}, {"2*", 7},     {"3*", 9},
               {"0,1,1,0,2", 5}, {"1+5", 6},   {"2x2", 4},    {"2,0,1,0,0,1,2,2,0,3", 10},
               {"4x4", 16},      {"1x3", 3},   {"5+5+5", 15}, {"1+1+1+1+2", 6}};

ParameterizedTestParameters(matrix, every_form_is_right_in_groups)
{
    return cr_make_param_array(struct grouped, grouped, sizeof(grouped) / sizeof(grouped[0]));
}

ParameterizedTest(struct grouped *groups, matrix, every_form_is_right_in_groups)
{
    struct matrix *matrix = open_matrix();

    setenv("RONDO_GROUPS", groups->text, 1);
    cr_assert(run_matrix(matrix, groups->size, false) == 0, "%s: %s", groups->text, report.summary);
    cr_assert(run_matrix(matrix, groups->size, true) == 0, "%s: %s", groups->text, report.summary);
}

static bool has_form(const struct case_list *list, rondo_collective collective,
                     const char *algorithm)
{
    for (int f = 0; f < list->forms; f++)
        if (list->form[f].collective == collective && !strcmp(list->form[f].algorithm, algorithm))
            return true;
    return false;
}

Test(matrix, every_algorithm_has_the_forms_it_claims)
{
    struct matrix *matrix = open_matrix();

    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++)
        for (int c = 0; c <= RONDO_BARRIER; c++)
            cr_expect(!(claims[i].collectives >> c & 1) ||
                          has_form(&matrix->list, (rondo_collective)c, claims[i].algorithm),
                      "%s has no form by %s", rondo_collective_name((rondo_collective)c),
                      claims[i].algorithm);
}

Test(matrix, the_choice_of_cases_leaves_out_no_pair)
{
    struct matrix *matrix = open_matrix();

    cr_expect(matrix->list.pairs_missing == 0, "%d pairs are missing", matrix->list.pairs_missing);
    cr_expect(matrix->list.count >= matrix->list.forms * CASES_RANKS * 2);
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
