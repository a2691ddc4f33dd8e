/* SPDX-License-Identifier: BSD-3-Clause */
/* tuning.c - see tuning.h. */
#include "comm/state/tuning.h"

#include "base/caller/times.h"
#include "base/collective.h"
#include "comm/state/comm.h"

void tuning_init(struct tuning *tuning, const struct comm_settings *settings)
{
    unsigned slots = (unsigned)settings->slots;

    *tuning = (struct tuning){
        .reads_across = settings->reads > 0,
        .streams = settings->streams,
        .long_output = 4 << 20,
        .reads = {.pause = 58, .longest = 58, .skipped = 1, .timed = 2, .as_one = 1},
        .stores = {.first = 8, .pause = 32, .longest = 1024, .skipped = 1, .timed = 2, .as_one = 1},
        .long_stores =
            {.first = 8, .pause = 32, .longest = 128, .skipped = 1, .timed = 1, .as_one = 1},
        .pair_stores =
            {.first = 8, .pause = 32, .longest = 4096, .skipped = slots, .timed = 16, .as_one = 8},
        .messages = {.few_segments = 8, .good = 32 << 10, .good_of_many = 128 << 10},
    };
}

/* ---- Ranks and cores ------------------------------------------------------------------------- */

/* Ranks and cores of one machine: hosts that only look like different ones share its cores. */
struct load {
    int ranks, cores;
};

static bool shares_quota(const struct endpoint *one, const struct endpoint *other)
{
    return one->machine == other->machine && one->quota_group == other->quota_group;
}

/* Cores that `load` would have if all its ranks were like those that share the quota of a rank. */
static int limit_by_quota(const rondo_comm *comm, const struct endpoint *endpoint, struct load load)
{
    long ranks = 0, cores;

    for (int rank = 0; rank < comm->size; rank++)
        ranks += shares_quota(&comm->endpoints[rank], endpoint);
    cores = ((long)endpoint->quota * load.ranks + ranks - 1) / ranks;
    return cores < load.cores ? (int)cores : load.cores;
}

/*
 * Cores that the ranks of a machine have between them: they may be bound to one each. Every rank
 * counts the same, as the choice of algorithms depends on it: of different quotas that one goes for
 * all which grants a rank the least.
 */
static struct load count_load(const rondo_comm *comm, uint64_t machine)
{
    struct load load = {0, 0};
    uint64_t cpus[16] = {0};

    for (int rank = 0; rank < comm->size; rank++) {
        const struct endpoint *endpoint = &comm->endpoints[rank];
        uint64_t known = 0;

        if (endpoint->machine != machine)
            continue;
        load.ranks++;
        for (int i = 0; i < 16; i++) {
            cpus[i] |= endpoint->cpus[i];
            known |= endpoint->cpus[i];
        }
        load.cores += !known; /* one of its own, as far as anybody knows */
    }
    for (int i = 0; i < 16; i++)
        load.cores += __builtin_popcountll(cpus[i]);
    for (int rank = 0; rank < comm->size; rank++) {
        const struct endpoint *endpoint = &comm->endpoints[rank];

        if (endpoint->machine == machine && endpoint->quota > 0 &&
            !(rank && shares_quota(endpoint, endpoint - 1)))
            load.cores = limit_by_quota(comm, endpoint, load);
    }
    return load;
}

/* Cores that all ranks have, the same on every rank: with several machines, as many as if all were
 * like the most oversubscribed one. */
static int count_cores(const rondo_comm *comm)
{
    struct load worst = count_load(comm, comm->endpoints[0].machine);

    if (worst.ranks == comm->size)
        return worst.cores;
    for (int rank = 1; rank < comm->size; rank++) {
        struct load load;

        if (comm->endpoints[rank].machine == comm->endpoints[rank - 1].machine)
            continue;
        load = count_load(comm, comm->endpoints[rank].machine);
        if ((long)load.ranks * worst.cores > (long)worst.ranks * load.cores)
            worst = load;
    }
    return (int)(((long)comm->size * worst.cores + worst.ranks - 1) / worst.ranks);
}

/* Spin only where the rank that we wait for can run at the same time. Along a ring each rank may be
 * in a doze when the one before has done its part, so what they may last is divided among them. */
static struct wait_policy wait_policy_for(struct load load, int size, double wanted)
{
    const double round = 2e-8; /* seconds of one pause */
    const double look = 5e-7;  /* seconds of one look at the network */
    const int most = 100;
    double spin = wanted < LONGEST_SPIN ? wanted : LONGEST_SPIN;
    bool oversubscribed = load.ranks > load.cores;
    int per_core = load.ranks / load.cores;

