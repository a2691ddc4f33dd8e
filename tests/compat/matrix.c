/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix.c - every collective with every type and operation, against what it should give. */
#include "bodies.h"

#include <stdlib.h>
#include <string.h>

enum { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, GATHER, SCATTER };

static bool reduces(int collective)
{
    return collective == ALL_REDUCE || collective == REDUCE || collective == REDUCE_SCATTER;
}

static bool has_root(int collective)
{
    return collective == REDUCE || collective == BROADCAST || collective == GATHER ||
           collective == SCATTER;
}

static int input_blocks(const struct client *client, const struct matrix_call *call)
{
    switch (call->collective) {
    case REDUCE_SCATTER:
    case ALL_TO_ALL:
        return client->size;
    case SCATTER:
        return client->rank == call->root ? client->size : 0;
    case BROADCAST:
        return client->rank == call->root ? 1 : 0;
    default:
        return 1;
    }
}

static int output_blocks(const struct client *client, const struct matrix_call *call)
{
    switch (call->collective) {
    case ALL_GATHER:
    case ALL_TO_ALL:
        return client->size;
    case GATHER:
        return client->rank == call->root ? client->size : 0;
    case REDUCE:
        return client->rank == call->root ? 1 : 0;
    default:
        return 1;
    }
}

/* Element `index` of block `block` of the result. */
static double expected(const struct client *client, const struct matrix_call *call, int block,
                       size_t index)
{
    size_t own = (size_t)client->rank * call->count + index;

    switch (call->collective) {
    case ALL_REDUCE:
    case REDUCE:
        return value_reduced(client->size, index, call->op);
    case REDUCE_SCATTER:
        return value_reduced(client->size, own, call->op);
    case BROADCAST:
        return value_of(call->root, index, call->op);
    case ALL_TO_ALL:
        return value_of(block, own, call->op);
    case SCATTER:
        return value_of(call->root, own, call->op);
    default:
        return value_of(block, index, call->op);
    }
}

/* Where both are, the shorter one is this rank's block of the longer one. */
static void place(const struct client *client, struct matrix_call *call, int inputs, int outputs)
{
    size_t block = call->count * value_bytes(call->type);
    size_t own = (size_t)client->rank * block;

    call->input = call->memory;
    call->output = call->memory + (size_t)inputs * block;
    if (!call->in_place || !inputs || !outputs)
        return;
    call->output = call->memory + (inputs > outputs ? own : 0);
    call->input = call->memory + (outputs > inputs ? own : 0);
}

bool matrix_prepare(struct client *client, struct matrix_call *call)
{
    int inputs = input_blocks(client, call);
    int outputs = output_blocks(client, call);
    size_t bytes = (size_t)inputs * call->count * value_bytes(call->type);
    char *host = malloc(bytes + 1);

    call->memory = client_alloc((size_t)(inputs + outputs) * call->count * value_bytes(call->type));
    place(client, call, inputs, outputs);
    value_fill(call->type, host, 0, (size_t)inputs * call->count, client->rank, call->op);
    client_write(call->input, host, bytes);
    free(host);
    return true;
}

bool matrix_enqueue(struct client *client, const struct matrix_call *call)
{
    const void *in = call->input;
    void *out = call->output;
    ncclComm_t comm = client->comm;
    cudaStream_t stream = client->stream;
    size_t count = call->count;

    switch (call->collective) {
    case ALL_REDUCE:
        return client_ok(client, ncclAllReduce(in, out, count, call->type, call->op, comm, stream),
                         "ncclAllReduce");
    case REDUCE:
        return client_ok(client,
                         ncclReduce(in, out, count, call->type, call->op, call->root, comm, stream),
                         "ncclReduce");
    case BROADCAST:
        return client_ok(client,
                         ncclBroadcast(in, out, count, call->type, call->root, comm, stream),
                         "ncclBroadcast");
    case ALL_GATHER:
        return client_ok(client, ncclAllGather(in, out, count, call->type, comm, stream),
                         "ncclAllGather");
    case REDUCE_SCATTER:
        return client_ok(client,
                         ncclReduceScatter(in, out, count, call->type, call->op, comm, stream),
                         "ncclReduceScatter");
    case ALL_TO_ALL:
        return client_ok(client, ncclAlltoAll(in, out, count, call->type, comm, stream),
                         "ncclAlltoAll");
    case GATHER:
        return client_ok(client, ncclGather(in, out, count, call->type, call->root, comm, stream),
                         "ncclGather");
    default:
        return client_ok(client, ncclScatter(in, out, count, call->type, call->root, comm, stream),
                         "ncclScatter");
    }
}

bool matrix_check(struct client *client, const struct matrix_call *call)
{
    int blocks = output_blocks(client, call);
    size_t element = value_bytes(call->type);
    size_t bytes = (size_t)blocks * call->count * element;
    char *host = malloc(2 * bytes + 1);
    char *wanted = host + bytes;
    bool fine;

    client_read(host, call->output, bytes);
    for (int block = 0; block < blocks; block++)
        for (size_t i = 0; i < call->count; i++)
            value_store(call->type, wanted + ((size_t)block * call->count + i) * element,
                        expected(client, call, block, i));
    fine = memcmp(host, wanted, bytes) == 0;
    free(host);
    return fine || client_say(client,
                              "collective %d of %zu elements of type %d, op %d, root %d, in place "
                              "%d: rank %d of %d has a wrong result",
                              call->collective, call->count, (int)call->type, (int)call->op,
                              call->root, call->in_place, client->rank, client->size);
}

void matrix_done(struct matrix_call *call)
{
    client_free(call->memory);
}

static bool try(struct client *client, struct matrix_call call)
{
    bool fine = matrix_prepare(client, &call) && matrix_enqueue(client, &call);

    if (!client_wait(client->stream))
        fine = client_say(client, "the stream failed");
    fine = fine && matrix_check(client, &call);
    matrix_done(&call);
    return fine;
}

static bool try_types(struct client *client, struct matrix_call call)
{
    bool power_of_two = (client->size & (client->size - 1)) == 0;
    bool fine = true;

    for (int type = 0; type < ncclNumTypes && fine; type++) {
        call.type = (ncclDataType_t)type;
        /* a third is no number of these types */
        if (call.op == ncclAvg && !power_of_two && type >= ncclFloat16)
            continue;
        fine = try(client, call);
    }
    return fine;
}

bool matrix_run(struct client *client)
{
    static const size_t counts[] = {0, 1, 3, 1000};
    bool fine = true;

    for (int collective = 0; collective < MATRIX_COLLECTIVES && fine; collective++)
        for (int op = 0; op < (reduces(collective) ? ncclNumOps : 1) && fine; op++)
            for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && fine; i++)
                for (int in_place = 0; in_place < 2 && fine; in_place++)
                    fine = try_types(
                        client,
                        (struct matrix_call){
                            .collective = collective,
                            .op = (ncclRedOp_t)op,
                            .count = counts[i],
                            .root = has_root(collective) ? (int)(i % (size_t)client->size) : 0,
                            .in_place = in_place && collective != ALL_TO_ALL});
    return fine;
}
