/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.c - `rondo bench kernels`: its command line, what it goes through, and its report. */
#include "cli/bench/kernels/kernels.h"

#include "cli/commands.h"

#include "bench/pattern.h"
#include "cli/bench/workers.h"
#include "cli/common/gnuplot.h"
#include "cli/common/output.h"
#include "kernels/kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IN_CACHE  ((size_t)16 << 10)
#define LARGE_MIN ((size_t)16 << 20)
#define LARGE_MAX ((size_t)256 << 20)

const int kernels_sources[KERNELS_SOURCES] = {2, 4, 8};

/* "plain, avx2" */
static void list_levels(char *text, size_t room)
{
    const char *const *levels = kernel_levels();
    size_t used = 0;

    text[0] = 0;
    for (int i = 0; levels[i] && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? ", " : "", levels[i]);
}

static void take_level(struct argp_state *state, void *input, char *text)
{
    struct kernels_options *options = input;
    char known[128];

    options->level = strcmp(text, "all") ? text : NULL;
    for (int i = 0; options->level && kernel_levels()[i]; i++)
        if (!strcmp(kernel_levels()[i], text))
            return;
    list_levels(known, sizeof(known));
    if (options->level)
        argp_error(state, "this machine has no level '%s', but %s", text, known);
}

static void take_type(struct argp_state *state, void *input, char *text)
{
    if (strcmp(text, "all"))
        bench_take_type(state, input, text);
    else
        ((struct kernels_options *)input)->bench.call.type = RONDO_TYPES;
}

static void refuse(struct argp_state *state, void *input, char *text)
{
    argp_error(state, "'%s' is not an option of the kernels", text);
}

#define SETS(member) ARGUMENT_SETS(struct kernels_options, member)

static const struct argument table[] = {
    {"dtype", 0, "TYPE", 1, ARGUMENT_CALLS(take_type), "element type, or all (all)"},
    {"op", 0, "OP", 1, ARGUMENT_CALLS(bench_take_op),
     "sum, prod, min, max, avg, band, bor, bxor (sum)"},
    {"level", 0, "LEVEL", 1, ARGUMENT_CALLS(take_level),
     "plain, avx2, avx512, neon, or all of the machine (all)"},
    {"bytes", 'b', "SIZES", 1, SETS(bench.bytes),
     "of each source: LO:HI, one size, or a comma list (16K, and half of the last cache)"},
    {"seconds", 0, "S", 2, ARGUMENT_NUMBER(struct kernels_options, bench.seconds, 0, 0),
     "time per figure (0.05)"},
    {"csv", 0, "FILE", 3, SETS(bench.csv),
     "write a line per level, type, size and number of sources"},
    {"json", 0, "FILE", 3, SETS(bench.json), "write the same, and the machine"},
    {"plot", 0, "FILE.svg", 3, SETS(bench.plot),
     "draw the speeds in percent of a copy (needs gnuplot)"},
    {0},
};

static const char doc[] =
    "Times the reduction of 2, 4 and 8 sources to one result on one core.\v"
    "GB/s counts the bytes that are read and written. \"copy\" is memcpy() in as much memory as "
    "all sources and the result take, measured in turns with them.";

/* One that stays in a cache, and one of which three are more than the last cache holds. */
static void default_sizes(struct bench_options *options)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t large = cache > 0 ? (size_t)cache / 2 : 2 * LARGE_MIN;

    large = large < LARGE_MIN ? LARGE_MIN : large > LARGE_MAX ? LARGE_MAX : large;
    options->sizes[options->size_count++] = IN_CACHE;
    options->sizes[options->size_count++] = large;
}

static void finish(struct argp_state *state, void *input)
{
    struct bench_options *bench = &((struct kernels_options *)input)->bench;

    if (bench->bytes)
        bench_read_sizes(state, bench);
    else
        default_sizes(bench);
    if (bench->call.type != RONDO_TYPES)
        bench_check_op(state, bench);
}

/* ---- The report ----------------------------------------------------------------------------- */

static const struct bench_column row_columns[] = {
    {"level", "level", .width = 7}, {"dtype", "type", .width = 12}, {0}};

static const struct bench_column figure_columns[] = {
    {"GBps", .width = 9, .places = 1},
    {"copy_GBps", "copy", .width = 7, .places = 1},
    {"percent_of_copy", "% of copy", .width = 9, .places = 1},
    {0}};

static void print_head(const struct kernels_options *options, size_t bytes)
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

static void print_line(const struct bench_record *line)
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

    return json_pack("{s:o, s:b, s:s, s:o}", "machine", bench_machine_json(), "complete",
                     result->complete, "op", pattern_op_name(result->options->bench.call.op),
                     "rows", rows);
}

/* ---- The heat map: red is below 90 % of a copy, green above ---------------------------------- */

/* The rows come size by size, each with the same levels and types: until the first comes again. */
static int lines_of(const struct kernels_result *result)
{
    const struct bench_record *first = result->lines[0];
    int count = 1;

    while (count < result->count && (strcmp(result->lines[count]->level, first->level) ||
                                     strcmp(result->lines[count]->dtype, first->dtype)))
        count++;
    return count;
}