    return (struct wait_policy){.ranks_per_core = per_core < 1      ? 1
                                                  : per_core > most ? most
                                                                    : per_core,
                                .polls = per_core > 1 ? 0 : 16,
                                .spins = spin >= 0        ? (int)(spin / round)
                                         : oversubscribed ? 4
                                                          : 2000,
                                .network_spins = spin >= 0        ? (int)(spin / look)
                                                 : oversubscribed ? 2
                                                                  : 200,
                                .doze_part = DOZE_PART / size};
}

/*
 * Short messages that may be under way are few enough that they stay in the first cache. But who
 * shares its core with the rank it waits for gets on by a change of process, and the more messages
 * one change serves, the better, as long as the lines of all links stay in the second cache.
 */
static struct link_depths ll_depths_for(struct load load, int size)
{
    enum { MESSAGES = 4096 }; /* of one line, into a rank; of several lines a 4th */
    struct link_depths ll_depths = {128, 8};

    if (load.ranks > load.cores)
        ll_depths = (struct link_depths){LINK_INLINED_MOST, LINK_PACKED_MOST};
    while (ll_depths.inlined > 32 && ll_depths.inlined * (size_t)size > MESSAGES)
        ll_depths.inlined /= 2;
    while (ll_depths.packed > 8 && ll_depths.packed * (size_t)size > MESSAGES / 4)
        ll_depths.packed /= 2;
    return ll_depths;
}

/* ---- Segments -------------------------------------------------------------------------------- */

/*
 * Into how many parts slots are cut for short messages. Who shares its core sends as many as it can
 * before a change of process, as long as they stay in the second cache. Roots get ahead, and ranks
 * of an all_gather a little; in other calls ranks wait for each other, and parts only cost cache.
 */
static uint32_t parts_for(const rondo_comm *comm, rondo_collective collective)
{
    enum { PARTS_MOST = 256 }; /* into a rank */
    uint32_t slots = (uint32_t)comm->settings.slots, parts = 1;

    if (!collective_has_root(collective) && collective != RONDO_ALL_GATHER)
        return 1;
    while (2 * parts * slots * (uint32_t)comm->size <= PARTS_MOST &&
           2 * parts * slots <= comm->world.ll_depths.inlined &&
           2 * parts * LINK_PART <= comm->world.slot_bytes)
        parts *= 2;
    return parts;
}

/*
 * Where ranks share cores, what one of them writes is read after a change of process, by when it
 * has left the first cache in any case. Short segments that lie in the same place again and again
 * stay in the second one; shallow channels, as short as any plan can do with, are the other half of
 * it. Other collectives than all_reduce run ahead, and lose by it.
 */
static void fit_segments(rondo_comm *comm, bool shares_cores)
{
    enum { SMALL_SLOT = 64 << 10, SLICES_MOST = 16 };
    struct tuning *tuning = &comm->tuning;
    size_t slot = comm->world.slot_bytes;
    struct tuning_segments *sums = &tuning->segments[RONDO_ALL_REDUCE];

    for (int collective = 0; collective < RONDO_COLLECTIVES; collective++)
        tuning->segments[collective] = (struct tuning_segments){
            .slot_bytes = slot,
            .parts = shares_cores ? parts_for(comm, (rondo_collective)collective) : 1,
            .slices_most = 1};
    *sums = (struct tuning_segments){
        .slot_bytes = shares_cores && slot > SMALL_SLOT ? SMALL_SLOT : slot,
        .parts = 1,
        .alone = tuning->long_slot_bytes > slot ? tuning->long_slot_bytes : 0,
        .in_one_place = shares_cores,
        .slices_most = comm->local_size < comm->size ? SLICES_MOST : 1};
}

static void make_shallow(rondo_comm *comm)
{
    enum { LEAST = 2 }; /* slots, for which plans are proved */

    for (int channel = PLAN_CHANNEL_SHALLOW; channel < PLAN_CHANNEL_P2P; channel++)
        for (int rank = 0; rank < comm->size; rank++) {
            int at = channel * comm->size + rank;

            if (comm->world.out[at].ll)
                comm->world.out[at].slot_count = comm->world.in[at].slot_count = LEAST;
        }
}

void tuning_fit(rondo_comm *comm)
{
    struct load load = count_load(comm, comm->endpoints[comm->rank].machine);
    bool shares_cores = comm->local_size == comm->size && load.ranks > load.cores;

    comm->tuning.costs.cores = count_cores(comm);
    comm->tuning.wait = wait_policy_for(load, comm->size, comm->settings.spin);
    comm->tuning.ll_depths = comm->world.ll_depths = ll_depths_for(load, comm->size);
    comm->tuning.looks_per_tcp = networks_carry_by_calls(&comm->networks) ? 16 : 256;
    fit_segments(comm, shares_cores);
    if (shares_cores)
        make_shallow(comm);
}
