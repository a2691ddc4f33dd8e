/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - the command line of `rondo bench`, and what its subcommands have in common. */
#include "cli/bench/report.h"
#include "cli/bench/steps.h"
#include "cli/bench/workers.h"

#include "base/setting.h"
#include "bench/pattern.h"
#include "collectives/algorithm.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sizes as people write them -------------------------------------------------------------- */

/* A size; half of the address space at most, and no text that is longer than any. */
static int parse_size(const char *text, size_t *ret_bytes)
{
    return strlen(text) >= 32 || setting_parse_size(text, ret_bytes) || *ret_bytes > SIZE_MAX / 2
               ? -1
               : 0;
}

static int append(struct bench_options *options, size_t bytes)
{
    if (options->size_count == BENCH_SIZES_MAX || bytes == 0)
        return -1;
    options->sizes[options->size_count++] = bytes;
    return 0;
}

static int parse_range(const char *from, const char *to, double factor,
                       struct bench_options *options)
{
    size_t low, high;

    if (parse_size(from, &low) || parse_size(to, &high) || high < low || low == 0 || !(factor > 1))
        return -1;
    for (double bytes = (double)low; bytes <= (double)high; bytes *= factor)
        if (append(options, (size_t)bytes))
            return -1;
    return 0;
}

int bench_sizes_parse(const char *text, double factor, struct bench_options *options)
{
    char *copy = strdup(text), *rest = copy, *word, *colon;
    int failed = copy ? 0 : -1;
    size_t bytes;

    options->size_count = 0;
    colon = copy ? strchr(copy, ':') : NULL;
    if (colon) {
        *colon = 0;
        failed = parse_range(copy, colon + 1, factor, options);
        rest = NULL;
    }
    while (!failed && (word = strsep(&rest, ",")))
        failed = parse_size(word, &bytes) || append(options, bytes) ? -1 : 0;
    free(copy);
    return failed;
}

/* ---- Options that several commands have ------------------------------------------------------ */

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

/* The libraries of others are in a row. */
static const char *peer_name(int i)
{
    return BENCH_OPENMPI + i < BENCH_BASE ? bench_kinds[BENCH_OPENMPI + i].name : NULL;
}

void bench_add_peers(const struct argp_state *state, struct bench_options *options)
{
    char *list = options->peers;
    char *name;

    while (list && (name = strsep(&list, ","))) {
        enum bench_library_id library = (enum bench_library_id)(
            BENCH_OPENMPI + argument_name(state, "library for --vs", peer_name, name));

        for (int i = 0; i < options->library_count; i++)
            if (options->libraries[i] == library)
                argp_error(state, "--vs names '%s' twice", name);
        if (library == BENCH_NCCL && options->memory != BENCH_MEMORY_CUDA)
            argp_error(state, "NCCL knows device memory only: --vs nccl needs --memory cuda");
        options->libraries[options->library_count++] = library;
    }
}

/* ---- Those of `rondo bench` alone ------------------------------------------------------------ */

static const char default_bytes[] = "8:64M";

/* The command line as it is read. */
struct line {
    struct bench_options options;
    char collectives[512];
    struct bench_runs *runs;
};

/* Several operands are a list, too. */
static void take_collective(struct argp_state *state, void *input, char *text)
{
    struct line *line = input;
    size_t used = strlen(line->collectives);

    snprintf(line->collectives + used, sizeof(line->collectives) - used, "%s%s", used ? "," : "",
             text);
    line->options.lists[BENCH_BY_COLLECTIVE] = line->collectives;
}

static void take_transport(struct argp_state *state, void *input, char *text)
{
    bench_put_setting(state, "RONDO_TRANSPORT", text);
}

#define SETS(member)                ARGUMENT_SETS(struct bench_options, member)
#define LIST(dimension)             SETS(lists[dimension])
#define NUMBER(member, least, most) ARGUMENT_NUMBER(struct bench_options, member, least, most)

