/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix_options.c - the command line of `rondo bench matrix`. */
#include "cli/bench/matrix.h"

#include <limits.h>
#include <string.h>

#define COLLECTIVES "all_reduce,reduce,broadcast,all_gather,reduce_scatter"
#define SIZES       "8,64,512,4K,16K,64K,256K,1M,4M,16M,64M"

static void take_collectives(struct argp_state *state, void *input, char *list)
{
    struct matrix_options *options = input;
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
                     const char *text)
{
    pair[0] = !strcmp(text, first) || !strcmp(text, "both");
    pair[1] = !strcmp(text, second) || !strcmp(text, "both");
    if (!pair[0] && !pair[1])
        argp_error(state, "'%s' is neither %s, %s nor both", text, first, second);
}

static void take_memory(struct argp_state *state, void *input, char *text)
{
    set_pair(state, ((struct matrix_options *)input)->memories, "host", "shared", text);
}

static void take_place(struct argp_state *state, void *input, char *text)
{
    set_pair(state, ((struct matrix_options *)input)->places, "out", "in", text);
}

static void refuse(struct argp_state *state, void *input, char *text)
{
    argp_error(state, "'%s' is no option of the matrix; --collectives takes names", text);
}

#define SETS(member)                ARGUMENT_SETS(struct matrix_options, member)
#define NUMBER(member, least, most) ARGUMENT_NUMBER(struct matrix_options, member, least, most)

static const struct argument table[] = {
    {"ranks", 'n', "N", 1, NUMBER(bench.ranks, 1, INT_MAX), "start N ranks here (2)"},
    {"collectives", 0, "LIST", 1, ARGUMENT_CALLS(take_collectives), "comma list (" COLLECTIVES ")"},
    {"memory", 0, "KIND", 1, ARGUMENT_CALLS(take_memory), "host, shared or both (both)"},
    {"place", 0, "WHERE", 1, ARGUMENT_CALLS(take_place),
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
    static const char *const peers[] = {"openmpi", "mpich", "gloo"};
    struct bench_options *bench = &((struct matrix_options *)input)->bench;

    bench_read_sizes(state, bench);
    bench->libraries[bench->library_count++] = "rondo";
    bench_add_peers(state, bench);
    for (size_t i = 0; !bench->peers && i < sizeof(peers) / sizeof(peers[0]); i++)
        if (bench_worker_is_there(peers[i]))
            bench->libraries[bench->library_count++] = peers[i];
    if (bench->limit)
        bench->libraries[bench->library_count++] = "limit";
}

void matrix_options_parse(int argc, char **argv, struct matrix_options *ret_options)
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
                                                     .seconds = 0.04,
                                                     .timeout = -1},
                                           .memories = {true, true},
                                           .places = {true, true},
                                           .passes = 2};
    take_collectives(NULL, ret_options, collectives);
    argument_parse(&command, argc, argv, ret_options);
}
