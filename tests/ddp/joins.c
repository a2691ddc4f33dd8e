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

/* In step s of an epoch ranks s, s+1 ... have data. */
static double step_gradient(const struct toy *toy, int step, bool by_remaining, int p, size_t i)
{
    double sum = 0;

    for (int rank = step; rank < toy->size; rank++)
        sum += toy_gradient(rank, step, p, i);
    return (float)sum / (float)(by_remaining ? toy->size - step : toy->size);
}

/* After so many whole epochs, and so many steps of one more? */
static rondo_result check_data(struct toy *toy, int epochs, int steps, bool by_remaining)
{
    for (int p = 0; p < TOY_PARAMETERS; p++)
        for (size_t i = 0; i < toy->parameters[p].count; i++) {
            double want = toy_value(0, p, i), got = ((float *)toy->data[p])[i];

            for (int step = 0; step < toy->size && p != TOY_FROZEN; step++)
                want += (epochs + (step < steps)) * step_gradient(toy, step, by_remaining, p, i);
            if (got - want > 1e-3 || want - got > 1e-3)
                return world_say(toy->sentence, RONDO_ERROR_INTERNAL,
                                 "rank %d: element %zu of '%s' is %g, not %g", toy->rank, i,
                                 toy->parameters[p].name, got, want);
        }
    return RONDO_OK;
}

/* The step function of a rank that joined knows this; it must keep up with the others. */
struct joined {
    struct toy *toy;
    int epochs, steps;
};

static rondo_result update_joined(void *context)
{
    struct joined *joined = context;

    update(joined->toy);
    joined->steps++;
    return check_data(joined->toy, joined->epochs, joined->steps, true);
}

