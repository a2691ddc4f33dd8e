/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * operation.c - types and operations by NCCL's numbers.
 *
 * A scalar on the device is to be read while the collective runs. Rondo takes scalars when an
 * operation is made, so with one on the device an operation is made for each call, from what the
 * scalar is then: the call waits for the stream to come that far.
 */
#include "compat/compat.h"

#include <stdlib.h>
#include <string.h>

enum { OPERATIONS_MOST = 4096 };

bool compat_type_of(ncclDataType_t type, rondo_type *ret_type)
{
    static const rondo_type types[ncclNumTypes] = {
        [ncclInt8] = RONDO_INT8,
        [ncclUint8] = RONDO_UINT8,
        [ncclInt32] = RONDO_INT32,
        [ncclUint32] = RONDO_UINT32,
        [ncclInt64] = RONDO_INT64,
        [ncclUint64] = RONDO_UINT64,
        [ncclFloat16] = RONDO_FLOAT16,
        [ncclFloat32] = RONDO_FLOAT32,
        [ncclFloat64] = RONDO_FLOAT64,
        [ncclBfloat16] = RONDO_BFLOAT16,
        [ncclFloat8e4m3] = RONDO_FLOAT8_E4M3,
        [ncclFloat8e5m2] = RONDO_FLOAT8_E5M2,
    };

    if ((unsigned)type >= ncclNumTypes)
        return false;
    *ret_type = types[type];
    return true;
}

/* A copy of what the client made under this number. */
static bool find(ncclComm_t comm, ncclRedOp_t op, struct made_operation *ret_operation)
{
    int index = (int)op - ncclNumOps;

    pthread_mutex_lock(&comm->lock);
    ret_operation->used = index >= 0 && index < comm->operation_count;
    if (ret_operation->used)
        *ret_operation = comm->operations[index];
    pthread_mutex_unlock(&comm->lock);
    return ret_operation->used;
}

static ncclResult_t make_from_device(ncclComm_t comm, const struct made_operation *made,
                                     cudaStream_t stream, rondo_op *ret_op)
{
    unsigned char scalar[SCALAR_MAX];
    ncclResult_t result = ncclSuccess;
    rondo_type type;

    if (!compat_type_of(made->type, &type))
        return compat_fail(comm, ncclInternalError, "An operation of no type was made.");
    if (comm->device < 0)
        memcpy(scalar, made->scalar, rondo_type_size(type));
    else
        result = compat_device_read(comm, scalar, made->scalar, rondo_type_size(type), stream);
    if (result)
        return result;
    return compat_result(comm, rondo_op_create_premul_sum(comm->calls, scalar, type, ret_op));
}

ncclResult_t compat_operation_of(ncclComm_t comm, ncclRedOp_t op, ncclDataType_t type,
                                 cudaStream_t stream, rondo_op *ret_op, bool *ret_made)
{
    static const rondo_op operations[ncclNumOps] = {
        [ncclSum] = RONDO_SUM, [ncclProd] = RONDO_PROD, [ncclMax] = RONDO_MAX,
        [ncclMin] = RONDO_MIN, [ncclAvg] = RONDO_AVG,
    };
    struct made_operation made;

    *ret_made = false;
    if ((unsigned)op < ncclNumOps) {
        *ret_op = operations[op];
        return ncclSuccess;
    }
    if (!find(comm, op, &made))
        return compat_fail(comm, ncclInvalidArgument,
                           "There is no operation %d on this communicator; it was not made, or it "
                           "is destroyed.",
                           (int)op);
    if (made.type != type)
        return compat_fail(comm, ncclInvalidArgument,
                           "Operation %d was made for type %d, but the call is of type %d.",
                           (int)op, (int)made.type, (int)type);
    *ret_op = made.op;
    *ret_made = made.scalar != NULL;
    return made.scalar ? make_from_device(comm, &made, stream, ret_op) : ncclSuccess;
}

/* With the lock held: a free place; -1: none. */
static int find_place(ncclComm_t comm)
{
    struct made_operation *moved;

    for (int i = 0; i < comm->operation_count; i++)
        if (!comm->operations[i].used)
            return i;
    if (comm->operation_count == OPERATIONS_MOST)
        return -1;
    moved = realloc(comm->operations, ((size_t)comm->operation_count + 1) * sizeof(*moved));
    if (!moved)
        return -1;
    comm->operations = moved;
    return comm->operation_count++;
}

static ncclResult_t add(ncclComm_t comm, const struct made_operation *made, ncclRedOp_t *ret_op)
{
    int place;

    pthread_mutex_lock(&comm->lock);
    place = find_place(comm);
    if (place >= 0)
        comm->operations[place] = *made;
    pthread_mutex_unlock(&comm->lock);
    if (place < 0)
        return compat_fail(comm, ncclSystemError,
                           "There is no room for one more operation; destroy some.");
    *ret_op = (ncclRedOp_t)(ncclNumOps + place);
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclRedOpCreatePreMulSum, ncclRedOp_t *op, void *scalar,
         ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm)
{
    struct made_operation made = {.used = true, .type = datatype};
    ncclResult_t result = communicator_check(comm, "ncclRedOpCreatePreMulSum");
    rondo_type type;

    if (result)
        return result;
    if (!op || !scalar || !compat_type_of(datatype, &type))
        return compat_fail(comm, ncclInvalidArgument,
                           "ncclRedOpCreatePreMulSum: needs a scalar, a type that exists and a "
                           "place for the operation.");
    if (residence == ncclScalarDevice)
        made.scalar = scalar;
    else
        result =
            compat_result(comm, rondo_op_create_premul_sum(comm->calls, scalar, type, &made.op));
    return result ? result : add(comm, &made, op);
}

NCCL_API(ncclResult_t, ncclRedOpDestroy, ncclRedOp_t op, ncclComm_t comm)
{
    struct made_operation made;
    ncclResult_t result = communicator_check(comm, "ncclRedOpDestroy");

    if (result)
        return result;
    if (!find(comm, op, &made))
        return compat_fail(comm, ncclInvalidArgument,
                           "ncclRedOpDestroy: there is no operation %d that was made on this "
                           "communicator.",
                           (int)op);
    pthread_mutex_lock(&comm->lock);
    comm->operations[op - ncclNumOps].used = false;
    pthread_mutex_unlock(&comm->lock);
    return made.scalar ? ncclSuccess : compat_result(comm, rondo_op_destroy(comm->calls, made.op));
}
