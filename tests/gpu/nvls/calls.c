/* SPDX-License-Identifier: BSD-3-Clause */
#include "../device.h"
#include "bodies.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 40000, OFFSET = 24 /* bytes: no boundary of a pack */, LONG = 32 << 10 };

struct buffers {
    char *host, *input, *output;
    size_t bytes;
};

struct call {
    rondo_collective collective;
    rondo_type type;
    rondo_op op;
    size_t count;
    bool in_place, odd; /* off the boundary of a pack */
};

static bool buffers_open(struct buffers *b, int size)
{
    b->bytes = (size_t)size * MOST * sizeof(double) + OFFSET;
    b->host = malloc(b->bytes);
    b->input = device_alloc(MEMORY_DEVICE, b->bytes);
    b->output = device_alloc(MEMORY_DEVICE, b->bytes);
    return b->host && b->input && b->output;
}

static void buffers_close(struct buffers *b)
{
    device_free(MEMORY_DEVICE, b->input);
    device_free(MEMORY_DEVICE, b->output);
    free(b->host);
}

static size_t input_count(const struct call *call, int size)
{
    return call->collective == RONDO_REDUCE_SCATTER ? call->count * (size_t)size : call->count;
}

static size_t output_count(const struct call *call, int size)
{
    return call->collective == RONDO_ALL_GATHER ? call->count * (size_t)size : call->count;
}

static rondo_result make(const struct gpu_rank *rank, const struct call *call, const void *input,
                         void *output)
{
    if (call->collective == RONDO_ALL_REDUCE)
        return rondo_all_reduce(input, output, call->count, call->type, call->op, rank->comm,
                                rank->stream);
    if (call->collective == RONDO_ALL_GATHER)
        return rondo_all_gather(input, output, call->count, call->type, rank->comm, rank->stream);
    return rondo_reduce_scatter(input, output, call->count, call->type, call->op, rank->comm,
                                rank->stream);
}

static bool is_right(const struct gpu_rank *rank, const struct call *call, const char *at,
                     const struct world_data *data)
{
    size_t element = rondo_type_size(call->type);
    int me = rondo_comm_rank(rank->comm);
    bool right = true;

    if (call->collective == RONDO_ALL_REDUCE)
        return world_check_reduced(data, 0, call->count, at, rank->sentence);
    if (call->collective == RONDO_REDUCE_SCATTER)
        return world_check_reduced(data, (size_t)me * call->count, call->count, at, rank->sentence);
    for (int i = 0; i < data->size && right; i++)
        right = world_check_moved(data, i, 0, call->count, at + (size_t)i * call->count * element,
                                  rank->sentence);
    return right;
}

static rondo_result check(struct gpu_rank *rank, const struct buffers *b, const struct call *call)
{
    int size = rondo_comm_size(rank->comm), me = rondo_comm_rank(rank->comm);
    size_t element = rondo_type_size(call->type), block = call->count * element;
    const struct world_data data = {.type = call->type,
                                    .op = call->collective == RONDO_ALL_GATHER ? WORLD_MOVED
                                                                               : (int)call->op,
                                    .size = size,
                                    .seed = call->count + (size_t)call->type};
    char *input = b->input + (call->odd ? OFFSET : 0), *output = b->output;
    rondo_result result;

    if (call->in_place && call->collective == RONDO_ALL_GATHER)
        input = output + (size_t)me * block;
    else if (call->in_place)
        output = input + (call->collective == RONDO_REDUCE_SCATTER ? (size_t)me * block : 0);
    world_fill(&data, me, input_count(call, size), b->host);
    if (!device_copy(input, b->host, input_count(call, size) * element))
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "no copy to the device");
    result = make(rank, call, input, output);
    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    if (result)
        return world_say(rank->sentence, result, "%s", rondo_last_error(rank->comm));
    if (!device_copy(b->host, output, output_count(call, size) * element))
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "no copy from the device");
    return is_right(rank, call, b->host, &data) ? RONDO_OK : RONDO_ERROR_INTERNAL;
}

