/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.h - the plans of all ranks of one form, and what the tests ask about them. */
#ifndef RONDO_TESTS_COLLECTIVES_RANKS_H
#define RONDO_TESTS_COLLECTIVES_RANKS_H

#include "collectives/algorithm.h"
#include "plan/verify/verify.h"

enum { RANKS_MAX = 1024 };

struct ranks {
    int size;
    struct plan *plans[RANKS_MAX];
};

/* A form to look at: algorithm_at(i) until it is NULL, and every collective that it has. */
struct subject {
    const struct algorithm *algorithm;
    rondo_collective collective;
    const struct form *form;
};

/* Call `look` for every form of every algorithm that takes part in collectives of all ranks. */
void each_form(void (*look)(const struct subject *subject));
/* "ring all_reduce over 5 ranks, root 2", for assertions. Valid until the next call. */
const char *subject_name(const struct subject *subject, int size, int root);

/* False if a plan could not be made. */
bool ranks_open(struct ranks *ranks, const struct subject *subject, int size, int root);
void ranks_close(struct ranks *ranks);

/* Messages that the busiest rank sends. */
int ranks_messages(const struct ranks *ranks);

#endif