static rondo_result epoch(struct toy *toy, int number, rondo_ddp_step_function joined_step)
{
    struct joined joined = {toy, number, toy->rank + 1};
    rondo_result result = RONDO_OK;

    for (int step = 0; step <= toy->rank && !result; step++) {
        result = toy_say(toy, rondo_ddp_zero_gradients(toy->ddp), "zero");
        if (!result)
            result = toy_pass(toy, step, 1, step % 2);
        if (!result)
            update(toy);
    }
    if (!result)
        result = toy_say(toy, rondo_ddp_join(toy->ddp, joined_step, &joined), "join");
    if (!result && joined_step && joined.steps != toy->size)
        result = world_say(toy->sentence, RONDO_ERROR_INTERNAL, "%d steps of %d", joined.steps,
                           toy->size);
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
    for (int e = 0; e < EPOCHS && !result; e++) {
        result = epoch(toy, e, joined_step);
        if (!result)
            result = check_data(toy, e + 1, 0, mode == RONDO_DDP_JOIN_BY_REMAINING);
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

/* ---- A step function that fails, accumulation, disagreement ---------------------------------- */

static rondo_result refuse(void *context)
{
    return RONDO_ERROR_MEMORY;
}

/* Rank 0 joins first and cannot go on: the others hear of it in their next step. */
rondo_result joins_whose_step_fails(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result;

    config.join = RONDO_DDP_JOIN_BY_SIZE;
    result = toy_open(toy, &config);
    if (!result && toy->rank == 0)
        result = toy_expect(toy, rondo_ddp_join(toy->ddp, refuse, NULL), RONDO_ERROR_MEMORY,
                            "Rank 0", "step function");
    else if (!result) {
        result = toy_pass(toy, 0, 1, true);
        if (!result)
            result = toy_expect(toy, toy_pass(toy, 0, 1, true), RONDO_ERROR_MEMORY, "Rank 0",
                                "step function");
    }
    toy_free(toy);
    return result;
}

static double two_passes(const struct toy *toy, const void *context, int parameter, size_t i)
{
    double all = 0;

    for (int rank = 0; rank < toy->size; rank++)
        for (int pass = 0; pass < (rank ? 2 : 1); pass++) /* rank 0 joins after one of them */
            all += toy_gradient(rank, pass, parameter, i);
    return all;
}

static double mean_of_two_passes(const struct toy *toy, const void *context, int parameter,
                                 size_t i)
{
    const double *divisor = context;

    return (float)(two_passes(toy, NULL, parameter, i) / *divisor);
}

/* Rank 0 joins within a step of two passes: what it has accumulated counts. */
static rondo_result join_within_a_step(rondo_comm *comm, rondo_ddp_join_mode mode,
                                       rondo_ddp_average average, double divisor, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result;

    config.join = mode;
    config.average = average;
    result = toy_open(toy, &config);
    if (!result)
        result = toy_pass(toy, 0, 0, true);
    if (!result && toy->rank > 0)
        result = toy_pass(toy, 1, 1, true);
    if (!result)
        result = toy_say(toy, rondo_ddp_join(toy->ddp, NULL, NULL), "join");
    if (!result)
        result = toy_check(toy, mean_of_two_passes, &divisor);
    toy_free(toy);
    return result;
}

rondo_result joins_within_a_step(rondo_comm *comm, void *unused, char *sentence)
{
    const int size = rondo_comm_size(comm), made = 2 * size - 1; /* passes, over all ranks */
    const struct {
        rondo_ddp_join_mode mode;
        rondo_ddp_average average;
        double divisor;
    } cases[] = {{RONDO_DDP_JOIN_BY_SIZE, RONDO_DDP_SUM, 1},
                 {RONDO_DDP_JOIN_BY_SIZE, RONDO_DDP_BY_PASSES, 2.0 * size},
                 {RONDO_DDP_JOIN_BY_REMAINING, RONDO_DDP_BY_PASSES, made},
                 {RONDO_DDP_JOIN_BY_REMAINING, RONDO_DDP_BY_RANKS, made / 2.0}};
    rondo_result result = RONDO_OK;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && !result; i++)
        result =
            join_within_a_step(comm, cases[i].mode, cases[i].average, cases[i].divisor, sentence);
    return result;
}

static double second_pass(const struct toy *toy, const void *context, int parameter, size_t i)
{
    double all = 0;

    for (int rank = 0; rank < toy->size; rank++)
        all += toy_gradient(rank, 1, parameter, i);
    return (float)(all / toy->size);
}

/* All join in the middle of a step: the next one begins anew. */
rondo_result joins_forget_a_step(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result;

    config.join = RONDO_DDP_JOIN_BY_REMAINING;
    config.average = RONDO_DDP_BY_PASSES;
    result = toy_open(toy, &config);
    if (!result)
        result = toy_pass(toy, 0, 0, true);
    if (!result)
        result = toy_say(toy, rondo_ddp_join(toy->ddp, NULL, NULL), "join");
    if (!result)
        result = toy_pass(toy, 1, 1, true);
    if (!result)
        result = toy_check(toy, second_pass, NULL);
    toy_free(toy);
    return result;
}

/* Without a join mode, rank 0 has a step less than the others, and then closes its model or goes on
 * with other calls: they are told what there is for that. */
static rondo_result one_step_less(rondo_comm *comm, bool closes, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result;

    config.broadcast_buffers = !closes; /* then the others' next call is one on `comm` */
    result = toy_open(toy, &config);
    for (int pass = 0; pass < 2 && !result; pass++) /* the order of buckets is settled then */
        result = toy_pass(toy, pass, 1, true);
    if (!result && toy->rank > 0)
        result = closes ? toy_expect(toy, toy_pass(toy, 2, 1, true), RONDO_ERROR_PEER,
                                     "has closed the communicator", "set config.join")
                        : toy_expect(toy, rondo_ddp_begin(toy->ddp, 1), RONDO_ERROR_MISMATCH,
                                     "barrier", "set config.join");
    else if (!result && !closes && rondo_barrier(comm, NULL) != RONDO_ERROR_MISMATCH)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "the barrier met no other call");
    toy_free(toy);
    return result;
}

rondo_result joins_are_not_chosen(rondo_comm *comm, void *unused, char *sentence)
{
    rondo_result result = one_step_less(comm, true, sentence);
    rondo_comm *copy;

    if (!result)
        result = rondo_comm_dup(comm, &copy);
    if (result)
        return result;
    result = one_step_less(copy, false, sentence);
    rondo_comm_close(copy);
    return result;
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
