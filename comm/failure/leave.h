/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leave.h - leaving a call that has failed, so that no peer touches the caller's memory any more.
 *
 * A rank that touches memory of peers does so `inside`, a word on its status page that all can
 * read; a rank that fails rings the alarm of every rank of the host, a word that each looks at in
 * memory of its own:
 *
 *     to touch                              to leave
 *       inside + 1                            failed = why, with a sentence
 *       alarm? leave with an error            alarm of every peer = 1
 *       touch                                 inside of every peer = 0? return the error
 *       alarm? leave with an error            not for a while? take the memory back, return it
 *       tell others, inside - 1
 *
 * `inside` is a count, as a rank may receive several messages beside a collective. A collective is
 * left when any rank has failed in it, a message when its sender has failed; and a sender returns
 * when its receiver has given back what it took, so nobody is told after that.
 *
 * Both sides store before they look, so one of them sees the other: a peer that did not see the
 * alarm is waited for. And one that touched memory whose owner had left finds the alarm before it
 * makes use of what it read, tells others, or returns RONDO_OK.
 *
 * A peer that is stopped inside may go on at any time, for ever. So it is not waited for long: the
 * pages under the memory are exchanged (memory/withdrawn.h), and what it stores goes to pages
 * that nobody uses until it has closed the communicator or ended. Memory that is not in the heap is
 * only ever read by other processes (cross-memory attach): they may read what the caller has put
 * there since, but not use it. Ranks in this process run whenever it does: they are waited for.
 *
 * tests/models/leave.pml is a model of this.
 */
#ifndef RONDO_COMM_FAILURE_LEAVE_H
#define RONDO_COMM_FAILURE_LEAVE_H

#include "comm/state/task.h"
#include "transport/memory/lease.h"

/* Makes the lease on the arena, and from now on calls of other communicators that fail know of this
 * one. */
rondo_result leave_enlist(rondo_comm *comm);
/* Undo leave_enlist(); accepts a communicator that is not listed. */
void leave_delist(rondo_comm *comm);
/* True if the function is, which is called for the communicators of this process until then. None
 * of them is closed meanwhile. */
bool leave_any(bool (*function)(rondo_comm *comm, void *context), void *context);

/* A rank of this host has left the call in progress: its sentence is ours. */
rondo_result leave_too(rondo_comm *comm);
/* True if the alarm of this rank has been rung. The fence keeps earlier reads of peers' memory
 * before it. */
static inline bool leave_hears(const rondo_comm *comm)
{
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(comm->world.alarm, memory_order_acquire);
}
/* The task's plan is done. RONDO_OK: so is the call, and its result is right. */
rondo_result leave_warily(rondo_comm *comm, struct task *task);
/* Leaves the call like leave_warily(), with a short way for most calls: they waited for every peer,
 * and told none of their memory. */
static inline rondo_result leave_well(rondo_comm *comm, struct task *task)
{
    if (task->choice->deaf_channels || task->execution.plan->address_messages || !task->numbered ||
        leave_hears(comm))
        return leave_warily(comm, task);
    status_end(comm->status_pages[comm->rank], comm->calls);
    return RONDO_OK;
}

/*
 * Begins to leave the calls of a batch that has failed, or goes on with that; never waits. True: no
 * peer touches memory of its calls from now on, so the error may be returned; false: ask again.
 */
bool leave_done(struct batch *batch);
/* Peers use no buffer of this rank any more. */
void leave_unexposed(const rondo_comm *comm);
/*
 * The pages of [begin, end) are about to be exchanged, for a call of the communicator `context`.
 * What peers of another one write there from then on would be lost, and `emptied` says that they
 * would read zeros (heap.h): so that one is broken, and its peers hear of it before this returns.
 */
void leave_warn(void *context, const char *begin, const char *end, bool emptied);
/* The alarm is on: is the collective in progress, the last one that began, spoilt? */
bool leave_spoils(const rondo_comm *comm);
/* The alarm is on: has this rank failed, so that its memory is no longer what it was? */
bool leave_lost(const rondo_comm *comm, int rank);
/* Every rank of this host is to look at the status pages. From any thread. */
void leave_ring(const rondo_comm *comm);

/* A lease that is over when every other rank of this host has closed the communicator or ended.
 * NULL: out of memory. */
struct lease *leave_lease(const rondo_comm *comm);
/* A communicator that `parent` was split into could not be opened. If it is broken and does not
 * know its peers, the lease on its arena is over when they have closed the parent: before that they
 * close what they opened of it. */
void leave_with(rondo_comm *comm, const rondo_comm *parent);
/* Waits for threads that break communicators in leave_warn(): before one of them is taken apart. */
void leave_pass(void);
/* Peers hear that this rank closes it, and makes no more calls; it may have to wait before that is
 * done, for calls of other communicators, which may wait for these peers. */
void leave_soon(const rondo_comm *comm);
/* This rank closes it, and touches nothing of peers from now on. Its status page stays until the
 * lease on the arena ends: peers read there what it called, and why it stopped. */
void leave_for_good(const rondo_comm *comm);

#endif
