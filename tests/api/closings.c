/* SPDX-License-Identifier: BSD-3-Clause */
/* closings.c - ranks that close a communicator, in time or too early, see closings.h. */
#include "closings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static rondo_result call(const struct closings *c, rondo_comm *comm, float *input, float *output,
                         int number)
{
    int root = number % rondo_comm_size(comm);

    switch (c->collective) {
    case RONDO_ALL_REDUCE:
        return rondo_all_reduce(input, output, c->count, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    case RONDO_BROADCAST:
        return rondo_broadcast(input, output, c->count, RONDO_FLOAT32, root, comm, NULL);
    case RONDO_REDUCE:
        return rondo_reduce(input, output, c->count, RONDO_FLOAT32, RONDO_SUM, root, comm, NULL);
    case RONDO_ALL_TO_ALL:
        return rondo_all_to_all(input, output, c->count, RONDO_FLOAT32, comm, NULL);
    case RONDO_BARRIER:
        return rondo_barrier(comm, NULL);
    default:
        return RONDO_ERROR_INTERNAL;
    }
}

static void nap(uint64_t microseconds)
{
    usleep((useconds_t)microseconds);
}

/* Opens a communicator within, makes the calls, closes it; ranks leave without waiting for each
 * other. */
static rondo_result live(rondo_comm *comm, const struct closings *c, float *buffer, int round,
                         char *sentence)
{
    int rank = rondo_comm_rank(comm), calls = c->calls;
    size_t whole = c->count * (size_t)rondo_comm_size(comm);
    rondo_comm *inner;
    rondo_result result = rondo_comm_split(comm, 0, rank, NULL, &inner);

    if (result)
        return world_say(sentence, result, "split: %s", rondo_last_error(comm));
    if (c->early && rank == c->culprit)
        calls--;
    for (int i = 0; i < calls && !result; i++)
        result = call(c, inner, buffer, buffer + whole, i);
    /* Some close at once, some while others are through long ago. */
    if (!result && !c->early && world_hash((uint64_t)round, (uint64_t)rank) % 4 == 0)
        nap(world_hash((uint64_t)rank, (uint64_t)round) % 3000);
    if (result)
        world_say(sentence, result, "%s", rondo_last_error(inner));
    rondo_comm_close(inner);
    return result;
}

rondo_result closings_live(rondo_comm *comm, void *argument, char *sentence)
{
    const struct closings *c = argument;
    size_t whole = c->count * (size_t)rondo_comm_size(comm);
    float *buffer = calloc(2 * whole + 1, sizeof(float));
    rondo_result result = buffer ? RONDO_OK : RONDO_ERROR_MEMORY;

    for (int round = 0; round < c->rounds && !result; round++)
        result = live(comm, c, buffer, round, sentence);
    free(buffer);
    return result;
}

rondo_result closings_receive(rondo_comm *comm, void *argument, char *sentence)
{
    const struct closings *c = argument;
    int rank = rondo_comm_rank(comm);
    rondo_comm *inner;
    float number = 0;
    rondo_result result = rondo_comm_split(comm, 0, rank, NULL, &inner);

    if (result)
        return world_say(sentence, result, "split: %s", rondo_last_error(comm));
    if (rank == c->culprit) /* one is sent, two are waited for */
        result = rondo_send(&number, 1, RONDO_FLOAT32, 0, inner, NULL);
    for (int i = 0; i < 2 && rank == 0 && !result; i++)
        result = rondo_recv(&number, 1, RONDO_FLOAT32, c->culprit, inner, NULL);
    if (result)
        world_say(sentence, result, "%s", rondo_last_error(inner));
    rondo_comm_close(inner);
    return result;
}

/* All but the culprit open a communicator without it, and add up ones. */
static rondo_result go_on_without(rondo_comm *parent, int culprit, char *sentence)
{
    int ranks[WORLD_RANKS], count = 0;
    float one = 1, sum = 0;
    rondo_comm *rest;
    rondo_result result;

    for (int rank = 0; rank < rondo_comm_size(parent); rank++)
        if (rank != culprit)
            ranks[count++] = rank;
    result = rondo_comm_open_among(parent, ranks, count, NULL, &rest);
    if (result)
        return world_say(sentence, result, "without it: %s", rondo_last_error(parent));
    result = rondo_all_reduce(&one, &sum, 1, RONDO_FLOAT32, RONDO_SUM, rest, NULL);
    if (result || sum != (float)count)
        result = world_say(sentence, result ? result : RONDO_ERROR_INTERNAL, "the sum is %g: %s",
                           (double)sum, rondo_last_error(rest));
    rondo_comm_close(rest);
    return result;
}

static rondo_result open_with_culprit(rondo_comm *parent, int culprit, char *sentence)
{
    int ranks[WORLD_RANKS];
    char name[24];
    rondo_comm *all = NULL;
    rondo_result result;

    for (int rank = 0; rank < rondo_comm_size(parent); rank++)
        ranks[rank] = rank;
    result = rondo_comm_open_among(parent, ranks, rondo_comm_size(parent), NULL, &all);
    snprintf(name, sizeof(name), "rank %d (", culprit);
    if (result == RONDO_ERROR_PEER && strstr(rondo_last_error(parent), name) &&
        (strstr(rondo_last_error(parent), "has closed the parent") ||
         strstr(rondo_last_error(parent), "(on another host) has ended")))
        return RONDO_OK;
    rondo_comm_close(all);
    return world_say(sentence, RONDO_ERROR_INTERNAL, "with rank %d it returned %s: %s", culprit,
                     rondo_result_string(result), rondo_last_error(parent));
}

rondo_result closings_among(rondo_comm *comm, void *argument, char *sentence)
{
    const struct closings *c = argument;
    int rank = rondo_comm_rank(comm);
    rondo_comm *parent;
    rondo_result result = rondo_comm_split(comm, 0, rank, NULL, &parent);

    if (!result)
        result = rondo_barrier(parent, NULL);
    if (result)
        return world_say(sentence, result, "%s", rondo_last_error(comm));
    if ((rank == c->culprit) != c->early)
        nap(200 * 1000);
    if (rank != c->culprit)
        result = open_with_culprit(parent, c->culprit, sentence);
    if (rank != c->culprit && !result)
        result = go_on_without(parent, c->culprit, sentence);
    rondo_comm_close(parent);
    return result;
}
