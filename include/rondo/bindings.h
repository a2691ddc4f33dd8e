/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bindings.h - what bindings to other languages and frameworks, and layers above rondo.h, need
 * besides it: ids for ranks of several hosts, the outcome of each call on a stream, by which
 * algorithm a call ran, and whether calls are being collected.
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
 * "[V6]:PORT" of this host, which all ranks reach; port 0: any that is free. NULL: an address of
 * this host that other hosts reach (RONDO_INTERFACE chooses) and any port. This process listens for
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

/* The name of the algorithm by which the last collective of the communicator ran on this rank; ""
 * if there was none. Sends and receives have none, and launches of graphs are not seen. Ask when no
 * call runs or is queued. The name lasts as long as the communicator. */
RONDO_API const char *rondo_comm_last_algorithm(const rondo_comm *comm);

/* ---- Groups ---------------------------------------------------------------------------------- */

/* 1 if the calling thread has a group open, else 0. A function that needs the result of a call at
 * once has to refuse to run then: the call would only be collected. */
RONDO_API int rondo_group_is_open(void);

#ifdef __cplusplus
}
#endif
#endif
