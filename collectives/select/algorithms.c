/* SPDX-License-Identifier: BSD-3-Clause */
/* algorithms.c - the list of all algorithms, and how one of them becomes a plan. */
#include "collectives/algorithm.h"

#include "base/fail.h"
#include "collectives/levels/grouping.h"
#include "collectives/levels/reorder.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

extern const struct algorithm direct_algorithm, ring_algorithm, one_shot_algorithm,
    zero_copy_algorithm, tree_algorithm, binomial_algorithm, halving_algorithm, doubling_algorithm,
    bruck_algorithm, hierarchy_algorithm, hierarchy_ring_algorithm, hierarchy_zero_copy_algorithm,
    leaders_algorithm;

/* The selection takes the first one of those that cost the same. */
const struct algorithm *const algorithms[] = {
    &zero_copy_algorithm,      &direct_algorithm,
    &one_shot_algorithm,       &ring_algorithm,
    &halving_algorithm,        &doubling_algorithm,
    &tree_algorithm,           &binomial_algorithm,
    &bruck_algorithm,          &hierarchy_algorithm,
    &hierarchy_ring_algorithm, &hierarchy_zero_copy_algorithm,
    &leaders_algorithm,        NULL,
};

/* ---- Those that were added ------------------------------------------------------------------- */

struct added {
    struct added *next;
    const struct algorithm *algorithm;
};

static struct added *_Atomic added; /* only ever grows, at its front */

static const struct algorithm *find_added(const char *name)
{
    /* Acquire, pairs with the release in algorithm_add(): its entry is complete. */
    const struct added *entry = atomic_load_explicit(&added, memory_order_acquire);

    while (entry && strcmp(entry->algorithm->name, name) != 0)
        entry = entry->next;
    return entry ? entry->algorithm : NULL;
}

const struct algorithm *algorithm_add(const struct algorithm *algorithm)
{
    struct added *entry = malloc(sizeof(*entry));

    if (!entry)
        return NULL;
    entry->algorithm = algorithm;
    entry->next = atomic_load_explicit(&added, memory_order_acquire);
    /* Release, pairs with the acquire in find_added(). Two threads may add the same at a time: then
     * there are two of it, and the later one is found. */
    while (!atomic_compare_exchange_weak_explicit(&added, &entry->next, entry, memory_order_release,
                                                  memory_order_acquire))
        continue;
    return algorithm;
}

const struct algorithm *algorithm_find(const char *name)
{
    for (int i = 0; algorithms[i]; i++)
        if (strcmp(algorithms[i]->name, name) == 0)
            return algorithms[i];
    return find_added(name);
}

bool algorithm_has(const struct algorithm *algorithm, rondo_collective collective, int size,
                   int root)
{
    const struct given *given = algorithm->given;

    return algorithm->forms[collective].write &&
           (!given || (given->size == size && given->root == root));
}

unsigned algorithm_promises(const struct algorithm *algorithm, rondo_collective collective,
                            const struct grouping *groups)
{
    const struct form *form = &algorithm->forms[collective];

    return form->promises | (!groups || groups->runs ? form->runs : 0) |
           (!groups || groups->aligned ? form->aligned : 0);
}

/* In which order ranks stand in rings and trees; NULL: by their numbers. */
static const int *order_of(const struct algorithm *algorithm, const struct plan_request *request)
{
    if (!algorithm->any_order)
        return NULL;
    if (request->order)
        return request->order;
    return request->groups && !request->groups->runs ? request->groups->members : NULL;
}

static rondo_result write_plan(const struct algorithm *algorithm,
                               const struct plan_request *request, struct plan_reader *reader,
                               struct plan **ret_plan)
{
    const int *order = order_of(algorithm, request);
    struct plan *plan;
    rondo_result result = plan_open(request->collective, algorithm->name, request->size,
                                    request->rank, request->root, &plan);

    if (result)
        return result;
    plan->groups = request->groups;
    plan->recipe = algorithm->forms[request->collective].recipe;
    plan->given = algorithm->given ? algorithm->given->plans[request->rank] : NULL;
    plan->reader = reader;
    if (order)
        reorder(plan, algorithm, order);
    else
        algorithm->forms[request->collective].write(plan);
    plan->groups = NULL;
    plan->recipe = NULL;
    plan->given = NULL;
    plan->reader = NULL;
    if (plan->out_of_memory) {
        plan_close(plan);
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the plan of %s %s over %d ranks.",
                          algorithm->name, rondo_collective_name(request->collective),
                          request->size);
    }
    *ret_plan = plan;
    return RONDO_OK;
}

rondo_result algorithm_read(const struct algorithm *algorithm, const struct plan_request *request,
                            struct plan_reader *reader, struct plan **ret_plan)
{
    struct plan_request square = *request;
    struct grouping *groups = NULL;
    rondo_result result = RONDO_OK;

    if (!algorithm->forms[request->collective].write)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED, "The algorithm \"%s\" has no %s.",
                          algorithm->name, rondo_collective_name(request->collective));
    if (!algorithm_has(algorithm, request->collective, request->size, request->root))
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "The plans of \"%s\" are for %d ranks and root %d, and what was asked "
                          "for is %d ranks and root %d.",
                          algorithm->name, algorithm->given->size, algorithm->given->root,
                          request->size, request->root);
    if (!algorithm->levels || request->groups)
        return write_plan(algorithm, request, reader, ret_plan);
    result = grouping_square(request->size, &groups);
    if (result)
        return result;
    square.groups = groups;
    result = write_plan(algorithm, &square, reader, ret_plan);
    grouping_close(groups);
    return result;
}

rondo_result algorithm_write(const struct algorithm *algorithm, const struct plan_request *request,
                             struct plan **ret_plan)
{
    return algorithm_read(algorithm, request, NULL, ret_plan);
}

rondo_result algorithm_plan(const struct algorithm *algorithm, rondo_collective collective,
                            int size, int rank, int root, struct plan **ret_plan)
{
    const struct plan_request request = {
        .collective = collective, .size = size, .rank = rank, .root = root};

    return algorithm_write(algorithm, &request, ret_plan);
}
