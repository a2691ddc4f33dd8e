/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call.c - the collectives that users call. All of them fill a rondo_call; rondo_collective_call()
 * checks it and runs it, queues it, or leaves it to the group.
 */
#include "comm/engine/call.h"
#include "comm/engine/fast_path.h"
#include "comm/engine/stream.h"
#include "comm/failure/error.h"

#include "base/cancel.h"
#include "base/collective.h"
#include "base/fail.h"
#include "kernels/kernels.h"

#include <stdint.h>
#include <string.h>

/* A root, or a peer, which is passed on as one. */
static bool has_root_or_peer(rondo_collective collective)
{
    return collective_has_root(collective) || collective_is_pair(collective);
}

/* Asked for in sentences only: a call takes less than a tenth of a microsecond. */
static const char *name_of(const rondo_call *call)
{
    return rondo_collective_name(call->collective);
}

static rondo_result check_root(const rondo_call *call)
{
    bool pair = collective_is_pair(call->collective);

    if (!has_root_or_peer(call->collective) || (call->root >= 0 && call->root < call->comm->size))
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_INVALID, "%s: %s is %d, but the communicator has ranks 0 to %d.",
                      name_of(call), pair ? "the peer" : "the root", call->root,
                      call->comm->size - 1);
}

/* Bytes of a block. */
static size_t block_of(const rondo_call *call)
{
    return call->count * kernel_type_bytes[call->type];
}

static rondo_result check_count(const rondo_call *call)
{
    size_t element = (unsigned)call->type < RONDO_TYPES ? kernel_type_bytes[call->type] : 0;
    size_t bytes;

    if (!element)
        return rondo_fail(RONDO_ERROR_INVALID, "%s: there is no type number %d.", name_of(call),
                          (int)call->type);
    /* Half of the address space, so that sums of offsets cannot overflow either. */
    if (__builtin_mul_overflow(call->count, element * (size_t)call->comm->size, &bytes) ||
        bytes > SIZE_MAX / 2)
        return rondo_fail(
            RONDO_ERROR_INVALID,
            "%s: a count of %zu %s elements for each of %d ranks is more than memory can hold.",
            name_of(call), call->count, rondo_type_name(call->type), call->comm->size);
    return RONDO_OK;
}

/* True if input and output overlap other than being the same memory in the way that "in place"
 * allows. */
static bool overlaps_wrongly(const rondo_call *call, size_t input_bytes, size_t output_bytes)
{
    const char *input = call->input;
    const char *output = call->output;
    size_t block = block_of(call);
    size_t own = (size_t)call->comm->rank * block;

    if (!input_bytes || !output_bytes || input + input_bytes <= output ||
        output + output_bytes <= input)
        return false;
    if (input_bytes == output_bytes)
        return input != output;
    return input_bytes < output_bytes ? input != output + own : output != input + own;
}

/* Both are there, and no collective's input and output, were they ever so long, would overlap. */
static bool are_apart(const rondo_call *call, size_t block)
{
    const char *input = call->input;
    const char *output = call->output;
    size_t most = block * (size_t)call->comm->size;

    return input && output &&
           (input < output ? (size_t)(output - input) : (size_t)(input - output)) >= most;
}

static rondo_result check_buffers(const rondo_call *call)
{
    const rondo_comm *comm = call->comm;
    size_t block = block_of(call), input_bytes, output_bytes;

    if (are_apart(call, block))
        return RONDO_OK;
    input_bytes =
        block * (size_t)plan_input_blocks(call->collective, comm->size, comm->rank, call->root);
    output_bytes =
        block * (size_t)plan_output_blocks(call->collective, comm->size, comm->rank, call->root);

    if (input_bytes && !call->input)
        return rondo_fail(RONDO_ERROR_INVALID, "%s: rank %d gave no input (NULL) for %zu bytes.",
                          name_of(call), comm->rank, input_bytes);
    if (output_bytes && !call->output)
        return rondo_fail(RONDO_ERROR_INVALID, "%s: rank %d gave no output (NULL) for %zu bytes.",
                          name_of(call), comm->rank, output_bytes);
    if (overlaps_wrongly(call, input_bytes, output_bytes))
        return rondo_fail(RONDO_ERROR_INVALID,
                          "%s: input and output of rank %d overlap, but not as in-place calls may: "
                          "equal if they are as long, else the shorter is block %d of the longer.",
                          name_of(call), comm->rank, comm->rank);
    return RONDO_OK;
}

