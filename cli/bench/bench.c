/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.c - `rondo bench`: start the ranks of every library, sweep over sizes, report.
 *
 *     options (options.c)
 *        -> processes (libraries.c, start.c), a rank of a library each; bench/worker.c runs in them
 *        -> commands and replies (workers.c, bench/protocol.h)
 *        -> who is measured when (sweep.c), and how long (pace.c)
 *        -> records (record.c): table, CSV and JSON, SVG (table.c, format/, files.c, plot.c)
 *
 * `rondo bench kernels` needs no ranks: kernels.c. `rondo bench matrix` makes many sweeps
 * with the same ranks: matrix/. `rondo bench compare` reads what sweeps have written: compare/.
 *
 * Under a launcher and without -n, the processes of the launcher become the ranks; rank 0 has the
 * parent at its side.
 */
#include "cli/commands.h"

#include "cli/bench/report.h"
#include "cli/bench/judge.h"
#include "cli/common/completion.h"
#include "cli/common/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Variables by which launchers tell a process its rank and the number of ranks. */
static const struct {
    const char *rank, *size;
} launchers[] = {
    {"RONDO_RANK", "RONDO_SIZE"}, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {"RANK", "WORLD_SIZE"},
};

static bool find_launcher(int *ret_rank, int *ret_size)
{
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        const char *rank = getenv(launchers[i].rank);
        const char *size = getenv(launchers[i].size);

        if (!rank || !size)
            continue;
        *ret_rank = atoi(rank);
        *ret_size = atoi(size);
        return *ret_size > 0;
    }
    return false;
}

/* These runs have the same ranks, which go on from one to the next. */
static bool has_same_ranks(const struct bench_options *a, const struct bench_options *b)
{
    return a->ranks == b->ranks && !strcmp(a->settings, b->settings) &&
           (a->memory == BENCH_MEMORY_CUDA) == (b->memory == BENCH_MEMORY_CUDA);
}

/* Puts "NAME=value NAME=value" into the environment, or takes it out again. */
static void change_settings(const char *settings, bool there)
{
    char *words = strdup(settings), *rest = words, *word;

    while ((word = strsep(&rest, " ")))
        if (strchr(word, '=')) {
            char *value = strchr(word, '=');

            *value = 0;
            if (there)
                setenv(word, value + 1, 1);
            else
                unsetenv(word);
        }
    free(words);
}

/* Finds out who the ranks are. Returns 0 if they are to be started here, or this is a launcher's
 * rank 0; else the exit status. */
static int settle_ranks(struct bench_runs *runs, bool *ret_launched)
{
    struct bench_options *options = &runs->list[0];
    int rank;
    int size;

    *ret_launched = false;
    if (options->ranks)
        return 0;
    if (!find_launcher(&rank, &size)) {
        fprintf(stderr, "rondo bench: say how many ranks to start (-n 4), or use a launcher\n");
        return 2;
    }
    if (options->libraries[0] != BENCH_RONDO || options->library_count > 1 || options->threads) {
        fprintf(stderr, "rondo bench: under a launcher there is only Rondo in processes; for "
                        "--vs, --limit and --threads give -n without a launcher\n");
        return 2;
    }
    if (options->call.root >= size) {
        fprintf(stderr, "rondo bench: --root %d is not among the %d ranks\n", options->call.root,
                size);
        return 2;
    }
    for (int i = 1; i < runs->count; i++)
        if (!has_same_ranks(options, &runs->list[i])) {
            fprintf(stderr,
                    "rondo bench: the ranks of a launcher go on from run to run: give one value "
                    "to --set, one file to --algo, memory of the host or of devices\n");
            return 2;
        }
    for (int i = 0; i < runs->count; i++)
        runs->list[i].ranks = size;
    *ret_launched = true;
    if (rank == 0)
        return 0;
    change_settings(options->settings, true);
    bench_become_worker(options);
    return 1;
}

/* This says how far a command is with its runs. */
struct progress {
    const struct bench_runs *runs;
    struct bench_sweeps sweeps;
};

static struct progress at;

/* bench_sweep_run() calls this when a size is done. */
static void row_is_known(const struct bench_sweep *sweep)
{
    struct bench_sweep *kept = &at.sweeps.list[at.sweeps.count - 1];

    bench_formats[sweep->options->format].row(sweep);
    kept->size_count++;
    bench_sweeps_keep(&at.sweeps);
    kept->size_count--;
}

/* Runs that ended early: what is done is in the files, and whole. */
static void keep_rest(const struct bench_options *options)
{
    int sizes = 0;

    for (int i = 0; i < at.sweeps.count; i++)
        sizes += at.sweeps.list[i].size_count;
    if (sizes == 0)
        return;
    if (bench_sweeps_write(&at.sweeps) == 0)
        bench_say_early("rondo bench: the sweep", sizes, "sizes", options);
}

/* Results that were wrong are those of a library; the runs go on, and others may be right. */
static void say_wrong(const struct bench_sweep *sweep)
{
    for (int library = 0; library < sweep->options->library_count; library++) {
        uint64_t wrong = bench_wrong_values(sweep, library);

        if (wrong)
            fprintf(stderr,
                    "rondo bench: %llu wrong values of %s in %s; its times at these sizes count "
                    "in no comparison\n",
                    (unsigned long long)wrong, sweep->groups[library].kind->name,
                    bench_collective_name(sweep->options->call.collective));
    }
}

