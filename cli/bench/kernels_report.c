/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels_report.c - what `rondo bench kernels` found: a table, CSV, JSON, a heat map. */
#include "cli/bench/kernels.h"

#include "bench/pattern.h"
#include "cli/gnuplot.h"

static const struct bench_column row_columns[] = {
    {"level", "level", .width = 7}, {"dtype", "type", .width = 12}, {0}};

static const struct bench_column figure_columns[] = {
    {"GBps", .width = 9, .places = 1},
    {"copy_GBps", "copy", .width = 7, .places = 1},
    {"percent_of_copy", "% of copy", .width = 9, .places = 1},
    {0}};

void kernels_print_head(const struct kernels_options *options, size_t bytes)
{
    printf("# %s of %zu bytes each to one result, GB/s read and written; copy: memcpy in as much "
           "memory\n",
           pattern_op_name(options->bench.call.op), bytes);
    bench_columns_head(row_columns, "#", NULL, stdout);
    for (int i = 0; i < KERNELS_SOURCES; i++) {
        char heading[32];

        snprintf(heading, sizeof(heading), "%d sources", kernels_sources[i]);
        bench_columns_head(figure_columns, " | ", heading, stdout);
    }
    printf("\n");
}

void kernels_print_line(const struct bench_record *line)
{
    bench_columns_print(row_columns, " ", line, stdout);
    for (int i = 0; i < KERNELS_SOURCES; i++)
        bench_columns_print(figure_columns, " | ", &line[i], stdout);
    printf("\n");
    fflush(stdout);
}

static void print_csv(const void *what, FILE *to)
{
    const struct kernels_result *result = what;

    bench_records_csv(result->lines[0], result->count * KERNELS_SOURCES,
                      "level,dtype,op,bytes,sources,GBps,copy_GBps,percent_of_copy", to);
}

static json_t *make_json(const void *what)
{
    const struct kernels_result *result = what;
    json_t *rows = bench_records_json(result->lines[0], result->count * KERNELS_SOURCES,
                                      "level,dtype,bytes,sources,GBps,copy_GBps,percent_of_copy");

    return json_pack("{s:o, s:s, s:o}", "machine", bench_machine_json(), "op",
                     pattern_op_name(result->options->bench.call.op), "rows", rows);
}

/* ---- The heat map: red is below 90 % of a copy, green above ---------------------------------- */

/* The rows come size by size, each with the same levels and types. */
static int lines_of(const struct kernels_result *result)
{
    return result->count / result->options->bench.size_count;
}

/* One cell a line: column, line from the bottom, percent, and that as its text. */
static void print_data(const struct kernels_result *result, FILE *to)
{
    int lines = lines_of(result);

    fprintf(to, "$cells << END\n");
    for (int i = 0; i < result->count; i++)
        for (int k = 0; k < KERNELS_SOURCES; k++) {
            double percent = result->lines[i][k].percent_of_copy;

            fprintf(to, "%d %d %.0f %.0f\n", i / lines * KERNELS_SOURCES + k, lines - 1 - i % lines,
                    percent, percent);
        }
    fprintf(to, "END\n");
}

static void print_names(const struct kernels_result *result, FILE *to)
{
    int lines = lines_of(result);

    fprintf(to, "set ytics (");
    for (int i = 0; i < lines; i++)
        fprintf(to, "%s\"%s, %s\" %d", i ? ", " : "", result->lines[i][0].level,
                result->lines[i][0].dtype, lines - 1 - i);
    fprintf(to, ") noenhanced\nset xtics (");
    for (int i = 0; i < result->options->bench.size_count * KERNELS_SOURCES; i++) {
        char size[32];

        gnuplot_size(result->options->bench.sizes[i / KERNELS_SOURCES], size, sizeof(size));
        fprintf(to, "%s\"%d x %s\" %d", i ? ", " : "", kernels_sources[i % KERNELS_SOURCES], size,
                i);
    }
    fprintf(to, ")\n");
}

static void plot(const void *what, FILE *to)
{
    const struct kernels_result *result = what;
    int columns = result->options->bench.size_count * KERNELS_SOURCES;
    int lines = lines_of(result);
    const struct gnuplot_map map = {
        .columns = columns,
        .rows = lines,
        .width = 330 + 74 * columns,
        .height = 150 + 22 * lines,
        .label = "sources x bytes of each",
        .font = ",11",
        .colours = "set cbrange [0:150]\n"
                   "set palette defined (0 '#b2182b', 89.9 '#fbd0c0', 90 '#eaf5ea', "
                   "150 '#2f8f57')\n"};

    print_data(result, to);
    fprintf(to,
            "set title \"%s of 2, 4 and 8 sources to one result, one core:\\n"
            "bytes read and written, in %% of a copy of as many\" font ',15'\n",
            pattern_op_name(result->options->bench.call.op));
    print_names(result, to);
    gnuplot_map(&map, to);
}

int kernels_write(const struct kernels_result *result)
{
    static const struct bench_writers writers = {"rondo bench kernels", print_csv, make_json, plot};

    return bench_write_files(&writers, &result->options->bench, result);
}
