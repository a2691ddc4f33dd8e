/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kinds.c - memory that changes its kind from call to call: the path may change with it, and ranks
 * that remember what kinds there were have to agree on it.
 */
#include "tests/api/bodies.h"

#include <stdlib.h>

enum { COUNT = 5000, CALLS = 200 };

/* Plain until all ranks take it for granted, then mapped, then mixed, then plain again. */
static bool is_mapped(int call, int rank)
{
    if (call < 20)
        return false;
    if (call < 80)
        return true;
    if (call < 140)
        return (rank + call / 3) % 2;
    return call > 190;
}

static rondo_result check(const int32_t *values, int call, int size, char *sentence)
{
    for (int i = 0; i < COUNT; i++)
        if (values[i] != size * (call + i) + size * (size - 1) / 2)
            return world_say(sentence, RONDO_ERROR_INTERNAL, "call %d: element %d is %d", call, i,
                             (int)values[i]);
    return RONDO_OK;
}

static rondo_result make_calls(rondo_comm *comm, int32_t *plain, int32_t *mapped, char *sentence)
{
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm);

    for (int call = 0; call < CALLS; call++) {
        int32_t *values = is_mapped(call, rank) ? mapped : plain;
        size_t few = call % 5 ? COUNT : 1; /* short calls do not look for peers' memory */
        rondo_result result;

        for (int i = 0; i < COUNT; i++)
            values[i] = rank + call + i;
        result = rondo_all_reduce(values, values, few, RONDO_INT32, RONDO_SUM, comm, NULL);
        if (!result && few < COUNT)
            result = rondo_all_reduce(values + few, values + few, COUNT - few, RONDO_INT32,
                                      RONDO_SUM, comm, NULL);
        if (result)
            return world_say(sentence, result, "call %d: %s", call, rondo_last_error(comm));
        result = check(values, call, size, sentence);
        if (result)
            return result;
    }
    return RONDO_OK;
}

rondo_result kinds_change(rondo_comm *comm, void *argument, char *sentence)
{
    int32_t *plain = malloc(COUNT * sizeof(*plain));
    void *mapped = NULL;
    rondo_result result = plain ? RONDO_OK : RONDO_ERROR_MEMORY;

    (void)argument;
    if (!result)
        result = rondo_mem_alloc(COUNT * sizeof(*plain), &mapped);
    if (result)
        world_say(sentence, result, "no memory");
    else
        result = make_calls(comm, plain, mapped, sentence);
    rondo_mem_free(mapped);
    free(plain);
    return result;
}
