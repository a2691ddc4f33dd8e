/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sharded.h - a small model trained with shards, and the same without: for tests and for
 * ThreadSanitizer. Its gradients depend on the values, so a wrong bit anywhere goes on.
 */
#ifndef RONDO_TESTS_DDP_SHARDED_H
#define RONDO_TESTS_DDP_SHARDED_H

#include "../world.h"

#include <rondo/train.h>

enum { SHARDED_UNITS = 5, SHARDED_TOTAL = 1291 };

/* What to do, and (shared with the test) what came out. */
struct sharded {
    int level; /* 0: without shards, every rank does all */
    int passes, steps;
    int stop; /* after this many steps: carry the state over into new shards; 0: never */
    rondo_ddp_average average;
    double limit; /* of the norm; 0: none */

    float values[SHARDED_TOTAL]; /* at the end; all ranks had the same */
    double norm;                 /* of the last step */
    rondo_shards_memory memory;  /* of rank 0 */
};

/* world_body with a struct sharded from world_share(). */
rondo_result sharded_train(rondo_comm *comm, void *argument, char *sentence);
/* One unit is different on rank 1; one gradient of rank 1 is NaN. */
rondo_result sharded_mismatch(rondo_comm *comm, void *argument, char *sentence);
rondo_result sharded_nan(rondo_comm *comm, void *argument, char *sentence);
/* Calls that make no sense, and what they say. */
rondo_result sharded_misuse(rondo_comm *comm, void *argument, char *sentence);

#endif
