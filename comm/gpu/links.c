/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * links.c - what the links between the ranks' devices change in plans on the device.
 *
 * Each rank writes on its endpoint what is between its device and those that it reaches: NVLinks or
 * PCI (topology/links.c); where neither NVML nor hwloc knows a device, what the driver says of its
 * pairs. So all ranks know the same of all pairs, and decide alike:
 *
 *     groups   ranks whose devices are joined at least twice as well as with the others: pairs on
 *              an NVLink bridge, devices of one socket, ranks of one device. In an all_reduce that
 *              is worth it, what is far is read once by each group, not once by each rank.
 *     short    up to how many bytes a call is one kernel, which sends whole inputs and not parts of
 *              them: fewer where links are slow.
 */
#include "comm/engine/choose.h"
#include "comm/gpu/plan.h"

#include "base/collective.h"
#include "base/fail.h"
#include "base/log.h"
#include "collectives/algorithm.h"
#include "collectives/levels/grouping.h"
#include "topology/topology.h"

#include <stdlib.h>
#include <string.h>

extern const struct algorithm zero_copy_algorithm, hierarchy_zero_copy_algorithm;

/* Seconds. A flag by memory operations of streams, and what a call by them takes longer than one
 * kernel: of the order that an H100 shows. */
static const double FLAG = 4e-6, OPERATIONS = 10e-6;
static const double GB = 1e9;

enum { ADDRESS = 24, LEAST_SHORT = 1024, NVLINK_GBps = 100 };

/* ---- Endpoints ------------------------------------------------------------------------------- */

/* The machine with its links, once per process; NULL: it cannot be read. */
static struct topology *machine;

static void look_at_machine(void)
{
    struct topology *topology = NULL;

    if (topology_open(NULL, &topology) || topology_find_links(topology)) {
        log_info("links between devices: %s", fail_sentence());
        topology_close(topology);
        return;
    }
    log_info("links between devices by %s", topology_link_source(topology));
    machine = topology;
}

static const struct topology *the_machine(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, look_at_machine);
    return machine;
}

/* GB/s at which a device copies within its own memory. */
static double own_GBps(const struct cuda_device *device)
{
    const double guess = 1000;
    int clock = 0, width = 0; /* kHz, bits */

    if (device->driver->cuDeviceGetAttribute(&clock, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
                                             device->handle) ||
        device->driver->cuDeviceGetAttribute(&width, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
                                             device->handle) ||
        !clock || !width)
        return guess;
    return 1e-6 * clock * 2 * width / 8 / 2; /* two transfers a clock; read and written */
}

/* Ask the driver about a pair of devices that nobody else knows: a pair with atomics has NVLinks,
 * and the performance ranks order the others. */
static struct topology_link ask_driver(const struct cuda_device *device, CUdevice other)
{
    struct topology_link link = {.kind = TOPOLOGY_LINK_UNKNOWN};
    int atomics = 0, rank = 0;

    device->driver->cuDeviceGetP2PAttribute(
        &atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, device->handle, other);
    device->driver->cuDeviceGetP2PAttribute(&rank, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK,
                                            device->handle, other);
    link.GBps = atomics ? NVLINK_GBps : 25.0 / (1 + (rank > 0 ? rank : 0));
    return link;
}

void gpu_links_note(const struct cuda_device *device, CUdevice other, struct device_link *ret_link)
{
    const struct cuda_driver *cuda = device->driver;
    const struct topology_link *known = NULL;
    struct topology_link link = {.kind = TOPOLOGY_LINK_SAME};
    int distance = TOPOLOGY_SAME;
    char own[ADDRESS], theirs[ADDRESS];

    if (other == device->handle) {
        link.GBps = own_GBps(device);
    } else {
        if (the_machine() && !cuda->cuDeviceGetPCIBusId(own, ADDRESS, device->handle) &&
            !cuda->cuDeviceGetPCIBusId(theirs, ADDRESS, other))
            known = topology_link_of(the_machine(), own, theirs, &distance);
        link = known && known->GBps > 0 ? *known : ask_driver(device, other);
        if (!known)
            distance = link.GBps >= NVLINK_GBps ? TOPOLOGY_LINKED : TOPOLOGY_MACHINE;
    }
    *ret_link =
        (struct device_link){.kind = (uint8_t)link.kind,
                             .lanes = (uint8_t)link.lanes,
                             .GBps = (uint16_t)(link.GBps < UINT16_MAX ? link.GBps : UINT16_MAX),
                             .distance = (uint8_t)distance};
    ret_link->GBps += !ret_link->GBps;
}

