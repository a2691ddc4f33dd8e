/* SPDX-License-Identifier: BSD-3-Clause */
/* unused.c - passes that leave parameters out, with find_unused. */
#include "bodies.h"

/* True if `rank` uses the parameter in this pass of the step. */
typedef bool (*uses)(int rank, int pass, int parameter);

struct plan {
    uses uses;
    int passes;      /* of a step; the last one exchanges */
    double leftover; /* what gradients hold before: kept where nobody has any */
    rondo_ddp_accumulation accumulation;
};

static bool someone_uses(const struct toy *toy, const struct plan *plan, int parameter)
{
    for (int rank = 0; rank < toy->size; rank++)
        for (int pass = 0; pass < plan->passes; pass++)
            if (plan->uses(rank, pass, parameter))
                return true;
    return false;
}

static bool rank_uses(const struct plan *plan, int rank, int parameter)
{
    for (int pass = 0; pass < plan->passes; pass++)
        if (plan->uses(rank, pass, parameter))
            return true;
    return false;
}

static double wanted(const struct toy *toy, const void *context, int parameter, size_t i)
{
    const struct plan *plan = context;
    double sum = 0;

    if (!someone_uses(toy, plan, parameter))
        return plan->leftover + toy->rank;
    for (int rank = 0; rank < toy->size; rank++) {
        if (rank_uses(plan, rank, parameter))
            sum += plan->leftover + rank; /* who uses it adds to what is there */
        for (int pass = 0; pass < plan->passes; pass++)
            if (plan->uses(rank, pass, parameter))
                sum += toy_gradient(rank, pass, parameter, i);
    }
    return sum;
}

static void fill(struct toy *toy, double value)
{
    for (int p = 0; p < TOY_PARAMETERS; p++)
        for (size_t i = 0; i < toy->parameters[p].count && p != TOY_FROZEN; i++)
            ((float *)rondo_ddp_gradient(toy->ddp, p))[i] = (float)value;
}

static rondo_result run_plan(rondo_comm *comm, const struct plan *plan, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result;

    config.find_unused = 1;
    config.accumulation = plan->accumulation;
    result = toy_open(toy, &config);
    for (int step = 0; step < 3 && !result; step++) {
        for (int pass = 0; pass < plan->passes && !result; pass++) {
            result = toy_say(toy, rondo_ddp_begin(toy->ddp, pass == plan->passes - 1), "begin");
            if (!result && pass == 0) /* not before: buckets move in begin of the second step */
                fill(toy, plan->leftover + toy->rank);
            for (int p = TOY_PARAMETERS - 1; p >= 0 && !result; p--)
                if (p != TOY_FROZEN && plan->uses(toy->rank, pass, p))
                    result = toy_announce(toy, p, pass);
            if (!result)
                result = toy_say(toy, rondo_ddp_wait(toy->ddp), "wait");
        }
        if (!result)
            result = toy_check(toy, wanted, plan);
    }
    toy_free(toy);
    return result;
}

static rondo_result run_plans(rondo_comm *comm, struct plan plan, char *sentence)
{
    rondo_result result = run_plan(comm, &plan, sentence);

    plan.accumulation = RONDO_DDP_TREE;
    return result ? result : run_plan(comm, &plan, sentence);
}

static bool by_turns(int rank, int pass, int parameter)
{
    return rank % 2 == parameter % 2 || parameter == 0;
}

rondo_result unused_here_counts_as_zero(rondo_comm *comm, void *unused, char *sentence)
{
    return run_plans(comm, (struct plan){by_turns, 1, 0, RONDO_DDP_ADD}, sentence);
}

static bool not_3_and_6(int rank, int pass, int parameter)
{
    return parameter != 3 && parameter != 6;
}

rondo_result unused_everywhere_is_kept(rondo_comm *comm, void *unused, char *sentence)
{
    return run_plans(comm, (struct plan){not_3_and_6, 1, 5, RONDO_DDP_ADD}, sentence);
}

static bool early_or_never(int rank, int pass, int parameter)
{
    return parameter == 6 ? false : parameter == 5 ? pass == 0 && rank == 0 : pass != parameter % 3;
}

rondo_result unused_in_the_last_pass_only_counts(rondo_comm *comm, void *unused, char *sentence)
{
    return run_plans(comm, (struct plan){early_or_never, 3, 2, RONDO_DDP_ADD}, sentence);
}
