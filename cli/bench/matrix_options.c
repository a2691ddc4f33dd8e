/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix_options.c - the command line of `rondo bench matrix`. */
#include "cli/bench/matrix.h"

#include "bench/pattern.h"
#include "cli/argument.h"

#include <limits.h>
#include <string.h>

enum {
    KEY_COLLECTIVES = 256,
    KEY_MEMORY,
    KEY_PLACE,
    KEY_DTYPE,
    KEY_VS,
    KEY_LIMIT,
    KEY_COLD,
    KEY_REWRITE,
    KEY_PASSES,
    KEY_ROUNDS,
    KEY_WARMUP,
    KEY_SECONDS,
    KEY_CSV,
    KEY_PLOT
};

#define COLLECTIVES "all_reduce,reduce,broadcast,all_gather,reduce_scatter"
#define SIZES       "8,64,512,4K,16K,64K,256K,1M,4M,16M,64M"

static const struct argp_option table[] = {
    {"ranks", 'n', "N", 0, "start N ranks here (2)", 1},
    {"collectives", KEY_COLLECTIVES, "LIST", 0, "comma list (" COLLECTIVES ")", 1},
    {"memory", KEY_MEMORY, "KIND", 0, "host, shared or both (both)", 1},
    {"place", KEY_PLACE, "WHERE", 0, "of the result: out (of place), in (place) or both (both)", 1},
    {"bytes", 'b', "SIZES", 0, "LO:HI, one size, or a comma list (" SIZES ")", 1},
    {"dtype", KEY_DTYPE, "TYPE", 0, "element type (float32)", 1},
    {"vs", KEY_VS, "LIST", 0, "compare with openmpi, mpich, gloo (those that are installed)", 2},
    {"limit", KEY_LIMIT, NULL, 0, "and with what the machine can do", 2},
    {"cold", KEY_COLD, NULL, 0, "walk through more memory than the caches hold", 3},
    {"rewrite", KEY_REWRITE, NULL, 0, "every rank writes its input anew before every call", 3},
    {"passes", KEY_PASSES, "N", 0, "times that all is measured; medians count (2)", 3},
    {"rounds", KEY_ROUNDS, "N", 0, "times that libraries take turns at a size, in a pass (4)", 3},
    {"warmup", KEY_WARMUP, "N", 0, "calls before the clock runs (2)", 3},
    {"seconds", KEY_SECONDS, "S", 0, "time per size, library and pass (0.04)", 3},
    {"csv", KEY_CSV, "FILE", 0, "write a line per cell", 4},
    {"plot", KEY_PLOT, "FILE.svg", 0, "draw the cells (needs gnuplot)", 4},
    {0},
};

static const char doc[] =
    "Measures collectives beside other libraries and says in which cells Rondo is the fastest.\v"
    "A cell is a collective of a size, on one kind of memory, in or out of place; its figure is "
    "the time of the best other library over that of Rondo.";

/* What the parser keeps besides the options. */
struct parse {
    struct matrix_options *options;
    char *peers;
    bool limit;
};

static void set_collectives(struct argp_state *state, struct matrix_options *options, char *list)
{
    char *name;

    memset(options->collectives, 0, sizeof(options->collectives));
    while ((name = strsep(&list, ","))) {
        enum bench_collective collective = bench_collective_find(name);

        if (collective == BENCH_COLLECTIVES || collective == BENCH_BARRIER)
            argp_error(state, "there is no collective '%s' that has a size", name);
        options->collectives[collective] = true;
    }
}

/* One of two words, or "both". */
static void set_pair(struct argp_state *state, bool *pair, const char *first, const char *second,
                     const char *arg)
{
    pair[0] = !strcmp(arg, first) || !strcmp(arg, "both");
    pair[1] = !strcmp(arg, second) || !strcmp(arg, "both");
    if (!pair[0] && !pair[1])
        argp_error(state, "'%s' is neither %s, %s nor both", arg, first, second);
}

