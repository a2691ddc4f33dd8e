/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * network.h - a communicator's networks (transport/link/connection.h): ranks of other hosts.
 *
 * What ranks of one host read on each other's status pages travels here: mirrors, status pages in
 * this rank's own memory, are filled with what peers say, so health.c looks at all ranks in the
 * same way. A communicator within one host has no networks, and all of this returns at once.
 */
#ifndef RONDO_COMM_NETWORK_H
#define RONDO_COMM_NETWORK_H

#include "comm/state/comm.h"
#include "transport/link/connection.h"

static inline bool networks_any(const rondo_comm *comm)
{
    return comm->mirrors != NULL;
}

/* True if only networks tell whether this rank is there: its status page here is a mirror. */
static inline bool networks_mirror(const rondo_comm *comm, int rank)
{
    return comm->mirrors && comm->status_pages[rank] == &comm->mirrors[rank];
}

/* The functions by which networks ask the communicator and tell it. */
struct network_owner networks_owner(rondo_comm *comm);

/* Let networks move on; by the holder of the turn. An error has broken the communicator. */
rondo_result networks_progress(rondo_comm *comm, bool *ret_moved);
/* True if the call may end. ret_peer (may be NULL): a peer that it waits for. */
bool networks_flushed(rondo_comm *comm, int *ret_peer);
/* One pause of a blocked batch, as waiter_pause(); `local`: it also waits for ranks of this host,
 * which do not wake anybody. */
bool networks_pause(rondo_comm *comm, struct waiter *waiter, bool local);
/* About once a millisecond of waiting for `peer`: is it there? An error has broken the
 * communicator. */
rondo_result networks_watch(rondo_comm *comm, int peer);
/* A call of a group is done, and the next may write what it read: nothing waits to be sent from
 * memory of the caller any more. */
void networks_reclaim(rondo_comm *comm);
/* A call has failed: its memory is the caller's again. */
void networks_let_go(rondo_comm *comm);
/* Does without a peer that has closed its end: see network_failure.forsakes. */
void networks_forsake(rondo_comm *comm, int peer);
/* The communicator is broken. From any thread. */
void networks_tell(rondo_comm *comm, const struct network_failure *failure);

#endif
