/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call.c - the collectives, and send and receive.
 *
 * On a communicator with a device a call is queued on the client's CUDA stream. Without CUDA there
 * is nothing that a client could wait for, so the call is done when it returns.
 */
#include "compat/compat.h"

/* The arguments of an NCCL call that Rondo's call does not have. */
struct extra {
    const char *function;
    ncclComm_t comm;
    cudaStream_t stream;
    ncclDataType_t type;
    ncclRedOp_t op;
    const ncclCollConfig_t *config;
};

/* A scalar on the device made an operation for this call alone, which has it by now. */
static void forget(const rondo_call *call, bool made)
{
    if (made)
        rondo_op_destroy(call->comm, call->op);
}

static ncclResult_t run(rondo_call *call, const struct extra *extra)
{
    ncclComm_t comm = extra->comm;
    ncclResult_t result;
    bool made = false;

    if (!compat_type_of(extra->type, &call->type))
        return compat_fail(comm, ncclInvalidArgument, "%s: there is no type number %d.",
                           extra->function, (int)extra->type);
    call->struct_size = sizeof(*call);
    call->comm = comm->calls;
    result = compat_config_algorithm(comm, extra->config, &call->algorithm);
    if (!result)
        result = compat_stream(comm, extra->stream, &call->stream);
    if (!result)
        result = compat_operation_of(comm, extra->op, extra->type, extra->stream, &call->op, &made);
    if (!result)
        result = compat_group_add_call(comm);
    if (!result)
        result = compat_result(comm, rondo_collective_call(call));
    forget(call, made);
    return result;
}

static ncclResult_t make(rondo_collective collective, rondo_call call, struct extra extra)
{
    ncclResult_t result = communicator_enter(extra.comm, extra.function);

    if (result)
        return compat_spoil(result);
    call.collective = collective;
    result = run(&call, &extra);
    communicator_leave(extra.comm);
    return compat_spoil(result);
}

/* All of these have a function that takes options as well, since NCCL 2.31. */
#define BUFFERS(from, to, elements, root_or_peer) \
    ((rondo_call){.input = from, .output = to, .count = elements, .root = root_or_peer})
#define EXTRA(name, ...) \
    ((struct extra){.function = name, .comm = comm, .stream = stream, __VA_ARGS__})

NCCL_API(ncclResult_t, ncclAllReduceConfig, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
         const ncclCollConfig_t *config)
{
    return make(RONDO_ALL_REDUCE, BUFFERS(sendbuff, recvbuff, count, 0),
                EXTRA("ncclAllReduce", .type = datatype, .op = op, .config = config));
}

NCCL_API(ncclResult_t, ncclAllReduce, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return pncclAllReduceConfig(sendbuff, recvbuff, count, datatype, op, comm, stream, NULL);
}

NCCL_API(ncclResult_t, ncclReduceConfig, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
         const ncclCollConfig_t *config)
{
    return make(RONDO_REDUCE, BUFFERS(sendbuff, recvbuff, count, root),
                EXTRA("ncclReduce", .type = datatype, .op = op, .config = config));
}

NCCL_API(ncclResult_t, ncclReduce, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    return pncclReduceConfig(sendbuff, recvbuff, count, datatype, op, root, comm, stream, NULL);
}

NCCL_API(ncclResult_t, ncclBroadcastConfig, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream,
         const ncclCollConfig_t *config)
{
    return make(RONDO_BROADCAST, BUFFERS(sendbuff, recvbuff, count, root),
                EXTRA("ncclBroadcast", .type = datatype, .config = config));
}

NCCL_API(ncclResult_t, ncclBroadcast, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    return pncclBroadcastConfig(sendbuff, recvbuff, count, datatype, root, comm, stream, NULL);
}

NCCL_API(ncclResult_t, ncclBcast, void *buff, size_t count, ncclDataType_t datatype, int root,
         ncclComm_t comm, cudaStream_t stream)
{
    return pncclBroadcastConfig(buff, buff, count, datatype, root, comm, stream, NULL);
}

NCCL_API(ncclResult_t, ncclAllGatherConfig, const void *sendbuff, void *recvbuff, size_t sendcount,
         ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
         const ncclCollConfig_t *config)
{
    return make(RONDO_ALL_GATHER, BUFFERS(sendbuff, recvbuff, sendcount, 0),
                EXTRA("ncclAllGather", .type = datatype, .config = config));
}

NCCL_API(ncclResult_t, ncclAllGather, const void *sendbuff, void *recvbuff, size_t sendcount,
         ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
    return pncclAllGatherConfig(sendbuff, recvbuff, sendcount, datatype, comm, stream, NULL);
}

NCCL_API(ncclResult_t, ncclReduceScatterConfig, const void *sendbuff, void *recvbuff,
         size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
         cudaStream_t stream, const ncclCollConfig_t *config)
{
    return make(RONDO_REDUCE_SCATTER, BUFFERS(sendbuff, recvbuff, recvcount, 0),
                EXTRA("ncclReduceScatter", .type = datatype, .op = op, .config = config));
}

NCCL_API(ncclResult_t, ncclReduceScatter, const void *sendbuff, void *recvbuff, size_t recvcount,
         ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return pncclReduceScatterConfig(sendbuff, recvbuff, recvcount, datatype, op, comm, stream,
                                    NULL);
}

NCCL_API(ncclResult_t, ncclAlltoAllConfig, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
         const ncclCollConfig_t *config)
{
    return make(RONDO_ALL_TO_ALL, BUFFERS(sendbuff, recvbuff, count, 0),
                EXTRA("ncclAlltoAll", .type = datatype, .config = config));
}

NCCL_API(ncclResult_t, ncclAlltoAll, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
    return pncclAlltoAllConfig(sendbuff, recvbuff, count, datatype, comm, stream, NULL);
}

NCCL_API(ncclResult_t, ncclGatherConfig, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream,
         const ncclCollConfig_t *config)
{
    return make(RONDO_GATHER, BUFFERS(sendbuff, recvbuff, count, root),
                EXTRA("ncclGather", .type = datatype, .config = config));
}

NCCL_API(ncclResult_t, ncclGather, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    return pncclGatherConfig(sendbuff, recvbuff, count, datatype, root, comm, stream, NULL);
}

NCCL_API(ncclResult_t, ncclScatterConfig, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream,
         const ncclCollConfig_t *config)
{
    return make(RONDO_SCATTER, BUFFERS(sendbuff, recvbuff, count, root),
                EXTRA("ncclScatter", .type = datatype, .config = config));
}

NCCL_API(ncclResult_t, ncclScatter, const void *sendbuff, void *recvbuff, size_t count,
         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
    return pncclScatterConfig(sendbuff, recvbuff, count, datatype, root, comm, stream, NULL);
}

NCCL_API(ncclResult_t, ncclSend, const void *sendbuff, size_t count, ncclDataType_t datatype,
         int peer, ncclComm_t comm, cudaStream_t stream)
{
    return make(RONDO_SEND, BUFFERS(sendbuff, NULL, count, peer),
                EXTRA("ncclSend", .type = datatype));
}

NCCL_API(ncclResult_t, ncclRecv, void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
         ncclComm_t comm, cudaStream_t stream)
{
    return make(RONDO_RECV, BUFFERS(NULL, recvbuff, count, peer),
                EXTRA("ncclRecv", .type = datatype));
}
