/* SPDX-License-Identifier: BSD-3-Clause */
/* call.c - which calls go through multicast, and their kernels. Peers touch no buffer of a call:
 * what they store to and add up is memory of the team. */
#include "comm/gpu/nvls/nvls.h"

#include "base/collective.h"
#include "comm/engine/choose.h"

#include <string.h>

enum { BLOCK_BYTES = 32 << 10 }; /* for which a call gets a further block */

/* Resolves the operation of a call; false: it is none that all ranks know alike. */
static bool resolve(const struct gpu_plans *plans, const struct task *task,
                    struct operation *ret_operation)
{
    const struct choice_key *key = &task->key;

    *ret_operation = task->made;
    return task->made.handle || !collective_reduces(key->collective) ||
           !operations_resolve(&plans->comm->operations, key->op, key->type, plans->comm->size,
                               ret_operation);
}

/* Bytes of the longer one of a rank's buffers. */
static size_t bytes_of(const struct gpu_plans *plans, const struct choice_key *key)
{
    size_t blocks = key->collective == RONDO_ALL_REDUCE ? 1 : (size_t)plans->comm->size;

    return key->count * rondo_type_size(key->type) * blocks;
}

bool gpu_nvls_takes(struct gpu_plans *plans, const struct task *task)
{
    const struct gpu_nvls *nvls = plans->nvls;
    struct operation operation;

    if (!nvls || strcmp(choice_wanted(plans->comm, &task->key), "auto") != 0 ||
        collective_is_pair(task->key.collective) || task->key.collective == RONDO_BARRIER ||
        task->made.handle || !task->key.count || bytes_of(plans, &task->key) < nvls->least_bytes ||
        !resolve(plans, task, &operation))
        return false;
    if (!nvls->any_order && collective_reduces(task->key.collective) &&
        task->key.type >= RONDO_FLOAT16)
        return false; /* on one node a sum is one balanced tree (rondo.h), in a switch it is not */
    return cuda_nvls_can(task->key.collective, &operation.kernel);
}

/* For reports: the step of the plan that waits for each rank. */
static void find_steps(const struct plan *plan, uint16_t *ret_steps)
{
    memset(ret_steps, 0, CUDA_NVLS_RANKS * sizeof(*ret_steps));
    for (uint32_t i = plan->step_count; i-- > 0;)
        if (plan->steps[i].verb == PLAN_WAIT && plan->steps[i].event == PLAN_DATA)
            ret_steps[plan->steps[i].peer] = (uint16_t)i;
}

static unsigned count_blocks(const struct gpu_nvls *nvls, size_t bytes)
{
    size_t wanted = 1 + bytes / BLOCK_BYTES;

    return wanted < nvls->blocks ? (unsigned)wanted : nvls->blocks;
}

void gpu_nvls_queue(struct gpu_run *run)
{
    const struct gpu_nvls *nvls = run->plans->nvls;
    const struct exec_shape *shape = &run->x.shape;
    uint16_t steps[CUDA_NVLS_RANKS];
    const struct cuda_nvls_call call = {.collective = run->x.plan->collective,
                                        .op = run->x.op,
                                        .count = shape->count,
                                        .element = shape->element,
                                        .input = run->input.at,
                                        .output = run->output.at,
                                        .blocks = count_blocks(nvls, shape->count * shape->element),
                                        .fingerprint = run->x.fingerprint,
                                        .steps = steps};

    find_steps(run->x.plan, steps);
    gpu_ops_flush(&run->ops);
    if (!run->ops.result)
        run->ops.result = cuda_nvls_launch(nvls->team, &call, run->ops.stream);
}
