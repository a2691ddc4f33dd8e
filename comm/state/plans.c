/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/state/plans.h"

#include "base/fail.h"
#include "collectives/levels/grouping.h"

#include <stdlib.h>

static int cut_of(const struct plan_request *request)
{
    return request->groups ? request->groups->cut : 0;
}

static bool is_wanted(const struct plan_entry *entry, const struct algorithm *algorithm,
                      const struct plan_request *request)
{
    return entry->algorithm == algorithm && entry->cut == cut_of(request) &&
           entry->plan->collective == request->collective && entry->plan->root == request->root;
}

/* Executors have room for so many operands in a step; no algorithm needs more. */
static rondo_result check_steps(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].sources > plan->size + 2 || plan->steps[i].destinations > plan->size + 2)
            return rondo_fail(RONDO_ERROR_INTERNAL, "A step of %s has too many operands.",
                              plan->algorithm);
    return RONDO_OK;
}

static rondo_result write_plan(const struct algorithm *algorithm,
                               const struct plan_request *request, struct plan_entry *entry)
{
    rondo_result result = algorithm_write(algorithm, request, &entry->plan);

    if (result)
        return result;
    entry->algorithm = algorithm;
    entry->cut = cut_of(request);
    result = check_steps(entry->plan);
    if (result)
        plan_close(entry->plan);
    return result;
}

rondo_result plans_find(struct plan_entry **cache, const struct algorithm *algorithm,
                        const struct plan_request *request, struct plan_entry **ret_entry)
{
    struct plan_entry *entry = *cache;
    rondo_result result;

    while (entry && !is_wanted(entry, algorithm, request))
        entry = entry->next;
    *ret_entry = entry;
    if (entry)
        return RONDO_OK;
    entry = calloc(1, sizeof(*entry));
    if (!entry)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a plan.");
    result = write_plan(algorithm, request, entry);
    if (result) {
        free(entry);
        return result;
    }
    entry->next = *cache;
    *cache = *ret_entry = entry;
    return RONDO_OK;
}

void plans_done(struct plan_entry **cache, void (*discard)(void *compiled))
{
    while (*cache) {
        struct plan_entry *entry = *cache;

        *cache = entry->next;
        if (entry->compiled)
            discard(entry->compiled);
        plan_close(entry->plan);
        free(entry);
    }
}
