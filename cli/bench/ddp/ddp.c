/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp.c - `rondo bench ddp`: trainings on 1, 2, 4 ranks in turns.
 *
 * Every round trains a few steps on each number of ranks, so that what slows the machine down for a
 * while slows all of them down; speed-ups are taken within a round. Every second round goes through
 * them backwards: what gets slower or faster all the time favours none. The batch per rank is the
 * same.
 */
#include "cli/bench/ddp/ddp.h"

#include "base/clock.h"
#include "cli/bench/workers.h"
#include "cli/commands.h"
#include "cli/common/argument.h"
#include "cli/common/output.h"
#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void take_ranks(struct argp_state *state, void *input, char *list)
{
    struct bench_ddp_options *options = input;
    char *rest = list;
    char *word;

    options->world_count = 0;
    while ((word = strtok_r(rest, ",", &rest))) {
        if (options->world_count == BENCH_DDP_WORLDS)
            argp_error(state, "-n has more than %d numbers", BENCH_DDP_WORLDS);
        options->ranks[options->world_count++] = (int)argument_whole(state, "-n", word, 1, 1024);
    }
    if (!options->world_count)
        argp_error(state, "-n is a list of numbers, as 1,2,4");
}

/* The rest of the line is for `rondo train`. */
static void take_train(struct argp_state *state, void *input, char *text)
{
    struct bench_ddp_options *options = input;

    options->train = &state->argv[state->next - 1];
    options->train_count = state->argc - state->next + 1;
    state->next = state->argc;
}

#define SETS(member)         ARGUMENT_SETS(struct bench_ddp_options, member)
#define NUMBER(member, most) ARGUMENT_NUMBER(struct bench_ddp_options, member, 1, most)

static const struct argument table[] = {
    {"ranks", 'n', "LIST", 1, ARGUMENT_CALLS(take_ranks),
     "numbers of ranks that take turns (1,2,4)"},
    {"steps", 0, "N", 1, NUMBER(steps, 1000000), "of each training (60)"},
    {"rounds", 0, "N", 1, NUMBER(bench.rounds, BENCH_DDP_ROUNDS),
     "times that all take their turn (3)"},
    {"csv", 0, "FILE", 2, SETS(bench.csv), "write a line per number of ranks"},
    {"json", 0, "FILE", 2, SETS(bench.json), "write the same, each round, and the machine"},
    {"plot", 0, "FILE.svg", 2, SETS(bench.plot), "draw speed-up and steps (needs gnuplot)"},
    {0},
};

static const char doc[] =
    "Trains the model of `rondo train` on several numbers of ranks, with the same batch per rank.\v"
    "What comes after -- goes to `rondo train`: its model, its batch, its precision.\n\n"
    "The speed of a training is that of its median step; the speed-up is the median over rounds. "
    "\"hidden\" is the part of communication that went on behind the backward pass. An efficiency "
    "above 100 % gets a warning: what it is compared with was slowed down by something else.";

/* In the child. Reports nothing but errors. */
static void become(const struct bench_ddp_options *options, int ranks, const char *json)
{
    static char program[1200], evaluate[] = "--evaluate=0", samples[] = "--samples=0";
    char size[32], steps[32], output[1200];
    char *const ours[] = {size, steps, output, NULL};
    char **list = calloc((size_t)options->train_count + 7, sizeof(*list));
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (!list || train_find("rondo bench ddp", program, sizeof(program)))
        _exit(1);
    snprintf(size, sizeof(size), "--ranks=%d", ranks);
    snprintf(steps, sizeof(steps), "--steps=%d", options->steps);
    snprintf(output, sizeof(output), "--json=%s", json);
    memcpy(list, (char *[]){program, evaluate, samples}, 3 * sizeof(*list));
    for (int i = 0; i < options->train_count; i++)
        list[3 + i] = options->train[i];
    memcpy(list + 3 + options->train_count, ours, sizeof(ours));
    dup2(null, STDOUT_FILENO);
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
    execv(program, list);
    fprintf(stderr, "rondo bench ddp: cannot start %s: %s\n", program, strerror(errno));
    _exit(1);
}

