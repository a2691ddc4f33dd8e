/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - the command line of `rondo bench`. */
#include "cli/bench/options.h"

#include "bench/pattern.h"
#include "cli/argument.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_VS = 256,
    KEY_ONLY_PEERS,
    KEY_LIMIT,
    KEY_CSV,
    KEY_JSON,
    KEY_PLOT,
    KEY_MEMORY,
    KEY_ALGO,
    KEY_DTYPE,
    KEY_OP,
    KEY_ROOT,
    KEY_IN_PLACE,
    KEY_COLD,
    KEY_REWRITE,
    KEY_ITERATIONS,
    KEY_WARMUP,
    KEY_FACTOR,
    KEY_THREADS,
    KEY_ROUNDS,
    KEY_SECONDS,
    KEY_DETERMINISTIC,
    KEY_TIMEOUT,
    KEY_TRANSPORT,
    KEY_HOSTS,
    KEY_ENTER,
    KEY_MEET,
    KEY_INTERFACE,
    KEY_GRAPH,
    KEY_BLOCKING,
    KEY_NCCL
};

static const struct argp_option table[] = {
    {"ranks", 'n', "N", 0, "start N ranks here (without it: a launcher has)", 1},
    {"bytes", 'b', "SIZES", 0,
     "LO:HI, one size, or a comma list; K, M, G are powers of 1024 (8:64M)", 1},
    {"factor", KEY_FACTOR, "F", 0, "LO:HI goes up by this factor (2)", 1},
    {"dtype", KEY_DTYPE, "TYPE", 0, "element type (float32)", 1},
    {"op", KEY_OP, "OP", 0, "sum, prod, min, max, avg, band, bor, bxor (sum)", 1},
    {"root", KEY_ROOT, "R", 0, "root of rooted collectives (0)", 1},
    {"in-place", KEY_IN_PLACE, NULL, 0, "output and input share memory", 1},
    {"memory", KEY_MEMORY, "KIND", 0,
     "host (malloc), shared (rondo_mem_alloc), registered (malloc and rondo_comm_register; other "
     "libraries: host), or cuda (of GPUs)",
     1},
    {"algo", KEY_ALGO, "NAME", 0, "Rondo's algorithm: auto, ring, tree, ... (auto)", 1},
    {"deterministic", KEY_DETERMINISTIC, NULL, 0, "Rondo sums in one fixed order", 1},
    {"threads", KEY_THREADS, NULL, 0, "Rondo's and NCCL's ranks are threads of one process", 1},
    {"vs", KEY_VS, "LIST", 0,
     "compare with openmpi, mpich, gloo, or nccl (comma list), interleaved in one sweep", 2},
    {"nccl", KEY_NCCL, "FILE", 0, "the NCCL that --vs loads (libnccl.so.2)", 2},
    {"only-peers", KEY_ONLY_PEERS, NULL, 0, "leave Rondo out; compare with the first of --vs", 2},
    {"limit", KEY_LIMIT, NULL, 0, "compare with what the machine can do for that many ranks", 2},
    {"cold", KEY_COLD, NULL, 0, "walk through more memory than the caches hold", 3},
    {"rewrite", KEY_REWRITE, NULL, 0,
     "every rank writes its input anew before every call (not timed)", 3},
    {"graph", KEY_GRAPH, NULL, 0, "cuda: calls are recorded in graphs, which are launched", 3},
    {"blocking", KEY_BLOCKING, NULL, 0, "cuda: each call returns when it is done", 3},
    {"iterations", KEY_ITERATIONS, "N", 0,
     "calls per batch and round (as many as --seconds allows)", 3},
    {"warmup", KEY_WARMUP, "N", 0, "calls before the clock runs (5)", 3},
    {"rounds", KEY_ROUNDS, "N", 0, "times that the libraries take turns at each size (5)", 3},
    {"seconds", KEY_SECONDS, "S", 0, "time per size and library (0.2)", 3},
    {"timeout", KEY_TIMEOUT, "S", 0, "until a silent rank is an error (60)", 3},
    {"transport", KEY_TRANSPORT, "NAME", 0,
     "what links Rondo's ranks: auto, shm, tcp, verbs (RONDO_TRANSPORT)", 2},
    {"hosts", KEY_HOSTS, "K", 0, "spread the ranks evenly over K hosts; with --enter", 5},
    {"enter", KEY_ENTER, "PROGRAM", 0,
     "PROGRAM HOST ARGS... runs ARGS on host 0, 1, ...; such as ip netns exec in a script", 5},
    {"meet", KEY_MEET, "HOST:PORT", 0, "where Rondo's ranks meet, on host 0", 5},
    {"interface", KEY_INTERFACE, "NAME", 0, "the network interface that all libraries use", 5},
    {"csv", KEY_CSV, "FILE", 0, "write a line per library and size", 4},
    {"json", KEY_JSON, "FILE", 0, "write results, options, machine and versions", 4},
    {"plot", KEY_PLOT, "FILE.svg", 0, "draw time and bandwidth over size (needs gnuplot)", 4},
    {0},
};

