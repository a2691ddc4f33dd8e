/* SPDX-License-Identifier: BSD-3-Clause */
/* optimizer_host.c - see optimizer.h. */
#include "train/model/optimizer.h"

#include "train/common/say.h"

#include <stdlib.h>

static rondo_result clip(const struct optimizer_step *step, double *ret_norm)
{
    const struct model *model = step->model;
    size_t count = (size_t)model->parameter_count;
    rondo_span *gradients = calloc(count, sizeof(*gradients));
    rondo_result result;

    if (!gradients)
        return say_memory();
    for (size_t i = 0; i < count; i++)
        gradients[i] = (rondo_span){model->parameters[i].gradient, model->parameters[i].count};
    result = step->clip > 0 ? rondo_clip(gradients, count, step->clip, NULL, ret_norm)
                            : rondo_norm(gradients, count, NULL, ret_norm);
    free(gradients);
    return say_ddp(result);
}

rondo_result optimizer_host(const struct optimizer_step *step, double *ret_norm)
{
    const struct model *model = step->model;
    rondo_result result = clip(step, ret_norm);
    size_t at = 0;

    for (int i = 0; !result && i < model->parameter_count; i++) {
        const struct parameter *parameter = &model->parameters[i];
        rondo_adamw settings = step->settings;

        settings.decay = parameter->decays ? settings.decay : 0;
        rondo_adamw_step(&settings, step->number, parameter->count, parameter->value,
                         parameter->gradient, step->states[0] + at, step->states[1] + at);
        at += parameter->count;
    }
    return result;
}
