/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layers.cu - embedding, normalisation, gelu, and what linear layers need beside their products:
 * the loops of the files of that name in train/, with the same formulas.
 */
#include "train/cuda/lanes.h"

TRAIN_KERNEL(embedding)
{
    for (int row = (int)blockIdx.x; row < call.rows; row += (int)gridDim.x) {
        const float *token = call.token + (uint64_t)call.tokens[row] * call.width;
        const float *position = call.position + (uint64_t)(row % call.length) * call.width;
        float *y = call.y + (uint64_t)row * call.width;

        for (int i = (int)threadIdx.x; i < call.width; i += (int)blockDim.x)
            y[i] = token[i] + position[i];
    }
}

/* Column i of dy, over the rows of that token. */
LANE_FUNCTION float sum_of_token(const struct train_embedding_backward &call, int token, int i)
{
    float sum = 0;

    for (int row = 0; row < call.rows; row++)
        if (call.tokens[row] == token)
            sum += call.dy[(uint64_t)row * call.width + i];
    return sum;
}

LANE_FUNCTION float sum_of_position(const struct train_embedding_backward &call, int position,
                                    int i)
{
    float sum = 0;

    for (int row = position; row < call.rows; row += call.length)
        sum += call.dy[(uint64_t)row * call.width + i];
    return sum;
}

TRAIN_KERNEL(embedding_backward)
{
    int all = call.vocabulary + call.length;

    for (int b = (int)blockIdx.x; b < all; b += (int)gridDim.x) {
        bool is_token = b < call.vocabulary;
        int which = is_token ? b : b - call.vocabulary;
        float *to = (is_token ? call.token : call.position) + (uint64_t)which * call.width;

        for (int i = (int)threadIdx.x; i < call.width; i += (int)blockDim.x)
            to[i] += is_token ? sum_of_token(call, which, i) : sum_of_position(call, which, i);
    }
}

TRAIN_KERNEL(begin_rows)
{
    for (uint64_t i = first_element(); i < call.count; i += all_lanes()) {
        float bias = call.bias[i % (uint64_t)call.width];

        call.y[i] = call.residual ? call.residual[i] + bias : bias;
    }
}

TRAIN_KERNEL(sum_columns)
{
    for (int i = (int)threadIdx.x; i < call.width; i += (int)blockDim.x) {
        float sum = 0;
        float stretched = 0;

        for (int row = (int)blockIdx.x; row < call.rows; row += (int)gridDim.x) {
            uint64_t at = (uint64_t)row * call.width + i;

            sum += call.dy[at];
            if (call.x)
                stretched += call.dy[at] * ((call.x[at] - call.statistics[2 * row]) *
                                            call.statistics[2 * row + 1]);
        }
        call.sums[(uint64_t)blockIdx.x * call.width + i] = sum;
        if (call.x)
            call.stretched[(uint64_t)blockIdx.x * call.width + i] = stretched;
    }
}

TRAIN_KERNEL(add_sums)
{
    for (uint64_t i = first_element(); i < (uint64_t)call.width; i += all_lanes()) {
        float sum = 0;

        for (int part = 0; part < call.parts; part++)
            sum += call.sums[(uint64_t)part * call.width + i];
        call.to[i] += sum;
    }
}

TRAIN_KERNEL(norm)
{
    const float epsilon = 1e-5f;

    for (int row = (int)blockIdx.x; row < call.rows; row += (int)gridDim.x) {
        const float *x = call.x + (uint64_t)row * call.width;
        float *y = call.y + (uint64_t)row * call.width;
        float mean = 0;
        float variance = 0;
        float scale;

        for (int i = (int)threadIdx.x; i < call.width; i += (int)blockDim.x)
            mean += x[i];
        mean = block_combine<add>(mean) / (float)call.width;
        for (int i = (int)threadIdx.x; i < call.width; i += (int)blockDim.x)
            variance += (x[i] - mean) * (x[i] - mean);
        variance = block_combine<add>(variance) / (float)call.width;
        scale = 1 / sqrtf(variance + epsilon);
        for (int i = (int)threadIdx.x; i < call.width; i += (int)blockDim.x)
            y[i] = (x[i] - mean) * scale * call.gain[i] + call.shift[i];
        if (threadIdx.x == 0) {
            call.statistics[2 * row] = mean;
            call.statistics[2 * row + 1] = scale;
        }
    }
}

TRAIN_KERNEL(norm_backward)
{
    for (int row = (int)blockIdx.x; row < call.rows; row += (int)gridDim.x) {
        const float *x = call.x + (uint64_t)row * call.width;
        const float *dy = call.dy + (uint64_t)row * call.width;
        float *dx = call.dx + (uint64_t)row * call.width;
        float mean = call.statistics[2 * row];
        float scale = call.statistics[2 * row + 1];
        float moved = 0;
        float stretched = 0;

        for (int i = (int)threadIdx.x; i < call.width; i += (int)blockDim.x) {
            moved += dy[i] * call.gain[i];
            stretched += dy[i] * call.gain[i] * (x[i] - mean) * scale;
        }
        moved = block_combine<add>(moved) / (float)call.width;
        stretched = block_combine<add>(stretched) / (float)call.width;
        for (int i = (int)threadIdx.x; i < call.width; i += (int)blockDim.x)
            dx[i] += (dy[i] * call.gain[i] - moved - (x[i] - mean) * scale * stretched) * scale;
    }
}

/* Computes s of gelu.c: y = x * s, where s is the logistic function of a (x + b x^3). */
LANE_FUNCTION float gelu_switch(float x)
{
    return 1 / (1 + expf(-1.5957691216057308f * (x + 0.044715f * x * x * x)));
}

TRAIN_KERNEL(gelu)
{
    for (uint64_t i = first_element(); i < call.count; i += all_lanes())
        call.y[i] = call.x[i] * gelu_switch(call.x[i]);
}

TRAIN_KERNEL(gelu_backward)
{
    for (uint64_t i = first_element(); i < call.count; i += all_lanes()) {
        float x = call.x[i];
        float s = gelu_switch(x);
        float slope = 1.5957691216057308f * (1 + 3 * 0.044715f * x * x);

        call.dx[i] = call.dy[i] * (s + x * s * (1 - s) * slope);
    }
}