static int measure(const struct bench_options *options, struct bench_group *groups)
{
    struct bench_sweep *sweep = &at.sweeps.list[at.sweeps.count++];
    int last = options->library_count - 1;
    int failed = 0;

    *sweep = (struct bench_sweep){
        .options = options, .groups = groups, .watch = options->watch ? bench_table_watch : NULL};
    if (bench_is_limit(sweep, last))
        failed = bench_limit_measure(&groups[last], options, &sweep->limit);
    if (failed)
        return failed;
    if (at.sweeps.expected > 1 && options->format == BENCH_TABLE)
        printf("%s# run %d of %d%s%s\n", at.sweeps.count > 1 ? "\n" : "", at.sweeps.count,
               at.sweeps.expected, *options->settings ? ", " : "", options->settings);
    bench_formats[options->format].begin(sweep);
    failed = bench_sweep_run(sweep, row_is_known);
    sweep->complete = !failed;
    if (failed && sweep->watch)
        printf("\n"); /* the row so far stays */
    bench_formats[options->format].end(sweep);
    say_wrong(sweep);
    return failed;
}

/* Reports are made when the groups have ended: who they were stays. */
static void keep_groups(struct bench_sweep *sweep)
{
    size_t bytes = (size_t)sweep->options->library_count * sizeof(*sweep->groups);
    struct bench_group *kept = malloc(bytes);

    if (kept)
        memcpy(kept, sweep->groups, bytes);
    sweep->groups = kept;
}

/* bench_with_groups() calls this: as many runs as have the same ranks. */
static int measure_all(struct bench_group *groups, void *context)
{
    const struct bench_options *first = context;
    int begun = at.sweeps.count;
    int failed = 0;

    for (int i = begun; !failed && i < at.runs->count; i++) {
        if (!has_same_ranks(first, &at.runs->list[i]))
            break;
        failed = measure(&at.runs->list[i], groups);
    }
    for (int i = begun; i < at.sweeps.count; i++)
        keep_groups(&at.sweeps.list[i]);
    return failed;
}

/* 0, or else: they failed, or values were wrong. */
static int measure_runs(const struct bench_runs *runs, bool launched)
{
    bool wrong = false;
    int failed = 0;

    at = (struct progress){.runs = runs, .sweeps.expected = runs->count};
    at.sweeps.list = calloc((size_t)runs->count, sizeof(*at.sweeps.list));
    if (runs->left_out)
        fprintf(stderr, "rondo bench: %d combinations are left out: there is no such call\n",
                runs->left_out);
    while (!failed && at.sweeps.list && at.sweeps.count < runs->count) {
        struct bench_options *options = &runs->list[at.sweeps.count];

        change_settings(options->settings, true);
        failed = bench_with_groups(options, launched, measure_all, options);
        change_settings(options->settings, false);
    }
    if (failed)
        keep_rest(&runs->list[0]);
    else
        failed = bench_sweeps_write(&at.sweeps);
    for (int i = 0; i < at.sweeps.count; i++) {
        wrong = wrong || at.sweeps.list[i].wrong;
        free(at.sweeps.list[i].groups);
        bench_sweep_done(&at.sweeps.list[i]);
    }
    free(at.sweeps.list);
    return failed || wrong;
}

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} subcommands[] = {
    {"kernels", "the arithmetic alone", command_bench_kernels},
    {"ddp", "trainings on several numbers of ranks", command_bench_ddp},
    {"matrix", "who is the fastest where", command_bench_matrix},
    {"compare", "is this build slower than that one?", command_bench_compare},
};

enum { SUBCOMMANDS = sizeof(subcommands) / sizeof(subcommands[0]) };

/* Prints what a shell may offer before options. */
static void offer_words(void)
{
    for (int i = 0; i < BENCH_QUESTIONS; i++)
        if (i != BENCH_TRACE)
            completion_word(bench_collective_name((enum bench_collective)i), NULL,
                            i < BENCH_COLLECTIVES ? "collective" : "question");
    for (int i = 0; i < SUBCOMMANDS; i++)
        completion_word(subcommands[i].name, NULL, subcommands[i].summary);
}

int command_bench(int argc, char **argv)
{
    struct bench_runs runs;
    bool launched;
    int status;

    for (int i = 0; argc > 1 && i < SUBCOMMANDS; i++)
        if (!strcmp(argv[1], subcommands[i].name)) {
            bench_machine_begin();
            return subcommands[i].run(argc - 1, argv + 1);
        }
    if (argc > 1 && !strcmp(argv[1], "--complete"))
        offer_words();
    bench_options_parse(argc, argv, &runs);
    status = settle_ranks(&runs, &launched);
    if (!status)
        status =
            output_begin("rondo bench", runs.list[0].csv, runs.list[0].json, runs.list[0].plot);
    if (!status && runs.list[0].watch && !isatty(STDOUT_FILENO)) {
        fprintf(stderr, "rondo bench: --watch redraws the table in a terminal, and stdout is none: "
                        "leave it out\n");
        status = 2;
    }
    if (status)
        return status;
    bench_machine_begin();
    status = measure_runs(&runs, launched) ? 1 : 0;
    free(runs.list);
    return status;
}
