/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/copies.h"

#include "base/fail.h"

#include <string.h>

enum { LANE_BYTES = 64 }; /* what a lane should have to do before a further block is worth it */

/* The blocks for each item: as many as the longest is worth, if so many fit; one at least. */
static unsigned blocks_for(const struct cuda_kernel *kernel, const struct cuda_copies_call *call)
{
    size_t each = (size_t)kernel->lanes * LANE_BYTES, longest = 0, wanted;
    size_t most = kernel->blocks > call->count ? kernel->blocks / call->count : 1;

    for (unsigned i = 0; i < call->count; i++)
        longest = call->items[i].bytes > longest ? call->items[i].bytes : longest;
    wanted = longest / each + (longest % each != 0);
    return call->count * (unsigned)(wanted < most ? wanted : most);
}

rondo_result cuda_copies(const struct cuda_launcher *launcher, const struct cuda_copies_call *call,
                         CUstream stream)
{
    struct cuda_copies_argument argument;
    unsigned blocks;

    if (call->count > CUDA_COPIES_MAX)
        return rondo_fail(RONDO_ERROR_INTERNAL,
                          "%u copies are too many for one kernel, which takes %d.", call->count,
                          CUDA_COPIES_MAX);
    if (!call->count)
        return RONDO_OK;
    blocks = blocks_for(&launcher->kernels[CUDA_KERNEL_copies], call);
    if (!blocks)
        return RONDO_OK; /* all are empty */
    argument.regions = call->regions;
    argument.error = call->error;
    argument.region_count = call->region_count;
    argument.count = call->count;
    memcpy(argument.items, call->items, sizeof(call->items[0]) * call->count);
    return cuda_launch(launcher, CUDA_KERNEL_copies, blocks, &argument, stream);
}
