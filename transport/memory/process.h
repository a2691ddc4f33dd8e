/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process.h - the other processes of this node: what is used of their heaps is mapped here; and
 * whether they are alive.
 *
 * A process appears once however many communicators it shares with us. Its heap is opened through
 * /proc/PID/fd/N, which the kernel allows to processes of the same user, and is known to be the
 * right one by the random identity in it.
 */
#ifndef RONDO_TRANSPORT_MEMORY_PROCESS_H
#define RONDO_TRANSPORT_MEMORY_PROCESS_H

#include "transport/memory/heap.h"

struct process;

/* Find it in the table or map it; give it back with
 * process_detach(). Our own process is no special case. */
rondo_result process_attach(const struct heap_handle *handle, struct process **ret_process);
void process_detach(struct process *process); /* accepts NULL */
/* One more process_detach() is due. */
void process_hold(struct process *process);

bool process_is_own(const struct process *process);
int process_id(const struct process *process); /* its pid */
/* One system call; false as soon as the kernel has ended it. */
bool process_alive(const struct process *process);
/* True if the process of a handle that could not be attached has ended, as far as can be known. */
bool process_has_ended(const struct heap_handle *handle);
/* The address here of [offset, offset + bytes) of the process's heap, mapped from now on until the
 * last process_detach(). RONDO_ERROR_PEER: it is not inside of the heap; or another error. */
rondo_result process_map(struct process *process, uint64_t offset, size_t bytes, char **ret_memory);
/* The address here of [offset, offset + bytes) of what the process shows (shown.h); NULL if that is
 * not inside it. Only our own process may write there. */
void *process_shown(const struct process *process, uint64_t offset, size_t bytes);
/* True if process_read() would be allowed; no sentence either way. */
bool process_readable(const struct process *process, uint64_t address);
/* Copy out of its private memory (cross-memory attach). */
rondo_result process_read(const struct process *process, void *to, uint64_t from, size_t bytes);
/* A file that is open there as `file`, open here too: the same one, as after dup(). */
rondo_result process_take_file(const struct process *process, int file, int *ret_file);

#endif
