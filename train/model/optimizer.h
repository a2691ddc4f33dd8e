/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * optimizer.h - what a step does once gradients are averaged: clip by their norm, then AdamW. On
 * the host it is rondo/train.h's (optimizer_host.c), on a GPU our own kernels (cuda/optimizer.c).
 */
#ifndef RONDO_TRAIN_MODEL_OPTIMIZER_H
#define RONDO_TRAIN_MODEL_OPTIMIZER_H

#include "train/model/model.h"

#include "rondo/train.h"

struct optimizer_step {
    const struct model *model; /* values and gradients: the table */
    float *states[2];          /* the moments of all parameters, one parameter after another */
    rondo_adamw settings;      /* with the decay of those that decay */
    uint64_t number;           /* from 1 */
    double clip;               /* most that the norm may be; 0: any */
};

/* *ret_norm: of the gradient, before clipping; infinite or NaN if an element is. */
typedef rondo_result (*optimizer_function)(const struct optimizer_step *step, double *ret_norm);

rondo_result optimizer_host(const struct optimizer_step *step, double *ret_norm);

#endif
