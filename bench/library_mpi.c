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
#include "bench/protocol.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS_MAX = 2 * BENCH_LINES_MAX }; /* a sendrecv has two */

struct mpi {
    int rank, size;
    char sentence[MPI_MAX_ERROR_STRING];
    /* Of calls that go on together: communicators behind the first one, and what is waited for. */
    MPI_Comm *more;
    int more_count;
    MPI_Request requests[REQUESTS_MAX];
    int request_count;
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

static void mpi_close(void *memory)
{
    struct mpi *mpi = memory;

    for (int i = 0; mpi && i < mpi->more_count; i++)
        MPI_Comm_free(&mpi->more[i]);
    if (mpi) {
        free(mpi->more);
        MPI_Finalize();
    }
    free(mpi);
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
    if (call->in_place &&
        (call->collective == BENCH_REDUCE_SCATTER || call->collective == BENCH_REDUCE_SCATTER_V))
        return "MPI puts an in-place result at the start of the buffer, not into the rank's block";
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000
    if (call->in_place && call->collective == BENCH_REDUCE && call->root != 0)
        return "MPICH 4.0 crashes when it reduces in place to a root other than 0";
#endif
    if (call->collective == BENCH_OPEN)
        return "MPI is opened once in the life of a process; ask for dup";
    if (call->count > INT_MAX || (bench_collective_has_counts(call->collective) &&
                                  call->count > INT_MAX / (size_t)((struct mpi *)state)->size))
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

/* The lists of counts and of the places where blocks begin are written for every call. */
static int call_with_counts(const struct mpi *mpi, const struct bench_call *call, const void *input,
                            void *output)
{
    MPI_Datatype type = type_of(call->type);
    const void *from = call->in_place ? MPI_IN_PLACE : input;
    int *counts = malloc(2 * (size_t)mpi->size * sizeof(*counts)), *begins = counts + mpi->size;
    int code = MPI_ERR_NO_MEM;

    for (int rank = 0; counts && rank < mpi->size; rank++) {
        counts[rank] = (int)call->count;
        begins[rank] = rank * (int)call->count;
    }
    if (counts && call->collective == BENCH_ALL_GATHER_V)
        code = MPI_Allgatherv(from, counts[0], type, output, counts, begins, type, MPI_COMM_WORLD);
    else if (counts && call->collective == BENCH_REDUCE_SCATTER_V)
        code = MPI_Reduce_scatter(from, output, counts, type, op_of(call->op), MPI_COMM_WORLD);
    else if (counts)
        code =
            MPI_Alltoallv(from, counts, begins, type, output, counts, begins, type, MPI_COMM_WORLD);
    free(counts);
    return code;
}

/* MPICH says "ignore" by an address that the compiler knows to hold no statuses. */
#pragma GCC diagnostic push
#ifndef __clang__ /* does not know this warning */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif
static int wait_for(int count, MPI_Request *requests)
{
    return MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}
#pragma GCC diagnostic pop

/* ---- Pairs of ranks, and opening ------------------------------------------------------------- */

static int ping_pong(const struct mpi *mpi, const struct bench_call *call, const void *input,
                     void *output, int partner)
{
    MPI_Datatype type = type_of(call->type);
    int count = (int)call->count;
    int code = MPI_SUCCESS;

    if (mpi->rank < partner)
        code = MPI_Send(input, count, type, partner, 0, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS)
        code = MPI_Recv(output, count, type, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && mpi->rank > partner)
        code = MPI_Send(input, count, type, partner, 0, MPI_COMM_WORLD);
    return code;
}

/* A window of messages: from the lower rank, or both ways. */
static int window(const struct mpi *mpi, const struct bench_call *call, const void *input,
                  void *output, int partner)
{
    bool both = call->collective == BENCH_BIDIRECTIONAL;
    MPI_Datatype type = type_of(call->type);
    MPI_Request requests[2 * BENCH_WINDOW];
    int count = (int)call->count;
    int made = 0;

    for (int i = 0; i < BENCH_WINDOW && (both || mpi->rank > partner); i++)
        MPI_Irecv(output, count, type, partner, 0, MPI_COMM_WORLD, &requests[made++]);
    for (int i = 0; i < BENCH_WINDOW && (both || mpi->rank < partner); i++)
        MPI_Isend(input, count, type, partner, 0, MPI_COMM_WORLD, &requests[made++]);
    return wait_for(made, requests);
}

static int of_pair(const struct mpi *mpi, const struct bench_call *call, const void *input,
                   void *output)
{
    int partner = bench_partner(mpi->rank, mpi->size);
    MPI_Datatype type = type_of(call->type);
    int code;

    if (partner < 0)
        return MPI_SUCCESS;
    if (call->collective == BENCH_LATENCY)
        return ping_pong(mpi, call, input, output, partner);
    code = window(mpi, call, input, output, partner);
    if (code != MPI_SUCCESS || call->collective == BENCH_BIDIRECTIONAL)
        return code;
    return mpi->rank < partner
               ? MPI_Recv(output, 1, type, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
               : MPI_Send(input, 1, type, partner, 1, MPI_COMM_WORLD);
}

static int dup(void)
{
    MPI_Comm another;
    int code = MPI_Comm_dup(MPI_COMM_WORLD, &another);

    return code == MPI_SUCCESS ? MPI_Comm_free(&another) : code;
}

/* Keeps what MPI says of a code other than success. */
static int end(struct mpi *mpi, int code)
{
    int length = 0;

    if (code != MPI_SUCCESS)
        MPI_Error_string(code, mpi->sentence, &length);
    return code != MPI_SUCCESS;
}

static int mpi_run(void *state, const struct bench_call *call, const void *input, void *output)
{
    struct mpi *mpi = state;

    if (call->collective == BENCH_DUP)
        return end(mpi, dup());
    if (bench_collective_has_counts(call->collective))
        return end(mpi, call_with_counts(mpi, call, input, output));
    if (bench_collective_is_of_pairs(call->collective))
        return end(mpi, of_pair(mpi, call, input, output));
    return end(mpi, bench_collective_is_rooted(call->collective)
                        ? call_rooted(mpi, call, input, output)
                        : call_all(mpi, call, input, output));
}

/* ---- Calls that go on together --------------------------------------------------------------- */

static int mpi_begin(void *state, int communicators, bool background)
{
    struct mpi *mpi = state;
    int code = MPI_SUCCESS;

    mpi->request_count = 0;
    if (mpi->more_count + 1 >= communicators)
        return 0;
    mpi->more = realloc(mpi->more, (size_t)communicators * sizeof(*mpi->more));
    while (mpi->more && code == MPI_SUCCESS && mpi->more_count + 1 < communicators) {
        code = MPI_Comm_dup(MPI_COMM_WORLD, &mpi->more[mpi->more_count]);
        mpi->more_count += code == MPI_SUCCESS;
    }
    return mpi->more ? end(mpi, code) : -1;
}

/* A way is where a call goes that is begun. */
struct way {
    MPI_Comm comm;
    MPI_Request *request;
};

static int start_rooted(const struct mpi *mpi, const struct way *way, const struct bench_call *call,
                        const void *input, void *output)
{
    MPI_Datatype type = type_of(call->type);
    bool in_place = call->in_place && mpi->rank == call->root;
    const void *from = in_place ? MPI_IN_PLACE : input;
    int count = (int)call->count;

    switch (call->collective) {
    case BENCH_REDUCE:
        return MPI_Ireduce(from, output, count, type, op_of(call->op), call->root, way->comm,
                           way->request);
    case BENCH_GATHER:
        return MPI_Igather(from, count, type, output, count, type, call->root, way->comm,
                           way->request);
    case BENCH_SCATTER:
        return MPI_Iscatter(input, count, type, in_place ? MPI_IN_PLACE : output, count, type,
                            call->root, way->comm, way->request);
    default:
        if (!call->in_place && mpi->rank == call->root)
            memcpy(output, input, call->count * pattern_type_bytes(call->type));
        return MPI_Ibcast(output, count, type, call->root, way->comm, way->request);
    }
}

static int start_all(const struct way *way, const struct bench_call *call, const void *input,
                     void *output)
{
    MPI_Datatype type = type_of(call->type);
    const void *from = call->in_place ? MPI_IN_PLACE : input;
    int count = (int)call->count;

    switch (call->collective) {
    case BENCH_ALL_REDUCE:
        return MPI_Iallreduce(from, output, count, type, op_of(call->op), way->comm, way->request);
    case BENCH_ALL_GATHER:
        return MPI_Iallgather(from, count, type, output, count, type, way->comm, way->request);
    case BENCH_REDUCE_SCATTER:
        return MPI_Ireduce_scatter_block(from, output, count, type, op_of(call->op), way->comm,
                                         way->request);
    case BENCH_ALL_TO_ALL:
        return MPI_Ialltoall(from, count, type, output, count, type, way->comm, way->request);
    default:
        return MPI_Ibarrier(way->comm, way->request);
    }
}

/* The first of its two requests is made here. */
static int start_sendrecv(struct mpi *mpi, const struct way *way, const struct bench_call *call,
                          const void *input, void *output)
{
    int right = (mpi->rank + 1) % mpi->size, left = (mpi->rank + mpi->size - 1) % mpi->size;
    MPI_Datatype type = type_of(call->type);
    int count = (int)call->count;
    int code = MPI_Irecv(output, count, type, left, 0, way->comm, way->request);

    if (code != MPI_SUCCESS)
        return code;
    return MPI_Isend(input, count, type, right, 0, way->comm, &mpi->requests[mpi->request_count++]);
}

static int mpi_start(void *state, const struct bench_call *call, int communicator,
                     const void *input, void *output)
{
    struct mpi *mpi = state;
    struct way way = {communicator ? mpi->more[communicator - 1] : MPI_COMM_WORLD,
                      &mpi->requests[mpi->request_count++]};

    if (call->collective == BENCH_SENDRECV)
        return end(mpi, start_sendrecv(mpi, &way, call, input, output));
    return end(mpi, bench_collective_is_rooted(call->collective)
                        ? start_rooted(mpi, &way, call, input, output)
                        : start_all(&way, call, input, output));
}

static int mpi_finish(void *state)
{
    struct mpi *mpi = state;

    return end(mpi, wait_for(mpi->request_count, mpi->requests));
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
    .begin = mpi_begin,
    .start = mpi_start,
    .finish = mpi_finish,
};
