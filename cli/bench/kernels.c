/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.c - the command line of `rondo bench kernels`, and what it goes through. */
#include "cli/bench/kernels.h"

#include "bench/pattern.h"
#include "kernels/kernels.h"

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
    struct kernels_options *options = input;

    options->bench.call.type = RONDO_TYPES;
    if (strcmp(text, "all"))
        bench_take_type(state, input, text);
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
    kernels_print_head(options, bytes);
    for (int i = 0; kernel_levels()[i]; i++)
        for (int type = 0; type < RONDO_TYPES; type++) {
            struct bench_record *line = result->lines[result->count];

            if (!is_wanted(options, kernel_levels()[i], type) ||
                !kernel_use_level(kernel_levels()[i]))
                continue;
            for (int k = 0; k < KERNELS_SOURCES; k++) {
                line[k] = kernels_time(options, arena, (rondo_type)type, bytes, kernels_sources[k]);
                line[k].level = kernel_levels()[i];
            }
            kernels_print_line(line);
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
    for (int i = 0; !failed && i < options->bench.size_count; i++)
        failed = run_size(&result, options->bench.sizes[i]);
    if (!failed)
        failed = kernels_write(&result);
    free(result.lines);
    return failed;
}

int bench_kernels(int argc, char **argv)
{
    static const struct argument_command command = {.name = "rondo bench kernels",
                                                    .operands = "",
                                                    .doc = doc,
                                                    .table = table,
                                                    .operand = refuse,
                                                    .finish = finish};
    static struct kernels_options options = {
        .bench = {.call = {.type = RONDO_TYPES, .op = RONDO_SUM}, .factor = 2, .seconds = 0.05}};
    int levels = 0;

    argument_parse(&command, argc, argv, &options);
    while (kernel_levels()[levels])
        levels++;
    return run(&options, levels) ? 1 : 0;
}