static const struct argument table[] = {
    {"ranks", 'n', "N", 1, LIST(BENCH_BY_RANKS),
     "start N ranks here, or runs of 2,4 or 2:8 (without it: a launcher has)"},
    {"bytes", 'b', "SIZES", 1, SETS(bytes),
     "LO:HI, one size, or a comma list; K, M, G are powers of 1024 (8:64M)"},
    {NULL, 'e', "HI", 1, SETS(most_bytes), "-b LO -e HI is -b LO:HI, as in nccl-tests"},
    {"factor", 'f', "F", 1, NUMBER(factor, 1.001, 0), "LO:HI goes up by this factor (2)"},
    {"dtype", 'd', "TYPE", 1, LIST(BENCH_BY_TYPE), "element type, a list, or all (float32)"},
    {"op", 'o', "OP", 1, LIST(BENCH_BY_OP),
     "sum, prod, min, max, avg, band, bor, bxor, a list, or all (sum)"},
    {"root", 0, "R", 1, NUMBER(call.root, 0, INT_MAX), "root of rooted collectives (0)"},
    {"in-place", 0, NULL, 1, SETS(call.in_place), "output and input share memory"},
    {"memory", 0, "KIND", 1, LIST(BENCH_BY_MEMORY),
     "host (malloc), shared (rondo_mem_alloc), registered (malloc and rondo_comm_register; other "
     "libraries: host), or cuda (of GPUs); or a list"},
    {"algo", 0, "NAME", 1, LIST(BENCH_BY_ALGORITHM),
     "Rondo's algorithm: auto, ring, tree, ..., file:F for the plan in F (JSON, or XML of MSCCL), "
     "a list, or all (auto)"},
    {"set", 0, "NAME=VALUES", 1, ARGUMENT_CALLS(bench_take_set),
     "a setting of Rondo and its values, such as RONDO_SLOTS=2,8: a run for each"},
    {"deterministic", 0, NULL, 1, SETS(deterministic), "Rondo sums in one fixed order"},
    {"threads", 0, NULL, 1, SETS(threads), "Rondo's and NCCL's ranks are threads of one process"},
    {"vs", 0, "LIST", 2, SETS(peers),
     "compare with openmpi, mpich, gloo, or nccl (comma list), interleaved in one sweep"},
    {"nccl", 0, "FILE", 2, SETS(nccl), "the NCCL that --vs loads (libnccl.so.2)"},
    {"base", 0, "FILE", 2, SETS(base),
     "compare with another build of Rondo, its librondo.so.0; `rondo bench compare` judges"},
    {"only-peers", 0, NULL, 2, SETS(only_peers), "leave Rondo out; compare with the first of --vs"},
    {"limit", 0, NULL, 2, SETS(limit), "compare with what the machine can do for that many ranks"},
    {"cold", 0, NULL, 3, SETS(cold), "walk through more memory than the caches hold"},
    {"rewrite", 0, NULL, 3, SETS(rewrite),
     "every rank writes its input anew before every call (not timed)"},
    {"buffers", 0, "N", 3, NUMBER(buffers, 1, 65536),
     "calls take turns on N buffers each for input and output (1)"},
    {"overlap", 0, NULL, 3, SETS(overlap),
     "calls go on beside computing that takes as long as the slowest library's call"},
    {"communicators", 0, "N", 3, NUMBER(communicators, 1, BENCH_LINES_MAX - 1),
     "call on N communicators at once; a time is that of all, divided by N (1)"},
    {"trace", 0, "FILE", 3, SETS(trace_file),
     "make the calls of a file, such as a model's gradients bucket by bucket"},
    {"graph", 0, NULL, 3, SETS(graph), "cuda: calls are recorded in graphs, which are launched"},
    {"blocking", 0, NULL, 3, SETS(blocking), "cuda: each call returns when it is done"},
    {"iterations", 0, "N", 3, NUMBER(iterations, 1, INT_MAX),
     "calls per batch and round (as many as --seconds allows)"},
    {"warmup", 'w', "N", 3, NUMBER(warmup, 0, INT_MAX), "calls before the clock runs (5)"},
    {"check", 'c', "N", 3, NUMBER(check, 0, INT_MAX), "0: do not count wrong values (1)"},
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
    {"format", 0, "FORMAT", 4,
     ARGUMENT_WORDS(struct bench_options, format,
                    ((const char *const[]){"table", "nccl", "osu", NULL})),
     "print a table, as nccl-tests does (out of place and in place), or as the OSU benchmarks do"},
    {"watch", 0, NULL, 4, SETS(watch), "redraw the row that is being measured, in a terminal"},
    {"csv", 0, "FILE", 4, SETS(csv), "write a line per library and size; - is stdout"},
    {"json", 0, "FILE", 4, SETS(json), "write results, options, machine and versions; - is stdout"},
    {"plot", 0, "FILE.svg", 4, SETS(plot),
     "draw time and bandwidth over size, and what the cost model predicts (needs gnuplot)"},
    {0},
};

