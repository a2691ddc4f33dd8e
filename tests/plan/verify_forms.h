/* SPDX-License-Identifier: BSD-3-Clause */
/* verify_forms.h - plans of all ranks, for tests of the verifier. */
#ifndef RONDO_TESTS_PLAN_VERIFY_FORMS_H
#define RONDO_TESTS_PLAN_VERIFY_FORMS_H

#include "collectives/algorithm.h"
#include "plan/verify/verify.h"

struct forms {
    int size;
    struct plan *plans[64];
};

/*
 * Plans by an algorithm; send makes a pair, from rank 0 to the last. False if there is no such
 * form.
 */
bool forms_make(const char *algorithm, rondo_collective collective, int size, int root,
                struct forms *ret_forms);
/* Empty plans of one part, to be filled by hand. */
void forms_open(rondo_collective collective, int size, struct forms *ret_forms);
void forms_close(struct forms *forms);
struct plan *forms_copy_plan(const struct plan *plan);

/* Prove with 2 slots; true if proved. */
bool forms_prove(const struct forms *forms, bool in_place, struct verify_report *ret_report);

#endif
