/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce.c - gradients on their way into the shards.
 *
 * A pass collects a unit's gradients in a whole buffer. reduce queues a reduce-scatter in place:
 * afterwards the rank's own block of that buffer is the sum over ranks. Settling takes that block
 * out and frees the buffer; it is put off, so that communication goes on behind the computation.
 *
 * Passes of a step add up as a balanced tree, by a binary counter: sums[l] is the sum of 2^l passes
 * where bit l of `passes` is set, as in tree.c. At the end what is left is added up, smallest
 * first, and divided. Cost: shards as many as log2(passes) + 1.
 */
#include "ddp/shards/shards.h"

#include "ddp/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The tree over passes -------------------------------------------------------------------- */

/* Take the pass's sum over ranks into the counter. */
static rondo_result add_pass(rondo_shards *shards, struct shard_unit *unit, float *block)
{
    float *place = NULL;
    int level = 0;

    for (; unit->passes >> level & 1; level++) {
        ddp_add(unit->sums[level], block, unit->shard, RONDO_FLOAT32);
        free(place);
        place = unit->sums[level]; /* its memory moves up */
        unit->sums[level] = NULL;
    }
    if (!unit->sums[level])
        unit->sums[level] = place ? place : malloc((unit->shard + 1) * sizeof(float));
    else
        free(place);
    if (!unit->sums[level])
        return shards_give_up(
            shards,
            ddp_fail(RONDO_ERROR_MEMORY, "No memory for a shard of %zu gradients.", unit->shard));
    memcpy(unit->sums[level], block, unit->shard * sizeof(float));
    unit->passes++;
    return RONDO_OK;
}

static double divisor_of(const rondo_shards *shards, const struct shard_unit *unit)
{
    switch (shards->config.average) {
    case RONDO_DDP_BY_RANKS:
        return shards->size;
    case RONDO_DDP_BY_PASSES:
        return (double)shards->size * (double)unit->passes;
    default:
        return 1;
    }
}

static void finish_unit(rondo_shards *shards, struct shard_unit *unit)
{
    float *sum = NULL;

    if (unit->average || unit->passes == 0)
        return;
    for (int level = 0; level < SHARDS_LEVELS; level++) {
        if (!(unit->passes >> level & 1))
            continue;
        if (sum)
            ddp_add(unit->sums[level], sum, unit->shard, RONDO_FLOAT32);
        else
            sum = unit->sums[level];
    }
    ddp_divide(sum, unit->shard, RONDO_FLOAT32, divisor_of(shards, unit));
    unit->average = sum;
}

/* ---- On the way ------------------------------------------------------------------------------ */

/* The unit's next pass begins with zeros. */
static void clear_pass(rondo_shards *shards, struct shard_unit *unit)
{
    if (shards_keep_gradients(shards)) {
        memset(unit->gradients, 0, shards_whole(shards, unit) * sizeof(float));
    } else {
        shards_return(shards, unit->gradients);
        unit->gradients = NULL;
    }
}

static rondo_result settle_oldest(rondo_shards *shards)
{
    struct shard_unit *unit = &shards->units[shards->pending[0]];
    rondo_result result;

    shards->pending_count--;
    memmove(shards->pending, shards->pending + 1,
            (size_t)shards->pending_count * sizeof(shards->pending[0]));
    rondo_event_wait(unit->reduction);
    unit->reducing = false;
    result = shards_check(shards, "Summing up a unit's gradients");
    if (!result)
        result = add_pass(shards, unit, unit->gradients + unit->shard * (size_t)shards->rank);
    clear_pass(shards, unit);
    return result;
}

/* A unit's reductions are settled in the order in which they were queued. */
static rondo_result settle_unit(rondo_shards *shards, const struct shard_unit *unit)
{
    rondo_result result = RONDO_OK;

    while (unit->reducing && !result)
        result = settle_oldest(shards);
    return result;
}

