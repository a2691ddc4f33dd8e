/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - the command line of `rondo bench`, and what its subcommands have in common. */
#include "cli/bench/options.h"

#include "base/setting.h"
#include "bench/pattern.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sizes as people write them -------------------------------------------------------------- */

/* The size that the first `length` bytes of the text are; half of the address space at most. */
static int parse_size(const char *text, size_t length, size_t *ret_bytes)
{
    char size[32];

    if (length >= sizeof(size))
        return -1;
    memcpy(size, text, length);
    size[length] = 0;
    return setting_parse_size(size, ret_bytes) || *ret_bytes > SIZE_MAX / 2 ? -1 : 0;
}

static int append(struct bench_options *options, size_t bytes)
{
    if (options->size_count == BENCH_SIZES_MAX || bytes == 0)
        return -1;
    options->sizes[options->size_count++] = bytes;
    return 0;
}

static int parse_range(size_t low, const char *text, double factor, struct bench_options *options)
{
    size_t high;

    if (parse_size(text, strlen(text), &high) || high < low || low == 0 || !(factor > 1))
        return -1;
    for (double bytes = (double)low; bytes <= (double)high; bytes *= factor)
        if (append(options, (size_t)bytes))
            return -1;
    return 0;
}

int bench_sizes_parse(const char *text, double factor, struct bench_options *options)
{
    size_t length = strcspn(text, ":,");
    size_t bytes;

    options->size_count = 0;
    if (parse_size(text, length, &bytes))
        return -1;
    if (text[length] == ':')
        return parse_range(bytes, text + length + 1, factor, options);
    while (!append(options, bytes)) {
        text += length;
        if (!*text)
            return 0;
        text++; /* the comma */
        length = strcspn(text, ",");
        if (parse_size(text, length, &bytes))
            return -1;
    }
    return -1;
}

/* ---- Options that several commands have ------------------------------------------------------ */

void bench_take_type(struct argp_state *state, void *input, char *text)
{
    struct bench_options *options = input;

    options->call.type = pattern_type_find(text);
    if (options->call.type == RONDO_TYPES)
        argp_error(state,
                   "there is no type '%s'; int8, uint8, ... int64, uint64, float16, bfloat16, "
                   "float32, float64, float8_e4m3, float8_e5m2 exist",
                   text);
}

void bench_take_op(struct argp_state *state, void *input, char *text)
{
    struct bench_options *options = input;

    options->call.op = pattern_op_find(text);
    if (options->call.op == RONDO_OPS)
        argp_error(state, "there is no operation '%s'", text);
}

void bench_check_op(const struct argp_state *state, const struct bench_options *options)
{
    const struct bench_call *call = &options->call;

    if (!pattern_op_has_type(call->op, call->type))
        argp_error(state, "%s is for integers only, not for %s", pattern_op_name(call->op),
                   pattern_type_name(call->type));
}

void bench_read_sizes(const struct argp_state *state, struct bench_options *options)
{
    if (bench_sizes_parse(options->bytes, options->factor, options))
        argp_error(state,
                   "--bytes is LO:HI, a size or a comma list (at most %d sizes, none of "
                   "them 0), such as 8:64M, not '%s'",
                   BENCH_SIZES_MAX, options->bytes);
}

