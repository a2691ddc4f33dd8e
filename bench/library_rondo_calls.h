/* SPDX-License-Identifier: BSD-3-Clause */
/* library_rondo_calls.h - what a call of the benchmark is in Rondo. */
#ifndef RONDO_BENCH_LIBRARY_RONDO_CALLS_H
#define RONDO_BENCH_LIBRARY_RONDO_CALLS_H

#include "bench/collective.h"

/* Returns the call of a collective below BENCH_SENDRECV. */
rondo_call bench_request(const struct bench_call *call, const void *input, void *output,
                         rondo_comm *comm, rondo_stream *stream);

/* Returns microseconds by the cost model, of the algorithm by which the same call has just run;
 * negative: it does not know the call. */
double bench_estimate(const struct bench_call *call, rondo_comm *comm);

/* Makes a call with a count for each rank, every one of which is call->count. */
rondo_result bench_call_with_counts(const struct bench_call *call, const void *input, void *output,
                                    rondo_comm *comm, rondo_stream *stream);

#endif
