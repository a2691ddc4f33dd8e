/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * toy.h - a model without mathematics: seven parameters of several types and sizes, whose gradients
 * are small whole numbers, so that their sums are exact whatever the order. Parameter 2 has no
 * elements, parameter 4 is frozen, every other one's gradient is the test's own.
 */
#ifndef RONDO_TESTS_DDP_TOY_H
#define RONDO_TESTS_DDP_TOY_H

#include "../world.h"

#include <rondo/ddp.h>

enum { TOY_PARAMETERS = 7, TOY_BUFFERS = 2, TOY_FROZEN = 4, TOY_COUNT = 300 };

struct toy {
    rondo_comm *comm;
    rondo_ddp *ddp;
    int rank, size;
    char *sentence;
    rondo_ddp_tensor parameters[TOY_PARAMETERS];
    rondo_ddp_tensor buffers[TOY_BUFFERS];
    rondo_ddp_model model;
    double data[TOY_PARAMETERS][TOY_COUNT]; /* room for any type */
    double own[TOY_PARAMETERS][TOY_COUNT];
    int32_t buffer[TOY_BUFFERS][TOY_COUNT];
};

/* Fill the model; parameter p's elements are those of toy_value() of `rank`. */
struct toy *toy_new(rondo_comm *comm, bool mixed_types, char *sentence);
/* Small buckets, so that there are several. */
rondo_ddp_config toy_config(void);
rondo_result toy_open(struct toy *toy, const rondo_ddp_config *config);
void toy_free(struct toy *toy); /* also closes */

double toy_value(int rank, int parameter, size_t i);
/* Returns what `rank` adds to the gradient in pass `pass`. */
double toy_gradient(int rank, int pass, int parameter, size_t i);

/* Add the gradient of a pass and announce it. */
rondo_result toy_announce(struct toy *toy, int parameter, int pass);
/* Begin, announce all from last to first (`backwards`) or first to last, wait. */
rondo_result toy_pass(struct toy *toy, int pass, int exchange, bool backwards);
/* All but frozen gradients: are they wanted(context, parameter, i)? */
typedef double (*toy_wanted)(const struct toy *toy, const void *context, int parameter, size_t i);
rondo_result toy_check(struct toy *toy, toy_wanted wanted, const void *context);
/* `result` with the last sentence, which begins with `what`. */
rondo_result toy_say(struct toy *toy, rondo_result result, const char *what);
/* RONDO_OK if `got` is `result` and all of the words are in the last sentence. */
rondo_result toy_expect(struct toy *toy, rondo_result got, rondo_result wanted, const char *word,
                        const char *other_word);

#endif
