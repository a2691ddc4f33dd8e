/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * move.c - parameters come and go.
 *
 *              prefetch                 gather                 release
 *     AWAY ──────────────► COMING ──────────────► HERE ──────────────► AWAY
 *            (a buffer, an all-gather)  (wait for it)      (the buffer is free)
 *
 * Where parameters are kept whole, a unit is HERE from the beginning, and COMING after a step,
 * until the shards that the other ranks have updated are here.
 */
#include "ddp/shards/shards.h"

rondo_result shards_send_around(rondo_shards *shards, struct shard_unit *unit)
{
    rondo_result result = rondo_all_gather(unit->own, unit->whole, unit->shard, RONDO_FLOAT32,
                                           shards->comm, shards->stream);

    if (!result)
        result = rondo_event_record(unit->arrival, shards->stream);
    if (result)
        return shards_fail_call(result, shards->comm, "Gathering a unit");
    unit->place = SHARD_COMING;
    return RONDO_OK;
}

/* COMING becomes HERE. */
static rondo_result await(rondo_shards *shards, struct shard_unit *unit)
{
    if (unit->place != SHARD_COMING)
        return RONDO_OK;
    rondo_event_wait(unit->arrival);
    unit->place = SHARD_HERE;
    return shards_check(shards, "Gathering a unit");
}

static rondo_result fetch(rondo_shards *shards, struct shard_unit *unit)
{
    rondo_result result;

    if (unit->place != SHARD_AWAY)
        return RONDO_OK;
    result = shards_borrow(shards, &unit->whole);
    if (result)
        return result;
    result = shards_send_around(shards, unit);
    if (result) {
        shards_return(shards, unit->whole);
        unit->whole = NULL;
    }
    return result;
}

rondo_result rondo_shards_prefetch(rondo_shards *shards, int unit)
{
    struct shard_unit *found;
    rondo_result result = shards_find(__func__, shards, unit, 0, &found, NULL);

    return result ? result : fetch(shards, found);
}

rondo_result rondo_shards_gather(rondo_shards *shards, int unit)
{
    struct shard_unit *found;
    rondo_result result = shards_find(__func__, shards, unit, 0, &found, NULL);

    if (!result)
        result = fetch(shards, found);
    return result ? result : await(shards, found);
}

rondo_result rondo_shards_parameter(rondo_shards *shards, int unit, int parameter,
                                    const float **ret_values)
{
    struct shard_parameter *found;
    struct shard_unit *owner;
    rondo_result result = shards_find(__func__, shards, unit, parameter, &owner, &found);

    if (!result)
        result = shards_need(__func__, ret_values);
    if (result)
        return result;
    if (owner->place != SHARD_HERE)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "Parameter '%s' is not here: call rondo_shards_gather() for unit %d first.",
                        found->name, unit);
    *ret_values = owner->whole + found->offset;
    return RONDO_OK;
}

static rondo_result release(rondo_shards *shards, struct shard_unit *unit)
{
    rondo_result result;

    if (shards_keep_parameters(shards) || unit->place == SHARD_AWAY)
        return RONDO_OK;
    result = await(shards, unit);
    shards_return(shards, unit->whole);
    unit->whole = NULL;
    unit->place = SHARD_AWAY;
    return result;
}

rondo_result rondo_shards_release(rondo_shards *shards, int unit)
{
    struct shard_unit *found;
    rondo_result result = shards_find(__func__, shards, unit, 0, &found, NULL);

    return result ? result : release(shards, found);
}

rondo_result shards_release_all(rondo_shards *shards)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; i < shards->count && !result; i++)
        result = release(shards, &shards->units[i]);
    return result;
}
