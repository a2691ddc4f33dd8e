/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * answer.h - a thread that answers ranks of other hosts while this rank makes no calls.
 *
 * Networks move only when a call does. A rank that has left a call with an error, or has the
 * verdict of an agreement, may make none for long, while peers still want to connect to hear of it.
 * From then on until the communicator is closed a thread lets the networks move whenever nobody has
 * the turn. Within a host nothing of this is needed: status pages are read without their owner.
 */
#ifndef RONDO_COMM_FAILURE_ANSWER_H
#define RONDO_COMM_FAILURE_ANSWER_H

#include "comm/state/comm.h"

/* From any thread, any number of times. False: there is no such thread, and no network or no way to
 * start it. */
bool answer_start(rondo_comm *comm);
/* Before the networks are closed; accepts a communicator that has none. */
void answer_stop(rondo_comm *comm);

#endif
