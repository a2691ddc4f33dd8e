/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix.c - go through the rows, pass by pass; what a cell is. */
#include "cli/bench/matrix.h"

#include "bench/pattern.h"
#include "cli/bench/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void matrix_row_name(const struct matrix_row *row, char *text, size_t room)
{
    snprintf(text, room, "%s, %s, %s", bench_collective_name(row->options.call.collective),
             bench_memory_name(row->options.memory),
             row->options.call.in_place ? "in place" : "out of place");
}

/* ---- Cells ----------------------------------------------------------------------------------- */

/* The size of a sweep that has this many elements; NULL if it was left out. */
static const struct bench_size *find_size(const struct bench_sweep *sweep, size_t count)
{
    for (int i = 0; i < sweep->size_count; i++)
        if (sweep->sizes[i].count == count)
            return &sweep->sizes[i];
    return NULL;
}

static double median_or_none(double *values, int count)
{
    return count ? bench_median(values, count) : 0;
}

struct matrix_cell matrix_cell(const struct matrix *matrix, int row, int column)
{
    const struct matrix_row *of = &matrix->rows[row];
    const struct bench_call *call = &of->options.call;
    size_t element = pattern_type_bytes(call->type);
    size_t count =
        bench_count(call->collective, of->options.sizes[column], element, of->options.ranks);
    struct matrix_cell cell = {.bytes = of->options.sizes[column], .best_peer = -1};

    for (int library = 0; library < of->options.library_count; library++) {
        double ratios[MATRIX_PASSES_MAX];
        double seconds[MATRIX_PASSES_MAX];
        int found = 0;

        for (int pass = 0; pass < matrix->passes; pass++) {
            const struct bench_size *size = find_size(&of->sweeps[pass], count);

            if (!size || !size->results[library].available)
                continue;
            ratios[found] = bench_ratio(size, library);
            seconds[found++] = size->results[library].median;
        }
        cell.ratios[library] = median_or_none(ratios, found);
        cell.seconds[library] = median_or_none(seconds, found);
        if (library > 0 && strcmp(of->options.libraries[library], "limit") != 0 &&
            cell.ratios[library] > 0 &&
            (cell.best_peer < 0 || cell.ratios[library] < cell.ratios[cell.best_peer]))
            cell.best_peer = library;
    }
    return cell;
}

double matrix_ratio(const struct matrix *matrix, const struct matrix_cell *cell, bool to_limit)
{
    const struct bench_options *bench = &matrix->options->bench;
    int last = bench->library_count - 1;

    if (to_limit)
        return strcmp(bench->libraries[last], "limit") == 0 ? cell->ratios[last] : 0;
    return cell->best_peer < 0 ? 0 : cell->ratios[cell->best_peer];
}

/* ---- Measuring ------------------------------------------------------------------------------- */

static void add_rows(struct matrix *matrix, enum bench_collective collective)
{
    const struct matrix_options *options = matrix->options;

    for (int memory = 0; memory < 2; memory++)
        for (int place = 0; place < 2; place++) {
            struct matrix_row *row = &matrix->rows[matrix->row_count];

            if (!options->memories[memory] || !options->places[place] ||
                (place && !bench_collective_has_in_place(collective)))
                continue;
            row->options = options->bench;
            row->options.call.collective = collective;
            row->options.memory = memory ? BENCH_MEMORY_SHARED : BENCH_MEMORY_HOST;
            row->options.call.in_place = place == 1;
            matrix->row_count++;
        }
}

static void ignore(const struct bench_sweep *sweep)
{
}

static void progress(const struct matrix *matrix, int row, int pass)
{
    char name[64];

    if (!isatty(STDERR_FILENO))
        return;
    matrix_row_name(&matrix->rows[row], name, sizeof(name));
    fprintf(stderr, "\r\033[Kpass %d of %d: %s\n\033[A", pass + 1, matrix->options->passes, name);
}

/* What a work of bench_with_groups() gets. */
static int run_passes(struct bench_group *groups, void *context)
{
    struct matrix *matrix = context;
    const struct matrix_options *options = matrix->options;
    int last = options->bench.library_count - 1;

    if (!strcmp(options->bench.libraries[last], "limit") &&
        bench_limit_measure(&groups[last], &options->bench, &matrix->limit))
        return -1;
    matrix_print_head(matrix);
    for (int pass = 0; pass < options->passes; pass++) {
        matrix->passes = pass + 1;
        for (int row = 0; row < matrix->row_count; row++) {
            struct bench_sweep *sweep = &matrix->rows[row].sweeps[pass];

            progress(matrix, row, pass);
            *sweep = (struct bench_sweep){.options = &matrix->rows[row].options, .groups = groups};
            if (bench_sweep_run(sweep, ignore))
                return -1;
            if (pass == options->passes - 1)
                matrix_print_row(matrix, row, false);
        }
    }
    return 0;
}

static uint64_t wrong_values(const struct matrix *matrix)
{
    uint64_t wrong = 0;

    for (int row = 0; row < matrix->row_count; row++)
        for (int pass = 0; pass < matrix->passes; pass++)
            wrong += matrix->rows[row].sweeps[pass].wrong;
    return wrong;
}

static int report(const struct matrix *matrix)
{
    uint64_t wrong = wrong_values(matrix);
    int failed;

    matrix_print_end(matrix);
    failed = matrix_write(matrix);
    if (wrong)
        fprintf(stderr, "rondo bench matrix: %llu wrong values\n", (unsigned long long)wrong);
    return failed || wrong ? -1 : 0;
}

int bench_matrix(int argc, char **argv)
{
    static struct matrix_options options;
    struct matrix matrix = {.options = &options};
    int failed;

    matrix_options_parse(argc, argv, &options);
    matrix.rows = calloc(4 * BENCH_COLLECTIVES, sizeof(*matrix.rows));
    if (!matrix.rows) {
        fprintf(stderr, "rondo bench matrix: out of memory\n");
        return 1;
    }
    for (int i = 0; i < BENCH_COLLECTIVES; i++)
        if (options.collectives[i])
            add_rows(&matrix, (enum bench_collective)i);
    failed = bench_with_groups(&options.bench, false, run_passes, &matrix);
    if (!failed)
        failed = report(&matrix);
    for (int row = 0; row < matrix.row_count; row++)
        for (int pass = 0; pass < matrix.passes; pass++)
            bench_sweep_done(&matrix.rows[row].sweeps[pass]);
    free(matrix.rows);
    return failed ? 1 : 0;
}
