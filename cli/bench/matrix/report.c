/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - the cells on the terminal, as CSV, and as a heat map. */
#include "cli/bench/matrix/matrix.h"

#include "bench/pattern.h"
#include "cli/bench/judge.h"
#include "cli/bench/report.h"
#include "cli/common/gnuplot.h"

#include <math.h>
#include <string.h>

/* Sums up the cells of some rows. */
static struct bench_verdict judge(const struct matrix *matrix, int from, int to, bool to_limit)
{
    struct bench_verdict total = {0};

    for (int row = from; row < to; row++)
        for (int column = 0; column < matrix->options->bench.size_count; column++) {
            struct matrix_cell cell = matrix_cell(matrix, row, column);

            bench_verdict_add(&total, matrix_ratio(matrix, &cell, to_limit), cell.bytes,
                              cell.best_peer);
        }
    return total;
}

static void print_columns(const struct matrix *matrix, const char *what)
{
    const struct bench_options *bench = &matrix->options->bench;

    printf("#\n# %s\n#%35s", what, "");
    for (int i = 0; i < bench->size_count; i++) {
        char size[32];

        gnuplot_size(bench->sizes[i], size, sizeof(size));
        printf(" %6s", size);
    }
    printf(" | %6s %6s %6s %8s\n", "mean", "lowest", "at", "above 1");
}

void matrix_print_head(const struct matrix *matrix)
{
    const struct bench_options *bench = &matrix->options->bench;

    printf("# %s on %d ranks, beside", pattern_type_name(bench->call.type), bench->ranks);
    for (int i = 1; i < bench->library_count; i++)
        printf("%s %s", i > 1 ? "," : "", bench_kinds[bench->libraries[i]].name);
    printf("%s%s; medians of %d passes", bench->cold ? ", cold caches" : "",
           bench->rewrite ? ", input rewritten" : "", matrix->options->passes);
    bench_limit_print(&matrix->limit);
    printf("\n");
    print_columns(matrix, "time of the best peer / time of rondo");
}

static void print_ratio(double ratio)
{
    if (ratio <= 0)
        printf(" %6s", "n/a");
    else
        printf(" %6.*f", ratio < 10 ? 2 : 1, ratio);
}

void matrix_print_row(const struct matrix *matrix, int row, bool to_limit)
{
    struct bench_verdict total = judge(matrix, row, row + 1, to_limit);
    char name[64];
    char at[32] = "n/a";

    matrix_row_name(&matrix->rows[row], name, sizeof(name));
    printf("%-36s", name);
    for (int column = 0; column < matrix->options->bench.size_count; column++) {
        struct matrix_cell cell = matrix_cell(matrix, row, column);

        print_ratio(matrix_ratio(matrix, &cell, to_limit));
    }
    if (total.count)
        gnuplot_size(total.lowest_bytes, at, sizeof(at));
    printf(" |");
    print_ratio(bench_verdict_mean(&total));
    print_ratio(total.lowest);
    printf(" %6s %4d/%d\n", at, total.faster, total.count);
    fflush(stdout);
}

static void print_slower(const struct matrix *matrix)
{
    const struct bench_options *bench = &matrix->options->bench;

    for (int row = 0; row < matrix->row_count; row++)
        for (int column = 0; column < bench->size_count; column++) {
            struct matrix_cell cell = matrix_cell(matrix, row, column);
            double ratio = matrix_ratio(matrix, &cell, false);
            char name[64];
            char size[32];

            if (ratio <= 0 || ratio > 1)
                continue;
            matrix_row_name(&matrix->rows[row], name, sizeof(name));
            gnuplot_size(cell.bytes, size, sizeof(size));
            printf("#   %-36s %6s  %.2f of %s: %.3f us, rondo %.3f us\n", name, size, ratio,
                   bench_kinds[bench->libraries[cell.best_peer]].name,
                   cell.seconds[cell.best_peer] * 1e6, cell.seconds[0] * 1e6);
        }
}

void matrix_print_end(const struct matrix *matrix)
{
    struct bench_verdict total = judge(matrix, 0, matrix->row_count, false);
    struct bench_verdict limit = judge(matrix, 0, matrix->row_count, true);

    if (limit.count) {
        print_columns(matrix, "time of the limit / time of rondo");
        for (int row = 0; row < matrix->row_count; row++)
            matrix_print_row(matrix, row, true);
    }
    if (total.count) {
        printf("#\n# faster than the best peer: %d of %d cells; geometric mean %.2f, lowest %.2f\n",
               total.faster, total.count, bench_verdict_mean(&total), total.lowest);
        print_slower(matrix);
    }
}

/* ---- CSV and JSON ---------------------------------------------------------------------------- */

#define CSV_HEADER "collective,memory,in_place,ranks,dtype,bytes,best_peer,ratio,faster"

static struct bench_record record_of(const struct matrix *matrix, const struct matrix_row *row,
                                     const struct matrix_cell *cell)
{
    const struct bench_options *options = &row->options;
    double ratio = matrix_ratio(matrix, cell, false);

    return (struct bench_record){
        .collective = bench_collective_name(options->call.collective),
        .memory = bench_memory_name(options->memory),
        .in_place = options->call.in_place,
        .ranks = options->ranks,
        .dtype = pattern_type_name(options->call.type),
        .bytes = (long long)cell->bytes,
        .version = matrix->versions,
        .best_peer = ratio > 0 ? bench_kinds[options->libraries[cell->best_peer]].name : NULL,
        .ratio = ratio > 0 ? ratio : NAN,
        .faster = ratio > 1   ? "yes"
                  : ratio > 0 ? "no"
                              : NULL,
    };
}

