/* SPDX-License-Identifier: BSD-3-Clause */
/* library_rondo_calls.c - what a call of the benchmark is in Rondo. */
#include "bench/library_rondo_calls.h"

#include "rondo/bindings.h"
#include "rondo/collectives.h"

#include <stdlib.h>

rondo_call bench_request(const struct bench_call *call, const void *input, void *output,
                         rondo_comm *comm, rondo_stream *stream)
{
    static const rondo_collective collectives[BENCH_COLLECTIVES] = {
        [BENCH_ALL_REDUCE] = RONDO_ALL_REDUCE,
        [BENCH_REDUCE] = RONDO_REDUCE,
        [BENCH_BROADCAST] = RONDO_BROADCAST,
        [BENCH_ALL_GATHER] = RONDO_ALL_GATHER,
        [BENCH_REDUCE_SCATTER] = RONDO_REDUCE_SCATTER,
        [BENCH_ALL_TO_ALL] = RONDO_ALL_TO_ALL,
        [BENCH_GATHER] = RONDO_GATHER,
        [BENCH_SCATTER] = RONDO_SCATTER,
        [BENCH_BARRIER] = RONDO_BARRIER,
    };

    return (rondo_call){
        .struct_size = sizeof(rondo_call),
        .collective = collectives[call->collective],
        .type = call->type,
        .op = call->op,
        .root = call->root,
        .input = input,
        .output = output,
        .count = call->count,
        .comm = comm,
        .stream = stream,
        .algorithm = call->algorithm[0] ? call->algorithm : NULL,
    };
}

/* An older build, which --base may name, cannot be asked. */
#pragma weak rondo_estimate

double bench_estimate(const struct bench_call *call, rondo_comm *comm)
{
    double microseconds = -1;
    rondo_call request;

    if (call->collective >= BENCH_SENDRECV || !rondo_estimate)
        return -1;
    request = bench_request(call, NULL, NULL, comm, NULL);
    if (!request.algorithm) /* the model would take any that buffers in reach of peers allow */
        request.algorithm = rondo_comm_last_algorithm(comm);
    if (!rondo_estimate(&request, &microseconds))
        return microseconds;
    request.algorithm = NULL; /* what ran has no name that can be asked for */
    return call->algorithm[0] || rondo_estimate(&request, &microseconds) ? -1 : microseconds;
}

/* The list of counts is written for every call, as a program does whose counts change; that is
 * little beside the n messages of such a call. */
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
