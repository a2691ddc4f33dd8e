/* SPDX-License-Identifier: BSD-3-Clause */
/* algorithms.c - the list of all algorithms, and how one of them becomes a plan. */
#include "collectives/algorithm.h"

#include "base/fail.h"

#include <string.h>

extern const struct algorithm direct_algorithm, ring_algorithm, one_shot_algorithm,
    zero_copy_algorithm, tree_algorithm, binomial_algorithm, halving_algorithm, doubling_algorithm;

/* Of two that cost the same the one that stands first is taken. */
const struct algorithm *const algorithms[] = {
    &zero_copy_algorithm, &direct_algorithm,   &one_shot_algorithm,
    &ring_algorithm,      &halving_algorithm,  &doubling_algorithm,
    &tree_algorithm,      &binomial_algorithm, NULL,
};

const struct algorithm *algorithm_find(const char *name)
{
    for (int i = 0; algorithms[i]; i++)
        if (strcmp(algorithms[i]->name, name) == 0)
            return algorithms[i];
    return NULL;
}

rondo_result algorithm_plan(const struct algorithm *algorithm, rondo_collective collective,
                            int size, int rank, int root, struct plan **ret_plan)
{
    const struct form *form = &algorithm->forms[collective];
    struct plan *plan;
    rondo_result result;

    if (!form->write)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED, "The algorithm \"%s\" has no %s.",
                          algorithm->name, rondo_collective_name(collective));
    result = plan_open(collective, algorithm->name, size, rank, root, &plan);
    if (result)
        return result;
    form->write(plan);
    if (plan->out_of_memory) {
        plan_close(plan);
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the plan of %s %s over %d ranks.",
                          algorithm->name, rondo_collective_name(collective), size);
    }
    *ret_plan = plan;
    return RONDO_OK;
}
