/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measure_groups.c - what it costs to go from group to group: the first ranks of the first two
 * groups play ping-pong, and exchange as much at once as one rail carries.
 */
#include "comm/open.h"
#include "comm/state/comm.h"

#include "base/clock.h"
#include "base/fail.h"
#include "collectives/levels/grouping.h"
#include "comm/engine/run.h"

#include <stdlib.h>
#include <string.h>

enum {
    PINGS = 20,
    LARGE = 1 << 18,
    REPEATS = 3,
    SIDE_BY_SIDE = 4 /* ranks of a host that together get so much more than one does */
};

/* To the peer, from it, or with both, both ways at once. */
enum direction { THERE = 1, BACK = 2, BOTH = 3 };

static rondo_result pass(rondo_comm *comm, int peer, enum direction direction, char *memory,
                         size_t bytes)
{
    const struct choice_key key = {
        .type = RONDO_UINT8, .root = peer, .count = bytes, .algorithm = "direct"};
    struct task tasks[2];
    struct batch batch;
    int count = 0;

    if (direction & THERE) {
        tasks[count] = (struct task){.key = key, .input = memory};
        tasks[count++].key.collective = RONDO_SEND;
    }
    if (direction & BACK) {
        tasks[count] = (struct task){.key = key, .output = memory + bytes};
        tasks[count++].key.collective = RONDO_RECV;
    }
    batch_open(&batch, comm, tasks, count);
    return run_batches(&batch, 1);
}

/* Between NUMA nodes one rank does not fill the way; a network is filled by one connection. */
static int side_by_side(const rondo_comm *comm)
{
    return comm->groups->rails < SIDE_BY_SIDE ? comm->groups->rails : SIDE_BY_SIDE;
}

static rondo_result measure_with(rondo_comm *comm, int peer, char *memory,
                                 struct group_costs *ret_costs)
{
    bool first = comm->rank < peer;
    double ping = 1e9, large = 1e9; /* the best of all */
    rondo_result result = RONDO_OK;

    for (int i = 0; i < PINGS && !result; i++) {
        double began = clock_seconds();

        result = pass(comm, peer, first ? THERE : BACK, memory, sizeof(double));
        if (!result)
            result = pass(comm, peer, first ? BACK : THERE, memory, sizeof(double));
        began = clock_seconds() - began;
        ping = began < ping ? began : ping;
    }
    for (int i = 0; i < REPEATS && !result; i++) {
        double began = clock_seconds();

        result = pass(comm, peer, BOTH, memory, LARGE);
        began = clock_seconds() - began;
        large = began < large ? began : large;
    }
    if (!result)
        *ret_costs =
            (struct group_costs){.latency = ping / 2,
                                 .bandwidth = LARGE / large,
                                 .rails = comm->local_size == comm->size ? side_by_side(comm) : 1};
    return result;
}

rondo_result comm_measure_groups(rondo_comm *comm, struct group_costs *ret_costs)
{
    const struct grouping *groups = comm->groups;
    rondo_result result;
    char *memory;
    int other;

    if (!groups)
        return RONDO_OK;
    other = grouping_rank(groups, 1, 0);
    if (comm->rank != 0 && comm->rank != other)
        return RONDO_OK;
    memory = calloc(2, LARGE);
    if (!memory)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for measuring links.");
    result = measure_with(comm, comm->rank ? 0 : other, memory, ret_costs);
    free(memory);
    return result;
}