static const char doc[] =
    "Times a collective, checks every element of its result, compares with other libraries. "
    "`rondo bench kernels` times the arithmetic alone.\v"
    "COLLECTIVE is all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, "
    "scatter, barrier, or sendrecv (everybody sends to its right and receives from its left).\n\n"
    "SIZES are those of the full vector, as in nccl-tests: for all_gather, reduce_scatter, "
    "all_to_all, gather and scatter a size is ranks * count * element size, rounded down to whole "
    "elements per rank; for the others it is count * element size.\n\n"
    "The time is that of the slowest rank: the median over batches of calls, and the minimum. "
    "algbw = size / median; busbw = algbw * 2(n-1)/n for all_reduce, (n-1)/n for those five, "
    "1 for the others.\n\n"
    "Exit status: 0 good, 1 wrong results or a failure, 2 wrong usage.";

/* What the parser keeps besides the options. */
struct parse {
    struct bench_options *options;
    const char *sizes;
    double factor;
    char *peers;
    bool only_peers, limit;
};

static void set_collective(struct argp_state *state, struct bench_options *options,
                           const char *name)
{
    options->call.collective = bench_collective_find(name);
    if (options->call.collective == BENCH_COLLECTIVES)
        argp_error(state, "there is no collective '%s'; --help lists them", name);
}

static void set_words(struct argp_state *state, struct bench_options *options, int key, char *arg)
{
    struct bench_call *call = &options->call;

    if (key == KEY_DTYPE && (call->type = pattern_type_find(arg)) == RONDO_TYPES)
        argp_error(
            state,
            "there is no type '%s'; int8, uint8, ... int64, uint64, float16, bfloat16, float32, "
            "float64, float8_e4m3, float8_e5m2 exist",
            arg);
    if (key == KEY_OP && (call->op = pattern_op_find(arg)) == RONDO_OPS)
        argp_error(state, "there is no operation '%s'", arg);
    if (key == KEY_MEMORY) {
        options->memory = bench_memory_find(arg);
        if (options->memory == BENCH_MEMORIES)
            argp_error(state, "--memory is host, shared, registered or cuda, not '%s'", arg);
    }
    if (key == KEY_ALGO) {
        if (strlen(arg) >= sizeof(call->algorithm))
            argp_error(state, "there is no algorithm '%s'; `rondo explain --list` names them", arg);
        snprintf(call->algorithm, sizeof(call->algorithm), "%s", strcmp(arg, "auto") ? arg : "");
    }
}

