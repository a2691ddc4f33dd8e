/* SPDX-License-Identifier: BSD-3-Clause */
/* task.h - a task (execution.h), done by lanes: which data movement it means. */
#ifndef RONDO_CUDA_KERNELS_TASK_H
#define RONDO_CUDA_KERNELS_TASK_H

#include "cuda/kernels/combine.h"
#include "cuda/kernels/copy.h"
#include "cuda/kernels/execution.h"

enum { PATIENCE = 256 }; /* looks at a word before others are let go on */

/* The number of a lane among those that do the task. */
struct lane_id {
    uint64_t lane, lanes;
};

typedef void combine_function(const struct work &work, uint64_t count, uint64_t lane,
                              uint64_t lanes);

/* By enum cuda_kind. Called through a table, each is compiled on its own. Those
 * of sums.h would be faster for many sources, and double the time to compile. */
static LANE_TABLE combine_function *const combining[] = {
    combine_all<int8_kind>,    combine_all<int16_kind>,   combine_all<int32_kind>,
    combine_all<int64_kind>,   combine_all<float16_kind>, combine_all<bfloat16_kind>,
    combine_all<float32_kind>, combine_all<float64_kind>, combine_all<e4m3_kind>,
    combine_all<e5m2_kind>,
};

LANE_FUNCTION void task_combine(const struct cuda_task *task, struct lane_id lane_id)
{
    const struct work work = {task->operands, task->sources, task->destinations, task->arithmetic};

    combining[task->kind](work, task->count, lane_id.lane, lane_id.lanes);
}

/* operands: the payload, the entry. Behind the payload's words come empty ones, so
 * that all of them have this number, where the numbers come round. */
LANE_FUNCTION void task_pack(const struct cuda_task *task, struct lane_id lane_id)
{
    const uint64_t *payload = reinterpret_cast<const uint64_t *>(task->operands[0]);
    struct cuda_packed *entry = reinterpret_cast<struct cuda_packed *>(task->operands[1]);
    bool fresh = (task->number & CUDA_NUMBERS_FRESH) < CUDA_PACKED_ROOM;
    uint64_t words = fresh ? (uint64_t)CUDA_PACKED_WORDS : task->count;

    for (uint64_t i = lane_id.lane; i < words; i += lane_id.lanes) {
        uint64_t data = i < task->count ? payload[i] : 0;

        lane_store_pair(entry->words[i].halves, data << 32 | task->number,
                        (data >> 32 << 32) | task->number);
    }
}

/* The other way; false: a word has not come. */
LANE_FUNCTION bool task_unpack(const struct cuda_task *task, struct lane_id lane_id)
{
    uint64_t *payload = reinterpret_cast<uint64_t *>(task->operands[0]);
    const struct cuda_packed *entry =
        reinterpret_cast<const struct cuda_packed *>(task->operands[1]);

    for (uint64_t i = lane_id.lane; i < task->count; i += lane_id.lanes) {
        uint64_t pair[2];
        int looks = 0;

        do {
            lane_load_pair(entry->words[i].halves, pair);
            if (looks++ == PATIENCE)
                return false;
        } while ((uint32_t)pair[0] != task->number || (uint32_t)pair[1] != task->number);
        payload[i] = pair[0] >> 32 | (pair[1] >> 32 << 32);
    }
    return true;
}

/* False: it has to be done once more. */
LANE_CALLED bool task_do(const struct cuda_task *task, struct lane_id lane_id)
{
    switch (task->command) {
    case CUDA_COPY: {
        const struct work work = {task->operands, 1, task->destinations, task->arithmetic};

        copy_all(work, task->count, lane_id.lane, lane_id.lanes);
        return true;
    }
    case CUDA_COMBINE:
        task_combine(task, lane_id);
        return true;
    case CUDA_PACK:
        task_pack(task, lane_id);
        return true;
    default:
        return task_unpack(task, lane_id);
    }
}

#endif
