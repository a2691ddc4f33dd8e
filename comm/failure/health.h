/* SPDX-License-Identifier: BSD-3-Clause */
/* health.h - will this wait ever end? Dead, broken and silent peers, each in a sentence; those that
 * call something else are in mismatch.h. */
#ifndef RONDO_COMM_FAILURE_HEALTH_H
#define RONDO_COMM_FAILURE_HEALTH_H

#include "comm/state/task.h"

/* The first failure that any peer on the node has seen is ours too. From any thread. */
rondo_result health_adopt(rondo_comm *comm);
/*
 * Called while `task` is blocked, about once a millisecond; `waited` in seconds. RONDO_OK: keep
 * waiting. Otherwise the communicator is broken and the sentence names the rank to blame.
 */
rondo_result health_check(rondo_comm *comm, struct task *task, double waited);
/* Does what health_check() does for a call that is done except for messages that peers have yet to
 * take. */
rondo_result health_flush(rondo_comm *comm, double waited);

/* Does what health_check() does for a call that a CUDA stream runs, from a thread that has not got
 * the turn. */
rondo_result health_stream_check(rondo_comm *comm, struct task *task, double waited);
/* A peer that the call waits for has closed the communicator or ended. The stream may not have got
 * to what the peer wrote before, so it is believed when it has been so for a second; `since` is the
 * caller's note of when that began, 0 when a wait begins. */
rondo_result health_stream_missing(rondo_comm *comm, const struct task *task, double now,
                                   double *since);
/* Checks a graph, of which only the peer is known that it waits for (-1: none): looks whether that
 * is alive if the graph waited `before` too. */
rondo_result health_graph_check(rondo_comm *comm, int peer, bool before);

/* Memory of the peer that `task` blames could not be read. Was it, or another before it, what broke
 * the communicator, or has its process ended? The sentence of the read is set. */
rondo_result health_unreadable(rondo_comm *comm, struct task *task);

/* ---- For sentences --------------------------------------------------------------------------- */

/* The status page of a rank; NULL: the rank has closed the communicator, and its memory may hold
 * something else by now. */
const struct status *health_status(const rondo_comm *comm, int rank);
/* True if the rank has closed the communicator: it makes no more calls, but its status page may
 * stay. */
bool health_has_closed(const rondo_comm *comm, int rank);
/* True if the rank, of another host, was seen to end without a word. */
bool health_is_lost(const rondo_comm *comm, int rank);
/* Writes the call of a task in words: "all_reduce of 17 float32, sum". */
void health_describe(const struct task *task, char *text, size_t size);
/* The number of a call as its user counts, who does not know of ours. */
static inline uint32_t health_users_number(const rondo_comm *comm, uint32_t call)
{
    return call - comm->internal;
}

#endif
