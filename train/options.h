/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - what the user of `rondo train` asked for. */
#ifndef RONDO_TRAIN_OPTIONS_H
#define RONDO_TRAIN_OPTIONS_H

#include "rondo/ddp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A level says how much of the training each rank holds; all but the first are those of
 * rondo/train.h. */
enum train_shard { TRAIN_SHARD_NONE = 0 };

struct train_options {
    int ranks; /* to be started here; 0: a launcher has */
    struct train_elastic {
        int least, most; /* ranks; most 0: no --elastic */
    } elastic;
    int restarts; /* newcomers for ranks that fail */
    int each;     /* 1: each rank's batch stays when ranks come and go, 0: that of the step */
    uint64_t steps, seed;
    int batch, accumulate; /* sequences per micro-batch; micro-batches per rank and step */
    double rate, decay, clip;
    uint64_t warmup;
    int width, heads, layers;
    int digits, context; /* of the numbers; tokens of a record of `data` */
    const char *data;    /* NULL: sums */
    rondo_ddp_compression precision;
    int shard;
    size_t bucket_bytes; /* 0: an eighth of the model */
    bool deterministic;
    bool cuda; /* the model is in memory of GPUs */
    const char *checkpoint;
    uint64_t every; /* steps between checkpoints; 0: only at the end */
    bool resume;
    const char *csv, *svg, *json;
    uint64_t evaluate; /* steps between evaluations; 0: only at the end */
    int samples;
};

/* Explains what is wrong on stderr and ends with status 2, or 0 after --help. */
void train_options_parse(int argc, char **argv, struct train_options *ret_options);

const char *train_shard_name(int shard);
const char *train_precision_name(rondo_ddp_compression precision);

#endif
