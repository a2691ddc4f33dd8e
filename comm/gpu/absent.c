/* SPDX-License-Identifier: BSD-3-Clause */
/* absent.c - stands in for gpu*.c where the CUDA toolkit was not installed. */
#include "comm/gpu/gpu.h"

#include "rondo/cuda.h"

#include "base/fail.h"
#include "transport/link/device_memory.h"

static rondo_result refuse(void)
{
    return rondo_fail(RONDO_ERROR_UNSUPPORTED, "This Rondo was built without CUDA: install the "
                                               "CUDA toolkit and build again.");
}

/* No communicator has them. */
const struct backend gpu_backend = {.run = run_batches, .advance = exec_advance};

int gpu_current(void)
{
    return -1;
}

rondo_result gpu_open(int number, struct gpu **ret_gpu)
{
    *ret_gpu = NULL;
    return number < 0 ? RONDO_OK : refuse();
}

rondo_result gpu_make_endpoint(rondo_comm *comm, struct device_endpoint *endpoint)
{
    (void)comm;
    (void)endpoint;
    return RONDO_OK;
}

rondo_result gpu_connect(rondo_comm *comm)
{
    (void)comm;
    return RONDO_OK;
}

rondo_result gpu_settle(rondo_comm *comm)
{
    (void)comm;
    return RONDO_OK;
}

void gpu_agree(rondo_comm *comm)
{
    (void)comm;
}

const struct device_source *gpu_device_source(const rondo_comm *comm, enum device_way *ret_way)
{
    (void)comm;
    *ret_way = DEVICE_STAGED;
    return NULL;
}

void gpu_query(struct gpu *gpu)
{
    (void)gpu;
}

bool gpu_shut(rondo_comm *comm)
{
    (void)comm;
    return true;
}

void gpu_stop(struct gpu *gpu)
{
    (void)gpu;
}

bool gpu_close(struct gpu *gpu, const rondo_comm *comm)
{
    (void)gpu;
    (void)comm;
    return true;
}

rondo_result rondo_cuda_check(void)
{
    return refuse();
}

rondo_result rondo_stream_open_cuda(void *cuda_stream, rondo_stream **ret_stream)
{
    (void)cuda_stream;
    (void)ret_stream;
    return refuse();
}

rondo_result rondo_cuda_mem_alloc(size_t bytes, void **ret_memory)
{
    (void)bytes;
    (void)ret_memory;
    return refuse();
}

rondo_result rondo_cuda_mem_free(void *memory)
{
    return memory ? refuse() : RONDO_OK;
}

int rondo_comm_cuda_device(const rondo_comm *comm)
{
    (void)comm;
    return -1;
}
