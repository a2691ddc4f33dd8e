/* SPDX-License-Identifier: BSD-3-Clause */
/* shards.c - units of a model of which each rank holds a share: making them, and their bytes. */
#include "ddp/shards/shards.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Small things ---------------------------------------------------------------------------- */

rondo_result shards_find(const char *function, rondo_shards *shards, int unit, int parameter,
                         struct shard_unit **ret_unit, struct shard_parameter **ret_parameter)
{
    rondo_result result = ddp_check_call(shards, function);

    if (result)
        return result;
    if (unit < 0 || unit >= shards->count)
        return ddp_fail(RONDO_ERROR_INVALID, "There is no unit %d of shards; there are %d.", unit,
                        shards->count);
    if (ret_parameter && (parameter < 0 || parameter >= shards->units[unit].count))
        return ddp_fail(RONDO_ERROR_INVALID, "Unit %d has no parameter %d; it has %d.", unit,
                        parameter, shards->units[unit].count);
    if (ret_unit)
        *ret_unit = &shards->units[unit];
    if (ret_parameter)
        *ret_parameter = &shards->units[unit].parameters[parameter];
    return RONDO_OK;
}

rondo_result shards_need(const char *function, const void *pointer)
{
    return pointer ? RONDO_OK
                   : ddp_fail(RONDO_ERROR_INVALID, "%s: the pointer to values is NULL.", function);
}

rondo_result shards_check(rondo_shards *shards, const char *what)
{
    rondo_result result = rondo_stream_query(shards->stream);

    if (result == RONDO_OK || result == RONDO_IN_PROGRESS)
        return RONDO_OK;
    return shards_fail_call(result, NULL, what);
}

struct shard_piece shards_piece(const rondo_shards *shards, const struct shard_unit *unit,
                                const struct shard_parameter *parameter)
{
    size_t begin = unit->shard * (size_t)shards->rank, end = begin + unit->shard;
    size_t first = parameter->offset, last = parameter->offset + parameter->count;

    if (first < begin)
        first = begin;
    if (last > end)
        last = end;
    if (first >= last)
        return (struct shard_piece){0, 0, 0};
    return (struct shard_piece){first - parameter->offset, last - first, first - begin};
}

rondo_result shards_allocate(size_t floats, float **ret_memory)
{
    void *memory = NULL;
    rondo_result result = rondo_mem_alloc((floats + SHARDS_ALIGN) * sizeof(float), &memory);

    if (result)
        return ddp_fail_call(result, NULL, "Memory for shards");
    *ret_memory = memory;
    return RONDO_OK;
}

rondo_result shards_give_up(rondo_shards *shards, rondo_result result)
{
    ddp_fail(result, "Rank %d: %s", shards->rank, rondo_ddp_last_error());
    rondo_comm_abort(shards->comm);
    return result;
}

rondo_result shards_fail_call(rondo_result result, const rondo_comm *comm, const char *what)
{
    ddp_fail_call(result, comm, what);
    if (result == RONDO_ERROR_ABORTED)
        ddp_fail(
            result,
            "%s A rank without memory for its part of a step aborts, too: read that rank's error.",
            rondo_ddp_last_error());
    return result;
}

/* ---- Buffers for a while --------------------------------------------------------------------- */

rondo_result shards_borrow(rondo_shards *shards, float **ret_buffer)
{
    float **list;
    rondo_result result;

    if (shards->free_buffers > 0) {
        *ret_buffer = shards->buffers[--shards->free_buffers];
        return RONDO_OK;
    }
    list = realloc(shards->buffers, ((size_t)shards->made_buffers + 1) * sizeof(*list));
    if (!list)
        return shards_give_up(shards,
                              ddp_fail(RONDO_ERROR_MEMORY, "No memory for a list of buffers."));
    shards->buffers = list;
    result = shards_allocate(shards->buffer_bytes / sizeof(float), ret_buffer);
    if (result)
        return shards_give_up(shards, result);
    shards->made_buffers++;
    return RONDO_OK;
}

void shards_return(rondo_shards *shards, float *buffer)
{
    shards->buffers[shards->free_buffers++] = buffer;
}

/* ---- Do all ranks say the same? -------------------------------------------------------------- */

rondo_result shards_agree(rondo_comm *comm, rondo_result mine)
{
    struct ddp_news news = {(int32_t)mine, ""};
    int size = rondo_comm_size(comm);
    int32_t vote = mine ? size - rondo_comm_rank(comm) : 0;
    rondo_result result = rondo_all_reduce(&vote, &vote, 1, RONDO_INT32, RONDO_MAX, comm, NULL);

    if (mine)
        snprintf(news.sentence, sizeof(news.sentence), "%s", rondo_ddp_last_error());
    if (!result && vote)
        result = ddp_spread(&news, size - vote, comm);
    if (result)
        return shards_fail_call(result, comm, "Asking what went wrong with shards");
    return vote ? ddp_fail((rondo_result)news.result, "%s", news.sentence) : RONDO_OK;
}

