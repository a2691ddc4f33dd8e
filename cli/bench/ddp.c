/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp.c - `rondo bench ddp`: trainings on 1, 2, 4 ranks in turns.
 *
 * Every round trains a few steps on each number of ranks, so that what slows the machine down for a
 * while slows all of them down; speed-ups are taken within a round. Every second round goes through
 * them backwards: what gets slower or faster all the time favours none. The batch per rank is the
 * same.
 */
#include "cli/bench/ddp.h"

#include "cli/argument.h"
#include "cli/train_place.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEY_STEPS = 256, KEY_ROUNDS, KEY_CSV, KEY_JSON };

static const struct argp_option table[] = {
    {"ranks", 'n', "LIST", 0, "numbers of ranks that take turns (1,2,4)", 1},
    {"steps", KEY_STEPS, "N", 0, "of each training (60)", 1},
    {"rounds", KEY_ROUNDS, "N", 0, "times that all take their turn (3)", 1},
    {"csv", KEY_CSV, "FILE", 0, "write a line per number of ranks", 2},
    {"json", KEY_JSON, "FILE", 0, "write the same, each round, and the machine", 2},
    {0},
};

static const char doc[] =
    "Trains the model of `rondo train` on several numbers of ranks, with the same batch per rank.\v"
    "What comes after -- goes to `rondo train`: its model, its batch, its precision.\n\n"
    "The speed of a training is that of its median step; the speed-up is the median over rounds. "
    "\"hidden\" is the part of communication that went on behind the backward pass. An efficiency "
    "above 100 % gets a warning: what it is compared with was slowed down by something else.";

static void set_ranks(const struct argp_state *state, struct bench_ddp_options *options, char *list)
{
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

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct bench_ddp_options *options = state->input;

    switch (key) {
    case 'n':
        set_ranks(state, options, arg);
        return 0;
    case KEY_STEPS:
        options->steps = (int)argument_whole(state, "--steps", arg, 1, 1000000);
        return 0;
    case KEY_ROUNDS:
        options->rounds = (int)argument_whole(state, "--rounds", arg, 1, BENCH_DDP_ROUNDS);
        return 0;
    case KEY_CSV:
        options->csv = arg;
        return 0;
    case KEY_JSON:
        options->json = arg;
        return 0;
    case ARGP_KEY_ARGS:
        options->train = &state->argv[state->next];
        options->train_count = state->argc - state->next;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* In the child. Reports nothing but errors. */
static void become(const struct bench_ddp_options *options, int ranks, const char *json)
{
    const char *const fixed[] = {"--evaluate=0", "--samples=0"};
    char program[1200], size[32], steps[32], output[1200];
    char **list = calloc((size_t)options->train_count + 8, sizeof(*list));
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int count = 0;

    if (!list || train_find("rondo bench ddp", program, sizeof(program)))
        _exit(1);
    snprintf(size, sizeof(size), "--ranks=%d", ranks);
    snprintf(steps, sizeof(steps), "--steps=%d", options->steps);
    snprintf(output, sizeof(output), "--json=%s", json);
    list[count++] = program;
    list[count++] = strdup(fixed[0]);
    list[count++] = strdup(fixed[1]);
    for (int i = 0; i < options->train_count; i++)
        list[count++] = options->train[i];
    list[count++] = size;
    list[count++] = steps;
    list[count++] = output;
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
    pid_t pid = errors ? fork() : -1;

    if (pid == 0) {
        dup2(fileno(errors), STDERR_FILENO);
        become(options, ranks, json);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (status) {
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

static int read_run(const char *path, struct bench_ddp_run *ret_run)
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
    *ret_run = (struct bench_ddp_run){tokens / step, step, waiting / seconds, hidden, bytes};
    json_decref(json);
    return 0;
}

static int measure(const struct bench_ddp_options *options, const char *path,
                   struct bench_ddp_result *result)
{
    for (int round = 0; round < options->rounds; round++) {
        for (int turn = 0; turn < options->world_count; turn++) {
            int i = round % 2 ? options->world_count - 1 - turn : turn;
            struct bench_ddp_world *world = &result->worlds[i];

            fprintf(stderr, "\rround %d of %d: %d rank%s ", round + 1, options->rounds,
                    world->ranks, world->ranks == 1 ? "" : "s");
            if (run_training(options, world->ranks, path) || read_run(path, &world->runs[round]))
                return -1;
        }
        result->rounds++;
    }
    fprintf(stderr, "\r%40s\r", "");
    return 0;
}

int bench_ddp(int argc, char **argv)
{
    static const struct argp argp = {table, parse_option, "[-- OPTIONS OF rondo train]", doc, NULL,
                                     NULL,  NULL};
    static char name[] = "rondo bench ddp";
    struct bench_ddp_options options = {.world_count = 3, .ranks = {1, 2, 4}, .rounds = 3};
    struct bench_ddp_result result = {.options = &options};
    char path[] = "/tmp/rondo-bench-ddp-XXXXXX";
    int file, failed;

    options.steps = 60;
    argv[0] = name;
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    for (int i = 0; i < options.world_count; i++)
        result.worlds[i].ranks = options.ranks[i];
    file = mkstemp(path);
    if (file < 0) {
        fprintf(stderr, "rondo bench ddp: cannot make a file in /tmp: %s\n", strerror(errno));
        return 1;
    }
    close(file);
    failed = measure(&options, path, &result);
    unlink(path);
    if (failed)
        return 1;
    bench_ddp_print(&result, stdout);
    if (options.csv)
        failed |= bench_ddp_csv_write(&result, options.csv);
    if (options.json)
        failed |= bench_ddp_json_write(&result, options.json);
    return failed ? 1 : 0;
}
