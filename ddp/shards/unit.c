/* SPDX-License-Identifier: BSD-3-Clause */
/* unit.c - how a unit is laid out, what memory stays with it, and how it starts with the
 * values of rank 0. */
#include "ddp/shards/shards.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static void hash_unit(const rondo_parameter_spec *parameters, size_t count, uint64_t *hash)
{
    unsigned char digest[crypto_generichash_BYTES_MIN];
    crypto_generichash_state state;

    crypto_generichash_init(&state, NULL, 0, sizeof(digest));
    crypto_generichash_update(&state, (const unsigned char *)hash, sizeof(*hash));
    for (size_t i = 0; i < count; i++) {
        uint64_t elements = parameters[i].count;

        crypto_generichash_update(&state, (const unsigned char *)parameters[i].name,
                                  strlen(parameters[i].name) + 1);
        crypto_generichash_update(&state, (const unsigned char *)&elements, sizeof(elements));
    }
    crypto_generichash_final(&state, digest, sizeof(digest));
    memcpy(hash, digest, sizeof(*hash));
}

void shards_close_unit(rondo_shards *shards, struct shard_unit *unit)
{
    if (shards_keep_parameters(shards))
        rondo_mem_free(unit->whole);
    else
        rondo_mem_free(unit->own);
    if (shards_keep_gradients(shards))
        rondo_mem_free(unit->gradients);
    for (int i = 0; i < SHARDS_LEVELS; i++)
        free(unit->sums[i]);
    for (int i = 0; i < shards->config.states; i++)
        free(unit->states[i]);
    rondo_event_close(unit->arrival);
    rondo_event_close(unit->reduction);
    for (int i = 0; i < unit->count; i++)
        free(unit->parameters[i].name);
    free(unit->parameters);
}

/* Names, offsets and the length of a shard. */
static rondo_result lay_out(const rondo_shards *shards, struct shard_unit *unit,
                            const rondo_parameter_spec *parameters, size_t count)
{
    size_t at = 0, step = SHARDS_ALIGN * (size_t)shards->size;

    unit->parameters = calloc(count + 1, sizeof(*unit->parameters));
    for (size_t i = 0; i < count && unit->parameters; i++) {
        char *name = strdup(parameters[i].name);

        if (!name)
            return ddp_fail(RONDO_ERROR_MEMORY, "No memory for a unit of %zu parameters.", count);
        unit->parameters[unit->count++] = (struct shard_parameter){name, at, parameters[i].count};
        at += (parameters[i].count + SHARDS_ALIGN - 1) / SHARDS_ALIGN * SHARDS_ALIGN;
    }
    unit->shard = (at + step - 1) / step * SHARDS_ALIGN;
    return unit->parameters ? RONDO_OK : ddp_fail(RONDO_ERROR_MEMORY, "No memory for a unit.");
}

/* Allocate what stays for the life of the unit; a `whole` that does not stay is for its start. */
static rondo_result allocate_unit(rondo_shards *shards, struct shard_unit *unit)
{
    size_t whole = shards_whole(shards, unit);
    rondo_result result = shards_allocate(whole, &unit->whole);

    if (!result && shards_keep_gradients(shards))
        result = shards_allocate(whole, &unit->gradients);
    if (!result && !shards_keep_parameters(shards))
        result = shards_allocate(unit->shard, &unit->own);
    else if (!result)
        unit->own = unit->whole + unit->shard * (size_t)shards->rank;
    for (int i = 0; i < shards->config.states && !result; i++) {
        unit->states[i] = calloc(unit->shard + 1, sizeof(float));
        if (!unit->states[i])
            result =
                ddp_fail(RONDO_ERROR_MEMORY, "No memory for %zu elements of state.", unit->shard);
    }
    if (!result && (rondo_event_open(&unit->arrival) || rondo_event_open(&unit->reduction)))
        result = ddp_fail_call(RONDO_ERROR_MEMORY, NULL, "An event of shards");
    return result;
}

