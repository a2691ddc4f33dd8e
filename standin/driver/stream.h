/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.h - how the other subjects give work to a stream of the program.
 */
#pragma once

#include "standin/driver/op.h"

#include <cuda.h>
#include <stdbool.h>

/* Every function that takes a stream begins with this: it finds it, seen from the current context.
 * On success the lock is held. */
CUresult stream_enter(const char *function, CUstream handle, CUstream *ret_stream);

/* Puts `op` into the stream or its capture, and takes over the reference in any case; NULL
 * stands for "memory is out". Under the lock, which it gives up: a refused operation is closed
 * without it. */
CUresult stream_submit(CUstream stream, struct op *op);

/* The same, but keeps the lock, and takes over the reference on success only. */
CUresult stream_put(CUstream stream, struct op *op);

/* Does what stream_submit() does, for calls that captures of other streams may forbid. */
CUresult stream_submit_unsafe(CUstream stream, struct op *op);

/* Submits as stream_submit() does, then waits until it is done. `unsafe`: captures of other streams
 * may forbid the call. */
CUresult stream_submit_and_wait(CUstream stream, struct op *op, bool unsafe);

/* Gives up the handle of a stream. Under the lock. */
void stream_close(CUstream stream);

/* Sleeps until no host function is under way in any stream. Without the lock. */
void stream_await_host_functions(void);
