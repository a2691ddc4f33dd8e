/* SPDX-License-Identifier: BSD-3-Clause */
/* soak_device.c - a rank's CUDA device and its calls there, where there is a stand-in of CUDA. */
#include "soak.h"

#include "../gpu/device.h"

#include "rondo/cuda.h"

enum { MOST = 4096 }; /* bytes of a call */

static struct {
    CUstream cuda_stream;
    rondo_stream *stream;
    void *input, *output;
} own;

bool soak_device_open(int rank)
{
    int count = device_count();

    if (!count || !device_use(rank % count) ||
        device_driver()->cuStreamCreate(&own.cuda_stream, CU_STREAM_NON_BLOCKING) ||
        rondo_stream_open_cuda(own.cuda_stream, &own.stream))
        return false;
    own.input = device_alloc(MEMORY_DEVICE, MOST);
    own.output = device_alloc(MEMORY_DEVICE, MOST);
    return own.input && own.output;
}

void soak_device_close(void)
{
    rondo_stream_close(own.stream);
    device_driver()->cuStreamDestroy(own.cuda_stream);
    device_free(MEMORY_DEVICE, own.input);
    device_free(MEMORY_DEVICE, own.output);
}

rondo_result soak_device_all_reduce(const uint64_t *input, uint64_t *output, size_t count,
                                    rondo_op op, rondo_comm *comm)
{
    size_t bytes = count * sizeof(*input);
    rondo_result result, ended;

    if (bytes > MOST || !device_copy(own.input, input, bytes))
        return RONDO_ERROR_INVALID;
    result = rondo_all_reduce(own.input, own.output, count, RONDO_UINT64, op, comm, own.stream);
    ended = rondo_stream_synchronize(own.stream);
    if (result || ended)
        return result ? result : ended;
    return device_copy(output, own.output, bytes) ? RONDO_OK : RONDO_ERROR_INTERNAL;
}
