/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * staging.c - a batch whose memory the host cannot use works on copies of it.
 *
 * A task of a batch may read what an earlier one wrote, so all memory that overlaps is one piece
 * of the block.
 *
 * Memory of the host that is ready in the order of the stream is used where it is, also in a call
 * whose other buffer is on the device. Where the device moves the messages it is the other way
 * round: what it does not reach is brought to memory of the host that it does.
 */
#include "comm/gpu/inside.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };

static size_t padded(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* True if the memory is out of reach of the backend that works on the task. */
static bool is_foreign(const struct gpu *gpu, const struct task *task, const void *memory)
{
    enum cuda_memory kind = cuda_memory_kind(gpu->device.driver, memory);
    int number = -1;

    if (!task->backend->on_device)
        return kind >= CUDA_MEMORY_DEVICE;
    if (kind == CUDA_MEMORY_DEVICE)
        gpu->device.driver->cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                                  cuda_address(memory));
    return kind == CUDA_MEMORY_HOST || (kind == CUDA_MEMORY_DEVICE && number != gpu->device.number);
}

static bool is_plain(const struct gpu *gpu, const void *memory)
{
    return cuda_memory_kind(gpu->device.driver, memory) == CUDA_MEMORY_HOST;
}

static struct stage measure(const struct gpu *gpu, const rondo_comm *comm, const struct task *task)
{
    const struct choice_key *key = &task->key;
    size_t block = key->count * rondo_type_size(key->type);
    struct stage stage = {.user_input = task->input, .user_output = task->output};

    stage.input_bytes =
        block * (size_t)plan_input_blocks(key->collective, comm->size, comm->rank, key->root);
    stage.output_bytes =
        block * (size_t)plan_output_blocks(key->collective, comm->size, comm->rank, key->root);
    if (!stage.input_bytes || !is_foreign(gpu, task, task->input))
        stage.input_bytes = 0;
    if (!stage.output_bytes || !is_foreign(gpu, task, task->output))
        stage.output_bytes = 0;
    stage.plain_input = stage.input_bytes && is_plain(gpu, task->input);
    stage.plain_output = stage.output_bytes && is_plain(gpu, task->output);
    return stage;
}

/* Memory of the user without a gap. */
struct span {
    uintptr_t begin, end;
    size_t at; /* in the block */
};

static int compare(const void *a, const void *b)
{
    const struct span *left = a;
    const struct span *right = b;

    return left->begin < right->begin ? -1 : left->begin > right->begin;
}

/* Those that overlap become one; returns how many are left. */
static int merge(struct span *spans, int count, size_t *ret_bytes)
{
    int kept = 0;

    qsort(spans, (size_t)count, sizeof(*spans), compare);
    *ret_bytes = 0;
    for (int i = 0; i < count; i++) {
        struct span *last = kept ? &spans[kept - 1] : NULL;

        if (!last || spans[i].begin >= last->end)
            spans[kept++] = spans[i];
        else if (spans[i].end > last->end)
            last->end = spans[i].end;
    }
    for (int i = 0; i < kept; i++) {
        spans[i].at = *ret_bytes;
        *ret_bytes += padded(spans[i].end - spans[i].begin);
    }
    return kept;
}

static size_t find(const struct span *spans, int count, const void *memory)
{
    uintptr_t wanted = (uintptr_t)memory;
    int low = 0;

    for (int high = count; high - low > 1;) {
        int middle = low + (high - low) / 2;

        if (spans[middle].begin <= wanted)
            low = middle;
        else
            high = middle;
    }
    return spans[low].at + (wanted - spans[low].begin);
}

static int add(struct span *spans, int count, const void *memory, size_t bytes)
{
    if (!bytes)
        return count;
    spans[count] = (struct span){(uintptr_t)memory, (uintptr_t)memory + bytes, 0};
    return count + 1;
}

rondo_result stage_plan(struct gpu *gpu, const struct batch *batch, struct stage *ret_stages,
                        size_t *ret_bytes)
{
    struct span *spans = gpu_spare_take(gpu, 2 * (size_t)batch->count * sizeof(*spans));
    int count = 0;

    if (!spans)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %d calls.", batch->count);
    for (int i = 0; i < batch->count; i++) {
        struct stage *stage = &ret_stages[i];

        *stage = measure(gpu, batch->comm, &batch->tasks[i]);
        count = add(spans, count, stage->user_input, stage->input_bytes);
        count = add(spans, count, stage->user_output, stage->output_bytes);
    }
    count = merge(spans, count, ret_bytes);
    for (int i = 0; i < batch->count; i++) {
        struct stage *stage = &ret_stages[i];

        if (stage->input_bytes)
            stage->input_at = find(spans, count, stage->user_input);
        if (stage->output_bytes)
            stage->output_at = find(spans, count, stage->user_output);
    }
    gpu_spare_give(gpu, spans);
    return RONDO_OK;
}

void stage_place(struct stage *stages, struct task *tasks, int count, char *block, char *device)
{
    for (int i = 0; i < count; i++) {
        struct stage *stage = &stages[i];

        stage->input = block + stage->input_at;
        stage->output = block + stage->output_at;
        if (stage->input_bytes)
            tasks[i].input = device + stage->input_at;
        if (stage->output_bytes)
            tasks[i].output = device + stage->output_at;
    }
}

void stage_in_plain(const struct stage *stage)
{
    if (stage->plain_input)
        memcpy(stage->input, stage->user_input, stage->input_bytes);
}

void stage_out_plain(const struct stage *stage)
{
    if (stage->plain_output)
        memcpy(stage->user_output, stage->output, stage->output_bytes);
}

rondo_result stage_in(const struct gpu *gpu, const struct stage *stage, CUstream stream)
{
    const struct cuda_driver *cuda = gpu->device.driver;
    CUdeviceptr from = cuda_address(stage->user_input);

    if (!stage->input_bytes || stage->plain_input)
        return RONDO_OK;
    return cuda_result(cuda->cuMemcpyDtoHAsync(stage->input, from,
                                               cuda_copyable(cuda, from, stage->input_bytes),
                                               stream),
                       "cuMemcpyDtoHAsync of a call's input");
}

rondo_result stage_out(const struct gpu *gpu, const struct stage *stage, CUstream stream)
{
    const struct cuda_driver *cuda = gpu->device.driver;
    CUdeviceptr to = cuda_address(stage->user_output);

    if (!stage->output_bytes || stage->plain_output)
        return RONDO_OK;
    return cuda_result(cuda->cuMemcpyHtoDAsync(
                           to, stage->output, cuda_copyable(cuda, to, stage->output_bytes), stream),
                       "cuMemcpyHtoDAsync of a call's output");
}
