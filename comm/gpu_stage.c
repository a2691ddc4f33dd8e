/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_stage.c - a task whose memory the host cannot use works on copies of it.
 *
 * Memory of the host that is ready in the order of the stream is used where it is, also in a call
 * whose other buffer is on the device.
 */
#include "comm/gpu_inside.h"

enum { LINE = 64 };

static size_t padded(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

static bool is_foreign(const struct gpu *gpu, const void *memory)
{
    return cuda_memory_kind(gpu->device.driver, memory) >= CUDA_MEMORY_DEVICE;
}

size_t stage_plan(const struct gpu *gpu, const rondo_comm *comm, const struct task *task,
                  struct stage *ret_stage)
{
    const struct choice_key *key = &task->key;
    size_t block = key->count * rondo_type_size(key->type);
    struct stage stage = {.user_input = task->input, .user_output = task->output};

    stage.input_bytes =
        block * (size_t)plan_input_blocks(key->collective, comm->size, comm->rank, key->root);
    stage.output_bytes =
        block * (size_t)plan_output_blocks(key->collective, comm->size, comm->rank, key->root);
    if (!stage.input_bytes || !is_foreign(gpu, task->input))
        stage.input_bytes = 0;
    if (!stage.output_bytes || !is_foreign(gpu, task->output))
        stage.output_bytes = 0;
    *ret_stage = stage;
    return padded(stage.input_bytes) + padded(stage.output_bytes);
}

char *stage_place(struct stage *stage, struct task *task, char *room)
{
    if (stage->input_bytes)
        task->input = stage->input = room;
    room += padded(stage->input_bytes);
    if (stage->output_bytes)
        task->output = stage->output = room;
    return room + padded(stage->output_bytes);
}

rondo_result stage_in(const struct gpu *gpu, const struct stage *stage, CUstream stream)
{
    if (!stage->input_bytes)
        return RONDO_OK;
    return cuda_result(gpu->device.driver->cuMemcpyDtoHAsync(stage->input,
                                                             cuda_address(stage->user_input),
                                                             stage->input_bytes, stream),
                       "cuMemcpyDtoHAsync of a call's input");
}

rondo_result stage_out(const struct gpu *gpu, const struct stage *stage, CUstream stream)
{
    if (!stage->output_bytes)
        return RONDO_OK;
    return cuda_result(gpu->device.driver->cuMemcpyHtoDAsync(cuda_address(stage->user_output),
                                                             stage->output, stage->output_bytes,
                                                             stream),
                       "cuMemcpyHtoDAsync of a call's output");
}