static bool cell(const void *what, int row, int column, double *ret_value, char text[GNUPLOT_NAME])
{
    const struct kernels_result *result = what;
    int line = column / KERNELS_SOURCES * lines_of(result) + row;

    if (line >= result->count)
        return false;
    *ret_value = round(result->lines[line][column % KERNELS_SOURCES].percent_of_copy);
    snprintf(text, GNUPLOT_NAME, "%.0f", *ret_value);
    return true;
}

static void row_name(const void *what, int row, char name[GNUPLOT_NAME])
{
    const struct bench_record *line = ((const struct kernels_result *)what)->lines[row];

    snprintf(name, GNUPLOT_NAME, "%s, %s", line->level, line->dtype);
}

static void column_name(const void *what, int column, char name[GNUPLOT_NAME])
{
    const struct kernels_result *result = what;
    char size[32];

    gnuplot_size(result->options->bench.sizes[column / KERNELS_SOURCES], size, sizeof(size));
    snprintf(name, GNUPLOT_NAME, "%d x %s", kernels_sources[column % KERNELS_SOURCES], size);
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
        .height = 180 + 22 * lines,
        .label = "sources x bytes of each",
        .font = ",11",
        .colours = "set cbrange [0:150]\n"
                   "set palette defined (0 '#b2182b', 89.9 '#fbd0c0', 90 '#eaf5ea', "
                   "150 '#2f8f57')\n",
        .row_name = row_name,
        .column_name = column_name,
        .cell = cell};

    fprintf(to,
            "set title \"%s of 2, 4 and 8 sources to one result, one core:\\n"
            "bytes read and written, in %% of a copy of as many\" font ',15'\n",
            pattern_op_name(result->options->bench.call.op));
    gnuplot_map(&map, result, to);
}

int kernels_write(const struct kernels_result *result)
{
    static const struct bench_writers writers = {"rondo bench kernels", print_csv, make_json, plot};

    return bench_write_files(&writers, &result->options->bench, result);
}

/* ---- Measuring ------------------------------------------------------------------------------ */

static bool is_wanted(const struct kernels_options *options, const char *level, int type)
{
    return (!options->level || !strcmp(options->level, level)) &&
           (options->bench.call.type == RONDO_TYPES || (int)options->bench.call.type == type) &&
           pattern_op_has_type(options->bench.call.op, (rondo_type)type);
}

/* All levels and types with sources of `bytes`. */
static int run_size(struct kernels_result *result, size_t bytes)
{
    const struct kernels_options *options = result->options;
    void *arena = kernels_arena(bytes);

    if (!arena) {
        fprintf(stderr,
                "rondo bench kernels: no memory for nine buffers of %zu bytes; give a "
                "smaller size with --bytes\n",
                bytes);
        return -1;
    }
    print_head(options, bytes);
    for (int i = 0; kernel_levels()[i]; i++)
        for (int type = 0; type < RONDO_TYPES; type++) {
            struct bench_record *line = result->lines[result->count];

            if (!is_wanted(options, kernel_levels()[i], type) ||
                !kernel_use_level(kernel_levels()[i]))
                continue;
            for (int k = 0; k < KERNELS_SOURCES && !bench_caught_signal(); k++) {
                line[k] = kernels_time(options, arena, (rondo_type)type, bytes, kernels_sources[k]);
                line[k].level = kernel_levels()[i];
            }
            if (bench_caught_signal()) {
                free(arena);
                return -1;
            }
            print_line(line);
            result->count++;
        }
    free(arena);
    return 0;
}

static int run(const struct kernels_options *options, int levels)
{
    size_t most = (size_t)options->bench.size_count * (size_t)levels * RONDO_TYPES;
    struct kernels_result result = {.options = options,
                                    .lines = calloc(most, sizeof(*result.lines))};
    int failed = 0;

    if (!result.lines) {
        fprintf(stderr, "rondo bench kernels: out of memory\n");
        return -1;
    }
    bench_catch_signals();
    for (int i = 0; !failed && i < options->bench.size_count; i++)
        failed = run_size(&result, options->bench.sizes[i]);
    if (failed)
        bench_say_signal("rondo bench kernels");
    result.complete = !failed;
    if ((!failed || result.count) && kernels_write(&result))
        failed = -1;
    else if (failed && result.count)
        bench_say_early("rondo bench kernels: the table", result.count, "lines", &options->bench);
    free(result.lines);
    return failed;
}

int command_bench_kernels(int argc, char **argv)
{
    static const struct argument_command command = {.name = "rondo bench kernels",
                                                    .operands = "",
                                                    .doc = doc,
                                                    .table = table,
                                                    .operand = refuse,
                                                    .finish = finish};
    static struct kernels_options options = {
        .bench = {.call = {.type = RONDO_TYPES, .op = RONDO_SUM},
                  .factor = 2,
                  .seconds = MEASURE_KERNEL}};
    int levels = 0, status;

    argument_parse(&command, argc, argv, &options);
    status = output_begin("rondo bench kernels", options.bench.csv, options.bench.json,
                          options.bench.plot);
    if (status)
        return status;
    while (kernel_levels()[levels])
        levels++;
    return run(&options, levels) ? 1 : 0;
}
