/* SPDX-License-Identifier: BSD-3-Clause */
/* library_rondo_v.h - Rondo's collectives with a count for each rank. */
#ifndef RONDO_BENCH_LIBRARY_RONDO_V_H
#define RONDO_BENCH_LIBRARY_RONDO_V_H

#include "bench/collective.h"

/* Makes such a call, in which every rank's count is call->count. */
rondo_result bench_call_with_counts(const struct bench_call *call, const void *input, void *output,
                                    rondo_comm *comm, rondo_stream *stream);

#endif