static bool overlaps(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (const char *)a < (const char *)b + b_bytes &&
           (const char *)b < (const char *)a + a_bytes;
}

bool call_uses(int size, int rank, const struct choice_key *key, const void *input,
               const void *output, const void *memory, size_t bytes)
{
    size_t block = key->count * kernel_type_bytes[key->type];
    int inputs = plan_input_blocks(key->collective, size, rank, key->root);
    int outputs = plan_output_blocks(key->collective, size, rank, key->root);

    return overlaps(input, (size_t)inputs * block, memory, bytes) ||
           overlaps(output, (size_t)outputs * block, memory, bytes);
}

static rondo_result check_operation(const rondo_call *call, struct operation *ret_made)
{
    ret_made->handle = 0;
    if (!collective_reduces(call->collective) || operation_is_plain(call->op, call->type))
        return RONDO_OK;
    return operations_resolve(&call->comm->operations, call->op, call->type, call->comm->size,
                              ret_made);
}

/* A name of the caller's becomes one of ours, which lasts. */
static rondo_result check_algorithm(const rondo_call *call, const char **ret_algorithm)
{
    const struct algorithm *algorithm;

    *ret_algorithm = NULL;
    if (!call->algorithm)
        return RONDO_OK;
    if (strcmp(call->algorithm, "auto") == 0) {
        *ret_algorithm = "auto";
        return RONDO_OK;
    }
    algorithm = algorithm_find(call->algorithm);
    if (!algorithm)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED, "%s: there is no algorithm \"%s\".",
                          name_of(call), call->algorithm);
    *ret_algorithm = algorithm->name;
    return RONDO_OK;
}

rondo_result call_check_but_buffers(const rondo_call *call, struct task *ret_task)
{
    const char *algorithm = NULL;
    rondo_result result;

    if ((unsigned)call->collective >= RONDO_COLLECTIVES)
        return rondo_fail(RONDO_ERROR_INVALID, "There is no collective number %d.",
                          (int)call->collective);
    result = check_root(call);
    if (!result)
        result = check_count(call);
    if (!result)
        result = check_operation(call, &ret_task->made);
    if (!result)
        result = check_algorithm(call, &algorithm);
    if (result)
        return result;
    task_init(ret_task,
              &(struct choice_key){
                  .collective = call->collective,
                  .type = call->type,
                  .op = collective_reduces(call->collective) ? call->op : 0,
                  .root = has_root_or_peer(call->collective) ? call->root : 0,
                  .own = ret_task->made.handle ? (int)ret_task->made.own : 0,
                  .count = call->collective == RONDO_BARRIER ? 0 : call->count,
                  .algorithm = algorithm,
              },
              call->input, call->output);
    return RONDO_OK;
}

rondo_result call_check(const rondo_call *call, struct task *ret_task)
{
    rondo_result result = call_check_but_buffers(call, ret_task);

    return result ? result : check_buffers(call);
}

rondo_result call_refuse(rondo_comm *comm, rondo_collective collective, rondo_result result)
{
    struct batch batch;

    if (!comm->settle || collective_is_pair(collective) || fork_is_foreign(comm->home))
        return result;
    comm_break(comm, result, comm->rank);
    batch_open(&batch, comm, NULL, 0);
    return run_batches(&batch, 1);
}

static rondo_result run_new(const rondo_call *call, rondo_result result)
{
    CANCEL_LATER();
    struct task task;

    if (!result) {
        result = call_check(call, &task);
        if (result)
            result = call_refuse(call->comm, call->collective, result);
    }
    if (result) {
        if (group_is_open())
            group_spoil(result);
        return comm_note_error(call->comm, result);
    }
    if (call->stream && fork_is_foreign(call->stream->home))
        return comm_note_error(call->comm, fork_refuse(name_of(call), "stream"));
    if (group_is_open())
        return group_add_call(call->comm, call->stream, &task);
    if (call->stream)
        return call->stream->ops->add_batches(
            call->stream, &(struct batch){.comm = call->comm, .tasks = &task, .count = 1}, 1);
    return fast_path_run_new(call, &task);
}

/* An error that no communicator is told of. */
static rondo_result spoil(rondo_result result)
{
    if (group_is_open())
        group_spoil(result);
    return result;
}

