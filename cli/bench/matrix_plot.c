/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix_plot.c - the cells as a heat map: red is slower than the best peer, green faster. */
#include "cli/bench/matrix.h"

#include "bench/pattern.h"
#include "cli/gnuplot.h"

#include <math.h>
#include <string.h>

/* One cell a line: column, row from the bottom, the logarithm that is its colour, its text. */
static void print_data(const struct matrix *matrix, FILE *to)
{
    fprintf(to, "$cells << END\n");
    for (int row = 0; row < matrix->row_count; row++)
        for (int column = 0; column < matrix->options->bench.size_count; column++) {
            struct matrix_cell cell = matrix_cell(matrix, row, column);
            double ratio = matrix_ratio(matrix, &cell, false);

            if (ratio > 0)
                fprintf(to, "%d %d %.4f %.*f\n", column, matrix->row_count - 1 - row, log2(ratio),
                        ratio < 10 ? 2 : 1, ratio);
        }
    fprintf(to, "END\n");
}

static void print_names(const struct matrix *matrix, FILE *to)
{
    const struct bench_options *bench = &matrix->options->bench;

    fprintf(to, "set ytics (");
    for (int row = 0; row < matrix->row_count; row++) {
        char name[64];

        matrix_row_name(&matrix->rows[row], name, sizeof(name));
        for (char *at = name; *at; at++)
            if (*at == '_')
                *at = ' ';
        fprintf(to, "%s\"%s\" %d", row ? ", " : "", name, matrix->row_count - 1 - row);
    }
    fprintf(to, ")\nset xtics (");
    for (int i = 0; i < bench->size_count; i++) {
        char size[32];

        gnuplot_size(bench->sizes[i], size, sizeof(size));
        fprintf(to, "%s\"%s\" %d", i ? ", " : "", size, i);
    }
    fprintf(to, ")\n");
}

static void print_title(const struct bench_options *bench, FILE *to)
{
    fprintf(to, "set title \"time of the best of");
    for (int i = 1; i < bench->library_count; i++)
        if (strcmp(bench->libraries[i], "limit") != 0)
            fprintf(to, "%s %s", i > 1 ? "," : "", bench->libraries[i]);
    fprintf(to, "\\nover that of Rondo: %s on %d ranks%s%s\" font ',15'\n",
            pattern_type_name(bench->call.type), bench->ranks, bench->cold ? ", cold" : "",
            bench->rewrite ? ", input rewritten" : "");
}

static void print_script(const void *what, FILE *to)
{
    const struct matrix *matrix = what;
    const struct bench_options *bench = &matrix->options->bench;

    print_data(matrix, to);
    fprintf(to,
            "set terminal svg size %d,%d dynamic enhanced font 'Helvetica,13' background "
            "'#ffffff'\n",
            380 + 62 * bench->size_count, 150 + 27 * matrix->row_count);
    print_title(bench, to);
    print_names(matrix, to);
    fprintf(to,
            "set xrange [-0.5:%d.5]\nset yrange [-0.5:%d.5]\nunset key\nset border 0\n"
            "set tics scale 0\nset xlabel 'size of the vector (bytes)'\n"
            "set cbrange [-2:4]\nset cbtics (\"1/4\" -2, \"1/2\" -1, \"1\" 0, \"2\" 1, \"4\" 2, "
            "\"8\" 3, \"16\" 4)\n"
            "set palette defined (-2 '#b2182b', -0.001 '#fbd0c0', 0 '#eaf5ea', 1 '#b9e0bd', "
            "2 '#78c48a', 4 '#2f8f57')\n"
            "set style fill solid 1.0 border rgb '#ffffff'\n"
            "plot $cells using 1:2:(0.5):(0.5):3 with boxxyerror lc palette, "
            "$cells using 1:2:4 with labels font ',12'\n",
            bench->size_count - 1, matrix->row_count - 1);
}

int matrix_plot_write(const struct matrix *matrix, const char *path)
{
    return gnuplot_write("rondo bench matrix", path, print_script, matrix);
}
