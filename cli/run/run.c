/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c - `rondo run -n 4 PROGRAM`: the ranks of a job on this machine.
 *
 * Ranks learn from RONDO_RANK, RONDO_SIZE and so on who they are; the meeting point and the secret
 * are new for each job. Each rank is bound to a core of its own, like `mpirun --bind-to core`
 * does. With --hosts there is an ssh for each host instead, and the ranks are there.
 */
#include "cli/common/argument.h"
#include "cli/commands.h"
#include "cli/run/job.h"

#include "base/fail.h"
#include "base/setting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const char summary[] =
    "Start ranks of a program, as mpirun does: on this machine, or by ssh on others.\v"
    "Rank and size are in RONDO_RANK and RONDO_SIZE; rondo_comm_open() finds the rest. Standard "
    "input goes to rank 0 if it is not a terminal. When a rank fails, the others have the grace "
    "time to end by themselves; the exit status is that of the first rank that failed, 128 + the "
    "number of the signal if one killed it. With --elastic the others go on while MIN are left, as "
    "programs do that use rondo/elastic.h or rondo_comm_shrink(); the rank that leaves fewer "
    "decides the status. With --hosts nobody has standard input, RONDO_ "
    "variables go along, and rank 0 has to be reachable by the name of the first host; "
    "RONDO_ADDRESS=HOST:PORT says otherwise.";

/* The command line: the job, and what is beside it. */
struct command {
    struct run_job job;
    const char *hosts;
    bool agent;
    long join; /* a process id; 0: no --join */
};

/* NAME is that of this process' environment. */
static void add_variable(struct argp_state *state, void *input, char *argument)
{
    struct run_job *job = &((struct command *)input)->job;
    size_t count = (size_t)job->variable_count + 1;
    const char *equals = strchr(argument, '=');
    const char *value = equals ? equals + 1 : getenv(argument);
    int length = (int)(equals ? equals - argument : (ptrdiff_t)strlen(argument));
    char **more, *text = NULL;

    if (!length)
        argp_error(state, "-x is '%s': accepted are NAME and NAME=VALUE", argument);
    if (!value)
        argp_error(state, "-x %s: there is no such variable", argument);
    more = realloc(job->variables, count * sizeof(*more));
    if (!more || asprintf(&text, "%.*s=%s", length, argument, value) < 0)
        argp_failure(state, RUN_EXIT_FAILED, ENOMEM, "-x");
    job->variables = more;
    job->variables[job->variable_count++] = text;
}

static void take_bind(struct argp_state *state, void *input, char *text)
{
    struct command *command = input;

    if (strcmp(text, "core") && strcmp(text, "none"))
        argp_error(state, "--bind is '%s': accepted are core and none", text);
    command->job.bind = !strcmp(text, "core");
}

static void take_elastic(struct argp_state *state, void *input, char *text)
{
    struct command *command = input;

    if (!run_elastic_read(text, &command->job.elastic))
        argp_error(state, "--elastic is '%s': accepted is MIN:MAX, as 2:4, with 1 <= MIN <= MAX",
                   text);
}

static void check_elastic(struct argp_state *state, struct command *command)
{
    struct run_job *job = &command->job;
    const struct run_elastic *elastic = &job->elastic;

    if (elastic->restarts && !elastic->most)
        argp_error(state, "--max-restarts is for --elastic: without it a job ends with a rank that "
                          "fails");
    if (elastic->most && command->hosts)
        argp_error(state, "--elastic is for ranks of this host, not for --hosts");
    if (elastic->most && !job->world)
        job->world = elastic->most;
    if (elastic->most && (job->world < elastic->least || job->world > elastic->most))
        argp_error(state, "-n %d is not within --elastic %d:%d", job->world, elastic->least,
                   elastic->most);
}

/* All that follows is for the program. */
static void take_program(struct argp_state *state, void *input, char *text)
{
    struct command *command = input;

    command->job.program = &state->argv[state->next - 1];
    state->next = state->argc;
}

static void check(struct argp_state *state, void *input)
{
    struct command *command = input;
    const struct run_job *job = &command->job;

    if (command->agent) /* its order has it all */
        return;
    if (command->join && job->program)
        argp_error(state, "--join takes the program of the job");
    if (command->join)
        return;
    check_elastic(state, command);
    if (!job->program)
        argp_error(state, "which program?");
    if (!job->world && !command->hosts)
        argp_error(state, "how many ranks? For four: -n 4");
    if (!command->hosts && (job->ssh || job->variable_count))
        argp_error(state, "--ssh and -x are for --hosts; ranks of this machine have all variables");
}

#define SETS(member)                ARGUMENT_SETS(struct command, member)
#define NUMBER(member, least, most) ARGUMENT_NUMBER(struct command, member, least, most)

