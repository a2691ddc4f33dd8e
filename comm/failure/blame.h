/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blame.h - who is it that all of us wait for?
 *
 * A rank that is silent in the middle of a call makes its neighbours wait, and those theirs. So a
 * rank whose wait lasts shows on its status page that it lives and waits (`heartbeats`), and whom
 * it holds to be the cause (`blames`), which it finds about once a millisecond:
 *
 *     a peer that it waits for, and that has no heartbeat:  that peer, at distance 1
 *     a peer that has heartbeats, and blames a rank at distance d:  that rank, at distance d + 1
 *     of several the nearest; it never blames itself, nor a rank farther away than there are ranks
 *
 *     rank 0 --waits for--> rank 1 --waits for--> rank 3, stopped
 *     blames 3, distance 2  blames 3, distance 1          has no heartbeat
 *
 * A rank that has stopped may have shown before that it waited for another one: without heartbeats
 * that counts for nothing. What is blamed in a circle of ranks that all wait gets farther away with
 * every look, until nobody believes it. Between hosts the two words travel with the answers to the
 * questions that network_ops.watch asks. Nothing of this happens in a call that does not wait for
 * long.
 */
#ifndef RONDO_COMM_FAILURE_BLAME_H
#define RONDO_COMM_FAILURE_BLAME_H

#include "comm/state/blame.h"
#include "rondo/rondo.h"

struct batch;
struct task;

/* Look at the wait of a batch that has the turn: show that this rank lives, and find whom to
 * blame. */
void blame_look(struct batch *batch, double now);
/* Does what blame_look() does for a call on a CUDA stream; the thread that watches the stream calls
 * it. */
void blame_look_at_stream(rondo_comm *comm, const struct task *task, double began, double now);
/* Returns the seconds after which a peer without a heartbeat counts as silent. */
double blame_patience(const rondo_comm *comm);

#endif