/* True if multicast serves the type and the operation. */
static bool is_served(const struct call *call)
{
    bool ordered = call->op == RONDO_MIN || call->op == RONDO_MAX;

    return call->collective == RONDO_ALL_GATHER || call->op == RONDO_BXOR ||
           call->op == RONDO_SUM || (ordered && !world_is_float(call->type));
}

static bool is_long(const struct call *call, int size)
{
    size_t blocks = call->collective == RONDO_ALL_REDUCE ? 1 : (size_t)size;

    return blocks * call->count * rondo_type_size(call->type) > LONG;
}

static rondo_result check_counted(struct gpu_rank *rank, const struct buffers *b,
                                  const struct call *call, long *served)
{
    int size = rondo_comm_size(rank->comm), cases = rank->scene->cases;

    bool unasked = is_long(call, size) &&
                   (call->collective == RONDO_ALL_GATHER || !world_is_float(call->type));

    *served += is_served(call) && (cases == 1 || (cases == 2 && unasked));
    return check(rank, b, call);
}

static rondo_result call_all(struct gpu_rank *rank, const struct buffers *b, long *served)
{
    static const struct {
        rondo_type type;
        rondo_op op;
    } kinds[] = {
        {RONDO_FLOAT32, RONDO_SUM}, {RONDO_FLOAT16, RONDO_SUM}, {RONDO_BFLOAT16, RONDO_SUM},
        {RONDO_FLOAT64, RONDO_SUM}, {RONDO_INT32, RONDO_SUM},   {RONDO_INT32, RONDO_MIN},
        {RONDO_UINT32, RONDO_MAX},  {RONDO_INT64, RONDO_MIN},   {RONDO_UINT64, RONDO_SUM},
        {RONDO_UINT8, RONDO_BXOR},  {RONDO_FLOAT32, RONDO_MAX}};
    static const rondo_collective collectives[] = {RONDO_ALL_REDUCE, RONDO_ALL_GATHER,
                                                   RONDO_REDUCE_SCATTER};
    static const size_t counts[] = {1, 999, MOST};
    rondo_result result = RONDO_OK;

    for (int k = 0; k<11; k += rondo_comm_size(rank->comm)> 4 ? 4 : 1)
        for (int c = 0; c < 3; c++)
            for (int n = 0; n < 3 && !result; n++)
                result = check_counted(rank, b,
                                       &(struct call){.collective = collectives[c],
                                                      .type = kinds[k].type,
                                                      .op = kinds[k].op,
                                                      .count = counts[n],
                                                      .in_place = (k + n) % 2,
                                                      .odd = (k + c) % 2},
                                       served);
    return result;
}

/* Ranks that are threads count together. */
static rondo_result calls(struct gpu_rank *rank)
{
    struct buffers b = {0};
    long before = device_kernels("rondo_nvls"), served = 0, launched;
    rondo_result result =
        buffers_open(&b, rondo_comm_size(rank->comm)) ? RONDO_OK : RONDO_ERROR_MEMORY;

    if (!result)
        result = call_all(rank, &b, &served);
    launched = device_kernels("rondo_nvls") - before;
    if (!result && before >= 0 && (launched < served || (!served && launched)))
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL,
                           "%ld calls of %ld went through multicast", launched, served);
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    buffers_close(&b);
    return result;
}

rondo_result nvls_calls(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, calls);
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