static const struct argument table[] = {
    {"ranks", 'n', "N", 0, NUMBER(job.world, 1, RUN_RANKS_MAX), "How many ranks"},
    {"bind", 0, "core|none", 0, ARGUMENT_CALLS(take_bind),
     "core: each rank to a core of its own (default, unless RONDO_BIND says otherwise)"},
    {"tag", 0, NULL, 0, SETS(job.tag), "Mark each line of output with its [rank]"},
    {"timeout", 0, "S", 0, NUMBER(job.timeout, 0, 0),
     "End the job after S seconds, with exit status 124"},
    {"hosts", 0, "LIST", 0, SETS(hosts), "Start them by ssh: node1:2,user@node2:2, or node1,node2"},
    {"ssh", 0, "PROGRAM", 0, SETS(job.ssh), "PROGRAM HOST COMMAND does what ssh would do"},
    {NULL, 'x', "NAME[=VALUE]", 0, ARGUMENT_CALLS(add_variable),
     "With --hosts: a variable that goes along"},
    {"agent", 0, NULL, 0, SETS(agent), NULL},
    {"elastic", 0, "MIN:MAX", 0, ARGUMENT_CALLS(take_elastic),
     "Go on without ranks that fail while MIN are left; MAX: with those that come"},
    {"max-restarts", 0, "N", 0, NUMBER(job.elastic.restarts, 0, 1000000),
     "With --elastic: newcomers in the place of ranks that failed, N times (0)"},
    {"join", 0, "PID", 0, NUMBER(join, 1, 1000000000),
     "One more rank for the job of that `rondo run --elastic`"},
    {"grace", 0, "S", 0, NUMBER(job.grace, 0, 0),
     "Seconds that the others have after a rank failed (5)"},
    {0}};

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

    if (!job->bind || job->hosts)
        return;
    if (topology_open_cores(&job->topology)) {
        fprintf(stderr, "rondo run: ranks are not bound to cores: %s\n", fail_sentence());
        return;
    }
    cores = topology_cores(job->topology);
    if (job->room <= cores)
        return;
    fprintf(stderr,
            "rondo run: %d ranks share %d core%s: they are not bound, and they will be slow\n",
            job->room, cores, cores == 1 ? "" : "s");
    topology_close(job->topology);
    job->topology = NULL;
}

/* Input is for rank 0, but not from a terminal, which stops groups in the background that read
 * it. */
static int start_all(struct run_job *job)
{
    int status = 0;

    if (job->hosts)
        return run_hosts_start(job);
    for (int rank = 0; !status && rank < job->size; rank++) {
        bool reads = rank == 0 && job->control < 0 && !isatty(STDIN_FILENO);

        job->ranks[rank].program = job->program;
        job->ranks[rank].input = reads ? STDIN_FILENO : -1;
        status = run_rank_start(job, rank);
    }
    return status;
}

static void put_last_lines(struct run_job *job, bool patient)
{
    for (int rank = 0; job->ranks && rank < job->size; rank++) {
        run_tag_done(&job->ranks[rank].out, patient);
        run_tag_done(&job->ranks[rank].err, patient);
    }
}

/* A new secret, and if there is no meeting point yet, a new one on this machine. */
static bool make_names(struct run_job *job)
{
    char name[33];

    if (*job->secret)
        return true;
    if (!random_text(name, 32) || !random_text(job->secret, 64))
        return false;
    if (!*job->address)
        snprintf(job->address, sizeof(job->address), "unix:rondo-run-%s", name);
    return true;
}

/* A rank of an elastic job may have started this `rondo run`, whose ranks are none of that job. */
static void forget_elastic(void)
{
    if (!getenv("RONDO_RANK"))
        return;
    unsetenv("RONDO_ELASTIC");
    unsetenv("RONDO_DOOR");
}

static int run(struct run_job *job)
{
    sigset_t signals;
    int watched;

    forget_elastic();
    job->room = job->elastic.most > job->size ? job->elastic.most : job->size;
    job->ranks = calloc((size_t)job->room, sizeof(*job->ranks));
    for (int rank = 0; job->ranks && rank < job->room; rank++)
        job->ranks[rank].out.from = job->ranks[rank].err.from = -1; /* not yet started */
    choose_places(job); /* before signals are held back: the system may take long to be read */
    run_signals(&signals);
    sigprocmask(SIG_BLOCK, &signals, &job->signals_before);
    watched = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (!job->ranks || watched < 0 || !make_names(job)) {
        fprintf(stderr, "rondo run: cannot prepare the job: %s\n", strerror(errno));
        job->status = RUN_EXIT_FAILED;
    } else {
        job->status = run_elastic_open(job);
        if (!job->status)
            job->status = start_all(job);
        run_watch(job, watched);
    }
    run_elastic_close(job);
    if (watched >= 0)
        close(watched);
    put_last_lines(job, false);
    sigprocmask(SIG_SETMASK, &job->signals_before, NULL); /* nobody may read what is left */
    put_last_lines(job, true);
    free(job->ranks);
    topology_close(job->topology);
    return job->status;
}

int command_run(int argc, char **argv)
{
    static const struct argument_command line = {.name = "rondo run",
                                                 .operands = "PROGRAM [ARGUMENTS...]",
                                                 .doc = summary,
                                                 .table = table,
                                                 .operand = take_program,
                                                 .finish = check,
                                                 .flags = ARGP_IN_ORDER};
    struct command command = {
        .job = {.what = "rank", .grace = DEFAULT_RUN_GRACE, .control = -1, .elastic.listener = -1}};
    struct run_job *job = &command.job;
    int status = 0;

    if (setting_check(SETTING_BIND))
        return RUN_EXIT_USAGE;
    job->bind = !strcmp(setting_read_word(SETTING_BIND), "core");
    argument_parse(&line, argc, argv, &command);
    if (command.join)
        return run_elastic_join(command.join);
    job->size = job->world;
    if (command.agent)
        status = run_agent_read(job);
    else if (command.hosts)
        status = run_hosts_read(job, command.hosts);
    if (!status)
        status = run(job);
    run_agent_done(job);
    run_hosts_done(job);
    return status;
}
