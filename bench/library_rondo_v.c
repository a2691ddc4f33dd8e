/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library_rondo_v.c - Rondo's collectives with a count for each rank.
 *
 * The list of counts is written for every call, as a program does whose counts change; that is
 * little beside the n messages of such a call.
 */
#include "bench/library_rondo_v.h"

#include "rondo/collectives.h"

#include <stdlib.h>

rondo_result bench_call_with_counts(const struct bench_call *call, const void *input, void *output,
                                    rondo_comm *comm, rondo_stream *stream)
{
    int size = rondo_comm_size(comm);
    size_t *counts = malloc((size_t)size * sizeof(*counts));
    rondo_result result = RONDO_ERROR_MEMORY;

    for (int rank = 0; counts && rank < size; rank++)
        counts[rank] = call->count;
    if (counts && call->collective == BENCH_ALL_GATHER_V)
        result = rondo_all_gather_v(input, output, counts, NULL, call->type, comm, stream);
    else if (counts && call->collective == BENCH_REDUCE_SCATTER_V)
        result =
            rondo_reduce_scatter_v(input, counts, NULL, output, call->type, call->op, comm, stream);
    else if (counts)
        result =
            rondo_all_to_all_v(input, counts, NULL, output, counts, NULL, call->type, comm, stream);
    free(counts);
    return result;
}
