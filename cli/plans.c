/* SPDX-License-Identifier: BSD-3-Clause */
/* plans.c - lets an algorithm write the plans of all ranks. */
#include "cli/plans.h"

#include <stdlib.h>
#include <string.h>

int plans_find_collective(const char *name)
{
    for (int c = 0; c < RONDO_COLLECTIVES; c++)
        if (!strcmp(name, rondo_collective_name((rondo_collective)c)))
            return c;
    return -1;
}

struct plan **plans_open(const struct algorithm *algorithm, struct plan_request request,
                         int *ret_count)
{
    int ranks = request.size;
    bool pair = request.collective == RONDO_SEND;
    int count = pair && ranks == 1 ? 2 : ranks;
    struct plan **plans = calloc((size_t)count, sizeof(struct plan *));
    rondo_result result = plans ? RONDO_OK : RONDO_ERROR_MEMORY;

    *ret_count = count;
    if (!result && pair) {
        result = algorithm_plan(algorithm, RONDO_SEND, ranks, 0, ranks - 1, &plans[0]);
        if (!result)
            result = algorithm_plan(algorithm, RONDO_RECV, ranks, ranks - 1, 0, &plans[count - 1]);
    }
    for (request.rank = 0; !result && !pair && request.rank < ranks; request.rank++)
        result = algorithm_write(algorithm, &request, &plans[request.rank]);
    if (!result)
        return plans;
    plans_close(plans, count);
    return NULL;
}

void plans_close(struct plan **plans, int count)
{
    for (int i = 0; plans && i < count; i++)
        plan_close(plans[i]);
    free(plans);
}
