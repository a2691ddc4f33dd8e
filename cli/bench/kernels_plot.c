/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels_plot.c - the kernels' speeds as a heat map, in percent of a copy: red is below 90,
 * green above.
 */
#include "cli/bench/kernels.h"

#include "bench/pattern.h"
#include "cli/gnuplot.h"

#include <stdio.h>

/* The rows come size by size, each with the same levels and types. */
static int lines_of(const struct kernels_result *result)
{
    return result->count / result->options->bench.size_count;
}

/* One cell a line: column, line from the bottom, percent. */
static void print_data(const struct kernels_result *result, FILE *to)
{
    int lines = lines_of(result);

    fprintf(to, "$cells << END\n");
    for (int i = 0; i < result->count; i++)
        for (int k = 0; k < KERNELS_SOURCES; k++)
            fprintf(to, "%d %d %.0f\n", i / lines * KERNELS_SOURCES + k, lines - 1 - i % lines,
                    kernels_percent(&result->rows[i].figures[k]));
    fprintf(to, "END\n");
}

static void print_names(const struct kernels_result *result, FILE *to)
{
    int lines = lines_of(result);

    fprintf(to, "set ytics (");
    for (int i = 0; i < lines; i++)
        fprintf(to, "%s\"%s, %s\" %d", i ? ", " : "", result->rows[i].level,
                pattern_type_name(result->rows[i].type), lines - 1 - i);
    fprintf(to, ") noenhanced\nset xtics (");
    for (int i = 0; i < result->options->bench.size_count * KERNELS_SOURCES; i++) {
        char size[32];

        gnuplot_size(result->options->bench.sizes[i / KERNELS_SOURCES], size, sizeof(size));
        fprintf(to, "%s\"%d x %s\" %d", i ? ", " : "", kernels_sources[i % KERNELS_SOURCES], size,
                i);
    }
    fprintf(to, ")\n");
}

static void print_script(const void *what, FILE *to)
{
    const struct kernels_result *result = what;
    int columns = result->options->bench.size_count * KERNELS_SOURCES;
    int lines = lines_of(result);

    print_data(result, to);
    fprintf(to,
            "set terminal svg size %d,%d dynamic enhanced font 'Helvetica,13' background "
            "'#ffffff'\n"
            "set title \"%s of 2, 4 and 8 sources to one result, one core:\\n"
            "bytes read and written, in %% of a copy of as many\" font ',15'\n",
            330 + 74 * columns, 150 + 22 * lines, pattern_op_name(result->options->bench.call.op));
    print_names(result, to);
    fprintf(to,
            "set xrange [-0.5:%d.5]\nset yrange [-0.5:%d.5]\nunset key\nset border 0\n"
            "set tics scale 0\nset xlabel 'sources x bytes of each'\nset cbrange [0:150]\n"
            "set palette defined (0 '#b2182b', 89.9 '#fbd0c0', 90 '#eaf5ea', 150 '#2f8f57')\n"
            "set style fill solid 1.0 border rgb '#ffffff'\n"
            "plot $cells using 1:2:(0.5):(0.5):3 with boxxyerror lc palette, "
            "$cells using 1:2:3 with labels font ',11'\n",
            columns - 1, lines - 1);
}

int kernels_plot_write(const struct kernels_result *result, const char *path)
{
    return gnuplot_write("rondo bench kernels", path, print_script, result);
}
