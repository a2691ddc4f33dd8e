/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * optimizer.c - norm, clipping and AdamW on the device. The norm stays there for the kernels that
 * need it; the host gets it when the step is through.
 */
#include "train/cuda/inside.h"

#include <math.h>

/* Queues the norm of all gradients, in the order of the table. */
static void queue_norm(const struct model *model)
{
    size_t count = (size_t)model->parameter_count * TRAIN_SQUARES;
    double *parts = gpu_room(GPU_SQUARES, count * sizeof(*parts));
    const struct train_root root = {parts, &gpu.device_news->root, (int)count};

    for (int i = 0; i < model->parameter_count; i++) {
        const struct parameter *parameter = &model->parameters[i];
        const struct train_squares call = {parameter->gradient,
                                           parts ? parts + (size_t)i * TRAIN_SQUARES : NULL,
                                           parameter->count};

        gpu_launch_blocks(GPU_squares, TRAIN_SQUARES, &call);
    }
    gpu_launch_blocks(GPU_root, 1, &root);
    gpu_bring(root.root, sizeof(*root.root));
}

rondo_result gpu_optimize(const struct optimizer_step *step, double *ret_norm)
{
    const rondo_adamw *settings = &step->settings;
    double number = (double)step->number;
    struct train_adamw call = {.norm = &gpu.device_news->root,
                               .limit = step->clip,
                               .beta1 = settings->beta1,
                               .beta2 = settings->beta2,
                               .epsilon = settings->epsilon,
                               .rate = (float)(settings->rate / (1 - pow(settings->beta1, number))),
                               .correction = (float)(1 / sqrt(1 - pow(settings->beta2, number)))};
    const struct model *model = step->model;
    rondo_result result;
    size_t at = 0;

    queue_norm(model);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct parameter *parameter = &model->parameters[i];

        call.values = parameter->value;
        call.gradients = parameter->gradient;
        call.first = step->states[0] + at;
        call.second = step->states[1] + at;
        call.count = parameter->count;
        call.keep = parameter->decays ? 1 - settings->rate * settings->decay : 1;
        gpu_launch_elements(GPU_adamw, call.count, &call);
        at += parameter->count;
    }
    result = gpu_wait();
    if (!result)
        *ret_norm = gpu.news->root;
    return result;
}