rondo_result shards_compare(rondo_shards *shards, uint64_t mine, const char *what)
{
    uint64_t theirs = mine;
    rondo_result result = rondo_broadcast(&theirs, &theirs, 1, RONDO_UINT64, 0, shards->comm, NULL);

    if (result)
        return shards_fail_call(result, shards->comm, "Comparing shards");
    if (mine != theirs)
        result = ddp_fail(RONDO_ERROR_MISMATCH,
                          "Rank %d has %s other than rank 0's: all ranks must give the same "
                          "numbers, names and counts, in the same order.",
                          shards->rank, what);
    return shards_agree(shards->comm, result);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static rondo_result check_config(const rondo_shards_config *config, const rondo_comm *comm,
                                 bool has_place)
{
    if (!config || config->struct_size != sizeof(*config))
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_shards_open: the config is %s.",
                        config ? "not of this version: set struct_size" : "NULL");
    if (!comm || !has_place)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_shards_open: %s.",
                        comm ? "there is no place for the rondo_shards"
                             : "the communicator is NULL");
    if (ddp_check_call(comm, "rondo_shards_open"))
        return RONDO_ERROR_INVALID;
    if (config->average < RONDO_DDP_BY_RANKS || config->average > RONDO_DDP_SUM)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_shards_open: there is no average %d.",
                        (int)config->average);
    if (config->level < RONDO_SHARD_OPTIMIZER || config->level > RONDO_SHARD_PARAMETERS)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_shards_open: there is no level %d, but 1 to 3.",
                        config->level);
    if (config->states < 0 || config->states > RONDO_STATES_MAX)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_shards_open: %d states, not 0 to %d.",
                        config->states, RONDO_STATES_MAX);
    if (sodium_init() < 0)
        return ddp_fail(RONDO_ERROR_SYSTEM, "rondo_shards_open: libsodium does not start.");
    return RONDO_OK;
}

/* A communicator and a stream of its own. */
static rondo_result open_ways(rondo_shards *shards, rondo_comm *comm)
{
    rondo_result result = rondo_comm_dup(comm, &shards->comm);

    if (result)
        return ddp_fail_call(result, comm, "rondo_shards_open");
    result = rondo_stream_open(&shards->stream);
    if (result)
        ddp_fail(result, "rondo_shards_open: rank %d: %s", shards->rank, rondo_last_error(NULL));
    return shards_agree(shards->comm, result);
}

rondo_result rondo_shards_open(const rondo_shards_config *config, rondo_comm *comm,
                               rondo_shards **ret_shards)
{
    rondo_result result = check_config(config, comm, ret_shards != NULL);
    rondo_shards *shards;

    if (result)
        return result;
    shards = calloc(1, sizeof(*shards));
    if (!shards)
        result = ddp_fail(RONDO_ERROR_MEMORY, "rondo_shards_open: no memory on rank %d.",
                          rondo_comm_rank(comm));
    result = shards_agree(comm, result); /* nobody waits for a rank that has no memory */
    if (result) {
        free(shards);
        return result;
    }
    shards->config = *config;
    shards->rank = rondo_comm_rank(comm);
    shards->size = rondo_comm_size(comm);
    result = open_ways(shards, comm);
    if (!result)
        result =
            shards_compare(shards,
                           (uint64_t)config->level << 32 | (uint64_t)config->states << 16 |
                               (uint64_t)config->average << 8 | (uint64_t)(config->check_nan != 0),
                           "settings of shards");
    if (result) {
        rondo_shards_close(shards);
        return result;
    }
    *ret_shards = shards;
    return RONDO_OK;
}

void rondo_shards_close(rondo_shards *shards)
{
    if (!shards)
        return;
    rondo_stream_close(shards->stream);
    for (int i = 0; i < shards->count; i++) {
        struct shard_unit *unit = &shards->units[i];

        /* Borrowed buffers go back, to be freed with the others. */
        if (!shards_keep_parameters(shards) && unit->whole)
            shards_return(shards, unit->whole);
        if (!shards_keep_gradients(shards) && unit->gradients)
            shards_return(shards, unit->gradients);
        shards_close_unit(shards, unit);
    }
    for (int i = 0; i < shards->free_buffers; i++)
        rondo_mem_free(shards->buffers[i]);
    free(shards->buffers);
    free(shards->units);
    free(shards->pending);
    rondo_comm_close(shards->comm);
    free(shards);
}

rondo_result rondo_shards_memory_used(const rondo_shards *shards, rondo_shards_memory *ret_memory)
{
    rondo_shards_memory memory = {0};

    if (!shards || !ret_memory)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_shards_memory_used: there is no %s.",
                        shards ? "place for it" : "rondo_shards");
    for (int i = 0; i < shards->count; i++) {
        const struct shard_unit *unit = &shards->units[i];
        size_t shard = unit->shard * sizeof(float), whole = shard * (size_t)shards->size;

        memory.parameters += shards_keep_parameters(shards) ? whole : shard;
        memory.gradients += shards_keep_gradients(shards) ? whole : 0;
        for (int l = 0; l < SHARDS_LEVELS; l++)
            memory.gradients += unit->sums[l] ? shard : 0;
        memory.states += shard * (size_t)shards->config.states;
        for (int p = 0; p < unit->count; p++)
            memory.without +=
                unit->parameters[p].count * sizeof(float) * (2 + (size_t)shards->config.states);
    }
    memory.passing = (size_t)shards->made_buffers * shards->buffer_bytes;
    *ret_memory = memory;
    return RONDO_OK;
}
