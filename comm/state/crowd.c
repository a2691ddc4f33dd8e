/* SPDX-License-Identifier: BSD-3-Clause */
/* crowd.c - what follows from how many ranks share how many cores: who spins, and for how many
 * short messages there is room. */
#include "comm/state/crowd.h"

/* Ranks and cores of one machine: hosts that only look like different ones share its cores. */
struct crowd {
    int ranks, cores;
};

/*
 * Cores that the ranks of a machine have between them: they may be bound to one each. Every rank
 * counts the same, as the choice of algorithms depends on it: of different quotas the smallest
 * goes for all.
 */
static struct crowd count_crowd(const rondo_comm *comm, uint64_t machine)
{
    struct crowd crowd = {0, 0};
    uint64_t cpus[16] = {0};
    int quota = 0;

    for (int rank = 0; rank < comm->size; rank++) {
        const struct rank_card *card = &comm->cards[rank];

        if (card->machine != machine)
            continue;
        crowd.ranks++;
        for (int i = 0; i < 16; i++)
            cpus[i] |= card->cpus[i];
        if (card->quota > 0 && (!quota || card->quota < quota))
            quota = card->quota;
    }
    for (int i = 0; i < 16; i++)
        crowd.cores += __builtin_popcountll(cpus[i]);
    if (quota > 0 && quota < crowd.cores)
        crowd.cores = quota;
    if (!crowd.cores)
        crowd.cores = 1;
    return crowd;
}

/* With several machines, as many as if all were like the most crowded one. */
int crowd_cores(const rondo_comm *comm)
{
    struct crowd worst = count_crowd(comm, comm->cards[0].machine);

    if (worst.ranks == comm->size)
        return worst.cores;
    for (int rank = 1; rank < comm->size; rank++) {
        struct crowd crowd;

        if (comm->cards[rank].machine == comm->cards[rank - 1].machine)
            continue;
        crowd = count_crowd(comm, comm->cards[rank].machine);
        if ((long)crowd.ranks * worst.cores > (long)worst.ranks * crowd.cores)
            worst = crowd;
    }
    return (int)(((long)comm->size * worst.cores + worst.ranks - 1) / worst.ranks);
}

enum { MOST_CROWDED = 100 };

/* Spin only where the rank that we wait for can run at the same time. */
void crowd_choose_spinning(rondo_comm *comm)
{
    const double round = 20e-9; /* seconds of one pause */
    const double longest = 1;   /* seconds: who spins does not look after its peers */
    const double look = 5e-7;   /* ... of one look at the network */
    double spin = comm->settings.spin;
    struct crowd crowd = count_crowd(comm, comm->cards[comm->rank].machine);
    bool crowded = crowd.ranks > crowd.cores;

    comm->spin_rounds = crowded ? 4 : 2000;
    comm->network_rounds = crowded ? 2 : 200;
    comm->crowd = crowd.ranks / crowd.cores;
    comm->crowd = comm->crowd < 1 ? 1 : comm->crowd > MOST_CROWDED ? MOST_CROWDED : comm->crowd;
    if (spin < 0)
        return;
    comm->spin_rounds = (int)((spin < longest ? spin : longest) / round);
    comm->network_rounds = (int)((spin < longest ? spin : longest) / look);
}

/*
 * How many short messages may be under way: few enough that they stay in the first cache. But who
 * shares its core with the rank it waits for gets on by a change of process, and the more messages
 * one change serves, the better, as long as the lines of all links stay in the second cache.
 */
struct link_rooms crowd_choose_rooms(const rondo_comm *comm)
{
    enum { MESSAGES = 4096 }; /* of one line, into a rank; of several lines a 4th */
    struct crowd crowd = count_crowd(comm, comm->cards[comm->rank].machine);
    struct link_rooms rooms = {128, 8};

    if (crowd.ranks > crowd.cores)
        rooms = (struct link_rooms){LINK_INLINED_MOST, LINK_PACKED_MOST};
    while (rooms.inlined > 32 && rooms.inlined * (size_t)comm->size > MESSAGES)
        rooms.inlined /= 2;
    while (rooms.packed > 8 && rooms.packed * (size_t)comm->size > MESSAGES / 4)
        rooms.packed /= 2;
    return rooms;
}

/* Ranks that share cores should find each other's messages still in the second cache: make the
 * rings of shallow lanes as short as any plan can do with. */
void crowd_make_shallow(rondo_comm *comm)
{
    enum { LEAST = 2 }; /* slots, for which plans are proved */
    struct crowd crowd = count_crowd(comm, comm->cards[comm->rank].machine);

    comm->shares_cores = comm->local_size == comm->size && crowd.ranks > crowd.cores;
    for (int lane = PLAN_LANE_SHALLOW; comm->shares_cores && lane < PLAN_LANE_P2P; lane++)
        for (int rank = 0; rank < comm->size; rank++) {
            int at = lane * comm->size + rank;

            if (comm->world.out[at].shorts)
                comm->world.out[at].slot_count = comm->world.in[at].slot_count = LEAST;
        }
}
