/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * long_wait.h - a wait is never silent: one line in the log when it has lasted for RONDO_LATE, and
 * the same text as the error of a wait that is given up.
 *
 * Records of this host (recorder/wait_line.h) tell what the process does that is waited for. Of a
 * rank that has no record here only what it has shown to us is known: its calls, its heartbeats
 * (blame.h).
 */
#ifndef RONDO_COMM_FAILURE_LONG_WAIT_H
#define RONDO_COMM_FAILURE_LONG_WAIT_H

#include "comm/state/task.h"

/* Writes the line if it is time for it. `blame` is that of a call or of a CUDA stream, and its look
 * was just now; `task` NULL: the call is done, but for messages that are still to be taken. */
void long_wait_tell(rondo_comm *comm, struct blame *blame, const struct task *task, double now);
/* Breaks the communicator, as the wait has lasted for the timeout. */
rondo_result long_wait_end(rondo_comm *comm, const struct blame *blame, const struct task *task,
                           double waited);

#endif