/* Rank 0's values go to all, each keeps its shard. */
static rondo_result fill(rondo_shards *shards, struct shard_unit *unit,
                         const rondo_parameter_spec *parameters)
{
    rondo_result result;

    for (int i = 0; i < unit->count && shards->rank == 0; i++)
        if (parameters[i].values && parameters[i].count)
            memcpy(unit->whole + unit->parameters[i].offset, parameters[i].values,
                   parameters[i].count * sizeof(float));
    result = rondo_broadcast(unit->whole, unit->whole, shards_whole(shards, unit), RONDO_FLOAT32, 0,
                             shards->comm, NULL);
    if (result)
        return shards_fail_call(result, shards->comm, "Sending a unit's parameters");
    unit->place = SHARD_HERE;
    if (shards_keep_parameters(shards))
        return RONDO_OK;
    memcpy(unit->own, unit->whole + unit->shard * (size_t)shards->rank,
           unit->shard * sizeof(float));
    rondo_mem_free(unit->whole);
    unit->whole = NULL;
    unit->place = SHARD_AWAY;
    return RONDO_OK;
}

static rondo_result check_unit(rondo_shards *shards, const rondo_parameter_spec *parameters,
                               size_t count)
{
    size_t all = 0, most = SIZE_MAX / sizeof(float) / 4;

    if (!shards || (!parameters && count))
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_shards_add_unit: there are no %s.",
                        shards ? "parameters" : "shards");
    if (ddp_check_call(shards, "rondo_shards_add_unit"))
        return RONDO_ERROR_INVALID;
    if (shards->made_buffers)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_shards_add_unit: add all units before the first one is used.");
    for (size_t i = 0; i < count; i++) {
        if (!parameters[i].name)
            return ddp_fail(RONDO_ERROR_INVALID, "Parameter %zu of a unit has no name.", i);
        if (parameters[i].count > most - all)
            return ddp_fail(RONDO_ERROR_INVALID, "Parameter '%s' of a unit is too large.",
                            parameters[i].name);
        all += parameters[i].count;
    }
    return RONDO_OK;
}

static rondo_result grow_lists(rondo_shards *shards)
{
    size_t room = (size_t)shards->count + 1;
    struct shard_unit *units = realloc(shards->units, room * sizeof(*units));
    int *pending;

    if (units)
        shards->units = units;
    pending = units ? realloc(shards->pending, room * sizeof(*pending)) : NULL;
    if (!pending)
        return ddp_fail(RONDO_ERROR_MEMORY, "No memory for %zu units.", room);
    shards->pending = pending;
    return RONDO_OK;
}

rondo_result rondo_shards_add_unit(rondo_shards *shards, const rondo_parameter_spec *parameters,
                                   size_t count)
{
    struct shard_unit unit = {0};
    rondo_result result = check_unit(shards, parameters, count);
    uint64_t hash = 0;

    if (result)
        return result;
    hash_unit(parameters, count, &hash);
    result = grow_lists(shards);
    if (!result)
        result = lay_out(shards, &unit, parameters, count);
    if (!result)
        result = allocate_unit(shards, &unit);
    if (result)
        ddp_fail(result, "Rank %d: %s", shards->rank, rondo_ddp_last_error());
    result = shards_agree(shards->comm, result); /* nobody waits for a rank that has no memory */
    if (!result)
        result = shards_compare(shards, hash, "a unit");
    if (!result)
        result = fill(shards, &unit, parameters);
    if (result) {
        if (!shards_keep_parameters(shards))
            rondo_mem_free(unit.whole);
        shards_close_unit(shards, &unit);
        return result;
    }
    shards->units[shards->count++] = unit;
    if (shards->buffer_bytes < shards_whole(shards, &unit) * sizeof(float))
        shards->buffer_bytes = shards_whole(shards, &unit) * sizeof(float);
    return RONDO_OK;
}