static const char doc[] =
    "Times a collective, checks every element of its result, compares with other libraries. "
    "`rondo bench kernels` times the arithmetic alone.\v"
    "Options that take lists make a run of every combination.\n\n"
    "COLLECTIVE is all, a list, or all_reduce, reduce, broadcast, all_gather, reduce_scatter, "
    "all_to_all, gather, scatter, barrier, or sendrecv (everybody sends to its right and receives "
    "from its left). Of pairs of ranks: latency (a message there and one back; half the "
    "time), bandwidth (64 messages in a row one way), bidirectional (both ways). Of "
    "communicators: dup (over the ranks of one), open (the ranks have to meet), and their "
    "memory. With a count for each rank, which are equal here: all_gather_v, reduce_scatter_v, "
    "all_to_all_v.\n\n"
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
    for (int i = 0; i < options->library_count; i++)
        if (options->libraries[i] == BENCH_MPICH || options->libraries[i] == BENCH_LIMIT)
            argp_error(state, "with --hosts '%s' would measure one host only: leave it out",
                       bench_kinds[options->libraries[i]].name);
}

static void check_memory(const struct argp_state *state, const struct bench_options *options)
{
    bool cuda = options->memory == BENCH_MEMORY_CUDA;

    for (int i = 0; i < options->library_count; i++) {
        const struct bench_kind *kind = &bench_kinds[options->libraries[i]];

        if (cuda && !kind->on_devices)
            argp_error(state, "on device memory --vs knows nccl only, not '%s'", kind->name);
    }
    if (!cuda && (options->graph || options->blocking))
        argp_error(state, "--graph and --blocking need --memory cuda");
    if (options->graph && (options->blocking || options->rewrite || options->cold))
        argp_error(state, "--graph goes with none of --blocking, --rewrite and --cold");
    if (options->graph && options->buffers > BENCH_GRAPH_CALLS)
        argp_error(state, "--graph repeats %d calls, on as many buffers: --buffers %d is too many",
                   BENCH_GRAPH_CALLS, options->buffers);
}

static void check_call(const struct argp_state *state, const struct bench_options *options)
{
    const struct bench_call *call = &options->call;

    if (bench_collective_reduces(call->collective))
        bench_check_op(state, options);
    if (call->in_place && !bench_collective_has_in_place(call->collective))
        argp_error(state, "%s cannot be called in place", bench_collective_name(call->collective));
    if (options->ranks == 1 && bench_collective_is_of_pairs(call->collective))
        argp_error(state, "%s is between pairs of ranks; it takes two",
                   bench_collective_name(call->collective));
    if (options->ranks && call->root >= options->ranks)
        argp_error(state, "--root %d is not among the %d ranks", call->root, options->ranks);
    if (!bench_has_elements(options))
        argp_error(state, "--bytes gives less than one element per rank; ask for at least "
                          "ranks * element size");
    if (call->algorithm[0] && algorithm_find(call->algorithm)->given) {
        const struct given *given = algorithm_find(call->algorithm)->given;

        argp_error(state, "%s is a plan of %s over %d ranks with root %d, and of nothing else",
                   call->algorithm, rondo_collective_name(given->plans[0]->collective), given->size,
                   given->root);
    }
    if (call->algorithm[0])
        argp_error(state, "%s has no form of %s; `rondo explain --list` has what there is",
                   call->algorithm, bench_collective_name(call->collective));
}

