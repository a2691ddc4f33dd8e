/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * curve.h - a point per step. As CSV a line is written after each step, so that nothing is lost
 * when the job is killed; whoever resumes keeps the lines up to where it goes on.
 */
#ifndef RONDO_TRAIN_CURVE_H
#define RONDO_TRAIN_CURVE_H

#include "rondo/rondo.h"

#include <stddef.h>
#include <stdint.h>

#define CURVE_HEADER \
    "step,loss,rate,norm,held_out_loss,held_out_accuracy,seconds,tokens_per_s,computing,hidden"

struct curve_point {
    uint64_t step; /* from 1 */
    double loss, rate, norm;
    double held_loss, held_accuracy; /* negative: not looked at */
    double seconds, tokens_per_s;    /* of this step; what follows depends on the machine */
    double computing;                /* part of the time in which this rank did not wait */
    double hidden;                   /* part of communication; negative: not known */
};

struct curve;

/* `path` may be NULL. Steps up to `from` of a file that is there are kept, if from > 0. */
rondo_result curve_open(const char *path, uint64_t from, struct curve **ret_curve);
void curve_close(struct curve *curve); /* accepts NULL */
rondo_result curve_add(struct curve *curve, const struct curve_point *point);

size_t curve_count(const struct curve *curve);
const struct curve_point *curve_at(const struct curve *curve, size_t index);

/* By gnuplot. */
rondo_result plot_write(const struct curve *curve, const char *title, const char *path);

#endif
