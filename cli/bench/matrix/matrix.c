/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix.c - what a cell is, going through the rows pass by pass, and the command line. */
#include "cli/bench/matrix/matrix.h"

#include "cli/commands.h"

#include "bench/pattern.h"
#include "cli/bench/judge.h"
#include "cli/common/output.h"

#include <limits.h>
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
        int ratio_count = 0, found = 0;

        for (int pass = 0; pass < matrix->passes; pass++) {
            const struct bench_size *size = find_size(&of->sweeps[pass], count);

            if (!size || !bench_counts(size, library))
                continue;
            if (bench_counts(size, 0))
                ratios[ratio_count++] = bench_ratio(size, library);
            seconds[found++] = size->results[library].median;
        }
        cell.ratios[library] = median_or_none(ratios, ratio_count);
        cell.seconds[library] = median_or_none(seconds, found);
        if (library > 0 && of->options.libraries[library] != BENCH_LIMIT &&
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
        return bench->libraries[last] == BENCH_LIMIT ? cell->ratios[last] : 0;
    return cell->best_peer < 0 ? 0 : cell->ratios[cell->best_peer];
}

/* ---- Measuring ------------------------------------------------------------------------------- */

static void add_rows(struct matrix *matrix, enum bench_collective collective)
{
    const struct matrix_options *options = matrix->options;

    for (int memory = 0; memory < 2; memory++)
        for (int place = 0; place < 2; place++) {
            struct matrix_row *row = &matrix->rows[matrix->row_count];

            if ((options->memories != MATRIX_BOTH && options->memories != memory) ||
                (options->places != MATRIX_BOTH && options->places != place) ||
                (place && !bench_collective_has_in_place(collective)))
                continue;
            row->options = options->bench;
            row->options.call.collective = collective;
            row->options.memory = memory ? BENCH_MEMORY_SHARED : BENCH_MEMORY_HOST;
            row->options.call.in_place = place == 1;
            matrix->row_count += bench_has_elements(&row->options);
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

/* The groups have ended when files are written. */
static void keep_versions(struct matrix *matrix, const struct bench_group *groups)
{
    size_t used = 0;

    for (int i = 0; i < matrix->options->bench.library_count && used < sizeof(matrix->versions);
         i++)
        used += (size_t)snprintf(matrix->versions + used, sizeof(matrix->versions) - used, "%s%s",
                                 i ? "; " : "", groups[i].version);
}

/* bench_with_groups() calls this. */
static int run_passes(struct bench_group *groups, void *context)
{
    struct matrix *matrix = context;
    const struct matrix_options *options = matrix->options;
    int last = options->bench.library_count - 1;

    if (options->bench.libraries[last] == BENCH_LIMIT &&
        bench_limit_measure(&groups[last], &options->bench, &matrix->limit))
        return -1;
    keep_versions(matrix, groups);
    matrix_print_head(matrix);
    for (int pass = 0; pass < options->passes; pass++) {
        matrix->passes = pass + 1;
        for (int row = 0; row < matrix->row_count; row++) {
            struct bench_sweep *sweep = &matrix->rows[row].sweeps[pass];

            progress(matrix, row, pass);
            *sweep = (struct bench_sweep){.options = &matrix->rows[row].options, .groups = groups};
            if (bench_sweep_run(sweep, ignore))
                return -1;
            if (pass == options->passes - 1) {
                matrix_print_row(matrix, row, false);
                matrix->rows_printed++;
            }
        }
    }
    return 0;
}

/* Says which library was wrong in which row. Returns true if any was. */
static bool say_wrong(const struct matrix *matrix)
{
    bool any = false;

    for (int row = 0; row < matrix->row_count; row++)
        for (int library = 0; library < matrix->options->bench.library_count; library++) {
            uint64_t wrong = 0;
            char name[64];

            for (int pass = 0; pass < matrix->passes; pass++)
                wrong += bench_wrong_values(&matrix->rows[row].sweeps[pass], library);
            if (!wrong)
                continue;
            any = true;
            matrix_row_name(&matrix->rows[row], name, sizeof(name));
            fprintf(stderr, "rondo bench matrix: %llu wrong values of %s in %s\n",
                    (unsigned long long)wrong,
                    bench_kinds[matrix->options->bench.libraries[library]].name, name);
        }
    return any;
}

static bool is_empty(const struct matrix *matrix)
{
    int sizes = 0;

    for (int row = 0; row < matrix->row_count; row++)
        for (int pass = 0; pass < matrix->passes; pass++)
            sizes += matrix->rows[row].sweeps[pass].size_count;
    return sizes == 0;
}

/* Prints and writes what is known, also when it ended early. 0, or -1: something was wrong. */
static int report(struct matrix *matrix)
{
    bool wrong = say_wrong(matrix);

    if (!matrix->complete && is_empty(matrix))
        return -1;
    if (!matrix->complete)
        fprintf(stderr,
                "rondo bench matrix: the matrix ended early, in pass %d of %d; cells that "
                "were not measured are empty\n",
                matrix->passes, matrix->options->passes);
    while (matrix->rows_printed < matrix->row_count)
        matrix_print_row(matrix, matrix->rows_printed++, false);
    matrix_print_end(matrix);
    return matrix_write(matrix) || wrong || !matrix->complete ? -1 : 0;
}

/* ---- The command ----------------------------------------------------------------------------- */

#define COLLECTIVES "all_reduce,reduce,broadcast,all_gather,reduce_scatter"
#define SIZES       "8,64,512,4K,16K,64K,256K,1M,4M,16M,64M"

/* A barrier is no row: it has no size. */
static const char *sized_name(int i)
{
    enum bench_collective collective = (enum bench_collective)(i + (i >= BENCH_BARRIER));

    return collective < BENCH_COLLECTIVES ? bench_collective_name(collective) : NULL;
}

static void take_collectives(struct argp_state *state, void *input, char *list)
{
    struct matrix_options *options = input;
    char *name;

    memset(options->collectives, 0, sizeof(options->collectives));
    while ((name = strsep(&list, ","))) {
        int place = argument_name(state, "collective with a size", sized_name, name);

        options->collectives[place + (place >= BENCH_BARRIER)] = true;
    }
}

static void refuse(struct argp_state *state, void *input, char *text)
{
    argp_error(state, "'%s' is no option of the matrix; --collectives takes names", text);
}

#define SETS(member)                ARGUMENT_SETS(struct matrix_options, member)
#define NUMBER(member, least, most) ARGUMENT_NUMBER(struct matrix_options, member, least, most)

#define WORDS(member, first, second)              \
    ARGUMENT_WORDS(struct matrix_options, member, \
                   ((const char *const[]){first, second, "both", NULL}))

static const struct argument table[] = {
    {"ranks", 'n', "N", 1, NUMBER(bench.ranks, 1, INT_MAX), "start N ranks here (2)"},
    {"collectives", 0, "LIST", 1, ARGUMENT_CALLS(take_collectives), "comma list (" COLLECTIVES ")"},
    {"memory", 0, "KIND", 1, WORDS(memories, "host", "shared"), "host, shared or both (both)"},
    {"place", 0, "WHERE", 1, WORDS(places, "out", "in"),
     "of the result: out (of place), in (place) or both (both)"},
    {"bytes", 'b', "SIZES", 1, SETS(bench.bytes), "LO:HI, one size, or a comma list (" SIZES ")"},
    {"dtype", 0, "TYPE", 1, ARGUMENT_CALLS(bench_take_type), "element type (float32)"},
    {"vs", 0, "LIST", 2, SETS(bench.peers),
     "compare with openmpi, mpich, gloo (those that are installed)"},
    {"limit", 0, NULL, 2, SETS(bench.limit), "and with what the machine can do"},
    {"cold", 0, NULL, 3, SETS(bench.cold), "walk through more memory than the caches hold"},
    {"rewrite", 0, NULL, 3, SETS(bench.rewrite),
     "every rank writes its input anew before every call"},
    {"passes", 0, "N", 3, NUMBER(passes, 1, MATRIX_PASSES_MAX),
     "times that all is measured; medians count (2)"},
    {"rounds", 0, "N", 3, NUMBER(bench.rounds, 1, INT_MAX),
     "times that libraries take turns at a size, in a pass (4)"},
    {"warmup", 0, "N", 3, NUMBER(bench.warmup, 0, INT_MAX), "calls before the clock runs (2)"},
    {"seconds", 0, "S", 3, NUMBER(bench.seconds, 0, 0), "time per size, library and pass (0.04)"},
    {"csv", 0, "FILE", 4, SETS(bench.csv), "write a line per cell"},
    {"json", 0, "FILE", 4, SETS(bench.json), "write the same, and the machine"},
    {"plot", 0, "FILE.svg", 4, SETS(bench.plot), "draw the cells (needs gnuplot)"},
    {0},
};

static const char doc[] =
    "Measures collectives beside other libraries and says in which cells Rondo is the fastest.\v"
    "A cell is a collective of a size, on one kind of memory, in or out of place; its figure is "
    "the time of the best other library over that of Rondo.";

/* The peers that were asked for, or all that were built. */
static void finish(struct argp_state *state, void *input)
{
    struct bench_options *bench = &((struct matrix_options *)input)->bench;

    bench_read_sizes(state, bench);
    bench->libraries[bench->library_count++] = BENCH_RONDO;
    bench_add_peers(state, bench);
    for (int peer = BENCH_OPENMPI; !bench->peers && peer <= BENCH_GLOO; peer++)
        if (bench_worker_is_there((enum bench_library_id)peer))
            bench->libraries[bench->library_count++] = (enum bench_library_id)peer;
    if (bench->limit)
        bench->libraries[bench->library_count++] = BENCH_LIMIT;
}

static void parse(int argc, char **argv, struct matrix_options *ret_options)
{
    static const struct argument_command command = {.name = "rondo bench matrix",
                                                    .operands = "",
                                                    .doc = doc,
                                                    .table = table,
                                                    .operand = refuse,
                                                    .finish = finish};
    char collectives[] = COLLECTIVES;

    *ret_options = (struct matrix_options){.bench = {.ranks = 2,
                                                     .call.type = RONDO_FLOAT32,
                                                     .bytes = SIZES,
                                                     .factor = 2,
                                                     .rounds = 4,
                                                     .warmup = 2,
                                                     .check = 1,
                                                     .seconds = MEASURE_MATRIX,
                                                     .timeout = -1},
                                           .memories = MATRIX_BOTH,
                                           .places = MATRIX_BOTH,
                                           .passes = 2};
    take_collectives(NULL, ret_options, collectives);
    argument_parse(&command, argc, argv, ret_options);
}

int command_bench_matrix(int argc, char **argv)
{
    static struct matrix_options options;
    struct matrix matrix = {.options = &options};
    int failed;

    parse(argc, argv, &options);
    failed = output_begin("rondo bench matrix", options.bench.csv, options.bench.json,
                          options.bench.plot);
    if (failed)
        return failed;
    matrix.rows = calloc(4 * BENCH_COLLECTIVES, sizeof(*matrix.rows));
    if (!matrix.rows) {
        fprintf(stderr, "rondo bench matrix: out of memory\n");
        return 1;
    }
    for (int i = 0; i < BENCH_COLLECTIVES; i++)
        if (options.collectives[i])
            add_rows(&matrix, (enum bench_collective)i);
    if (!matrix.row_count) {
        fprintf(stderr, "rondo bench matrix: --bytes gives less than one element per rank; ask for "
                        "at least ranks * element size\n");
        free(matrix.rows);
        return 2;
    }
    matrix.complete = !bench_with_groups(&options.bench, false, run_passes, &matrix);
    failed = report(&matrix);
    for (int row = 0; row < matrix.row_count; row++)
        for (int pass = 0; pass < matrix.passes; pass++)
            bench_sweep_done(&matrix.rows[row].sweeps[pass]);
    free(matrix.rows);
    return failed ? 1 : 0;
}
