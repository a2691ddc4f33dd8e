/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c - `rondo run -n 4 PROGRAM`: the ranks of a job on this machine.
 *
 * Ranks learn from RONDO_RANK, RONDO_SIZE and so on who they are; the meeting point and the secret
 * are new for each job. Each rank is bound to a core of its own, like `mpirun --bind-to core`
 * does.
 */
#include "cli/argument.h"
#include "cli/commands.h"
#include "cli/run_job.h"

#include "base/fail.h"
#include "base/setting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { RANKS_MAX = 4096, KEY_BIND = 1000, KEY_TAG, KEY_TIMEOUT, KEY_GRACE };

static const char summary[] =
    "Start local ranks of a program, as mpirun does.\v"
    "Rank and size are in RONDO_RANK and RONDO_SIZE; rondo_comm_open() finds the rest. Standard "
    "input goes to rank 0 if it is not a terminal. When a rank fails, the others have the grace "
    "time to end by themselves; the exit status is that of the first rank that failed, 128 + the "
    "number of the signal if one killed it.";

static const struct argp_option options[] = {
    {"ranks", 'n', "N", 0, "How many ranks", 0},
    {"bind", KEY_BIND, "core|none", 0,
     "core: each rank to a core of its own (default, unless RONDO_BIND says otherwise)", 0},
    {"tag", KEY_TAG, NULL, 0, "Mark each line of output with its [rank]", 0},
    {"timeout", KEY_TIMEOUT, "S", 0, "End the job after S seconds, with exit status 124", 0},
    {"grace", KEY_GRACE, "S", 0, "Seconds that the others have after a rank failed (5)", 0},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct run_job *job = state->input;

    switch (key) {
    case 'n':
        job->size = (int)argument_whole(state, "-n", argument, 1, RANKS_MAX);
        return 0;
    case KEY_BIND:
        if (strcmp(argument, "core") && strcmp(argument, "none"))
            argp_error(state, "--bind is '%s': accepted are core and none", argument);
        job->bind = !strcmp(argument, "core");
        return 0;
    case KEY_TAG:
        job->tag = true;
        return 0;
    case KEY_TIMEOUT:
        job->timeout = argument_real(state, "--timeout", argument, 0);
        return 0;
    case KEY_GRACE:
        job->grace = argument_real(state, "--grace", argument, 0);
        return 0;
    case ARGP_KEY_ARG: /* the program: all that follows is for it */
        job->program = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (!job->program)
            argp_error(state, "which program?");
        if (!job->size)
            argp_error(state, "how many ranks? For four: -n 4");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool random_text(char *ret_text, size_t digits)
{
    unsigned char noise[32];

    if (getrandom(noise, sizeof(noise), 0) != sizeof(noise))
        return false;
    for (size_t i = 0; i < digits; i++)
        ret_text[i] = "0123456789abcdef"[noise[i / 2] >> (i % 2 ? 4 : 0) & 15];
    ret_text[digits] = '\0';
    return true;
}

/* The machine, if ranks are to be bound and there is a core for each. */
static void choose_places(struct run_job *job)
{
    int cores;

    if (!job->bind)
        return;
    if (topology_open(NULL, &job->topology)) {
        fprintf(stderr, "rondo run: ranks are not bound to cores: %s\n", fail_sentence());
        return;
    }
    cores = topology_cores(job->topology);
    if (job->size <= cores)
        return;
    fprintf(stderr,
            "rondo run: %d ranks share %d core%s: they are not bound, and they will be slow\n",
            job->size, cores, cores == 1 ? "" : "s");
    topology_close(job->topology);
    job->topology = NULL;
}

static int start_all(struct run_job *job)
{
    int status = 0;

    for (int rank = 0; !status && rank < job->size; rank++)
        status = run_rank_start(job, rank);
    return status;
}

static void finish(struct run_job *job)
{
    for (int rank = 0; job->ranks && rank < job->size; rank++) {
        run_tag_done(&job->ranks[rank].out);
        run_tag_done(&job->ranks[rank].err);
    }
    free(job->ranks);
    topology_close(job->topology);
}

static int run(struct run_job *job)
{
    sigset_t signals;
    char name[33];
    int watched;

    job->ranks = calloc((size_t)job->size, sizeof(*job->ranks));
    run_signals(&signals);
    sigprocmask(SIG_BLOCK, &signals, &job->signals_before);
    watched = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (!job->ranks || watched < 0 || !random_text(name, 32) || !random_text(job->secret, 64)) {
        fprintf(stderr, "rondo run: cannot prepare the job: %s\n", strerror(errno));
        job->status = RUN_EXIT_FAILED;
    } else {
        snprintf(job->address, sizeof(job->address), "unix:rondo-run-%s", name);
        choose_places(job);
        job->status = start_all(job);
        run_watch(job, watched);
    }
    finish(job);
    if (watched >= 0)
        close(watched);
    sigprocmask(SIG_SETMASK, &job->signals_before, NULL);
    return job->status;
}

int command_run(int argc, char **argv)
{
    const struct argp argp = {options, parse, "PROGRAM [ARGUMENTS...]", summary, NULL, NULL, NULL};
    struct run_job job = {.grace = 5};
    char name[] = "rondo run";

    if (setting_check(SETTING_BIND))
        return RUN_EXIT_USAGE;
    job.bind = !strcmp(setting_read_word(SETTING_BIND), "core");
    argv[0] = name; /* argp says it in its messages */
    argp_err_exit_status = RUN_EXIT_USAGE;
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &job);
    return run(&job);
}
