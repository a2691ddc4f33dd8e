/* SPDX-License-Identifier: BSD-3-Clause */
/* step.cu - the norm of gradients, and AdamW. */
#include "train/cuda/lanes.h"

TRAIN_KERNEL(squares)
{
    double sum = 0;

    for (uint64_t i = first_element(); i < call.count; i += all_lanes())
        sum += (double)call.values[i] * (double)call.values[i];
    sum = block_combine<add>(sum);
    if (threadIdx.x == 0)
        call.parts[blockIdx.x] = sum;
}

TRAIN_KERNEL(root)
{
    double sum = 0;

    for (int i = (int)threadIdx.x; i < call.count; i += (int)blockDim.x)
        sum += call.parts[i];
    sum = block_combine<add>(sum);
    if (threadIdx.x == 0)
        *call.root = sqrt(sum);
}

TRAIN_KERNEL(adamw)
{
    double norm = *call.norm;
    float scale = call.limit > 0 && norm > call.limit ? (float)(call.limit / norm) : 1;

    for (uint64_t i = first_element(); i < call.count; i += all_lanes()) {
        float gradient = call.gradients[i] * scale;
        float first = call.beta1 * call.first[i] + (1 - call.beta1) * gradient;
        float second = call.beta2 * call.second[i] + (1 - call.beta2) * (gradient * gradient);

        call.first[i] = first;
        call.second[i] = second;
        call.values[i] = call.keep * call.values[i] -
                         call.rate * first / (sqrtf(second) * call.correction + call.epsilon);
    }
}
