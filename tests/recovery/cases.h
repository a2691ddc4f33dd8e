/* SPDX-License-Identifier: BSD-3-Clause */
/* cases.h - worlds of ranks in which some fail as expected. */
#ifndef RONDO_TESTS_RECOVERY_CASES_H
#define RONDO_TESTS_RECOVERY_CASES_H

#include "../world.h"

/* A rank whose communicator is broken, as expected, says this: it cannot be finalized. */
static const rondo_result AS_EXPECTED = RONDO_ERROR_UNSUPPORTED;

/* world_run() over a transport on this host's loopback, a peer being silent for the patience of
 * `timeout` seconds at most. */
int recovery_run(int size, bool processes, const char *transport, double timeout, world_body body,
                 void *argument, struct world_report *ret_report);
/* Returns when these ranks, of those that have said so by world_will_wait(), wait. */
void await_ranks(int first, int end);
/* RONDO_OK if an all_reduce has the ones of `expected` ranks, or what is wrong in `sentence`. */
rondo_result all_reduce_ones(rondo_comm *comm, int expected, char *sentence);

#endif
