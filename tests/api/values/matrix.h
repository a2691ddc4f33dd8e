/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix.h - makes the calls that cases.h chose and checks every byte of what comes out. */
#ifndef RONDO_TESTS_API_VALUES_MATRIX_H
#define RONDO_TESTS_API_VALUES_MATRIX_H

#include "tests/api/values/cases.h"

#include "tests/world.h"

struct matrix {
    struct case_list list;
    int ran[CASES_FORMS_MAX];     /* by rank 0: calls of this form that ran */
    int refused[CASES_FORMS_MAX]; /* ... that were RONDO_ERROR_UNSUPPORTED for these buffers */
};

/* In shared memory (world_share): finds out what forms there
 * are, by trying on two processes, and chooses cases. */
void matrix_init(struct matrix *matrix, unsigned long seed, char *sentence);

/* Chooses on a communicator that is there, by all of its ranks; each keeps its own matrix. */
rondo_result matrix_choose(struct matrix *matrix, unsigned long seed, rondo_comm *comm,
                           char *sentence);

/* Body, argument: struct matrix_part. Runs the cases of this size. */
struct matrix_part {
    struct matrix *matrix;
    bool processes;
};
rondo_result matrix_run(rondo_comm *comm, void *argument, char *sentence);

/* One call of the matrix, checked. */
rondo_result matrix_call(const struct test_case *test, rondo_comm *comm, char *sentence);

/* All algorithms that have any form, NULL-terminated: what `rondo explain --list` prints. */
extern const char *const matrix_algorithms[];

#endif
