/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h - what /proc says of a process. */
#ifndef RONDO_BASE_PROCESS_H
#define RONDO_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_look {
    char name[65];
    char state; /* a letter: Z and X have ended */
    long parent;
    uint64_t started; /* in ticks since the machine's start */
};

/* False: there is no such process, or it is not ours to see. */
bool process_look(pid_t pid, struct process_look *ret_look);
/* Returns when a process was started, in those ticks; 0: there is none that has not ended.
 * `ret_state` (may be NULL) is the letter of its state. */
uint64_t process_started(pid_t pid, char *ret_state);

#endif
