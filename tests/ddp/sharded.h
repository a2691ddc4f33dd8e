/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sharded.h - a small model trained with shards, and the same without: for tests and for
 * ThreadSanitizer. Its gradients depend on the values, so a wrong bit anywhere goes on.
 */
#ifndef RONDO_TESTS_DDP_SHARDED_H
#define RONDO_TESTS_DDP_SHARDED_H

#include "../world.h"

#include <rondo/train.h>

enum { SHARDED_UNITS = 5, SHARDED_PARAMETERS = 8, SHARDED_TOTAL = 1291 };
enum { SHARDED_DDP = -1, SHARDED_PLAIN = 0 }; /* instead of a level: by ddp.h, by hand */

extern const struct sharded_parameter {
    const char *name;
    int unit, index; /* in the unit */
    size_t count;
} sharded_model[SHARDED_PARAMETERS];
extern const rondo_adamw sharded_adamw;
float sharded_start(int parameter, size_t i);
float sharded_gradient(float value, int micro_batch, size_t i);

/* The job: what to do, and (shared with the test) what came out. */
struct sharded {
    int level;
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
rondo_result sharded_train_ddp(rondo_comm *comm, struct sharded *job, char *sentence);
rondo_result sharded_open(rondo_comm *comm, const struct sharded *job, rondo_shards **ret_shards);
rondo_result sharded_step(rondo_comm *comm, rondo_shards *shards, const struct sharded *job,
                          uint64_t step, double *ret_norm);

/* One unit is different on rank 1; one gradient of rank 1 is NaN. */
rondo_result sharded_mismatch(rondo_comm *comm, void *argument, char *sentence);
/* A unit has no memory on rank 1; the argument is the level. */
rondo_result sharded_no_memory(rondo_comm *comm, void *argument, char *sentence);
rondo_result sharded_nulls(rondo_comm *comm, void *argument, char *sentence);
rondo_result sharded_nan(rondo_comm *comm, void *argument, char *sentence);
/* For processes: the last one is killed. */
rondo_result sharded_death(rondo_comm *comm, void *argument, char *sentence);
/* Calls that make no sense, and what they say. */
rondo_result sharded_misuse(rondo_comm *comm, void *argument, char *sentence);
/* Ranks without gradients, units without gradients, a step that is left out. */
rondo_result sharded_partial(rondo_comm *comm, void *argument, char *sentence);

#endif