/* ---- Pairs ----------------------------------------------------------------------------------- */

/* The link between two ranks' devices as the endpoint of rank a has it; every device of a rank is
 * among those that each endpoint names. */
static const struct device_link *link_of(const rondo_comm *comm, int a, int b)
{
    return device_endpoint_link(&comm->endpoints[a].device, &comm->endpoints[b].device);
}

/* GB/s of the slower direction. */
static int rate_of(const rondo_comm *comm, int a, int b)
{
    int there = link_of(comm, a, b)->GBps;
    int back = link_of(comm, b, a)->GBps;

    return there < back ? there : back;
}

struct split {
    int *names;          /* [rank]: the group, by its lowest rank */
    int inside, outside; /* GB/s of the slowest pair in groups, and of the fastest between them */
    int slowest;         /* between groups */
    int slowest_kind;    /* of it */
    bool some;           /* a group has more than one rank, and there is more than one */
};

/* True if links of at least that rate split the ranks into groups, each rank as near to all of its
 * group. */
static bool try_split(const rondo_comm *comm, int least, struct split *split)
{
    split->inside = INT32_MAX;
    split->outside = 0;
    split->slowest = INT32_MAX;
    split->some = false;
    for (int a = 0; a < comm->size; a++)
        for (split->names[a] = 0; split->names[a] < a; split->names[a]++)
            if (rate_of(comm, a, split->names[a]) >= least)
                break;
    for (int a = 0; a < comm->size; a++)
        for (int b = 0; b < a; b++) {
            bool together = split->names[a] == split->names[b];
            int rate = rate_of(comm, a, b);

            if (together != (rate >= least))
                return false;
            if (together && rate < split->inside)
                split->inside = rate;
            if (!together && rate > split->outside)
                split->outside = rate;
            if (!together && rate < split->slowest) {
                split->slowest = rate;
                split->slowest_kind = link_of(comm, a, b)->kind;
            }
            split->some |= together;
        }
    return split->some && split->outside > 0 && split->inside >= 2 * split->outside;
}

/* The next higher rate of any pair, 0: there is none. */
static int next_rate(const rondo_comm *comm, int last)
{
    int next = 0;

    for (int a = 0; a < comm->size; a++)
        for (int b = 0; b < a; b++) {
            int rate = rate_of(comm, a, b);

            if (rate > last && (!next || rate < next))
                next = rate;
        }
    return next;
}

/* The slowest links split first: they matter most. */
static bool find_split(const rondo_comm *comm, struct split *split)
{
    for (int rate = next_rate(comm, 0); rate; rate = next_rate(comm, rate))
        if (try_split(comm, rate, split))
            return true;
    return false;
}

/* ---- What follows from it -------------------------------------------------------------------- */

/* All pairs of groups go by the same wires. */
static bool is_shared(int kind)
{
    return kind == TOPOLOGY_LINK_MACHINE || kind == TOPOLOGY_LINK_SWITCHES ||
           kind == TOPOLOGY_LINK_UNKNOWN;
}

static void set_costs(struct gpu_plans *plans, const struct split *split)
{
    double near = split->inside * GB;

    plans->costs = (struct link_costs){.latency = FLAG,
                                       .copy_bw = near,
                                       .direct_bw = near,
                                       .reduce_bw = near,
                                       .across = {.latency = FLAG,
                                                  .bandwidth = split->slowest * GB,
                                                  .rails = plans->groups->rails}};
    if (is_shared(split->slowest_kind))
        plans->costs.across.rails = 1;
}

