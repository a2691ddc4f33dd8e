/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h - what /proc says of a process. */
#ifndef RONDO_BASE_PROCESS_H
#define RONDO_BASE_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/* Returns when a process was started, in ticks since the machine's start; 0: there is none.
 * `ret_state` (may be NULL) is the letter of its state. */
uint64_t process_started(pid_t pid, char *ret_state);

#endif
