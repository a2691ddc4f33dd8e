/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * start.c - the processes of one library: ranks of Rondo, Gloo and NCCL are started here,
 * MPI's by mpirun; those of the machine's limit are threads of one process.
 *
 * Every rank of every library runs on the same processor as its namesakes when there is a core for
 * each (the worker binds itself); with more ranks than cores nobody is bound and Open MPI is told
 * that it is oversubscribed.
 */
#include "cli/bench/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 64, TEXT_MAX = 4096 };

/* Arguments of a program; the text they point to is kept here. */
struct arguments {
    char *list[ARGUMENTS_MAX + 1];
    int count;
    char text[TEXT_MAX];
    size_t used;
};

static void add(struct arguments *arguments, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(struct arguments *arguments, const char *format, ...)
{
    char *at = arguments->text + arguments->used;
    size_t room = sizeof(arguments->text) - arguments->used;
    va_list rest;
    int length;

    va_start(rest, format);
    length = vsnprintf(at, room, format, rest);
    va_end(rest);
    if (length < 0 || (size_t)length >= room || arguments->count == ARGUMENTS_MAX)
        return; /* the lengths of all that is added are bounded well below the room */
    arguments->list[arguments->count++] = at;
    arguments->used += (size_t)length + 1;
}

/* A launcher's variables that this process may have must not reach another mpirun. */
static void clean_environment(void)
{
    static const char *const prefixes[] = {"OMPI_COMM_", "OMPI_UNIVERSE", "OMPI_APP_",
                                           "PMIX_",      "PMI_",          "MPI_LOCAL"};
    extern char **environ;

    for (char **at = environ; *at;) {
        char name[128] = "";
        bool drop = false;

        sscanf(*at, "%127[^=]", name);
        for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
            drop = drop || !strncmp(name, prefixes[i], strlen(prefixes[i]));
        if (!drop || unsetenv(name))
            at++;
    }
}

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

/* Returns how many ranks a host has. */
static int ranks_of_host(const struct bench_options *options)
{
    return options->hosts ? options->ranks / options->hosts : options->ranks;
}

/* Between fork and exec. `rank`: of a Rondo worker, else -1. */
static void become(const struct bench_group *group, struct arguments *arguments,
                   const struct bench_options *options, int rank)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    dup2(null, STDIN_FILENO);
    dup2(group->output >= 0 ? group->output : STDERR_FILENO, STDOUT_FILENO);
    if (group->output >= 0)
        dup2(group->output, STDERR_FILENO);
    if (group->preload)
        setenv("LD_PRELOAD", group->preload, 1);
    if (rank >= 0) {
        set_number("RONDO_RANK", rank);
        set_number("RONDO_LOCAL_RANK", rank % ranks_of_host(options));
    }
    execvp(arguments->list[0], arguments->list);
    fprintf(stderr, "%s: %s\n", arguments->list[0], strerror(errno));
    _exit(127);
}

/* The program that runs the rest on another host, if there are any. */
static void add_enter(struct arguments *arguments, const struct bench_options *options, int rank)
{
    if (!options->enter)
        return;
    add(arguments, "%s", options->enter);
    add(arguments, "%d", rank / ranks_of_host(options));
}

static int start_one(struct bench_group *group, struct arguments *arguments,
                     const struct bench_options *options, int rank)
{
    pid_t pid = bench_fork();

    if (pid == 0)
        become(group, arguments, options, rank);
    if (pid < 0) {
        fprintf(stderr, "rondo bench: cannot start a process: %s\n", strerror(errno));
        return -1;
    }
    group->children[group->child_count++].pid = pid;
    return 0;
}

/* Every worker is told this, however it is started. */
static void add_options(struct arguments *arguments, const struct bench_options *options)
{
    if (options->timeout >= 0)
        add(arguments, "--timeout=%g", options->timeout);
    if (options->deterministic)
        add(arguments, "--deterministic");
    if (options->memory == BENCH_MEMORY_CUDA)
        add(arguments, "--memory=%s", bench_memory_name(options->memory));
}

