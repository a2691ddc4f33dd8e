/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job.h - inside `rondo run`: the options and the command (run.c), starting a rank
 * (rank.c), watching over all of them (watch.c, waits.c), marked output (tag.c), ranks of
 * other hosts (hosts.c here, agent.c there), and ranks that come and go (elastic.c).
 */
#ifndef RONDO_CLI_RUN_JOB_H
#define RONDO_CLI_RUN_JOB_H

#include "base/caller/times.h"
#include "topology/topology.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { RUN_EXIT_FAILED = 1, RUN_EXIT_USAGE = 2, RUN_EXIT_TIMEOUT = 124 };
enum { RUN_EXIT_NOT_EXECUTABLE = 126, RUN_EXIT_NOT_FOUND = 127, RUN_EXIT_SIGNAL = 128 };

/* Output of one rank on its way to ours, cut into lines. */
struct run_tag {
    int from, to; /* our end of the rank's pipe, -1 when it is closed; our stdout or stderr */
    int rank;
    char *line;
    size_t filled;
    bool waits; /* a whole line is there, and `to` takes none now */
};

enum { RUN_RANKS_MAX = 4096 };

/* A rank, or the ssh to a host. */
struct run_rank {
    pid_t pid; /* also its process group; 0: has ended */
    char **program;
    int input;     /* its standard input, -1: none */
    bool newcomer; /* it came to a job that ran */
    bool well;     /* it has ended with status 0 */
    struct run_tag out, err;
};

struct run_host {
    char name[256];
    int first, slots; /* ranks first ... first + slots - 1; in the list, slots 0: not said */
    int control;      /* what is written here is its agent's standard input; -1 */
};

/* With --elastic. */
struct run_elastic {
    int least, most;         /* ranks; most 0: no --elastic */
    int restarts, restarted; /* newcomers in the place of ranks that failed: allowed, started */
    int well, lost, joined;  /* ranks so far */
    char door[256];          /* the folder */
    int listener;            /* for --join; -1 */
};

struct run_job {
    int size; /* ranks that are started here, or hosts; with --elastic places */
    int room; /* how many there may be */
    struct run_elastic elastic;
    int first, world; /* number of the first of them, and how many the job has */
    const char *what; /* they are: "rank", "host" */
    bool bind, tag;
    double grace, timeout; /* seconds; timeout 0: none */
    char **program;        /* argv of the ranks */
    struct run_rank *ranks;
    int running;
    struct run_host *hosts; /* NULL: ranks are started here */
    int host_count;         /* in the list; the last ones may have no rank */
    char *ssh;              /* program that reaches hosts instead of ssh, or NULL */
    char **variables;       /* for the ranks of other hosts, NAME=VALUE */
    int variable_count;
    int control;                   /* of an agent: its end is the end of the job; -1 */
    char *order;                   /* of an agent: what came, with the program's arguments in it */
    struct topology *topology;     /* NULL: ranks are not bound */
    char address[260], secret[65]; /* of the job's meeting point */
    sigset_t signals_before;       /* the mask that ranks inherit */
    int status;                    /* exit status of the first rank that failed */
};

/* Start rank number `rank`. 0, or the exit status of `rondo run` after a message. */
int run_rank_start(struct run_job *job, int rank);
/* Until all ranks have ended; passes signals on and ends the job when a rank fails. `signals` is a
 * signalfd of those in run_signals(). */
void run_watch(struct run_job *job, int signals);
/* Those that the command acts on; it leaves out what it was started to ignore. */
void run_signals(sigset_t *ret_set);
/* Send a signal to all ranks that run, and to what they have started. */
void run_kill(const struct run_job *job, int number);
/* Says on stderr what the ranks on this host wait for that are about to be ended. */
void run_tell_waits(const struct run_job *job);

/* MIN:MAX; false: it is not. */
bool run_elastic_read(const char *text, struct run_elastic *ret_elastic);
/* 0, or an exit status after a message. Without --elastic nothing. */
int run_elastic_open(struct run_job *job);
void run_elastic_close(struct run_job *job);
/* A rank has failed; `what` says so. False: too few are left. Maybe a newcomer takes its place. */
bool run_elastic_loses(struct run_job *job, int rank, const char *what);
/* Somebody has asked for a newcomer; `ending`: nobody comes any more. */
void run_elastic_serve(struct run_job *job, bool ending);
/* --join: ask the `rondo run` of that process id. Returns the exit status. */
int run_elastic_join(long pid);

/* Makes the pipe; the rank's end goes to *ret_rank_end. */
bool run_tag_init(struct run_tag *tag, int rank, int to, int *ret_rank_end);
/* When `from` has output, or `to` room for a line that waits: takes some, and whole lines go out.
 * Waits for neither. Closes at the end of the rank's output. */
void run_tag_move(struct run_tag *tag);
/* Puts out what is there, and closes. Waits until it is out; not `patient`: lines that our output
 * does not take are left for another call. */
void run_tag_done(struct run_tag *tag, bool patient);

/*
 * An order is a head, which has the bytes of the rest, and strings: ranks here, the first one,
 * ranks of the job, bind, tag, grace; folder, address, secret; the number of variables, and these;
 * and the program's arguments.
 */
#define RUN_ORDER_FORMAT "rondo run 1 %8zu\n"
/* The largest order fits, behind a head, into the largest pipe that users may have, of 1 MiB. */
enum { RUN_ORDER_HEAD = 21, RUN_ORDER_ROOM = 8192, RUN_ORDER_MAX = (1 << 20) - RUN_ORDER_ROOM };

/* Fills hosts, size, world and address. 0, or an exit status after a message, here and below. */
int run_hosts_read(struct run_job *job, const char *list);
int run_hosts_start(struct run_job *job);
void run_hosts_done(struct run_job *job);

/* Fills the job from standard input, which stays open as its control. */
int run_agent_read(struct run_job *job);
/* The order, which the job's strings stay in; its last byte is 0. False: it makes no sense. */
bool run_agent_parse(struct run_job *job, char *order, size_t bytes, const char **ret_folder);
bool run_agent_is_over(const struct run_job *job);
void run_agent_done(struct run_job *job);

#endif
