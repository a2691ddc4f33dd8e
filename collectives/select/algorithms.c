/* SPDX-License-Identifier: BSD-3-Clause */
/* algorithms.c - the list of all algorithms, and how one of them becomes a plan. */
#include "collectives/algorithm.h"

#include "base/fail.h"
#include "collectives/levels/grouping.h"
#include "collectives/levels/reorder.h"

#include <string.h>

extern const struct algorithm direct_algorithm, ring_algorithm, one_shot_algorithm,
    zero_copy_algorithm, tree_algorithm, binomial_algorithm, halving_algorithm, doubling_algorithm,
    hierarchy_algorithm, hierarchy_ring_algorithm, hierarchy_zero_copy_algorithm, leaders_algorithm;

/* The selection takes the first one of those that cost the same. */
const struct algorithm *const algorithms[] = {
    &zero_copy_algorithm,
    &direct_algorithm,
    &one_shot_algorithm,
    &ring_algorithm,
    &halving_algorithm,
    &doubling_algorithm,
    &tree_algorithm,
    &binomial_algorithm,
    &hierarchy_algorithm,
    &hierarchy_ring_algorithm,
    &hierarchy_zero_copy_algorithm,
    &leaders_algorithm,
    NULL,
};

const struct algorithm *algorithm_find(const char *name)
{
    for (int i = 0; algorithms[i]; i++)
        if (strcmp(algorithms[i]->name, name) == 0)
            return algorithms[i];
    return NULL;
}

unsigned algorithm_promises(const struct algorithm *algorithm, rondo_collective collective,
                            const struct grouping *groups)
{
    const struct form *form = &algorithm->forms[collective];

    return form->promises | (!groups || groups->runs ? form->runs : 0) |
           (!groups || groups->aligned ? form->aligned : 0);
}

static rondo_result write_plan(const struct algorithm *algorithm, const struct plan_seat *seat,
                               struct plan_reader *reader, struct plan **ret_plan)
{
    struct plan *plan;
    rondo_result result =
        plan_open(seat->collective, algorithm->name, seat->size, seat->rank, seat->root, &plan);

    if (result)
        return result;
    plan->groups = seat->groups;
    plan->recipe = algorithm->forms[seat->collective].recipe;
    plan->reader = reader;
    if (algorithm->neighbours && seat->groups && !seat->groups->runs)
        reorder_by_groups(plan, algorithm);
    else
        algorithm->forms[seat->collective].write(plan);
    plan->groups = NULL;
    plan->recipe = NULL;
    plan->reader = NULL;
    if (plan->out_of_memory) {
        plan_close(plan);
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the plan of %s %s over %d ranks.",
                          algorithm->name, rondo_collective_name(seat->collective), seat->size);
    }
    *ret_plan = plan;
    return RONDO_OK;
}

rondo_result algorithm_read(const struct algorithm *algorithm, const struct plan_seat *seat,
                            struct plan_reader *reader, struct plan **ret_plan)
{
    struct plan_seat square = *seat;
    struct grouping *groups = NULL;
    rondo_result result = RONDO_OK;

    if (!algorithm->forms[seat->collective].write)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED, "The algorithm \"%s\" has no %s.",
                          algorithm->name, rondo_collective_name(seat->collective));
    if (!algorithm->levels || seat->groups)
        return write_plan(algorithm, seat, reader, ret_plan);
    result = grouping_square(seat->size, &groups);
    if (result)
        return result;
    square.groups = groups;
    result = write_plan(algorithm, &square, reader, ret_plan);
    grouping_close(groups);
    return result;
}

rondo_result algorithm_write(const struct algorithm *algorithm, const struct plan_seat *seat,
                             struct plan **ret_plan)
{
    return algorithm_read(algorithm, seat, NULL, ret_plan);
}

rondo_result algorithm_plan(const struct algorithm *algorithm, rondo_collective collective,
                            int size, int rank, int root, struct plan **ret_plan)
{
    const struct plan_seat seat = {
        .collective = collective, .size = size, .rank = rank, .root = root};

    return algorithm_write(algorithm, &seat, ret_plan);
}
