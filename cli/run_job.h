/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_job.h - inside `rondo run`: the options and the command (run.c), starting a rank
 * (run_rank.c), watching over all of them (run_watch.c), and marked output (run_tag.c).
 */
#ifndef RONDO_CLI_RUN_JOB_H
#define RONDO_CLI_RUN_JOB_H

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
};

struct run_rank {
    pid_t pid; /* also its process group; 0: has ended */
    struct run_tag out, err;
};

struct run_job {
    int size;
    bool bind, tag;
    double grace, timeout; /* seconds; timeout 0: none */
    char **program;        /* argv of the ranks */
    struct run_rank *ranks;
    int running;
    struct topology *topology;    /* NULL: ranks are not bound */
    char address[64], secret[65]; /* of the job's meeting point */
    sigset_t signals_before;      /* the mask that ranks inherit */
    int status;                   /* exit status of the first rank that failed */
};

/* Start rank number `rank`. 0, or the exit status of `rondo run` after a message. */
int run_rank_start(struct run_job *job, int rank);
/* Until all ranks have ended; passes signals on and ends the job when a rank fails. `signals` is a
 * signalfd of those in run_signals(). */
void run_watch(struct run_job *job, int signals);
void run_signals(sigset_t *ret_set);
/* Send a signal to all ranks that run, and to what they have started. */
void run_kill(const struct run_job *job, int number);

/* Makes the pipe; the rank's end goes to *ret_rank_end. */
bool run_tag_init(struct run_tag *tag, int rank, int to, int *ret_rank_end);
/* Take what is there, without waiting; whole lines go out. Closes at the end of the rank's
 * output. */
void run_tag_move(struct run_tag *tag);
void run_tag_done(struct run_tag *tag); /* what is there, and then the end */

#endif
