/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nearby.c - which ranks are near each other: by RONDO_GROUPS; else those of one host; on a single
 * host those that are bound to one NUMA node.
 *
 * Every rank finds the same groups, because all look at the same endpoints.
 */
#include "comm/open.h"
#include "comm/state/comm.h"

#include "base/fail.h"
#include "base/log.h"
#include "collectives/levels/grouping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each host by its lowest rank; how many there are. */
static int name_hosts(const rondo_comm *comm, int *names)
{
    int hosts = 0;

    for (int rank = 0; rank < comm->size; rank++) {
        const unsigned char *host = comm->endpoints[rank].host;
        int same = 0;

        /* Ranks of a host are mostly neighbours: the one before is looked at first. */
        if (rank &&
            memcmp(host, comm->endpoints[rank - 1].host, sizeof(comm->endpoints->host)) == 0) {
            names[rank] = names[rank - 1];
            continue;
        }
        while (memcmp(host, comm->endpoints[same].host, sizeof(comm->endpoints->host)) != 0)
            same++;
        names[rank] = same < rank ? names[same] : rank;
        hosts += same == rank;
    }
    return hosts;
}

/* Names every rank's NUMA node; true if all ranks are bound to cpus of one. */
static bool name_numa_nodes(const rondo_comm *comm, int *names)
{
    for (int rank = 0; rank < comm->size; rank++) {
        names[rank] = comm->endpoints[rank].place.numa;
        if (names[rank] < 0)
            return false;
    }
    return true;
}

/* Take the groups that RONDO_GROUPS names, unless it speaks of another number of ranks. */
static rondo_result take_setting(rondo_comm *comm, bool *ret_taken)
{
    const char *text = comm->settings.groups;
    int ranks = grouping_text_size(text);

    *ret_taken = false;
    if (!*text)
        return RONDO_OK;
    if (ranks < 0)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "RONDO_GROUPS is \"%s\": groups of ranks are written as 4x2, 4+3+1, "
                          "0,1,0,1 or 2*.",
                          text);
    if (ranks && ranks != comm->size) {
        log_alike("RONDO_GROUPS speaks of %d ranks, not of the %d of this communicator", ranks,
                  comm->size);
        return RONDO_OK;
    }
    *ret_taken = true;
    return grouping_parse(text, comm->size, &comm->groups);
}

static rondo_result look_around(rondo_comm *comm)
{
    int *names = calloc((size_t)comm->size, sizeof(*names));
    rondo_result result;
    int hosts;

    if (!names)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the groups of %d ranks.",
                          comm->size);
    hosts = name_hosts(comm, names);
    result = comm_find_order(comm, names);
    if (!result && (hosts > 1 || name_numa_nodes(comm, names)))
        result = grouping_make(comm->size, names, &comm->groups);
    free(names);
    return result;
}

rondo_result comm_find_groups(rondo_comm *comm)
{
    bool taken;
    rondo_result result = take_setting(comm, &taken);

    if (!result && !taken)
        result = look_around(comm);
    if (result)
        return result;
    if (comm->groups && comm->groups->groups == 1) {
        grouping_close(comm->groups);
        comm->groups = NULL;
    }
    return RONDO_OK;
}
