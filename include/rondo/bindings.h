/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bindings.h - what bindings to other languages and frameworks, and layers above rondo.h, need
 * besides it: ids for ranks of several hosts, the outcome of each call on a stream, short calls
 * that are begun and finished by whoever comes next, by which algorithm a call ran, and whether
 * calls are being collected.
 *
 * A binding that gives each call a future records an event behind the call on its stream, and a
 * function of its own behind that (rondo_stream_call()), which asks for the event's outcome and
 * completes the future. How long a call may wait for peers is rondo_comm_set_timeout(), also while
 * it waits. Communicators of some ranks, which only those open, are rondo_comm_open_among(), or
 * rondo_comm_open_id() with an id of their own.
 */
#ifndef RONDO_BINDINGS_H
#define RONDO_BINDINGS_H

#include "rondo/rondo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Ids for ranks of several hosts ---------------------------------------------------------- */

/*
 * An id as rondo_unique_id_create() makes it, whose ranks meet at `address`: "HOST:PORT" or
 * "[V6]:PORT" of this host, which all ranks reach; port 0: any that is free. "": an address of this
 * host that other hosts reach (RONDO_INTERFACE chooses) and any port. NULL: RONDO_ADDRESS, as
 * rondo_unique_id_create() reads it, or where that is not set as "". This process listens for
 * `timeout` seconds, then those who are there get RONDO_ERROR_TIMEOUT; 0: for ever, negative: the
 * `timeout` setting. Who has the id may join.
 */
RONDO_API rondo_result rondo_unique_id_create_at(const char *address, double timeout,
                                                 rondo_unique_id *ret_id);

/* ---- What became of a call ------------------------------------------------------------------- */

/*
 * The result of the last call, or group of calls, before the point that was recorded last, on a
 * stream of rondo_stream_open(): RONDO_OK, or its error, also where earlier calls of the stream had
 * errors of their own; rondo_last_error(NULL) has its sentence then. Waits for the point up to
 * `seconds` (0: not at all, negative: for ever), and is RONDO_IN_PROGRESS if it has not come by
 * then. Asking changes nothing: also not the error that rondo_stream_synchronize() will return. On
 * a CUDA stream the outcome is RONDO_OK: ask rondo_comm_query() there. From any thread.
 */
RONDO_API rondo_result rondo_event_outcome(rondo_event *event, double seconds);

/* ---- Short calls without a stream that are finished later ------------------------------------ */

typedef struct rondo_request rondo_request;

/*
 * Begin a call, as rondo_collective_call() does with no stream, and send all that this rank has to
 * send, but wait for no peer. RONDO_OK: the call is over, and *ret_request is NULL; or it goes on,
 * and the caller owns *ret_request. Then the next call on the communicator, from any thread, and
 * its closing finish it first, so a program that never asks for it loses nothing; peers wait for
 * nothing of this rank meanwhile. Its buffers belong to it until it is over.
 *
 * RONDO_IN_PROGRESS: nothing was begun, as not all of its messages can be sent at once: others on
 * the communicator are not over, it is too long, its algorithm passes on what has come, peers are
 * on other hosts, a device takes part, its operation is the user's own, or results are agreed on
 * (`uniform`). Queue it on a stream then. Not in a group.
 */
RONDO_API rondo_result rondo_collective_post(const rondo_call *call, rondo_request **ret_request);

/* Go on with the call until it is over, up to `seconds` (0: as far as it comes, negative: for
 * ever). RONDO_IN_PROGRESS if it is not over by then, else its result, whose sentence
 * rondo_last_error(NULL) has. Several threads may wait, but not beside the closing of the
 * communicator. */
RONDO_API rondo_result rondo_request_wait(rondo_request *request, double seconds);

/* Free it; accepts NULL. A call that is not over goes on. */
RONDO_API void rondo_request_close(rondo_request *request);

/* The name of the algorithm by which the last collective of the communicator ran on this rank; ""
 * if there was none. Sends and receives have none, and launches of graphs are not seen. Ask when no
 * call runs or is queued. The name lasts as long as the communicator. */
RONDO_API const char *rondo_comm_last_algorithm(const rondo_comm *comm);

/* ---- Groups ---------------------------------------------------------------------------------- */

/* 1 if the calling thread has a group open, else 0. A function that needs the result of a call at
 * once has to refuse to run then: the call would only be collected. */
RONDO_API int rondo_group_is_open(void);

/* 1 if a call in the group that the calling thread has open needs the communicator (perhaps for
 * memory that is registered with it) or the stream, else 0; each may be NULL. To close what is
 * needed is refused: it stays open, and the group's end says why. */
RONDO_API int rondo_group_needs(rondo_comm *comm, rondo_stream *stream);

/* ---- Spans of the program's own in a trace --------------------------------------------------- */

/*
 * Something of the program's own begins, or has ended: the forward pass, the exchange of a bucket.
 * It is drawn with the calls where a trace is written (RONDO_TRACE, docs/trace.md), from the moment
 * on when the process has a communicator; elsewhere nothing happens. `number` tells spans of one
 * name from each other that are under way at the same time. Of a name, 119 bytes are kept, and of
 * all names and kinds of calls together the first thousand. From any thread.
 */
RONDO_API void rondo_trace_begin(const char *name, unsigned number);
RONDO_API void rondo_trace_end(const char *name, unsigned number);

#ifdef __cplusplus
}
#endif
#endif