static void add_common(struct arguments *arguments, const struct bench_control *control,
                       const struct bench_options *options, bool bind)
{
    char processors[1024];

    add(arguments, "--control=%s", control->name);
    add_options(arguments, options);
    /* What goes on in the background needs a processor of its own. */
    if (bind && !options->overlap && options->memory != BENCH_MEMORY_CUDA &&
        bench_processors(options->ranks, processors, sizeof(processors)))
        add(arguments, "--bind=%s", processors);
}

static void add_setting(struct arguments *arguments, const char *name, const char *value)
{
    add(arguments, "--mca");
    add(arguments, "%s", name);
    add(arguments, "%s", value);
}

/* Writes the program that mpirun takes for ssh: its first argument is the name of a host. */
static int write_agent(const struct bench_group *group, const char *enter)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/agent", group->folder);
    file = fopen(path, "wxe");
    if (!file)
        return -1;
    fprintf(file, "#!/bin/sh\nhost=${1#host}\nshift\nexec '%s' \"$host\" sh -c \"$*\"\n", enter);
    return fclose(file) || chmod(path, 0700) ? -1 : 0;
}

/* Over TCP between hosts, one daemon of Open MPI on each. */
static int add_mpi_hosts(const struct bench_group *group, struct arguments *arguments,
                         const struct bench_options *options)
{
    char hosts[1024] = "", agent[128];
    size_t used = 0;

    if (write_agent(group, options->enter)) {
        fprintf(stderr, "rondo bench: cannot write to %s: %s\n", group->folder, strerror(errno));
        return -1;
    }
    for (int host = 0; host < options->hosts && used < sizeof(hosts); host++)
        used += (size_t)snprintf(hosts + used, sizeof(hosts) - used, "%shost%d:%d", host ? "," : "",
                                 host, ranks_of_host(options));
    snprintf(agent, sizeof(agent), "%s/agent", group->folder);
    add(arguments, "--host");
    add(arguments, "%s", hosts);
    add_setting(arguments, "plm", "rsh");
    add_setting(arguments, "plm_rsh_agent", agent);
    add_setting(arguments, "pml", "ob1");
    add_setting(arguments, "btl", "self,vader,tcp");
    if (options->interface) {
        add_setting(arguments, "btl_tcp_if_include", options->interface);
        add_setting(arguments, "oob_tcp_if_include", options->interface);
    }
    return 0;
}

/*
 * Open MPI leaves files behind when a rank is killed, shared memory among them: they go to a
 * directory of ours, in the same file system as otherwise, and we remove it.
 */
static int start_mpi(struct bench_group *group, const char *worker,
                     const struct bench_control *control, const struct bench_options *options)
{
    bool open_mpi = group->kind == &bench_kinds[BENCH_OPENMPI];
    struct arguments arguments = {.count = 0};
    char processors[1024];

    add_enter(&arguments, options, 0);
    add(&arguments, "mpirun.%s", group->kind->name);
    add(&arguments, "-n");
    add(&arguments, "%d", group->size);
    if (open_mpi) {
        add_setting(&arguments, "orte_tmpdir_base", group->folder);
        add_setting(&arguments, "btl_vader_backing_directory", group->folder);
        add(&arguments, "--bind-to");
        add(&arguments, "none"); /* the workers bind themselves */
        if (!bench_processors(group->size, processors, sizeof(processors)))
            add(&arguments, "--oversubscribe");
        if (options->enter && add_mpi_hosts(group, &arguments, options))
            return -1;
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    }
    add(&arguments, "%s", worker);
    add_common(&arguments, control, options, true);
    return start_one(group, &arguments, options, -1);
}

/* Meeting point and secret of Rondo's ranks: fresh random ones. */
static int set_rondo_environment(const struct bench_group *group,
                                 const struct bench_options *options)
{
    unsigned char random[48];
    char text[2 * sizeof(random) + 1];
    char address[64];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        fprintf(stderr, "rondo bench: no random numbers: %s\n", strerror(errno));
        return -1;
    }
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(text + 2 * i, 3, "%02x", random[i]);
    snprintf(address, sizeof(address), "unix:rondo-bench-%s", text + 64);
    text[64] = 0;
    setenv("RONDO_SECRET", text, 1);
    setenv("RONDO_ADDRESS", options->meet ? options->meet : address, 1);
    if (options->interface)
        setenv("RONDO_INTERFACE", options->interface, 1);
    set_number("RONDO_SIZE", group->size);
    set_number("RONDO_LOCAL_SIZE", ranks_of_host(options));
    return 0;
}