/* The first call, when links are looked at, fills plans->counts; later ones only read there. */
static bool is_worth_levels(struct gpu_plans *plans, double bytes)
{
    const struct selection selection = {.collective = RONDO_ALL_REDUCE,
                                        .size = plans->comm->size,
                                        .bytes = bytes,
                                        .groups = plans->groups,
                                        .counts = &plans->counts};
    double levels, flat;

    return !select_predict(&hierarchy_zero_copy_algorithm, &selection, &plans->costs, &levels) &&
           !select_predict(&zero_copy_algorithm, &selection, &plans->costs, &flat) && levels < flat;
}

static void say_groups(struct gpu_plans *plans, const struct split *split)
{
    const double most = 1 << 30;
    char groups[80] = "", kind[64];
    double from = plans->short_bytes;

    grouping_describe(plans->groups, groups, sizeof(groups));
    topology_link_describe(&(struct topology_link){.kind = split->slowest_kind}, kind,
                           sizeof(kind));
    while (from < most && !is_worth_levels(plans, from))
        from *= 2;
    if (from >= most)
        log_info("devices in groups %s: %d GB/s inside, %d between (%s); two levels are never "
                 "worth it",
                 groups, split->inside, split->slowest, kind);
    else if (!plans->groups->runs)
        log_info("devices in groups %s: %d GB/s inside, %d between (%s); all_reduce goes in two "
                 "levels from %.0f KiB, but not where the order of sums matters: that takes groups "
                 "of ranks that follow each other",
                 groups, split->inside, split->slowest, kind, from / 1024);
    else
        log_info("devices in groups %s: %d GB/s inside, %d between (%s); all_reduce goes in two "
                 "levels from %.0f KiB",
                 groups, split->inside, split->slowest, kind, from / 1024);
}

/* One kernel sends n - 1 inputs where the other way moves two vectors less a bit. */
static void find_short(struct gpu_plans *plans)
{
    double peers = plans->comm->size - 1;
    double more = peers - 2 * peers / plans->comm->size; /* times the bytes of a call */
    int slowest = next_rate(plans->comm, 0);

    plans->short_bytes = GPU_SHORT;
    while (slowest && plans->short_bytes > LEAST_SHORT &&
           (double)plans->short_bytes * more > OPERATIONS * slowest * GB)
        plans->short_bytes /= 2;
    if (plans->short_bytes < GPU_SHORT)
        log_info("links of %d GB/s: calls on CUDA streams are one kernel up to %zu KiB only",
                 slowest, plans->short_bytes >> 10);
}

rondo_result gpu_links_weigh(struct gpu_plans *plans)
{
    const rondo_comm *comm = plans->comm;
    struct split split = {.names = calloc((size_t)comm->size, sizeof(*split.names))};
    rondo_result result = RONDO_OK;

    if (!split.names)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for plans on the device.");
    find_short(plans);
    if (find_split(comm, &split))
        result = grouping_make(comm->size, split.names, &plans->groups);
    if (!result && plans->groups) {
        set_costs(plans, &split);
        say_groups(plans, &split);
    }
    free(split.names);
    return result;
}

/* ---- Choosing -------------------------------------------------------------------------------- */

static bool fits(struct gpu_plans *plans, const struct choice_key *key)
{
    unsigned promises =
        algorithm_promises(&hierarchy_zero_copy_algorithm, RONDO_ALL_REDUCE, plans->groups);
    struct operation operation;

    if (strcmp(choice_wanted(plans->comm, key), "auto") != 0)
        return false;
    if (key->made)
        operation = *key->made;
    else if (operations_resolve(&plans->comm->operations, key->op, key->type, plans->comm->size,
                                &operation))
        return false;
    return !(choice_needs(plans->comm, key, &operation, "auto") & ~promises) &&
           is_worth_levels(plans, (double)key->count * (double)rondo_type_size(key->type));
}

const struct algorithm *gpu_links_choose(struct gpu_plans *plans, const struct choice_key *key)
{
    if (key->collective >= RONDO_BARRIER)
        return algorithm_find("direct");
    if (!plans->groups || key->collective != RONDO_ALL_REDUCE || !fits(plans, key))
        return &zero_copy_algorithm;
    return &hierarchy_zero_copy_algorithm;
}
