/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library_mpi.c - MPI as the benchmark sees it. Compiled once per MPI that is installed; the two
 * never meet in one program.
 *
 * Broadcast exists in place only: out of place, the root copies its input to its output first, as a
 * caller who needs both would have to.
 */
#include "bench/library.h"
#include "bench/pattern.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mpi {
    int rank, size;
    char sentence[MPI_MAX_ERROR_STRING];
};

static void *mpi_open(struct bench_place *place)
{
    struct mpi *mpi = calloc(1, sizeof(*mpi));

    if (!mpi || MPI_Init(NULL, NULL) != MPI_SUCCESS) {
        free(mpi);
        return NULL;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi->size);
    place->rank = mpi->rank;
    place->size = mpi->size;
    return mpi;
}

static void mpi_close(void *state)
{
    if (state)
        MPI_Finalize();
    free(state);
}

/* MPI_DATATYPE_NULL for what the standard does not have. */
static MPI_Datatype type_of(rondo_type type)
{
    const MPI_Datatype types[RONDO_TYPES] = {
        [RONDO_INT8] = MPI_INT8_T,     [RONDO_UINT8] = MPI_UINT8_T,   [RONDO_INT16] = MPI_INT16_T,
        [RONDO_UINT16] = MPI_UINT16_T, [RONDO_INT32] = MPI_INT32_T,   [RONDO_UINT32] = MPI_UINT32_T,
        [RONDO_INT64] = MPI_INT64_T,   [RONDO_UINT64] = MPI_UINT64_T, [RONDO_FLOAT32] = MPI_FLOAT,
        [RONDO_FLOAT64] = MPI_DOUBLE,
    };

    return types[type] ? types[type] : MPI_DATATYPE_NULL;
}

/* MPI_OP_NULL, likewise. */
static MPI_Op op_of(rondo_op op)
{
    const MPI_Op ops[RONDO_OPS] = {
        [RONDO_SUM] = MPI_SUM,   [RONDO_PROD] = MPI_PROD, [RONDO_MIN] = MPI_MIN,
        [RONDO_MAX] = MPI_MAX,   [RONDO_BAND] = MPI_BAND, [RONDO_BOR] = MPI_BOR,
        [RONDO_BXOR] = MPI_BXOR,
    };

    return ops[op] ? ops[op] : MPI_OP_NULL;
}

static const char *mpi_lacks(void *state, const struct bench_call *call)
{
    bool reduces = bench_collective_reduces(call->collective);

    if (type_of(call->type) == MPI_DATATYPE_NULL)
        return "MPI has no such element type";
    if (reduces && op_of(call->op) == MPI_OP_NULL)
        return "MPI has no such operation";
    if (call->in_place && call->collective == BENCH_REDUCE_SCATTER)
        return "MPI puts an in-place result at the start of the buffer, not into the rank's block";
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000
    if (call->in_place && call->collective == BENCH_REDUCE && call->root != 0)
        return "MPICH 4.0 crashes when it reduces in place to a root other than 0";
#endif
    if (call->count > INT_MAX)
        return "MPI counts with an int";
    return NULL;
}

/* Out of place, MPI_Bcast is given the output. */
static int broadcast(const struct mpi *mpi, const struct bench_call *call, const void *input,
                     void *output)
{
    if (!call->in_place && mpi->rank == call->root)
        memcpy(output, input, call->count * pattern_type_bytes(call->type));
    return MPI_Bcast(output, (int)call->count, type_of(call->type), call->root, MPI_COMM_WORLD);
}

static int call_rooted(const struct mpi *mpi, const struct bench_call *call, const void *input,
                       void *output)
{
    MPI_Datatype type = type_of(call->type);
    bool in_place = call->in_place && mpi->rank == call->root;
    const void *from = in_place ? MPI_IN_PLACE : input;
    int count = (int)call->count;

    switch (call->collective) {
    case BENCH_REDUCE:
        return MPI_Reduce(from, output, count, type, op_of(call->op), call->root, MPI_COMM_WORLD);
    case BENCH_GATHER:
        return MPI_Gather(from, count, type, output, count, type, call->root, MPI_COMM_WORLD);
    case BENCH_SCATTER:
        return MPI_Scatter(input, count, type, in_place ? MPI_IN_PLACE : output, count, type,
                           call->root, MPI_COMM_WORLD);
    default:
        return broadcast(mpi, call, input, output);
    }
}

static int call_all(const struct mpi *mpi, const struct bench_call *call, const void *input,
                    void *output)
{
    MPI_Datatype type = type_of(call->type);
    MPI_Comm world = MPI_COMM_WORLD;
    const void *from = call->in_place ? MPI_IN_PLACE : input;
    int right = (mpi->rank + 1) % mpi->size;
    int left = (mpi->rank + mpi->size - 1) % mpi->size;
    int count = (int)call->count;

    switch (call->collective) {
    case BENCH_ALL_REDUCE:
        return MPI_Allreduce(from, output, count, type, op_of(call->op), world);
    case BENCH_ALL_GATHER:
        return MPI_Allgather(from, count, type, output, count, type, world);
    case BENCH_REDUCE_SCATTER:
        return MPI_Reduce_scatter_block(from, output, count, type, op_of(call->op), world);
    case BENCH_ALL_TO_ALL:
        return MPI_Alltoall(from, count, type, output, count, type, world);
    case BENCH_SENDRECV:
        return MPI_Sendrecv(input, count, type, right, 0, output, count, type, left, 0, world,
                            MPI_STATUS_IGNORE);
    default:
        return MPI_Barrier(world);
    }
}

static int mpi_run(void *state, const struct bench_call *call, const void *input, void *output)
{
    struct mpi *mpi = state;
    int length = 0;
    int code;

    code = bench_collective_is_rooted(call->collective) ? call_rooted(mpi, call, input, output)
                                                        : call_all(mpi, call, input, output);
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, mpi->sentence, &length);
    return code != MPI_SUCCESS;
}

static const char *mpi_error(void *state)
{
    return state ? ((struct mpi *)state)->sentence : "MPI_Init failed";
}

static void mpi_version(char *text, size_t room)
{
    char full[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;

    MPI_Get_library_version(full, &length);
    full[strcspn(full, ",\n")] = 0; /* the rest says who built it, and where */
    if (!strncmp(full, "MPICH", 5)) /* "MPICH Version:\t4.0.2" */
        snprintf(text, room, "MPICH %s", full + strcspn(full, "0123456789"));
    else
        snprintf(text, room, "%s", full);
}

const struct bench_library bench_the_library = {
    .open = mpi_open,
    .close = mpi_close,
    .lacks = mpi_lacks,
    .run = mpi_run,
    .error = mpi_error,
    .version = mpi_version,
};