/* Hosts that share a kernel are told apart by this. */
static void set_host(int rank, const struct bench_options *options)
{
    char text[32];

    snprintf(text, sizeof(text), "host %d", rank / ranks_of_host(options));
    setenv("RONDO_HOST_ID", text, 1);
}

static int start_ranks(struct bench_group *group, const char *worker,
                       const struct bench_control *control, const struct bench_options *options)
{
    const struct bench_kind *kind = group->kind;
    bool rondo = kind->rondo;
    bool threads = kind->threads == BENCH_THREADS_ALWAYS ||
                   (kind->threads == BENCH_THREADS_ASKED && options->threads);

    if (rondo && !threads && set_rondo_environment(group, options))
        return -1;
    for (int rank = 0; rank < (threads ? 1 : group->size); rank++) {
        struct arguments arguments = {.count = 0};

        add_enter(&arguments, options, rank);
        add(&arguments, "%s", worker);
        add(&arguments, "--rank=%d", rank);
        add(&arguments, "--size=%d", group->size);
        if (threads)
            add(&arguments, "--threads");
        if (kind->folder)
            add(&arguments, "--meeting=%s", group->folder);
        if (kind == &bench_kinds[BENCH_NCCL] && options->nccl)
            add(&arguments, "--library=%s", options->nccl);
        if (!rondo && options->interface)
            add(&arguments, "--interface=%s", options->interface);
        add_common(&arguments, control, options, kind->bound);
        if (options->hosts)
            set_host(rank, options);
        group->preload = kind == &bench_kinds[BENCH_BASE] ? options->base : NULL;
        if (start_one(group, &arguments, options, rondo && !threads ? rank : -1))
            return -1;
    }
    return 0;
}

/* Under a launcher: this is its rank 0, and so is the worker. */
static int start_first(struct bench_group *group, const char *worker,
                       const struct bench_control *control, const struct bench_options *options)
{
    struct arguments arguments = {.count = 0};

    add(&arguments, "%s", worker);
    add(&arguments, "--share");
    add_common(&arguments, control, options, false);
    return start_one(group, &arguments, options, -1);
}

/* In memory, where there is such a place. */
static int make_folder(struct bench_group *group)
{
    static const char *const places[] = {"/dev/shm", "/tmp"};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(group->folder, sizeof(group->folder), "%s/rondo-bench-XXXXXX", places[i]);
        if (mkdtemp(group->folder))
            return 0;
    }
    fprintf(stderr, "rondo bench: cannot make a directory in /dev/shm or /tmp: %s\n",
            strerror(errno));
    group->folder[0] = 0;
    return -1;
}

int bench_start(struct bench_group *group, const struct bench_control *control,
                const struct bench_options *options)
{
    char worker[512];

    if (bench_find_worker(group->kind, worker, sizeof(worker)))
        return -1;
    if (!group->kind->rondo)
        group->output = memfd_create("rondo-bench-output", MFD_CLOEXEC);
    if (group->launched)
        return start_first(group, worker, control, options);
    clean_environment();
    if (group->kind->folder && make_folder(group))
        return -1;
    return group->kind->mpi ? start_mpi(group, worker, control, options)
                            : start_ranks(group, worker, control, options);
}

int bench_become_worker(const struct bench_options *options)
{
    struct arguments arguments = {.count = 0};
    char worker[512];

    if (bench_find_worker(&bench_kinds[BENCH_RONDO], worker, sizeof(worker)))
        return -1;
    add(&arguments, "%s", worker);
    add(&arguments, "--share");
    add_options(&arguments, options);
    execv(worker, arguments.list);
    fprintf(stderr, "rondo bench: cannot become %s: %s\n", worker, strerror(errno));
    return -1;
}
