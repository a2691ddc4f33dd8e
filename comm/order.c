/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order.c - in which order ranks stand in rings and trees: as they sit in the hardware.
 *
 * Each rank writes on its endpoint where it sits: on which core, under which cache, on which NUMA
 * node and in which package; and how far its GPU is from others. Ranks of a host then stand in the
 * ring that topology_ring() finds over these distances, which is the one that `rondo topo` shows,
 * and the hosts stand one behind the other:
 *
 *     ranks 0 2 4 on one socket, 1 3 5 on the other: 0 | 1 3 5 | 2 4 crosses twice, not six times
 *
 * All ranks find the same order, because all look at the same endpoints.
 */
#include "comm/open.h"
#include "comm/state/comm.h"

#include "base/caller/descriptor.h"
#include "base/fail.h"
#include "base/log.h"
#include "collectives/levels/grouping.h"
#include "topology/topology.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Where a rank sits ----------------------------------------------------------------------- */

static struct topology *machine; /* this one, read once per process; NULL: it cannot be read */

static void read_machine(void)
{
    if (topology_open_cores(&machine))
        log_info("ranks stand in rings by their numbers: %s", fail_sentence());
}

/* The first line of a file of the system, "" if there is none. */
static void read_line(const char *name, char line[256])
{
    FILE *file = descriptor_stream(name, "r");

    if (!file || !fgets(line, 256, file))
        line[0] = 0;
    if (file)
        fclose(file);
}

/* True if some cores are nearer to each other than others, by NUMA nodes or by the last caches.
 * Reading the machine in detail takes longer than opening a communicator, so it is asked first. */
static bool has_parts(void)
{
    char nodes[256], sharing[256], online[256];

    read_line("/sys/devices/system/node/has_normal_memory", nodes);
    read_line("/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list", sharing);
    read_line("/sys/devices/system/cpu/online", online);
    return strpbrk(nodes, ",-") || (sharing[0] && strcmp(sharing, online) != 0);
}

static bool is_bound(const uint64_t cpus[16])
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    long own = 0;

    for (int i = 0; i < 16; i++)
        own += __builtin_popcountll(cpus[i]);
    return own < online;
}

void comm_find_place(struct endpoint *endpoint)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct topology_place place = {.core = -1, .package = -1, .numa = -1, .l3 = -1};

    if (is_bound(endpoint->cpus) && has_parts()) {
        pthread_once(&once, read_machine);
        if (machine)
            topology_place_of_cpus(machine, endpoint->cpus, 16, &place);
    }
    endpoint->place = (struct place_endpoint){(int16_t)place.core, (int16_t)place.package,
                                              (int16_t)place.numa, (int16_t)place.l3};
}

/* ---- The order of all ------------------------------------------------------------------------ */

/* The ranks of one host. */
struct residents {
    const struct endpoint *endpoints;
    const int *ranks;
};

static int distance_of_places(const struct place_endpoint *a, const struct place_endpoint *b)
{
    return topology_place_distance(
        &(struct topology_place){
            .core = a->core, .package = a->package, .numa = a->numa, .l3 = a->l3},
        &(struct topology_place){
            .core = b->core, .package = b->package, .numa = b->numa, .l3 = b->l3});
}

/* By their devices, if both have one and these reach each other: data are there. */
static int distance_between(const void *context, int a, int b)
{
    const struct residents *residents = context;
    const struct endpoint *from = &residents->endpoints[residents->ranks[a]];
    const struct endpoint *to = &residents->endpoints[residents->ranks[b]];
    const struct device_link *there, *back;

    if (!from->device.arena || !to->device.arena)
        return distance_of_places(&from->place, &to->place);
    there = device_endpoint_link(&from->device, &to->device);
    back = device_endpoint_link(&to->device, &from->device);
    if (!there || !back)
        return TOPOLOGY_MACHINE;
    return there->distance > back->distance ? there->distance : back->distance;
}

/* Turns the ring until its longest way, the first of equals, is from its last to its first: between
 * these two goes the way through the other hosts. */
static void open_ring(const struct residents *residents, int count, int *ring)
{
    int longest = -1, end = 0;

    for (int i = 0; i < count; i++) {
        int distance = distance_between(residents, ring[i], ring[(i + 1) % count]);

        if (distance > longest) {
            longest = distance;
            end = i + 1;
        }
    }
    for (; end % count; end--) {
        int first = ring[0];

        memmove(ring, ring + 1, (size_t)(count - 1) * sizeof(*ring));
        ring[count - 1] = first;
    }
}

/* One host's ranks. Looking for a short ring takes the square of their number. */
static void order_residents(const struct residents *residents, int count, bool alone,
                            int *ret_order)
{
    enum { MOST = 1024 };

    for (int i = 0; i < count; i++)
        ret_order[i] = i;
    if (count <= MOST)
        topology_ring(count, distance_between, residents, ret_order);
    if (count <= MOST && !alone)
        open_ring(residents, count, ret_order);
    for (int i = 0; i < count; i++)
        ret_order[i] = residents->ranks[ret_order[i]];
}

static bool is_by_number(const int *order, int size)
{
    for (int i = 0; i < size; i++)
        if (order[i] != i)
            return false;
    return true;
}

rondo_result comm_find_order(rondo_comm *comm, const int *hosts)
{
    struct grouping *groups = NULL;
    rondo_result result = grouping_make(comm->size, hosts, &groups);

    if (result)
        return result;
    comm->order = calloc((size_t)comm->size, sizeof(*comm->order));
    if (!comm->order)
        result =
            rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the order of %d ranks.", comm->size);
    for (int host = 0; host < groups->groups && !result; host++)
        order_residents(&(struct residents){comm->endpoints, groups->members + groups->begin[host]},
                        grouping_members(groups, host), groups->groups == 1,
                        comm->order + groups->begin[host]);
    grouping_close(groups);
    if (!result && is_by_number(comm->order, comm->size)) {
        free(comm->order);
        comm->order = NULL;
    }
    return result;
}
