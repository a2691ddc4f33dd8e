/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.c - the command line of `rondo bench kernels`, and what it goes through. */
#include "cli/bench/kernels.h"

#include "bench/pattern.h"
#include "cli/argument.h"
#include "kernels/kernels.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KEY_DTYPE = 256, KEY_OP, KEY_LEVEL, KEY_SECONDS, KEY_CSV, KEY_JSON, KEY_PLOT };

#define IN_CACHE  ((size_t)16 << 10)
#define LARGE_MIN ((size_t)16 << 20)
#define LARGE_MAX ((size_t)256 << 20)

const int kernels_sources[KERNELS_SOURCES] = {2, 4, 8};

static const struct argp_option table[] = {
    {"dtype", KEY_DTYPE, "TYPE", 0, "element type, or all (all)", 1},
    {"op", KEY_OP, "OP", 0, "sum, prod, min, max, avg, band, bor, bxor (sum)", 1},
    {"level", KEY_LEVEL, "LEVEL", 0, "plain, avx2, avx512, neon, or all of the machine (all)", 1},
    {"bytes", 'b', "SIZES", 0,
     "of each source: LO:HI, one size, or a comma list (16K, and half of the last cache)", 1},
    {"seconds", KEY_SECONDS, "S", 0, "time per figure (0.05)", 2},
    {"csv", KEY_CSV, "FILE", 0, "write a line per level, type, size and number of sources", 3},
    {"json", KEY_JSON, "FILE", 0, "write the same, and the machine", 3},
    {"plot", KEY_PLOT, "FILE.svg", 0, "draw the speeds in percent of a copy (needs gnuplot)", 3},
    {0},
};

static const char doc[] =
    "Times the reduction of 2, 4 and 8 sources to one result on one core.\v"
    "GB/s counts the bytes that are read and written. \"copy\" is memcpy() in as much memory as "
    "all sources and the result take, measured in turns with them.";

/* "plain, avx2" */
static void list_levels(char *text, size_t room)
{
    const char *const *levels = kernel_levels();
    size_t used = 0;

    text[0] = 0;
    for (int i = 0; levels[i] && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? ", " : "", levels[i]);
}

static void set_level(struct argp_state *state, struct kernels_options *options, const char *arg)
{
    char known[128];

    options->level = strcmp(arg, "all") ? arg : NULL;
    for (int i = 0; options->level && kernel_levels()[i]; i++)
        if (!strcmp(kernel_levels()[i], arg))
            return;
    list_levels(known, sizeof(known));
    if (options->level)
        argp_error(state, "this machine has no level '%s', but %s", arg, known);
}

static void set_words(struct argp_state *state, struct kernels_options *options, int key, char *arg)
{
    if (key == KEY_LEVEL)
        set_level(state, options, arg);
    if (key == KEY_OP && (options->op = pattern_op_find(arg)) == RONDO_OPS)
        argp_error(state, "there is no operation '%s'", arg);
    if (key != KEY_DTYPE)
        return;
    options->type = pattern_type_find(arg);
    if (options->type == RONDO_TYPES && strcmp(arg, "all"))
        argp_error(state, "there is no type '%s'; `rondo bench --help` names them", arg);
}

static void finish(struct argp_state *state, const struct kernels_options *options)
{
    if (options->type != RONDO_TYPES && !pattern_op_has_type(options->op, options->type))
        argp_error(state, "%s is for integers only, not for %s", pattern_op_name(options->op),
                   pattern_type_name(options->type));
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct kernels_options *options = state->input;

    switch (key) {
    case KEY_DTYPE:
    case KEY_OP:
    case KEY_LEVEL:
        set_words(state, options, key, arg);
        return 0;
    case 'b':
        if (bench_sizes_parse(arg, 2, &options->sizes))
            argp_error(state, "--bytes is LO:HI, a size or a comma list, not '%s'", arg);
        return 0;
    case KEY_SECONDS:
        options->seconds = argument_real(state, "--seconds", arg, 0);
        return 0;
    case KEY_CSV:
        options->csv = arg;
        return 0;
    case KEY_JSON:
        options->json = arg;
        return 0;
    case KEY_PLOT:
        options->plot = arg;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is not an option of the kernels", arg);
        return EINVAL;
    case ARGP_KEY_END:
        finish(state, options);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* One that stays in a cache, and one of which three are more than the last cache holds. */
static void default_sizes(struct bench_options *sizes)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t large = cache > 0 ? (size_t)cache / 2 : 2 * LARGE_MIN;

    large = large < LARGE_MIN ? LARGE_MIN : large > LARGE_MAX ? LARGE_MAX : large;
    sizes->sizes[sizes->size_count++] = IN_CACHE;
    sizes->sizes[sizes->size_count++] = large;
}

static bool is_wanted(const struct kernels_options *options, const char *level, int type)
{
    return (!options->level || !strcmp(options->level, level)) &&
           (options->type == RONDO_TYPES || (int)options->type == type) &&
           pattern_op_has_type(options->op, (rondo_type)type);
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
    kernels_print_head(options, bytes);
    for (int i = 0; kernel_levels()[i]; i++)
        for (int type = 0; type < RONDO_TYPES; type++) {
            struct kernels_row *row = &result->rows[result->count];

            if (!is_wanted(options, kernel_levels()[i], type) ||
                !kernel_use_level(kernel_levels()[i]))
                continue;
            row->level = kernel_levels()[i];
            row->type = (rondo_type)type;
            row->bytes = bytes;
            kernels_time(options, arena, row);
            kernels_print_row(row);
            result->count++;
        }
    free(arena);
    return 0;
}

static int run(const struct kernels_options *options, int levels)
{
    size_t most = (size_t)options->sizes.size_count * (size_t)levels * RONDO_TYPES;
    struct kernels_result result = {.options = options, .rows = calloc(most, sizeof(*result.rows))};
    int failed = 0;

    if (!result.rows) {
        fprintf(stderr, "rondo bench kernels: out of memory\n");
        return -1;
    }
    for (int i = 0; !failed && i < options->sizes.size_count; i++)
        failed = run_size(&result, options->sizes.sizes[i]);
    if (!failed && options->csv)
        failed |= kernels_csv_write(&result, options->csv);
    if (!failed && options->json)
        failed |= kernels_json_write(&result, options->json);
    if (!failed && options->plot)
        failed |= kernels_plot_write(&result, options->plot);
    free(result.rows);
    return failed;
}

int bench_kernels(int argc, char **argv)
{
    static const struct argp argp = {table, parse_option, "", doc, NULL, NULL, NULL};
    static char name[] = "rondo bench kernels";
    static struct kernels_options options = {.type = RONDO_TYPES, .op = RONDO_SUM, .seconds = 0.05};
    int levels = 0;

    argv[0] = name;
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    if (options.sizes.size_count == 0)
        default_sizes(&options.sizes);
    while (kernel_levels()[levels])
        levels++;
    return run(&options, levels) ? 1 : 0;
}