static void finish(struct argp_state *state, struct parse *parse)
{
    static const char *const peers[] = {"openmpi", "mpich", "gloo"};
    struct bench_options *bench = &parse->options->bench;

    bench->libraries[bench->library_count++] = "rondo";
    if (parse->peers)
        bench_peers_parse(state, parse->peers, bench);
    for (int i = 0; !parse->peers && i < (int)(sizeof(peers) / sizeof(peers[0])); i++)
        if (bench_worker_is_there(peers[i]))
            bench->libraries[bench->library_count++] = peers[i];
    if (parse->limit)
        bench->libraries[bench->library_count++] = "limit";
}

static error_t parse_numbers(int key, char *arg, struct argp_state *state)
{
    const struct parse *parse = state->input;
    struct bench_options *bench = &parse->options->bench;

    switch (key) {
    case 'n':
        bench->ranks = (int)argument_whole(state, "-n", arg, 1, INT_MAX);
        return 0;
    case KEY_PASSES:
        parse->options->passes = (int)argument_whole(state, "--passes", arg, 1, MATRIX_PASSES_MAX);
        return 0;
    case KEY_ROUNDS:
        bench->rounds = (int)argument_whole(state, "--rounds", arg, 1, INT_MAX);
        return 0;
    case KEY_WARMUP:
        bench->warmup = (int)argument_whole(state, "--warmup", arg, 0, INT_MAX);
        return 0;
    case KEY_SECONDS:
        bench->seconds = argument_real(state, "--seconds", arg, 0);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_words(int key, char *arg, struct argp_state *state)
{
    const struct parse *parse = state->input;
    struct matrix_options *options = parse->options;

    switch (key) {
    case KEY_COLLECTIVES:
        set_collectives(state, options, arg);
        return 0;
    case KEY_MEMORY:
        set_pair(state, options->memories, "host", "shared", arg);
        return 0;
    case KEY_PLACE:
        set_pair(state, options->places, "out", "in", arg);
        return 0;
    case 'b':
        if (bench_sizes_parse(arg, 2, &options->bench))
            argp_error(state, "--bytes is LO:HI, a size or a comma list, not '%s'", arg);
        return 0;
    case KEY_DTYPE:
        options->bench.call.type = pattern_type_find(arg);
        if (options->bench.call.type == RONDO_TYPES)
            argp_error(state, "there is no type '%s'; `rondo bench --help` names them", arg);
        return 0;
    default:
        return parse_numbers(key, arg, state);
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct parse *parse = state->input;
    struct bench_options *bench = &parse->options->bench;

    switch (key) {
    case KEY_VS:
        parse->peers = arg;
        return 0;
    case KEY_LIMIT:
        parse->limit = true;
        return 0;
    case KEY_COLD:
        bench->cold = true;
        return 0;
    case KEY_REWRITE:
        bench->rewrite = true;
        return 0;
    case KEY_CSV:
        bench->csv = arg;
        return 0;
    case KEY_PLOT:
        bench->plot = arg;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is no option of the matrix; --collectives takes names", arg);
        return EINVAL;
    case ARGP_KEY_END:
        finish(state, parse);
        return 0;
    default:
        return parse_words(key, arg, state);
    }
}

void matrix_options_parse(int argc, char **argv, struct matrix_options *ret_options)
{
    static const struct argp argp = {table, parse_option, "", doc, NULL, NULL, NULL};
    static char name[] = "rondo bench matrix";
    struct parse parse = {.options = ret_options};
    char collectives[] = COLLECTIVES;

    memset(ret_options, 0, sizeof(*ret_options));
    set_collectives(NULL, ret_options, collectives);
    for (int i = 0; i < 2; i++)
        ret_options->memories[i] = ret_options->places[i] = true;
    bench_sizes_parse(SIZES, 2, &ret_options->bench);
    ret_options->passes = 2;
    ret_options->bench.ranks = 2;
    ret_options->bench.call.type = RONDO_FLOAT32;
    ret_options->bench.rounds = 4;
    ret_options->bench.warmup = 2;
    ret_options->bench.seconds = 0.04;
    ret_options->bench.timeout = -1;
    argv[0] = name;
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &parse);
}