static rondo_result capture(struct gpu_rank *rank, const struct buffers *b, CUgraphExec *ret_exec)
{
    const struct device_driver *cuda = device_driver();
    CUgraph graph = NULL;
    rondo_result result;

    if (cuda->cuStreamBeginCapture(rank->cuda_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
        return RONDO_ERROR_SYSTEM;
    result = rondo_all_reduce(b->input, b->output, MOST, RONDO_INT32, RONDO_SUM, rank->comm,
                              rank->stream);
    if (cuda->cuStreamEndCapture(rank->cuda_stream, &graph) ||
        cuda->cuGraphInstantiate(ret_exec, graph, 0) || cuda->cuGraphDestroy(graph))
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "no graph");
    return result;
}

static rondo_result replay(struct gpu_rank *rank, const struct buffers *b, CUgraphExec exec)
{
    const struct device_driver *cuda = device_driver();
    struct world_data data = {RONDO_INT32, RONDO_SUM, rondo_comm_size(rank->comm), 0};

    for (; data.seed < 5; data.seed++) {
        world_fill(&data, rondo_comm_rank(rank->comm), MOST, b->host);
        if (!device_copy(b->input, b->host, MOST * sizeof(int)) ||
            cuda->cuGraphLaunch(exec, rank->cuda_stream) ||
            cuda->cuStreamSynchronize(rank->cuda_stream) ||
            !device_copy(b->host, b->output, MOST * sizeof(int)))
            return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "no launch");
        if (!world_check_reduced(&data, 0, MOST, b->host, rank->sentence))
            return RONDO_ERROR_INTERNAL;
    }
    return RONDO_OK;
}

static rondo_result graphs(struct gpu_rank *rank)
{
    struct buffers b = {0};
    CUgraphExec exec = NULL;
    long before = device_kernels("rondo_nvls");
    rondo_result result = buffers_open(&b, 1) ? capture(rank, &b, &exec) : RONDO_ERROR_MEMORY;

    if (!result && before >= 0 && device_kernels("rondo_nvls") == before)
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "no multicast in the graph");
    if (!result)
        result = replay(rank, &b, exec);
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    device_driver()->cuGraphExecDestroy(exec);
    buffers_close(&b);
    return result;
}

rondo_result nvls_replays(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, graphs);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

/* Expect the error, in a sentence that has that word. */
static rondo_result expect(struct gpu_rank *rank, rondo_result wanted, const char *word,
                           rondo_result got)
{
    if (!got)
        got = rondo_stream_synchronize(rank->stream);
    if (got == wanted && strstr(rondo_last_error(rank->comm), word))
        return RONDO_OK;
    return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "got %s: %s", rondo_result_string(got),
                     rondo_last_error(rank->comm));
}

/* The call fails so; or this rank hears of it before it has looked whether `first`, the call before
 * that the others know to be over, is so here. */
static rondo_result expect_next(struct gpu_rank *rank, const struct buffers *b,
                                const struct call *call, rondo_result first, rondo_result wanted,
                                const char *word)
{
    if (first && first != wanted)
        return first;
    return expect(rank, wanted, word, first ? first : make(rank, call, b->input, b->output));
}

static rondo_result lose(struct gpu_rank *rank)
{
    struct buffers b = {0};
    const struct call call = {RONDO_ALL_REDUCE, RONDO_FLOAT32, RONDO_SUM, MOST, false, false};
    long before = device_kernels("rondo_nvls");
    rondo_result result = buffers_open(&b, 1) ? check(rank, &b, &call) : RONDO_ERROR_MEMORY;

    if (!result && before >= 0 && device_kernels("rondo_nvls") == before)
        return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "no multicast");
    if (!result && rondo_comm_rank(rank->comm) == rank->scene->victim)
        _exit(0);
    result = expect_next(rank, &b, &call, result, RONDO_ERROR_PEER, "has ended");
    rank->scene->passed[rondo_comm_rank(rank->comm)] = !result;
    buffers_close(&b);
    return result;
}

rondo_result nvls_loses_a_rank(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, lose);
}

/* Counts differ by one, so that all go through multicast. */
static rondo_result differ(struct gpu_rank *rank)
{
    struct buffers b = {0};
    struct call call = {RONDO_ALL_REDUCE, RONDO_FLOAT32, RONDO_SUM, MOST, false, false};
    rondo_result result = buffers_open(&b, 1) ? check(rank, &b, &call) : RONDO_ERROR_MEMORY;

    call.count -= rondo_comm_rank(rank->comm) == 1;
    result = expect_next(rank, &b, &call, result, RONDO_ERROR_MISMATCH, "all_reduce");
    buffers_close(&b);
    return result;
}

rondo_result nvls_differs(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, differ);
}