/* Progress of a training that goes well is of no interest: stderr goes to a file. */
static int run_training(const struct bench_ddp_options *options, int ranks, const char *json)
{
    FILE *errors = tmpfile();
    int status = -1;
    char line[512];
    pid_t pid = errors ? bench_fork() : -1;
    int told = bench_caught_signals();

    if (pid == 0) {
        dup2(fileno(errors), STDERR_FILENO);
        become(options, ranks, json);
    }
    while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0) {
        if (told < bench_caught_signals()) { /* each once: a second one kills its ranks at once */
            kill(pid, SIGTERM);
            told++;
        }
        doze_for(DOZE_NEWS);
    }
    if (status && !bench_caught_signal()) {
        fprintf(stderr, "rondo bench ddp: the training on %d rank%s failed\n", ranks,
                ranks == 1 ? "" : "s");
        if (errors)
            rewind(errors);
        while (errors && fgets(line, sizeof(line), errors))
            fputs(line, stderr);
    }
    if (errors)
        fclose(errors);
    return status ? -1 : 0;
}

static int read_run(const char *path, struct bench_record *ret_run)
{
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    double tokens, step, seconds, waiting, hidden, bytes;

    if (!json ||
        json_unpack_ex(json, &error, 0, "{s:F, s:F, s:F, s:F, s:F, s:F}", "tokens_per_step",
                       &tokens, "median_step_s", &step, "seconds", &seconds, "waiting", &waiting,
                       "hidden", &hidden, "bytes_per_step", &bytes)) {
        fprintf(stderr, "rondo bench ddp: the training left no figures: %s\n", error.text);
        json_decref(json);
        return -1;
    }
    *ret_run = (struct bench_record){.tokens_per_s = tokens / step,
                                     .step_s = step,
                                     .waiting = waiting / seconds,
                                     .hidden = hidden,
                                     .bytes_per_step = bytes};
    json_decref(json);
    return 0;
}

static int measure(const struct bench_ddp_options *options, const char *path,
                   struct bench_ddp_result *result)
{
    for (int round = 0; round < options->bench.rounds; round++) {
        for (int turn = 0; turn < options->world_count; turn++) {
            int i = round % 2 ? options->world_count - 1 - turn : turn;
            struct bench_ddp_world *world = &result->worlds[i];

            fprintf(stderr, "\rround %d of %d: %d rank%s ", round + 1, options->bench.rounds,
                    world->ranks, world->ranks == 1 ? "" : "s");
            if (bench_caught_signal() || run_training(options, world->ranks, path) ||
                read_run(path, &world->runs[round]))
                return -1;
        }
        result->rounds++;
    }
    fprintf(stderr, "\r%40s\r", "");
    return 0;
}

/* ---- The command ----------------------------------------------------------------------------- */

int command_bench_ddp(int argc, char **argv)
{
    static const struct argument_command command = {.name = "rondo bench ddp",
                                                    .operands = "[-- OPTIONS OF rondo train]",
                                                    .doc = doc,
                                                    .table = table,
                                                    .operand = take_train};
    struct bench_ddp_options options = {
        .world_count = 3, .ranks = {1, 2, 4}, .bench.rounds = 3, .steps = 60};
    static struct bench_ddp_result result;
    char path[] = "/tmp/rondo-bench-ddp-XXXXXX";
    int file, failed;

    argument_parse(&command, argc, argv, &options);
    failed =
        output_begin("rondo bench ddp", options.bench.csv, options.bench.json, options.bench.plot);
    if (failed)
        return failed;
    result.options = &options;
    for (int i = 0; i < options.world_count; i++)
        result.worlds[i].ranks = options.ranks[i];
    file = mkstemp(path);
    if (file < 0) {
        fprintf(stderr, "rondo bench ddp: cannot make a file in /tmp: %s\n", strerror(errno));
        return 1;
    }
    close(file);
    bench_catch_signals();
    failed = measure(&options, path, &result);
    unlink(path);
    if (failed && bench_caught_signal())
        fprintf(stderr, "\n");
    if (failed)
        bench_say_signal("rondo bench ddp");
    if (!result.rounds)
        return 1;
    if (failed)
        fprintf(stderr, "rondo bench ddp: the figures are those of %d of %d rounds\n",
                result.rounds, options.bench.rounds);
    bench_ddp_print(&result, stdout);
    return bench_ddp_write(&result) || failed ? 1 : 0;
}
