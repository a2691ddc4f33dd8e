/* SPDX-License-Identifier: BSD-3-Clause */
/* softmax.cu - rows that become probabilities: of attention, and of the loss. */
#include "train/cuda/lanes.h"

/* `count` values become probabilities, by all lanes of a block; returns the largest value. */
LANE_FUNCTION float softmax_row(float *row, int count)
{
    float largest = row[0];
    float sum = 0;

    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        largest = most::of(largest, row[i]);
    largest = block_combine<most>(largest);
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x) {
        row[i] = expf(row[i] - largest);
        sum += row[i];
    }
    sum = block_combine<add>(sum);
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        row[i] /= sum;
    return largest;
}

TRAIN_KERNEL(softmax)
{
    for (uint64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
        float *weights = call.weights + row * (uint64_t)call.length;
        int past = (int)(row % (uint64_t)call.length) + 1;

        softmax_row(weights, past);
        for (int i = past + (int)threadIdx.x; i < call.length; i += (int)blockDim.x)
            weights[i] = 0;
    }
}

TRAIN_KERNEL(softmax_backward)
{
    int rows = call.sequences * call.length;

    for (int row = (int)blockIdx.x; row < rows; row += (int)gridDim.x) {
        int place = row % call.length;
        const float *weights = call.weights + (uint64_t)(row / call.length) * call.stride +
                               (uint64_t)place * call.length;
        float *gradient = call.gradient + (uint64_t)row * call.length;
        float sum = 0;

        for (int i = (int)threadIdx.x; i <= place; i += (int)blockDim.x)
            sum += gradient[i] * weights[i];
        sum = block_combine<add>(sum);
        for (int i = (int)threadIdx.x; i < call.length; i += (int)blockDim.x)
            gradient[i] = weights[i] * (gradient[i] - sum);
    }
}

/* Finds where the row is largest, the first such place. */
LANE_FUNCTION int place_of_most(const float *row, int count)
{
    float largest = row[0];
    int place = count;

    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        largest = most::of(largest, row[i]);
    largest = block_combine<most>(largest);
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        if (row[i] == largest)
            place = least::of(place, i);
    return block_combine<least>(place);
}

TRAIN_KERNEL(loss_rows)
{
    for (int row = (int)blockIdx.x; row < call.rows; row += (int)gridDim.x) {
        float *logits = call.logits + (uint64_t)row * call.width;
        int target = call.targets[row];
        bool counts = target != TRAIN_IGNORED;
        int best = place_of_most(logits, call.width);

        softmax_row(logits, call.width);
        __syncthreads();
        if (threadIdx.x == 0) {
            double probability = counts ? (double)logits[target] : 1;

            call.each[row].loss = -log(probability > 1e-30 ? probability : 1e-30);
            call.each[row].counted = counts;
            call.each[row].right = counts && best == target;
        }
        __syncthreads();
        for (int i = (int)threadIdx.x; i < call.width; i += (int)blockDim.x)
            logits[i] = counts ? (logits[i] - (i == target ? 1 : 0)) * call.scale : 0;
    }
}

TRAIN_KERNEL(loss_total)
{
    double sum = 0, counted = 0, right = 0, complete = 0;

    for (int first = (int)threadIdx.x * call.length; first < call.rows;
         first += (int)blockDim.x * call.length) {
        bool all = true;

        for (int row = first; row < first + call.length; row++) {
            sum += call.each[row].loss;
            counted += call.each[row].counted;
            right += call.each[row].right;
            all = all && call.each[row].right == call.each[row].counted;
        }
        complete += all;
    }
    sum = block_combine<add>(sum);
    counted = block_combine<add>(counted);
    right = block_combine<add>(right);
    complete = block_combine<add>(complete);
    if (threadIdx.x == 0)
        *call.total = {sum, counted, right, complete};
}
