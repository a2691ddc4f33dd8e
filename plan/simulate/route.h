/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route.h - the links of a machine that lie between two ranks.
 *
 * A link belongs to a run of ranks, its *owner*: a rank's port to that rank, an uplink to all ranks
 * below its switch. So a shift of the ranks says what becomes of a link, and links that are each
 * other's images under such a shift can be one (fold.h).
 */
#ifndef RONDO_PLAN_SIMULATE_ROUTE_H
#define RONDO_PLAN_SIMULATE_ROUTE_H

#include "plan/simulate/machine.h"

enum hop_kind {
    HOP_PORT_OUT,
    HOP_PORT_IN,
    HOP_BUS,      /* the memory of a host */
    HOP_HALF_OUT, /* of half of a PCIe host, to the other half */
    HOP_HALF_IN,
    HOP_NIC_OUT,
    HOP_NIC_IN,
    HOP_UPLINK, /* of a leaf switch, and so down from the core */
    HOP_DOWNLINK,
    HOP_CABLE,  /* of a torus: sub = 2 * dimension + direction */
    HOP_LOCAL,  /* from a router of a dragonfly to another of its group: sub */
    HOP_GLOBAL, /* from a group to that `sub` further on */
    HOPS
};

struct hop {
    int kind;
    int owner; /* number of the run of ranks that it belongs to */
    int sub;   /* which of several links of one owner */
};

enum { ROUTE_MAX = 4096 };

struct route {
    bool direct; /* inside of a host: the sender stores by itself */
    double latency;
    int count;
    struct hop hops[ROUTE_MAX];
};

/* The links from one rank to another; none if it is the same. Its length is at most ROUTE_MAX. */
void route_find(const struct machine *machine, int ranks, int from, int to,
                struct route *ret_route);
/* Returns bytes/s of a link, and how many ranks the owner of such a link has. */
double route_bandwidth(const struct machine *machine, const struct hop *hop);
int route_unit(const struct machine *machine, int kind);
/* "the uplink of leaf switch 3". */
void route_name(const struct machine *machine, const struct hop *hop, char *text, size_t size);
/* The kind that a word names: "nic-out", "uplink"; -1: none. NULL after the last. */
int route_kind(const char *word);
const char *route_word(int kind);

#endif
