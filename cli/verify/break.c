/* SPDX-License-Identifier: BSD-3-Clause */
/* break.c - `rondo verify --break STEP --rank R`: finds the plan and the step, and takes it out. */
#include "cli/verify/break.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void break_take_step(const struct argp_state *state, const char *text, struct break_wish *wish)
{
    wish->step =
        strcmp(text, "random") ? argument_whole(state, "-b", text, 0, 1000000000) : BREAK_RANDOM;
}

/* A send has the plans of two ranks only. */
static struct plan *plan_of_rank(struct plan *const *plans, int count, int rank)
{
    for (int i = 0; i < count; i++)
        if (plans[i] && plans[i]->rank == rank)
            return plans[i];
    return NULL;
}

bool break_plan(const struct break_wish *wish, struct plan *const *plans, int count,
                struct outcome *outcome)
{
    struct plan *plan = plan_of_rank(plans, count, wish->rank);
    uint32_t step = (uint32_t)wish->step;
    char words[200];

    if (wish->step == BREAK_NOTHING)
        return true;
    if (!plan || !plan->step_count) {
        fprintf(stderr, "rondo verify: rank %d of %d has no steps of %s by %s to take out\n",
                wish->rank, plans[0]->size, rondo_collective_name(plans[0]->collective),
                plans[0]->algorithm);
        return false;
    }
    if (wish->step == BREAK_RANDOM) {
        unsigned seed = (unsigned)(wish->seed + plan->size);

        step = (uint32_t)rand_r(&seed) % plan->step_count;
    }
    if (step >= plan->step_count) {
        fprintf(stderr,
                "rondo verify: rank %d's plan of %s by %s on %d ranks has the steps 0 to %u, no "
                "step %u: `rondo explain --steps %d` prints them\n",
                wish->rank, rondo_collective_name(plan->collective), plan->algorithm, plan->size,
                plan->step_count - 1, step, wish->rank);
        return false;
    }
    plan_describe_step(plan, &plan->steps[step], words, sizeof(words));
    snprintf(outcome->taken_out, sizeof(outcome->taken_out),
             "without rank %d's step %u (%s): ", wish->rank, step, words);
    verify_drop_step(plan, step);
    return true;
}