rondo_result rondo_shards_gradient(rondo_shards *shards, int unit, int parameter,
                                   float **ret_gradients)
{
    struct shard_parameter *found;
    struct shard_unit *owner;
    rondo_result result = shards_find(__func__, shards, unit, parameter, &owner, &found);

    if (!result)
        result = shards_need(__func__, ret_gradients);
    if (!result)
        result = settle_unit(shards, owner);
    if (!result && !owner->gradients) {
        result = shards_borrow(shards, &owner->gradients);
        if (!result)
            memset(owner->gradients, 0, shards_whole(shards, owner) * sizeof(float));
    }
    if (result)
        return result;
    owner->collecting = true;
    *ret_gradients = owner->gradients + found->offset;
    return RONDO_OK;
}

static void look_for_nan(rondo_shards *shards, int number)
{
    const struct shard_unit *unit = &shards->units[number];

    for (int i = 0; i < unit->count && !shards->problem[0]; i++) {
        const struct shard_parameter *parameter = &unit->parameters[i];
        const float *gradient = unit->gradients + parameter->offset;
        size_t at = ddp_find_infinite(gradient, parameter->count, RONDO_FLOAT32);

        if (at < parameter->count)
            snprintf(shards->problem, sizeof(shards->problem),
                     "Rank %d has a gradient that is no number: element %zu of '%s' in unit %d is "
                     "%g. The step is left out; look for a division by zero or a too large "
                     "learning rate.",
                     shards->rank, at, parameter->name, number, (double)gradient[at]);
    }
}

rondo_result rondo_shards_reduce(rondo_shards *shards, int unit)
{
    struct shard_unit *found;
    rondo_result result = shards_find(__func__, shards, unit, 0, &found, NULL);

    if (!result)
        result = settle_unit(shards, found);
    while (!result && !shards_keep_gradients(shards) && shards->pending_count >= SHARDS_PENDING)
        result = settle_oldest(shards);
    if (!result && found->average)
        result = ddp_fail(RONDO_ERROR_INVALID,
                          "rondo_shards_reduce: unit %d has its average already; after a clip "
                          "comes the step.",
                          unit);
    if (result)
        return result;
    if (!found->gradients) { /* this rank computed none: it takes part with zeros */
        result = shards_borrow(shards, &found->gradients);
        if (result)
            return result;
        memset(found->gradients, 0, shards_whole(shards, found) * sizeof(float));
    }
    if (shards->config.check_nan)
        look_for_nan(shards, unit);
    result = rondo_reduce_scatter(
        found->gradients, found->gradients + found->shard * (size_t)shards->rank, found->shard,
        RONDO_FLOAT32, RONDO_SUM, shards->comm, shards->stream);
    if (!result)
        result = rondo_event_record(found->reduction, shards->stream);
    if (result)
        return shards_fail_call(result, shards->comm, "Summing up a unit's gradients");
    found->collecting = false;
    found->reducing = true;
    shards->pending[shards->pending_count++] = unit;
    return RONDO_OK;
}

/* ---- The end of a step ----------------------------------------------------------------------- */

static rondo_result agree_on_problem(rondo_shards *shards)
{
    rondo_result result = RONDO_OK;

    if (shards->problem[0])
        result = ddp_fail(RONDO_ERROR_INVALID, "%s", shards->problem);
    result = shards_agree(shards->comm, result);
    if (result)
        shards_forget_gradients(shards);
    return result;
}

rondo_result shards_finish_reductions(rondo_shards *shards)
{
    rondo_result result = RONDO_OK;

    while (shards->pending_count > 0 && !result)
        result = settle_oldest(shards);
    if (!result && shards->config.check_nan)
        result = agree_on_problem(shards);
    for (int i = 0; i < shards->count && !result; i++)
        finish_unit(shards, &shards->units[i]);
    return result;
}

void shards_forget_gradients(rondo_shards *shards)
{
    for (int i = 0; i < shards->count; i++) {
        struct shard_unit *unit = &shards->units[i];

        if (unit->collecting)
            clear_pass(shards, unit);
        unit->collecting = false;
        unit->passes = 0;
        unit->average = NULL;
    }
    shards->problem[0] = '\0';
}