static error_t parse_numbers(int key, char *arg, struct argp_state *state)
{
    struct parse *parse = state->input;
    struct bench_options *options = parse->options;

    switch (key) {
    case 'n':
        options->ranks = (int)argument_whole(state, "-n", arg, 1, INT_MAX);
        return 0;
    case KEY_ROOT:
        options->call.root = (int)argument_whole(state, "--root", arg, 0, INT_MAX);
        return 0;
    case KEY_ITERATIONS:
        options->iterations = (int)argument_whole(state, "--iterations", arg, 1, INT_MAX);
        return 0;
    case KEY_WARMUP:
        options->warmup = (int)argument_whole(state, "--warmup", arg, 0, INT_MAX);
        return 0;
    case KEY_ROUNDS:
        options->rounds = (int)argument_whole(state, "--rounds", arg, 1, INT_MAX);
        return 0;
    case KEY_SECONDS:
        options->seconds = argument_real(state, "--seconds", arg, 0);
        return 0;
    case KEY_TIMEOUT:
        options->timeout = argument_real(state, "--timeout", arg, 0);
        return 0;
    case KEY_HOSTS:
        options->hosts = (int)argument_whole(state, "--hosts", arg, 1, INT_MAX);
        return 0;
    case KEY_FACTOR:
        parse->factor = argument_real(state, "--factor", arg, 1.001);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_flags(int key, struct bench_options *options)
{
    bool *flags[] = {&options->call.in_place, &options->cold,  &options->rewrite, &options->threads,
                     &options->deterministic, &options->graph, &options->blocking};
    static const int keys[] = {KEY_IN_PLACE,      KEY_COLD,  KEY_REWRITE, KEY_THREADS,
                               KEY_DETERMINISTIC, KEY_GRAPH, KEY_BLOCKING};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (key == keys[i]) {
            *flags[i] = true;
            return 0;
        }
    return ARGP_ERR_UNKNOWN;
}

static error_t parse_files(int key, char *arg, struct bench_options *options)
{
    switch (key) {
    case KEY_CSV:
        options->csv = arg;
        return 0;
    case KEY_JSON:
        options->json = arg;
        return 0;
    case KEY_PLOT:
        options->plot = arg;
        return 0;
    case KEY_NCCL:
        options->nccl = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

void bench_peers_parse(const struct argp_state *state, char *list, struct bench_options *options)
{
    static const char known[] = " openmpi mpich gloo nccl ";
    char *name;

    while (list && (name = strsep(&list, ","))) {
        char word[16];

        if (snprintf(word, sizeof(word), " %s ", name) >= (int)sizeof(word) || !strstr(known, word))
            argp_error(state, "--vs knows openmpi, mpich, gloo and nccl, not '%s'", name);
        for (int i = 0; i < options->library_count; i++)
            if (!strcmp(options->libraries[i], name))
                argp_error(state, "--vs names '%s' twice", name);
        if (!strcmp(name, "nccl") && options->memory != BENCH_MEMORY_CUDA)
            argp_error(state, "NCCL knows device memory only: --vs nccl needs --memory cuda");
        options->libraries[options->library_count++] = name;
    }
}

static void set_libraries(struct argp_state *state, struct parse *parse)
{
    struct bench_options *options = parse->options;

    if (!parse->only_peers)
        options->libraries[options->library_count++] = "rondo";
    bench_peers_parse(state, parse->peers, options);
    if (options->library_count == 0)
        argp_error(state, "--only-peers needs --vs");
    if (parse->limit)
        options->libraries[options->library_count++] = "limit";
}

static error_t parse_hosts(int key, char *arg, struct bench_options *options)
{
    switch (key) {
    case KEY_TRANSPORT:
        setenv("RONDO_TRANSPORT", arg, 1);
        return 0;
    case KEY_ENTER:
        options->enter = arg;
        return 0;
    case KEY_MEET:
        options->meet = arg;
        return 0;
    case KEY_INTERFACE:
        options->interface = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void check_hosts(const struct argp_state *state, const struct bench_options *options)
{
    if (!options->hosts && !options->enter)
        return;
    if (!options->hosts || !options->enter || !options->meet)
        argp_error(state, "--hosts, --enter and --meet go together");
    if (!options->ranks || options->ranks % options->hosts || options->threads)
        argp_error(state, "--hosts wants -n to be a multiple of it, and no --threads");
}

static void check_memory(const struct argp_state *state, const struct bench_options *options)
{
    bool cuda = options->memory == BENCH_MEMORY_CUDA;

    for (int i = 0; i < options->library_count; i++) {
        const char *name = options->libraries[i];

        if (cuda && strcmp(name, "nccl") && strcmp(name, "rondo") && strcmp(name, "limit"))
            argp_error(state, "on device memory --vs knows nccl only, not '%s'", name);
    }
    if (!cuda && (options->graph || options->blocking))
        argp_error(state, "--graph and --blocking need --memory cuda");
    if (options->graph && (options->blocking || options->rewrite))
        argp_error(state, "--graph goes with neither --blocking nor --rewrite");
}

/* What can only be judged when all options are known. */
static void finish(struct argp_state *state, struct parse *parse)
{
    struct bench_options *options = parse->options;
    const struct bench_call *call = &options->call;

    if (state->arg_num != 1)
        argp_error(state, "name one collective, such as all_reduce");
    if (bench_sizes_parse(parse->sizes, parse->factor, options))
        argp_error(state,
                   "--bytes is LO:HI, a size or a comma list (at most %d sizes, none of "
                   "them 0), such as 8:64M, not '%s'",
                   BENCH_SIZES_MAX, parse->sizes);
    if (bench_collective_reduces(call->collective) && !pattern_op_has_type(call->op, call->type))
        argp_error(state, "%s is for integers only, not for %s", pattern_op_name(call->op),
                   pattern_type_name(call->type));
    if (call->in_place && !bench_collective_has_in_place(call->collective))
        argp_error(state, "%s cannot be called in place", bench_collective_name(call->collective));
    if (options->ranks && call->root >= options->ranks)
        argp_error(state, "--root %d is not among the %d ranks", call->root, options->ranks);
    check_hosts(state, options);
    set_libraries(state, parse);
    check_memory(state, options);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct parse *parse = state->input;

    switch (key) {
    case 'b':
        parse->sizes = arg;
        return 0;
    case KEY_VS:
        parse->peers = arg;
        return 0;
    case KEY_ONLY_PEERS:
        parse->only_peers = true;
        return 0;
    case KEY_LIMIT:
        parse->limit = true;
        return 0;
    case KEY_DTYPE:
    case KEY_OP:
    case KEY_MEMORY:
    case KEY_ALGO:
        set_words(state, parse->options, key, arg);
        return 0;
    case ARGP_KEY_ARG:
        set_collective(state, parse->options, arg);
        return 0;
    case ARGP_KEY_END:
        finish(state, parse);
        return 0;
    default:
        if (!parse_flags(key, parse->options) || !parse_files(key, arg, parse->options) ||
            !parse_hosts(key, arg, parse->options))
            return 0;
        return parse_numbers(key, arg, state);
    }
}

void bench_options_parse(int argc, char **argv, struct bench_options *ret_options)
{
    static const struct argp argp = {table, parse_option, "COLLECTIVE", doc, NULL, NULL, NULL};
    static char name[] = "rondo bench";
    struct parse parse = {.options = ret_options, .sizes = "8:64M", .factor = 2};

    memset(ret_options, 0, sizeof(*ret_options));
    ret_options->call.type = RONDO_FLOAT32;
    ret_options->warmup = 5;
    ret_options->rounds = 5;
    ret_options->seconds = 0.2;
    ret_options->timeout = -1;
    argv[0] = name;
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &parse);
}