/* By its full name: nothing else of that name will do, here or where the ranks run. */
static void add_base(const struct argp_state *state, struct bench_options *options)
{
    char *path = options->base ? realpath(options->base, NULL) : NULL;

    if (!options->base)
        return;
    if (!path)
        argp_error(state, "--base is the file of a librondo.so.0; there is no %s", options->base);
    if (options->only_peers)
        argp_error(state, "--base compares with Rondo, which --only-peers leaves out");
    options->base = path;
    options->libraries[options->library_count++] = BENCH_BASE;
}

/* The question of a trace is named by its file. */
static void read_trace(const struct argp_state *state, struct bench_options *options)
{
    static struct bench_trace trace;

    if (!options->trace_file)
        return;
    if (bench_trace_read(options->trace_file, &trace))
        argp_failure(state, 2, 0, "--trace wants a file of calls; docs/benchmarks.md has its form");
    options->trace = &trace;
    if (!options->lists[BENCH_BY_COLLECTIVE])
        options->lists[BENCH_BY_COLLECTIVE] = bench_collective_name(BENCH_TRACE);
}

/* -b LO -e HI, as nccl-tests has them, become LO:HI. */
static void join_sizes(const struct argp_state *state, struct bench_options *options)
{
    static char range[80];

    if (!options->most_bytes)
        return;
    if (strpbrk(options->bytes, ",:") && options->bytes != default_bytes)
        argp_error(state, "-e needs -b with one size, the smallest, not '%s'", options->bytes);
    snprintf(range, sizeof(range), "%.*s:%.32s", (int)strcspn(options->bytes, ":"), options->bytes,
             options->most_bytes);
    options->bytes = range;
}

static void finish(struct argp_state *state, void *input)
{
    struct line *line = input;
    struct bench_options *options = &line->options;

    read_trace(state, options);
    if (!options->lists[BENCH_BY_COLLECTIVE])
        argp_error(state, "name one collective or several, such as all_reduce");
    join_sizes(state, options);
    bench_read_sizes(state, options);
    if (options->format == BENCH_NCCL_TESTS && options->call.in_place)
        argp_error(state, "--format nccl has both out of place and in place; leave --in-place out");
    if (!options->only_peers)
        options->libraries[options->library_count++] = BENCH_RONDO;
    add_base(state, options);
    bench_lists_expand(state, options, line->runs);
    if (!line->runs->count) /* says why, of the last one */
        check_call(state, options);
    for (int i = 0; i < line->runs->count; i++) {
        struct bench_options *run = &line->runs->list[i];

        run->peers = options->peers ? strdup(options->peers) : NULL;
        bench_add_peers(state, run);
        free(run->peers);
        run->peers = options->peers;
        if (run->library_count == 0)
            argp_error(state, "--only-peers needs --vs");
        if (run->limit)
            run->libraries[run->library_count++] = BENCH_LIMIT;
        check_hosts(state, run);
        check_memory(state, run);
        bench_steps_check(state, run);
        bench_format_check(state, run);
    }
}

void bench_options_parse(int argc, char **argv, struct bench_runs *ret_runs)
{
    static const struct argument_command command = {.name = "rondo bench",
                                                    .operands = "COLLECTIVE...",
                                                    .doc = doc,
                                                    .table = table,
                                                    .operand = take_collective,
                                                    .finish = finish};
    static struct line line;

    line = (struct line){.options = {.call.type = RONDO_FLOAT32,
                                     .bytes = default_bytes,
                                     .factor = 2,
                                     .warmup = 5,
                                     .check = 1,
                                     .rounds = 5,
                                     .communicators = 1,
                                     .buffers = 1,
                                     .seconds = MEASURE_SIZE,
                                     .timeout = -1},
                         .runs = ret_runs};
    argument_parse(&command, argc, argv, &line);
}