void bench_add_peers(const struct argp_state *state, struct bench_options *options)
{
    static const char known[] = " openmpi mpich gloo nccl ";
    char *list = options->peers;
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

/* ---- Those of `rondo bench` alone ------------------------------------------------------------ */

static void take_collective(struct argp_state *state, void *input, char *text)
{
    struct bench_options *options = input;

    options->call.collective = bench_collective_find(text);
    if (options->call.collective == BENCH_COLLECTIVES)
        argp_error(state, "there is no collective '%s'; --help lists them", text);
}

static void take_memory(struct argp_state *state, void *input, char *text)
{
    struct bench_options *options = input;

    options->memory = bench_memory_find(text);
    if (options->memory == BENCH_MEMORIES)
        argp_error(state, "--memory is host, shared, registered or cuda, not '%s'", text);
}

static void take_algorithm(struct argp_state *state, void *input, char *text)
{
    struct bench_call *call = &((struct bench_options *)input)->call;

    if (strlen(text) >= sizeof(call->algorithm))
        argp_error(state, "there is no algorithm '%s'; `rondo explain --list` names them", text);
    snprintf(call->algorithm, sizeof(call->algorithm), "%s", strcmp(text, "auto") ? text : "");
}

static void take_transport(struct argp_state *state, void *input, char *text)
{
    setenv("RONDO_TRANSPORT", text, 1);
}

#define SETS(member)                ARGUMENT_SETS(struct bench_options, member)
#define NUMBER(member, least, most) ARGUMENT_NUMBER(struct bench_options, member, least, most)

static const struct argument table[] = {
    {"ranks", 'n', "N", 1, NUMBER(ranks, 1, INT_MAX),
     "start N ranks here (without it: a launcher has)"},
    {"bytes", 'b', "SIZES", 1, SETS(bytes),
     "LO:HI, one size, or a comma list; K, M, G are powers of 1024 (8:64M)"},
    {"factor", 0, "F", 1, NUMBER(factor, 1.001, 0), "LO:HI goes up by this factor (2)"},
    {"dtype", 0, "TYPE", 1, ARGUMENT_CALLS(bench_take_type), "element type (float32)"},
    {"op", 0, "OP", 1, ARGUMENT_CALLS(bench_take_op),
     "sum, prod, min, max, avg, band, bor, bxor (sum)"},
    {"root", 0, "R", 1, NUMBER(call.root, 0, INT_MAX), "root of rooted collectives (0)"},
    {"in-place", 0, NULL, 1, SETS(call.in_place), "output and input share memory"},
    {"memory", 0, "KIND", 1, ARGUMENT_CALLS(take_memory),
     "host (malloc), shared (rondo_mem_alloc), registered (malloc and rondo_comm_register; other "
     "libraries: host), or cuda (of GPUs)"},
    {"algo", 0, "NAME", 1, ARGUMENT_CALLS(take_algorithm),
     "Rondo's algorithm: auto, ring, tree, ... (auto)"},
    {"deterministic", 0, NULL, 1, SETS(deterministic), "Rondo sums in one fixed order"},
    {"threads", 0, NULL, 1, SETS(threads), "Rondo's and NCCL's ranks are threads of one process"},
    {"vs", 0, "LIST", 2, SETS(peers),
     "compare with openmpi, mpich, gloo, or nccl (comma list), interleaved in one sweep"},
    {"nccl", 0, "FILE", 2, SETS(nccl), "the NCCL that --vs loads (libnccl.so.2)"},
    {"only-peers", 0, NULL, 2, SETS(only_peers), "leave Rondo out; compare with the first of --vs"},
    {"limit", 0, NULL, 2, SETS(limit), "compare with what the machine can do for that many ranks"},
    {"cold", 0, NULL, 3, SETS(cold), "walk through more memory than the caches hold"},
    {"rewrite", 0, NULL, 3, SETS(rewrite),
     "every rank writes its input anew before every call (not timed)"},
    {"graph", 0, NULL, 3, SETS(graph), "cuda: calls are recorded in graphs, which are launched"},
    {"blocking", 0, NULL, 3, SETS(blocking), "cuda: each call returns when it is done"},
    {"iterations", 0, "N", 3, NUMBER(iterations, 1, INT_MAX),
     "calls per batch and round (as many as --seconds allows)"},
    {"warmup", 0, "N", 3, NUMBER(warmup, 0, INT_MAX), "calls before the clock runs (5)"},
    {"rounds", 0, "N", 3, NUMBER(rounds, 1, INT_MAX),
     "times that the libraries take turns at each size (5)"},
    {"seconds", 0, "S", 3, NUMBER(seconds, 0, 0), "time per size and library (0.2)"},
    {"timeout", 0, "S", 3, NUMBER(timeout, 0, 0), "until a silent rank is an error (60)"},
    {"transport", 0, "NAME", 2, ARGUMENT_CALLS(take_transport),
     "what links Rondo's ranks: auto, shm, tcp, verbs (RONDO_TRANSPORT)"},
    {"hosts", 0, "K", 5, NUMBER(hosts, 1, INT_MAX),
     "spread the ranks evenly over K hosts; with --enter"},
    {"enter", 0, "PROGRAM", 5, SETS(enter),
     "PROGRAM HOST ARGS... runs ARGS on host 0, 1, ...; such as ip netns exec in a script"},
    {"meet", 0, "HOST:PORT", 5, SETS(meet), "where Rondo's ranks meet, on host 0"},
    {"interface", 0, "NAME", 5, SETS(interface), "the network interface that all libraries use"},
    {"csv", 0, "FILE", 4, SETS(csv), "write a line per library and size"},
    {"json", 0, "FILE", 4, SETS(json), "write results, options, machine and versions"},
    {"plot", 0, "FILE.svg", 4, SETS(plot), "draw time and bandwidth over size (needs gnuplot)"},
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

static void check_call(const struct argp_state *state, const struct bench_options *options)
{
    const struct bench_call *call = &options->call;

    if (bench_collective_reduces(call->collective))
        bench_check_op(state, options);
    if (call->in_place && !bench_collective_has_in_place(call->collective))
        argp_error(state, "%s cannot be called in place", bench_collective_name(call->collective));
    if (options->ranks && call->root >= options->ranks)
        argp_error(state, "--root %d is not among the %d ranks", call->root, options->ranks);
}

static void finish(struct argp_state *state, void *input)
{
    struct bench_options *options = input;

    if (state->arg_num != 1)
        argp_error(state, "name one collective, such as all_reduce");
    bench_read_sizes(state, options);
    check_call(state, options);
    check_hosts(state, options);
    if (!options->only_peers)
        options->libraries[options->library_count++] = "rondo";
    bench_add_peers(state, options);
    if (options->library_count == 0)
        argp_error(state, "--only-peers needs --vs");
    if (options->limit)
        options->libraries[options->library_count++] = "limit";
    check_memory(state, options);
}

void bench_options_parse(int argc, char **argv, struct bench_options *ret_options)
{
    static const struct argument_command command = {.name = "rondo bench",
                                                    .operands = "COLLECTIVE",
                                                    .doc = doc,
                                                    .table = table,
                                                    .operand = take_collective,
                                                    .finish = finish};

    *ret_options = (struct bench_options){.call.type = RONDO_FLOAT32,
                                          .bytes = "8:64M",
                                          .factor = 2,
                                          .warmup = 5,
                                          .rounds = 5,
                                          .seconds = 0.2,
                                          .timeout = -1};
    argument_parse(&command, argc, argv, ret_options);
}
