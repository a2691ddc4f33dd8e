/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * workers.h - the ranks of one library: start them, command them, end them.
 *
 * Whatever happens, bench_group_end() leaves none of the processes that bench_group_start() made.
 */
#ifndef RONDO_CLI_BENCH_WORKERS_H
#define RONDO_CLI_BENCH_WORKERS_H

#include "bench/protocol.h"
#include "cli/bench/options.h"

#include <sys/types.h>

/* Workers report at this listening socket, which has a random name. */
struct bench_control {
    int socket;
    char name[BENCH_NAME_MAX];
};

/* A library, and how its ranks are started. */
struct bench_kind {
    const char *name;
    bool rondo;      /* this build or another one */
    bool own;        /* its worker needs nothing but Rondo's own sources */
    bool mpi;        /* mpirun starts the ranks */
    bool bound;      /* each to a processor, if there is a core for each */
    bool folder;     /* its files or its launcher need one of their own */
    bool on_devices; /* it has calls on memory of devices */
    /* Are ranks threads of one process? Never, if asked for, or always. */
    enum { BENCH_THREADS_NEVER = 0, BENCH_THREADS_ASKED, BENCH_THREADS_ALWAYS } threads;
};

extern const struct bench_kind bench_kinds[BENCH_LIBRARIES];

struct bench_worker {
    int rank;   /* -1: it has not said hello yet */
    int socket; /* -1: gone */
    int pidfd;  /* -1: none */
    pid_t pid;
};

/* A child is what this process started: a rank, or mpirun. */
struct bench_child {
    pid_t pid;
    bool ended;
    int status; /* as waitpid() has it, of one that has ended */
};

struct bench_group {
    const struct bench_kind *kind;
    int size;
    bool launched; /* others than the first rank were started by a launcher */
    char version[128];
    int devices;                  /* of the host, for ranks on devices */
    uint64_t device_bytes;        /* memory of one */
    struct bench_worker *workers; /* by rank, when all have said hello */
    int worker_count;
    struct bench_child *children;
    int child_count;
    int output;          /* what MPI and Gloo print, shown if they fail; -1: none */
    const char *preload; /* its ranks load this file first; NULL: none */
    char folder[64];     /* private, for the files of Open MPI and Gloo; "": none */
    double timeout;      /* of a silent rank, seconds; 0: never */
};

/* Notes which children have ended. How many have not? */
int bench_children_left(struct bench_group *group);

/* Seconds per call of a batch, on the slowest rank. */
double bench_slowest(const struct bench_group *group, const struct bench_reply *replies, int batch);
/* Returns the seconds per call of a batch on the fastest rank. */
double bench_fastest(const struct bench_group *group, const struct bench_reply *replies, int batch);

/*
 * From now on signals that end a program, that of a reader who left among them, only end what is
 * going on here, and can be asked for; 0: none came.
 */
void bench_catch_signals(void);
int bench_caught_signal(void);
int bench_caught_signals(void); /* how many */
/* The same, and says on stderr that it ends `command`. */
int bench_say_signal(const char *command);
/* Forks a child that is to become a program. These signals end the child, also those that come
 * before its exec. It gets SIGTERM when this process ends, and no signals of our terminal. */
pid_t bench_fork(void);

/* 0, or -1 with a sentence on stderr. `path`: workers of other network namespaces find only what
 * has a place in the file system. */
int bench_control_open(struct bench_control *ret_control, bool path);
void bench_control_close(struct bench_control *control);

/*
 * 0 when every rank's library is open; -1 with a sentence on stderr. Wants bench_group_end() in
 * both cases.
 */
int bench_group_start(struct bench_group *group, const struct bench_control *control,
                      enum bench_library_id library, const struct bench_options *options);
/*
 * Every rank obeys `command`; replies come by rank. BENCH_OK, BENCH_UNAVAILABLE (see the first
 * reply's sentence), or BENCH_FAILED with sentences on stderr: who died or was silent, and what the
 * others say about it.
 */
enum bench_status bench_group_run(struct bench_group *group, const struct bench_command *command,
                                  struct bench_reply *ret_replies);
void bench_group_end(struct bench_group *group, bool by_force);

/*
 * Starts the ranks of all libraries, does the work, ends them. 0, or what the work returned, or -1
 * with a sentence on stderr.
 */
int bench_with_groups(const struct bench_options *options, bool launched,
                      int (*work)(struct bench_group *groups, void *context), void *context);

/* ---- start.c --------------------------------------------------------------------------------- */

/* Start the processes; they have not reported yet. 0, or -1 with a sentence on stderr. */
int bench_start(struct bench_group *group, const struct bench_control *control,
                const struct bench_options *options);
/* Become a worker of a launcher's job; returns only if that fails. */
int bench_become_worker(const struct bench_options *options);

/* Show the last lines of what the library's processes printed. */
void bench_show_output(const struct bench_group *group);

/* ---- libraries.c ----------------------------------------------------------------------------- */

/* True if ranks of this library can be started here. */
bool bench_worker_is_there(enum bench_library_id library);
/* The program that is a rank of the library. 0, or -1 with a sentence on stderr. */
int bench_find_worker(const struct bench_kind *kind, char *path, size_t room);
/* Processors for `ranks` ranks, one core each: "0,2,4". false if there are not enough cores. */
bool bench_processors(int ranks, char *list, size_t room);

#endif
