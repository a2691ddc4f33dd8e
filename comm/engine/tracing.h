/* SPDX-License-Identifier: BSD-3-Clause */
/* tracing.h - calls in the trace of a communicator that has one (base/trace/trace.h). */
#ifndef RONDO_COMM_ENGINE_TRACING_H
#define RONDO_COMM_ENGINE_TRACING_H

#include "base/trace/trace.h"
#include "comm/state/task.h"

/* A call begins, or its second attempt does. */
void trace_call(rondo_comm *comm, struct task *task);
/* The call has ended. */
void trace_call_end(const rondo_comm *comm, const struct task *task);

#endif