static rondo_result run(const rondo_call *call)
{
    rondo_result result;
    bool grouped;

    if (!call->comm)
        return spoil(
            rondo_fail(RONDO_ERROR_INVALID, "%s: the communicator is NULL.", name_of(call)));
    result = comm_check(call->comm);
    if (result && call->comm->settle && !fork_is_foreign(call->comm->home))
        return run_new(call, RONDO_OK); /* peers may not know, and agree with this rank about it */
    if (!result && !call->stream) {
        if (group_repeat_call(call, &grouped))
            return RONDO_OK;
        if (!grouped && fast_path_run(call, &result))
            return result;
    }
    return run_new(call, result);
}

rondo_result rondo_collective_call(const rondo_call *call)
{
    if (!call || call->struct_size != sizeof(*call))
        return spoil(rondo_fail(RONDO_ERROR_INVALID,
                                "rondo_collective_call: struct_size must be sizeof(rondo_call)."));
    return run(call);
}

/* A call of the public function that it stands in, by its parameters of these names. */
#define CALL(...) \
    (&(rondo_call){.struct_size = sizeof(rondo_call), .comm = comm, .stream = stream, __VA_ARGS__})

rondo_result rondo_all_reduce(const void *input, void *output, size_t count, rondo_type type,
                              rondo_op op, rondo_comm *comm, rondo_stream *stream)
{
    return run(CALL(.collective = RONDO_ALL_REDUCE, .input = input, .output = output,
                    .count = count, .type = type, .op = op));
}

rondo_result rondo_reduce(const void *input, void *output, size_t count, rondo_type type,
                          rondo_op op, int root, rondo_comm *comm, rondo_stream *stream)
{
    return run(CALL(.collective = RONDO_REDUCE, .input = input, .output = output, .count = count,
                    .type = type, .op = op, .root = root));
}

rondo_result rondo_reduce_scatter(const void *input, void *output, size_t count, rondo_type type,
                                  rondo_op op, rondo_comm *comm, rondo_stream *stream)
{
    return run(CALL(.collective = RONDO_REDUCE_SCATTER, .input = input, .output = output,
                    .count = count, .type = type, .op = op));
}

rondo_result rondo_broadcast(const void *input, void *output, size_t count, rondo_type type,
                             int root, rondo_comm *comm, rondo_stream *stream)
{
    return run(CALL(.collective = RONDO_BROADCAST, .input = input, .output = output, .count = count,
                    .type = type, .root = root));
}

rondo_result rondo_all_gather(const void *input, void *output, size_t count, rondo_type type,
                              rondo_comm *comm, rondo_stream *stream)
{
    return run(CALL(.collective = RONDO_ALL_GATHER, .input = input, .output = output,
                    .count = count, .type = type));
}

rondo_result rondo_all_to_all(const void *input, void *output, size_t count, rondo_type type,
                              rondo_comm *comm, rondo_stream *stream)
{
    return run(CALL(.collective = RONDO_ALL_TO_ALL, .input = input, .output = output,
                    .count = count, .type = type));
}

rondo_result rondo_gather(const void *input, void *output, size_t count, rondo_type type, int root,
                          rondo_comm *comm, rondo_stream *stream)
{
    return run(CALL(.collective = RONDO_GATHER, .input = input, .output = output, .count = count,
                    .type = type, .root = root));
}

rondo_result rondo_scatter(const void *input, void *output, size_t count, rondo_type type, int root,
                           rondo_comm *comm, rondo_stream *stream)
{
    return run(CALL(.collective = RONDO_SCATTER, .input = input, .output = output, .count = count,
                    .type = type, .root = root));
}

rondo_result rondo_barrier(rondo_comm *comm, rondo_stream *stream)
{
    return run(CALL(.collective = RONDO_BARRIER, .count = 0, .type = RONDO_UINT8));
}

rondo_result rondo_send(const void *input, size_t count, rondo_type type, int peer,
                        rondo_comm *comm, rondo_stream *stream)
{
    return run(
        CALL(.collective = RONDO_SEND, .input = input, .count = count, .type = type, .root = peer));
}

rondo_result rondo_recv(void *output, size_t count, rondo_type type, int peer, rondo_comm *comm,
                        rondo_stream *stream)
{
    return run(CALL(.collective = RONDO_RECV, .output = output, .count = count, .type = type,
                    .root = peer));
}
