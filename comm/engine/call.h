/* SPDX-License-Identifier: BSD-3-Clause */
/* call.h - from what the user asked for to a task:
 * everything that can be wrong with one rank's arguments. */
#ifndef RONDO_COMM_ENGINE_CALL_H
#define RONDO_COMM_ENGINE_CALL_H

#include "comm/engine/run.h"

/* RONDO_ERROR_INVALID with a sentence, or the task that does it. Nothing is started. */
rondo_result call_check(const rondo_call *call, struct task *ret_task);
rondo_result call_check_but_buffers(const rondo_call *call, struct task *ret_task);
/*
 * Returns the result of a call with wrong arguments. With the `uniform` setting that is the result
 * of all ranks, which wait for this one: it breaks the communicator then, and the others come to
 * the agreement about it.
 */
rondo_result call_refuse(rondo_comm *comm, rondo_collective collective, rondo_result result);

/* True if input or output of a call of rank `rank` of `size` have bytes in [memory, memory +
 * bytes). */
bool call_uses(int size, int rank, const struct choice_key *key, const void *input,
               const void *output, const void *memory, size_t bytes);

/* ---- call_group.c ---------------------------------------------------------------------------- */

bool group_is_open(void); /* of the calling thread */
/* Remember a call, or the joining of a communicator, until the group ends. */
rondo_result group_add_call(rondo_comm *comm, rondo_stream *stream, const struct task *task);
/* Does the same for a call without a stream that was one of the thread's last group; false: it was
 * not, or has to be checked again, or `ret_open` says that no group is open. */
bool group_repeat_call(const rondo_call *call, bool *ret_open);
/* `join` is called with `argument` in a thread of its own, beside others. `end` is called at last,
 * in any case, with the result of all joins of the group; the argument is its to free. */
rondo_result group_add_join(rondo_result (*join)(void *argument),
                            void (*end)(void *argument, rondo_result result), void *argument);
/* The call number `index` of the thread's open group; false: it has fewer. The key is good until
 * the group gets another call. */
bool group_look(size_t index, rondo_comm **ret_comm, struct choice_key *ret_key);
/* True if the thread's open group holds a call on the communicator, or on the stream; each may be
 * NULL. */
bool group_has_calls(const rondo_comm *comm, const rondo_stream *stream);
/* True if it holds such calls when `function` is about to close that: the group is spoilt then,
 * with a sentence that names it as `what`. */
bool group_holds(const rondo_comm *comm, const rondo_stream *stream, const char *function,
                 const char *what);
/* True if a call of it uses [memory, memory + bytes). */
bool group_uses(const void *memory, size_t bytes);
rondo_result group_check(void); /* RONDO_OK, or the error that spoiled it */
/* An error inside of a group makes the whole group fail. */
void group_spoil(rondo_result result);

#endif
