/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memop.c - memory operations of streams: write a word, wait for a word.
 */
#include "standin/driver/base/call.h"
#include "standin/driver/base/poll.h"
#include "standin/driver/context.h"
#include "standin/driver/memory.h"
#include "standin/driver/queue.h"
#include "standin/driver/stream.h"

#include <stdatomic.h>
#include <stdint.h>

struct step {
    CUdeviceptr address;
    uint64_t value;
    unsigned flags;
    bool wide;
    bool wait;
};

struct memory_operation {
    struct op op;
    unsigned count;
    struct step steps[];
};

static uint64_t load(const struct step *step)
{
    /* Acquire, pairs with the release of whoever writes the word: store() or a kernel or the
     * program. */
    char *word = memory_bytes(step->address);
    if (step->wide)
        return atomic_load_explicit((_Atomic uint64_t *)(void *)word, memory_order_acquire);
    return atomic_load_explicit((_Atomic uint32_t *)(void *)word, memory_order_acquire);
}

static void store(const struct step *step)
{
    /* Release: what the stream did before is seen by who sees the word. */
    char *word = memory_bytes(step->address);
    if (step->wide)
        atomic_store_explicit((_Atomic uint64_t *)(void *)word, step->value, memory_order_release);
    else
        atomic_store_explicit((_Atomic uint32_t *)(void *)word, (uint32_t)step->value,
                              memory_order_release);
}

static bool is_met(const struct step *step)
{
    uint64_t word = load(step);
    uint64_t all = step->wide ? UINT64_MAX : UINT32_MAX;
    switch (step->flags & 3u) {
    case CU_STREAM_WAIT_VALUE_GEQ: /* cyclic: the difference is not negative */
        return step->wide ? (int64_t)(word - step->value) >= 0
                          : (int32_t)((uint32_t)word - (uint32_t)step->value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return word == step->value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (word & step->value) != 0;
    default: /* NOR */
        return (~(word | step->value) & all) != 0;
    }
}

static void run_operation(struct op *op)
{
    const struct memory_operation *operation = (struct memory_operation *)op;
    for (unsigned i = 0; i < operation->count; i++) {
        const struct step *step = &operation->steps[i];
        if (!step->wait)
            store(step);
        for (struct poll poll = {0}; step->wait && !is_met(step);)
            poll_pause(&poll);
    }
}

static void operation_places(const struct op *op, void (*each)(const void *address, size_t size))
{
    const struct memory_operation *operation = (const struct memory_operation *)op;
    for (unsigned i = 0; i < operation->count; i++)
        each(memory_bytes(operation->steps[i].address), operation->steps[i].wide ? 8 : 4);
}

static const struct op_kind operation_kind = {CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, run_operation, NULL,
                                              operation_places, NULL};

static bool is_legal(CUcontext context, const struct step *step)
{
    unsigned known = step->wait ? 3u | CU_STREAM_WAIT_VALUE_FLUSH
                                : (unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
    size_t width = step->wide ? 8 : 4;
    const struct memory *memory = memory_holding(step->address, width);
    if (!memory || step->address % width || step->flags & ~known)
        return false;
    return !memory_on_device(memory) || context_reaches(context, memory->device);
}

static bool take(const CUstreamBatchMemOpParams *from, struct step *step)
{
    switch (from->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        step->wait = true;
        step->wide = from->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
        step->address = from->waitValue.address;
        step->value = step->wide ? from->waitValue.value64 : from->waitValue.value;
        step->flags = from->waitValue.flags;
        return true;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        step->wide = from->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
        step->address = from->writeValue.address;
        step->value = step->wide ? from->writeValue.value64 : from->writeValue.value;
        step->flags = from->writeValue.flags;
        return true;
    default: /* a flush or a barrier: all is in order here */
        return false;
    }
}

static CUresult submit(const char *function, CUstream handle, unsigned count,
                       const CUstreamBatchMemOpParams *all)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(function, handle, &stream);
    if (result)
        return result;
    struct memory_operation *operation =
        op_new(sizeof *operation + count * sizeof operation->steps[0], &operation_kind);
    bool legal = true;
    for (unsigned i = 0; operation && i < count && legal; i++) {
        struct step *step = &operation->steps[operation->count];
        bool known = all[i].operation == CU_STREAM_MEM_OP_BARRIER ||
                     all[i].operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
        bool taken = take(&all[i], step);
        legal = taken ? is_legal(stream->context, step) : known;
        operation->count += taken;
    }
    if (legal)
        return stream_submit(stream, operation ? &operation->op : NULL);
    call_unlock();
    op_release(&operation->op);
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    CUstreamBatchMemOpParams one = {0};
    one.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    one.waitValue.address = address;
    one.waitValue.value = value;
    one.waitValue.flags = flags;
    return submit(__func__, stream, 1, &one);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
    CUstreamBatchMemOpParams one = {0};
    one.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
    one.waitValue.address = address;
    one.waitValue.value64 = value;
    one.waitValue.flags = flags;
    return submit(__func__, stream, 1, &one);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                              unsigned flags)
{
    CUstreamBatchMemOpParams one = {0};
    one.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    one.writeValue.address = address;
    one.writeValue.value = value;
    one.writeValue.flags = flags;
    return submit(__func__, stream, 1, &one);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                              unsigned flags)
{
    CUstreamBatchMemOpParams one = {0};
    one.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    one.writeValue.address = address;
    one.writeValue.value64 = value;
    one.writeValue.flags = flags;
    return submit(__func__, stream, 1, &one);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams *all,
                            unsigned flags)
{
    if (flags || !all || count > 256)
        return CUDA_ERROR_INVALID_VALUE;
    return submit(__func__, stream, count, all);
}
