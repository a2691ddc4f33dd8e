/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kinds.c - memory that changes its kind from call to call, and messages that change their form:
 * the path may change with it, and ranks that remember what kinds there were have to agree on it.
 */
#include "tests/api/bodies.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 5000, CALLS = 200 };

/* Plain until all ranks take it for granted, then mapped, then mixed, then plain again. */
static bool is_mapped(int call, int rank)
{
    if (call < 20)
        return false;
    if (call < 80)
        return true;
    if (call < 140)
        return (rank + call / 3) % 2;
    return call > 190;
}

static rondo_result check(const int32_t *values, int call, int size, char *sentence)
{
    for (int i = 0; i < COUNT; i++)
        if (values[i] != size * (call + i) + size * (size - 1) / 2)
            return world_say(sentence, RONDO_ERROR_INTERNAL, "call %d: element %d is %d", call, i,
                             (int)values[i]);
    return RONDO_OK;
}

static rondo_result make_calls(rondo_comm *comm, int32_t *plain, int32_t *mapped, char *sentence)
{
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm);

    for (int call = 0; call < CALLS; call++) {
        int32_t *values = is_mapped(call, rank) ? mapped : plain;
        size_t few = call % 5 ? COUNT : 1; /* short calls do not look for peers' memory */
        rondo_result result;

        for (int i = 0; i < COUNT; i++)
            values[i] = rank + call + i;
        result = rondo_all_reduce(values, values, few, RONDO_INT32, RONDO_SUM, comm, NULL);
        if (!result && few < COUNT)
            result = rondo_all_reduce(values + few, values + few, COUNT - few, RONDO_INT32,
                                      RONDO_SUM, comm, NULL);
        if (result)
            return world_say(sentence, result, "call %d: %s", call, rondo_last_error(comm));
        result = check(values, call, size, sentence);
        if (result)
            return result;
    }
    return RONDO_OK;
}

rondo_result kinds_change(rondo_comm *comm, void *argument, char *sentence)
{
    int32_t *plain = malloc(COUNT * sizeof(*plain));
    void *mapped = NULL;
    rondo_result result = plain ? RONDO_OK : RONDO_ERROR_MEMORY;

    (void)argument;
    if (!result)
        result = rondo_mem_alloc(COUNT * sizeof(*plain), &mapped);
    if (result)
        world_say(sentence, result, "no memory");
    else
        result = make_calls(comm, plain, mapped, sentence);
    rondo_mem_free(mapped);
    free(plain);
    return result;
}

/* ---- Messages, while their root is ahead ----------------------------------------------------- */

enum { BROADCASTS = 1500, LONGEST = 40000 };

/* Messages of every form there is: parted, which are the most so that many of them are under way;
 * inlined, in lines, and plain. */
static size_t length_of(uint64_t seed)
{
    static const size_t parted[] = {561, 4096, 8192};
    static const size_t others[] = {8, 56, 57, 560, 8193, 20000, LONGEST};

    return seed % 4 ? parted[seed / 4 % 3] : others[seed / 4 % 7];
}

static rondo_result take_and_check(rondo_comm *comm, int call, char *buffer, char *sentence)
{
    uint64_t seed = world_hash(7, (uint64_t)call);
    size_t bytes = length_of(seed);
    int size = rondo_comm_size(comm), root = call / 100 % size;
    const struct world_data data = {RONDO_UINT8, (rondo_op)WORLD_MOVED, size, seed};
    rondo_result result;

    if (rondo_comm_rank(comm) == root)
        world_fill(&data, root, bytes, buffer);
    else
        memset(buffer, 0, bytes);
    result = rondo_broadcast(buffer, buffer, bytes, RONDO_UINT8, root, comm, NULL);
    if (result)
        return world_say(sentence, result, "%s", rondo_last_error(comm));
    return world_check_moved(&data, root, 0, bytes, buffer, sentence) ? RONDO_OK
                                                                      : RONDO_ERROR_INTERNAL;
}

rondo_result kinds_of_messages_take_turns(rondo_comm *comm, void *argument, char *sentence)
{
    char *buffer = malloc(LONGEST);
    rondo_result result = buffer ? RONDO_OK : RONDO_ERROR_MEMORY;

    (void)argument;
    for (int call = 0; call < BROADCASTS && !result; call++)
        result = take_and_check(comm, call, buffer, sentence);
    free(buffer);
    return result;
}
