/* SPDX-License-Identifier: BSD-3-Clause */
/* test_algorithms.c - the table of algorithms and how a plan is asked for. */
#include "base/fail.h"
#include "collectives/algorithm.h"

#include <criterion/criterion.h>

#include <string.h>

Test(algorithms, names_are_unique_and_found)
{
    for (int i = 0; algorithms[i]; i++) {
        cr_expect_eq(algorithm_find(algorithms[i]->name), algorithms[i], "%s", algorithms[i]->name);
        cr_expect(algorithms[i]->summary && algorithms[i]->summary[0], "%s", algorithms[i]->name);
    }
    cr_expect_null(algorithm_find("auto"));
    cr_expect_null(algorithm_find(""));
}

Test(algorithms, every_form_is_whole)
{
    for (int i = 0; algorithms[i]; i++)
        for (int c = 0; c < RONDO_COLLECTIVES; c++) {
            const struct form *form = &algorithms[i]->forms[c];

            cr_expect_eq(!form->write, !form->formula, "%s", algorithms[i]->name);
            cr_expect_eq(form->write && algorithms[i]->levels, form->recipe != NULL, "%s",
                         algorithms[i]->name);
        }
}

Test(algorithms, ring_and_tree_have_all_five_collectives_of_training)
{
    static const char *const names[] = {"ring", "tree"};

    for (int i = 0; i < 2; i++)
        for (int c = RONDO_ALL_REDUCE; c <= RONDO_REDUCE_SCATTER; c++)
            cr_expect(algorithm_find(names[i])->forms[c].write, "%s %s", names[i],
                      rondo_collective_name((rondo_collective)c));
}

Test(algorithms, a_plan_knows_what_it_is)
{
    struct plan *plan;

    cr_assert_eq(algorithm_plan(algorithm_find("binomial"), RONDO_BROADCAST, 6, 4, 5, &plan),
                 RONDO_OK);
    cr_expect_eq(plan->collective, RONDO_BROADCAST);
    cr_expect_str_eq(plan->algorithm, "binomial");
    cr_expect_eq(plan->size, 6);
    cr_expect_eq(plan->rank, 4);
    cr_expect_eq(plan->root, 5);
    plan_close(plan);
}

Test(algorithms, a_form_that_is_missing_is_refused_by_name)
{
    struct plan *plan = NULL;

    cr_expect_eq(algorithm_plan(algorithm_find("ring"), RONDO_BARRIER, 4, 0, 0, &plan),
                 RONDO_ERROR_UNSUPPORTED);
    cr_expect_null(plan);
    cr_expect(strstr(fail_sentence(), "ring") && strstr(fail_sentence(), "barrier"), "%s",
              fail_sentence());
}
