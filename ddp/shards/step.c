/* SPDX-License-Identifier: BSD-3-Clause */
/* step.c - the end of a step: the norm, the optimizer on this rank's shards; and whole
 * parameters and states for checkpoints, out of the shards and back. */
#include "ddp/norm.h"
#include "ddp/shards/shards.h"

#include <string.h>

rondo_result rondo_shards_clip(rondo_shards *shards, double limit, double *ret_norm)
{
    rondo_result result = ddp_check_call(shards, "rondo_shards_clip");
    struct norm norm;
    double root;
    float scale;

    if (!result)
        result = shards_need(__func__, ret_norm);
    if (!result)
        result = shards_finish_reductions(shards);
    if (result)
        return result;
    norm_init(&norm);
    for (int i = 0; i < shards->count; i++)
        if (shards->units[i].average)
            norm_add(&norm, shards->units[i].average, shards->units[i].shard);
    result = norm_all_reduce(&norm, shards->comm);
    if (result)
        return result;
    root = norm_root(&norm);
    if (norm_exceeds(root, limit, &scale))
        for (int i = 0; i < shards->count; i++)
            if (shards->units[i].average)
                norm_scale(shards->units[i].average, shards->units[i].shard, scale);
    *ret_norm = root;
    return RONDO_OK;
}

/* ---- The optimizer --------------------------------------------------------------------------- */

static void update_unit(rondo_shards *shards, int number, rondo_update_function update,
                        void *context)
{
    const struct shard_unit *unit = &shards->units[number];

    for (int i = 0; i < unit->count; i++) {
        struct shard_piece piece = shards_piece(shards, unit, &unit->parameters[i]);
        rondo_update work = {.unit = number,
                             .parameter = i,
                             .first = piece.first,
                             .count = piece.count,
                             .values = unit->own + piece.at,
                             .gradients = unit->average + piece.at};

        for (int s = 0; s < shards->config.states; s++)
            work.states[s] = unit->states[s] + piece.at;
        if (piece.count > 0)
            update(context, &work);
    }
}

rondo_result rondo_shards_step(rondo_shards *shards, rondo_update_function update, void *context)
{
    rondo_result result = ddp_check_call(shards, "rondo_shards_step");

    if (result)
        return result;
    result = shards_finish_reductions(shards);
    if (!result)
        result = shards_release_all(shards);
    for (int i = 0; i < shards->count && !result && update; i++) {
        struct shard_unit *unit = &shards->units[i];

        if (!unit->average)
            continue; /* no rank had gradients of it */
        update_unit(shards, i, update, context);
        if (shards_keep_parameters(shards))
            result = shards_send_around(shards, unit);
    }
    if (!result)
        shards_forget_gradients(shards);
    return result;
}

/* ---- For checkpoints ------------------------------------------------------------------------- */

static rondo_result check_state(const rondo_shards *shards, int state)
{
    if (state < -1 || state >= shards->config.states)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "There is no state %d of a parameter; there are %d, and -1 is itself.",
                        state, shards->config.states);
    return RONDO_OK;
}

static rondo_result export_state(rondo_shards *shards, struct shard_unit *unit,
                                 const struct shard_parameter *parameter, const float *state,
                                 float *ret_values)
{
    float *whole;
    rondo_result result = shards_borrow(shards, &whole);

    if (result)
        return result;
    result = rondo_all_gather(state, whole, unit->shard, RONDO_FLOAT32, shards->comm, NULL);
    if (result)
        shards_fail_call(result, shards->comm, "Gathering a unit's state");
    else
        memcpy(ret_values, whole + parameter->offset, parameter->count * sizeof(float));
    shards_return(shards, whole);
    return result;
}

rondo_result rondo_shards_export(rondo_shards *shards, int unit, int parameter, int state,
                                 float *ret_values)
{
    struct shard_parameter *found;
    struct shard_unit *owner;
    bool was_here;
    rondo_result result = shards_find(__func__, shards, unit, parameter, &owner, &found);

    if (!result)
        result = shards_need(__func__, ret_values);
    if (!result)
        result = check_state(shards, state);
    if (result)
        return result;
    if (state >= 0)
        return export_state(shards, owner, found, owner->states[state], ret_values);
    was_here = owner->place != SHARD_AWAY;
    result = rondo_shards_gather(shards, unit);
    if (result)
        return result;
    memcpy(ret_values, owner->whole + found->offset, found->count * sizeof(float));
    return was_here ? RONDO_OK : rondo_shards_release(shards, unit);
}

rondo_result rondo_shards_import(rondo_shards *shards, int unit, int parameter, int state,
                                 const float *values)
{
    struct shard_parameter *found;
    struct shard_unit *owner;
    struct shard_piece piece;
    rondo_result result = shards_find(__func__, shards, unit, parameter, &owner, &found);

    if (!result)
        result = shards_need(__func__, values);
    if (!result)
        result = check_state(shards, state);
    if (!result && owner->place == SHARD_COMING)
        result = rondo_shards_gather(shards, unit); /* nothing may arrive on top of it */
    if (result)
        return result;
    piece = shards_piece(shards, owner, found);
    memcpy((state < 0 ? owner->own : owner->states[state]) + piece.at, values + piece.first,
           piece.count * sizeof(float));
    if (state < 0 && owner->whole)
        memcpy(owner->whole + found->offset, values, found->count * sizeof(float));
    return RONDO_OK;
}