static void print_line(const struct matrix *matrix, int row, int column, FILE *to)
{
    struct matrix_cell cell = matrix_cell(matrix, row, column);
    struct bench_record record = record_of(matrix, &matrix->rows[row], &cell);

    bench_record_csv(&record, CSV_HEADER, to);
    for (int library = 0; library < matrix->options->bench.library_count; library++) {
        record.median_us = cell.seconds[library] > 0 ? cell.seconds[library] * 1e6 : NAN;
        fputs(",", to);
        bench_record_csv(&record, "median_us", to);
    }
    fputs(",", to);
    bench_machine_add(&record);
    bench_record_csv(&record, BENCH_MACHINE_VIEW, to);
    fprintf(to, "\n");
}

/* Behind what a cell is, a column of times for each library; then the machine. */
static void print_csv(const void *what, FILE *to)
{
    const struct matrix *matrix = what;
    const struct bench_options *bench = &matrix->options->bench;

    fprintf(to, "%s", CSV_HEADER);
    for (int i = 0; i < bench->library_count; i++)
        fprintf(to, ",%s_us", bench_kinds[bench->libraries[i]].name);
    fprintf(to, ",%s\n", BENCH_MACHINE_VIEW);
    for (int row = 0; row < matrix->row_count; row++)
        for (int column = 0; column < bench->size_count; column++)
            print_line(matrix, row, column, to);
}

static json_t *json_of_cell(const struct matrix *matrix, int row, int column)
{
    const struct bench_options *bench = &matrix->options->bench;
    struct matrix_cell cell = matrix_cell(matrix, row, column);
    struct bench_record record = record_of(matrix, &matrix->rows[row], &cell);
    json_t *json = bench_record_json(&record, CSV_HEADER), *times = json_object();

    for (int i = 0; i < bench->library_count; i++)
        json_object_set_new(times, bench_kinds[bench->libraries[i]].name,
                            cell.seconds[i] > 0 ? json_real(cell.seconds[i] * 1e6) : json_null());
    json_object_set_new(json, "us", times);
    return json;
}

static json_t *make_json(const void *what)
{
    const struct matrix *matrix = what;
    json_t *cells = json_array();

    for (int row = 0; row < matrix->row_count; row++)
        for (int column = 0; column < matrix->options->bench.size_count; column++)
            json_array_append_new(cells, json_of_cell(matrix, row, column));
    return json_pack("{s:o, s:s, s:b, s:i, s:o}", "machine", bench_machine_json(), "versions",
                     matrix->versions, "complete", matrix->complete, "passes",
                     matrix->options->passes, "cells", cells);
}

/* ---- The heat map: red is slower than the best peer, green faster ---------------------------- */

/* The logarithm is the colour. */
static bool cell(const void *what, int row, int column, double *ret_value, char text[GNUPLOT_NAME])
{
    struct matrix_cell found = matrix_cell(what, row, column);
    double ratio = matrix_ratio(what, &found, false);

    *ret_value = log2(ratio);
    snprintf(text, GNUPLOT_NAME, "%.*f", ratio < 10 ? 2 : 1, ratio);
    return ratio > 0;
}

static void row_name(const void *what, int row, char name[GNUPLOT_NAME])
{
    matrix_row_name(&((const struct matrix *)what)->rows[row], name, GNUPLOT_NAME);
    while (strchr(name, '_'))
        *strchr(name, '_') = ' ';
}

static void column_name(const void *what, int column, char name[GNUPLOT_NAME])
{
    gnuplot_size(((const struct matrix *)what)->options->bench.sizes[column], name, GNUPLOT_NAME);
}

static void print_title(const struct bench_options *bench, FILE *to)
{
    fprintf(to, "set title \"time of the best of");
    for (int i = 1; i < bench->library_count; i++)
        if (bench->libraries[i] != BENCH_LIMIT)
            fprintf(to, "%s %s", i > 1 ? "," : "", bench_kinds[bench->libraries[i]].name);
    fprintf(to, "\\nover that of Rondo: %s on %d ranks%s%s\" font ',15'\n",
            pattern_type_name(bench->call.type), bench->ranks, bench->cold ? ", cold" : "",
            bench->rewrite ? ", input rewritten" : "");
}

static void plot(const void *what, FILE *to)
{
    const struct matrix *matrix = what;
    int columns = matrix->options->bench.size_count;
    const struct gnuplot_map map = {
        .columns = columns,
        .rows = matrix->row_count,
        .width = 380 + 62 * columns,
        .height = 180 + 27 * matrix->row_count,
        .label = "size of the vector (bytes)",
        .font = ",12",
        .colours = "set cbrange [-2:4]\nset cbtics (\"1/4\" -2, \"1/2\" -1, \"1\" 0, \"2\" 1, "
                   "\"4\" 2, \"8\" 3, \"16\" 4)\n"
                   "set palette defined (-2 '#b2182b', -0.001 '#fbd0c0', 0 '#eaf5ea', "
                   "1 '#b9e0bd', 2 '#78c48a', 4 '#2f8f57')\n",
        .row_name = row_name,
        .column_name = column_name,
        .cell = cell};

    print_title(&matrix->options->bench, to);
    gnuplot_map(&map, matrix, to);
}

int matrix_write(const struct matrix *matrix)
{
    static const struct bench_writers writers = {"rondo bench matrix", print_csv, make_json, plot};

    return bench_write_files(&writers, &matrix->options->bench, matrix);
}
