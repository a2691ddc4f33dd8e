/* SPDX-License-Identifier: BSD-3-Clause */
/* joins.c - ranks with different numbers of steps: rank r has r + 1 of them, in each epoch. */
#include "bodies.h"

enum { EPOCHS = 2 };

/* A model whose parameters are updated: parameter += gradient. */
static void update(struct toy *toy)
{
    for (int p = 0; p < TOY_PARAMETERS; p++)
        for (size_t i = 0; i < toy->parameters[p].count && p != TOY_FROZEN; i++)
            ((float *)toy->data[p])[i] += ((float *)rondo_ddp_gradient(toy->ddp, p))[i];
}

static rondo_result update_joined(void *context)
{
    update(context);
    return RONDO_OK;
}

/* In step s of an epoch ranks s, s+1 ... have data. */
static double step_gradient(const struct toy *toy, int step, bool by_remaining, int p, size_t i)
{
    double sum = 0;

    for (int rank = step; rank < toy->size; rank++)
        sum += toy_gradient(rank, step, p, i);
    return (float)sum / (float)(by_remaining ? toy->size - step : toy->size);
}

static rondo_result check_data(struct toy *toy, int epochs, bool by_remaining)
{
    for (int p = 0; p < TOY_PARAMETERS; p++)
        for (size_t i = 0; i < toy->parameters[p].count; i++) {
            double want = toy_value(0, p, i), got = ((float *)toy->data[p])[i];

            for (int step = 0; step < toy->size && p != TOY_FROZEN; step++)
                want += epochs * step_gradient(toy, step, by_remaining, p, i);
            if (got - want > 1e-3 || want - got > 1e-3)
                return world_say(toy->sentence, RONDO_ERROR_INTERNAL,
                                 "rank %d: element %zu of '%s' is %g, not %g", toy->rank, i,
                                 toy->parameters[p].name, got, want);
        }
    return RONDO_OK;
}

static rondo_result epoch(struct toy *toy, rondo_ddp_step_function joined_step)
{
    rondo_result result = RONDO_OK;

    for (int step = 0; step <= toy->rank && !result; step++) {
        result = toy_say(toy, rondo_ddp_zero_gradients(toy->ddp), "zero");
        if (!result)
            result = toy_pass(toy, step, 1, step % 2);
        if (!result)
            update(toy);
    }
    if (!result)
        result = toy_say(toy, rondo_ddp_join(toy->ddp, joined_step, toy), "join");
    return result;
}

static rondo_result epochs(rondo_comm *comm, rondo_ddp_join_mode mode,
                           rondo_ddp_step_function joined_step, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result;

    config.average = RONDO_DDP_BY_RANKS;
    config.join = mode;
    result = toy_open(toy, &config);
    for (int e = 1; e <= EPOCHS && !result; e++) {
        result = epoch(toy, joined_step);
        if (!result)
            result = check_data(toy, e, mode == RONDO_DDP_JOIN_BY_REMAINING);
    }
    toy_free(toy);
    return result;
}

rondo_result joins_by_size(rondo_comm *comm, void *unused, char *sentence)
{
    return epochs(comm, RONDO_DDP_JOIN_BY_SIZE, NULL, sentence);
}

rondo_result joins_by_remaining(rondo_comm *comm, void *unused, char *sentence)
{
    return epochs(comm, RONDO_DDP_JOIN_BY_REMAINING, NULL, sentence);
}

rondo_result joins_step_everywhere(rondo_comm *comm, void *unused, char *sentence)
{
    return epochs(comm, RONDO_DDP_JOIN_BY_REMAINING, update_joined, sentence);
}

/* Ranks that disagree about exchanging are told so, and so is one that had joined. */
rondo_result joins_in_mixed_passes(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result;

    config.join = RONDO_DDP_JOIN_BY_SIZE;
    result = toy_open(toy, &config);
    if (!result && toy->rank == toy->size - 1)
        result = toy_expect(toy, rondo_ddp_join(toy->ddp, NULL, NULL), RONDO_ERROR_MISMATCH,
                            "rank 0", "rank 1");
    else if (!result)
        result = toy_expect(toy, rondo_ddp_begin(toy->ddp, toy->rank == 0), RONDO_ERROR_MISMATCH,
                            "rank 0 begins a pass that exchanges", "rank 1 one that does not");
    if (!result) /* and all join at once */
        result = toy_say(toy, rondo_ddp_join(toy->ddp, NULL, NULL), "join");
    toy_free(toy);
    return result;
}
