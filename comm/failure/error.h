/* SPDX-License-Identifier: BSD-3-Clause */
/* error.h - what a communicator remembers of errors, and how breaking it reaches the peers. */
#ifndef RONDO_COMM_FAILURE_ERROR_H
#define RONDO_COMM_FAILURE_ERROR_H

#include "comm/state/comm.h"

/* Keep the thread's last sentence as the communicator's; returns `result`. */
rondo_result comm_note_error(rondo_comm *comm, rondo_result result);
/* Notes the error like comm_note_error(), and breaks the communicator: peers on the node see it on
 * the status page. */
rondo_result comm_break(rondo_comm *comm, rondo_result result, int culprit);
/* Repeat the sentence of the failure that broke the communicator for this thread. */
rondo_result comm_say_broken(rondo_comm *comm);
/* The communicator, which fork_is_foreign(), was closed or is that of the process from which this
 * one was forked: says which. Takes no lock that the parent may have. */
rondo_result comm_refuse(const rondo_comm *comm, const char *function);
/* RONDO_OK, or why it is broken, with the sentence repeated for this thread. */
static inline rondo_result comm_check(rondo_comm *comm)
{
    if (fork_is_foreign(comm->home))
        return comm_refuse(comm, "A call");
    return atomic_load_explicit(&comm->broken, memory_order_acquire) ? comm_say_broken(comm)
                                                                     : RONDO_OK;
}

#endif
