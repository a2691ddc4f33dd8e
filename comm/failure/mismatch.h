/* SPDX-License-Identifier: BSD-3-Clause */
/* mismatch.h - ranks that call something else: each function breaks the communicator with a
 * sentence that names both ranks and both calls, or returns RONDO_OK. */
#ifndef RONDO_COMM_FAILURE_MISMATCH_H
#define RONDO_COMM_FAILURE_MISMATCH_H

#include "comm/state/task.h"

/* A wait lasts: a peer in the call of the same number must have called the same. */
rondo_result mismatch_look(rondo_comm *comm, const struct task *task);
/* A message with another fingerprint came from task->execution.blamed: says what both sides
 * called. */
rondo_result mismatch_found(rondo_comm *comm, struct task *task);
/* Does what mismatch_found() does for a call that a CUDA stream runs, from a thread that has not
 * got the turn. */
rondo_result mismatch_on_stream(rondo_comm *comm, struct task *task);
/*
 * Whoever waits for no message (the root of a broadcast, a leaf of a reduction) would not hear of a
 * peer that thinks otherwise. Such a peer has sent to us, or somebody has in its place: a message
 * that we do not expect is there, or it is of a call that we have not made yet. That is one load
 * for each peer, of a line in our own memory; status pages tell which it is. They are also looked
 * at now and then without a message.
 */
rondo_result mismatch_unheard(rondo_comm *comm, const struct task *task);

#endif
