/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix_report.c - the cells on the terminal and as CSV. */
#include "cli/bench/matrix.h"

#include "bench/pattern.h"
#include "cli/bench/report.h"
#include "cli/gnuplot.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* What a row, or all of them, come to. */
struct total {
    int cells, faster;
    double sum; /* of the logarithms */
    double lowest;
    size_t lowest_bytes;
};

static void add(struct total *total, const struct matrix_cell *cell, double ratio)
{
    if (ratio <= 0)
        return;
    if (!total->cells || ratio < total->lowest) {
        total->lowest = ratio;
        total->lowest_bytes = cell->bytes;
    }
    total->cells++;
    total->faster += ratio > 1;
    total->sum += log(ratio);
}

static struct total total_of(const struct matrix *matrix, int from, int to, bool to_limit)
{
    struct total total = {0};

    for (int row = from; row < to; row++)
        for (int column = 0; column < matrix->options->bench.size_count; column++) {
            struct matrix_cell cell = matrix_cell(matrix, row, column);

            add(&total, &cell, matrix_ratio(matrix, &cell, to_limit));
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
        printf("%s %s", i > 1 ? "," : "", bench->libraries[i]);
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
    struct total total = total_of(matrix, row, row + 1, to_limit);
    char name[64];
    char at[32] = "n/a";

    matrix_row_name(&matrix->rows[row], name, sizeof(name));
    printf("%-36s", name);
    for (int column = 0; column < matrix->options->bench.size_count; column++) {
        struct matrix_cell cell = matrix_cell(matrix, row, column);

        print_ratio(matrix_ratio(matrix, &cell, to_limit));
    }
    if (total.cells)
        gnuplot_size(total.lowest_bytes, at, sizeof(at));
    printf(" |");
    print_ratio(total.cells ? exp(total.sum / total.cells) : 0);
    print_ratio(total.lowest);
    printf(" %6s %4d/%d\n", at, total.faster, total.cells);
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
                   bench->libraries[cell.best_peer], cell.seconds[cell.best_peer] * 1e6,
                   cell.seconds[0] * 1e6);
        }
}

void matrix_print_end(const struct matrix *matrix)
{
    struct total total = total_of(matrix, 0, matrix->row_count, false);
    struct total limit = total_of(matrix, 0, matrix->row_count, true);

    if (limit.cells) {
        print_columns(matrix, "time of the limit / time of rondo");
        for (int row = 0; row < matrix->row_count; row++)
            matrix_print_row(matrix, row, true);
    }
    if (total.cells) {
        printf("#\n# faster than the best peer: %d of %d cells; geometric mean %.2f, lowest %.2f\n",
               total.faster, total.cells, exp(total.sum / total.cells), total.lowest);
        print_slower(matrix);
    }
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void print_time(double seconds, FILE *to)
{
    if (seconds > 0)
        fprintf(to, ",%.4f", seconds * 1e6);
    else
        fprintf(to, ",");
}

static void print_line(const struct matrix *matrix, int row, int column, FILE *to)
{
    const struct bench_options *options = &matrix->rows[row].options;
    struct matrix_cell cell = matrix_cell(matrix, row, column);
    double ratio = matrix_ratio(matrix, &cell, false);

    fprintf(to, "%s,%s,%d,%d,%s,%zu", bench_collective_name(options->call.collective),
            bench_memory_name(options->memory), options->call.in_place, options->ranks,
            pattern_type_name(options->call.type), cell.bytes);
    if (ratio > 0)
        fprintf(to, ",%s,%.4f,%s", options->libraries[cell.best_peer], ratio,
                ratio > 1 ? "yes" : "no");
    else
        fprintf(to, ",,,");
    for (int library = 0; library < options->library_count; library++)
        print_time(cell.seconds[library], to);
    fprintf(to, "\n");
}

void matrix_csv_print(const struct matrix *matrix, FILE *to)
{
    const struct bench_options *bench = &matrix->options->bench;

    fprintf(to, "collective,memory,in_place,ranks,dtype,bytes,best_peer,ratio,faster");
    for (int i = 0; i < bench->library_count; i++)
        fprintf(to, ",%s_us", bench->libraries[i]);
    fprintf(to, "\n");
    for (int row = 0; row < matrix->row_count; row++)
        for (int column = 0; column < bench->size_count; column++)
            print_line(matrix, row, column, to);
}

int matrix_csv_write(const struct matrix *matrix, const char *path)
{
    FILE *file = fopen(path, "we");
    bool bad = !file;

    if (file) {
        matrix_csv_print(matrix, file);
        bad = ferror(file) != 0;
        bad |= fclose(file) != 0;
    }
    if (bad)
        fprintf(stderr, "rondo bench matrix: cannot write %s: %s\n", path, strerror(errno));
    return bad ? -1 : 0;
}
