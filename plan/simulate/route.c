/* SPDX-License-Identifier: BSD-3-Clause */
/* route.c - which links lie between two ranks. */
#include "plan/simulate/route.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char *const words[HOPS] = {
    "port-out", "port-in", "bus",      "half-out", "half-in", "nic-out",
    "nic-in",   "uplink",  "downlink", "cable",    "local",   "global",
};

const char *route_word(int kind)
{
    return kind >= 0 && kind < HOPS ? words[kind] : NULL;
}

int route_kind(const char *word)
{
    for (int i = 0; i < HOPS; i++)
        if (!strcmp(words[i], word))
            return i;
    return -1;
}

static void add(struct route *route, int kind, int owner, int sub)
{
    if (route->count < ROUTE_MAX)
        route->hops[route->count++] = (struct hop){kind, owner, sub};
}

/* ---- Inside of a host ------------------------------------------------------------------------ */

static void find_inside(const struct machine *machine, int from, int to, struct route *route)
{
    int host = from / machine->host_ranks;

    route->direct = true;
    route->latency = machine->inside_latency;
    add(route, HOP_PORT_OUT, from, 0);
    if (machine->inside == INSIDE_MEMORY)
        add(route, HOP_BUS, host, 0);
    if (machine->inside == INSIDE_PCIE) {
        int half = machine->host_ranks / 2;

        if (from / half != to / half) {
            add(route, HOP_HALF_OUT, from / half, 0);
            add(route, HOP_HALF_IN, to / half, 0);
        }
    }
    add(route, HOP_PORT_IN, to, 0);
}

/* ---- The fabric ------------------------------------------------------------------------------ */

/* One of so many equal ways, always the same for the same two ranks. */
static int pick(int from, int to, int ways)
{
    uint64_t mixed = (uint64_t)(uint32_t)from << 32 | (uint32_t)to;

    mixed = (mixed ^ mixed >> 31) * 0x7fb5d329728ea185u;
    mixed = (mixed ^ mixed >> 27) * 0x81dadef4bc2dd44du;
    return (int)((mixed ^ mixed >> 33) % (uint64_t)ways);
}

static void climb(const struct machine *machine, int from, int to, struct route *route)
{
    int a = from / machine->host_ranks / machine->leaf_hosts;
    int b = to / machine->host_ranks / machine->leaf_hosts;
    int per_nic = machine->host_ranks / machine->nics;
    bool rails = machine->fabric == FABRIC_RAILS;
    int rail_a = rails ? from % machine->host_ranks / per_nic : 0;
    int rail_b = rails ? to % machine->host_ranks / per_nic : 0;
    int way = machine->routes == ROUTES_FIXED ? pick(from, to, machine->spines) : 0;

    if (a == b && rail_a == rail_b)
        return;
    add(route, HOP_UPLINK, a, rail_a * machine->spines + way);
    add(route, HOP_DOWNLINK, b, rail_b * machine->spines + way);
}

/* One dimension after the other, the shorter way round. */
static void walk(const struct machine *machine, int from, int to, struct route *route)
{
    int sides[3] = {machine->x, machine->y, machine->z};
    int at = from / machine->host_ranks, goal = to / machine->host_ranks, stride = 1;

    for (int d = 0; d < 3; d++) {
        int side = sides[d], here = at / stride % side, there = goal / stride % side;
        int ahead = (there - here + side) % side;
        bool back = 2 * ahead > side;

        while (here != there) {
            int next = back ? (here + side - 1) % side : (here + 1) % side;

            add(route, HOP_CABLE, at, 2 * d + back);
            at += (next - here) * stride;
            here = next;
        }
        stride *= side;
    }
}

static void go_local(const struct machine *machine, int *router, int goal, struct route *route)
{
    if (*router == goal)
        return;
    add(route, HOP_LOCAL, *router, goal % machine->spines);
    *router = goal;
}

/* The least way: at most one link within each of the two groups, and one between them. */
static void fly(const struct machine *machine, int ranks, int from, int to, struct route *route)
{
    int routers = machine->spines, below = machine->host_ranks * machine->leaf_hosts;
    int at = from / below, goal = to / below;
    int a = at / routers, b = goal / routers;
    int groups = (ranks + below * routers - 1) / (below * routers);

    if (a != b) {
        int offset = (b - a + groups) % groups;

        go_local(machine, &at, a * routers + (offset - 1) % routers, route);
        add(route, HOP_GLOBAL, a, offset);
        at = b * routers + (groups - offset - 1) % routers;
    }
    go_local(machine, &at, goal, route);
}

static void find_between(const struct machine *machine, int ranks, int from, int to,
                         struct route *route)
{
    int per_nic = machine->host_ranks / machine->nics, begin;

    route->latency = machine->network_latency;
    add(route, HOP_NIC_OUT, from / per_nic, 0);
    begin = route->count;
    if (machine->fabric == FABRIC_TREE || machine->fabric == FABRIC_RAILS)
        climb(machine, from, to, route);
    else if (machine->fabric == FABRIC_TORUS)
        walk(machine, from, to, route);
    else if (machine->fabric == FABRIC_DRAGONFLY)
        fly(machine, ranks, from, to, route);
    route->latency += machine->hop_latency * (route->count - begin);
    add(route, HOP_NIC_IN, to / per_nic, 0);
}

void route_find(const struct machine *machine, int ranks, int from, int to, struct route *ret_route)
{
    ret_route->direct = true;
    ret_route->latency = 0;
    ret_route->count = 0;
    if (from == to)
        return;
    if (from / machine->host_ranks == to / machine->host_ranks)
        find_inside(machine, from, to, ret_route);
    else {
        ret_route->direct = false;
        find_between(machine, ranks, from, to, ret_route);
    }
}

/* ---- Of links -------------------------------------------------------------------------------- */

double route_bandwidth(const struct machine *machine, const struct hop *hop)
{
    double up = machine->leaf_hosts * machine->nic_bw / machine->oversubscription;

    switch (hop->kind) {
    case HOP_PORT_OUT:
    case HOP_PORT_IN:
        return machine->port_bw;
    case HOP_BUS:
    case HOP_HALF_OUT:
    case HOP_HALF_IN:
        return machine->bus_bw;
    case HOP_UPLINK:
    case HOP_DOWNLINK:
        up *= machine->fabric == FABRIC_RAILS ? 1 : machine->nics;
        return machine->routes == ROUTES_FIXED ? up / machine->spines : up;
    case HOP_CABLE:
    case HOP_LOCAL:
    case HOP_GLOBAL:
        return machine->cable_bw;
    default:
        return machine->nic_bw;
    }
}

int route_unit(const struct machine *machine, int kind)
{
    int host = machine->host_ranks;

    switch (kind) {
    case HOP_PORT_OUT:
    case HOP_PORT_IN:
        return 1;
    case HOP_HALF_OUT:
    case HOP_HALF_IN:
        return host / 2;
    case HOP_NIC_OUT:
    case HOP_NIC_IN:
        return host / machine->nics;
    case HOP_UPLINK:
    case HOP_DOWNLINK:
    case HOP_LOCAL:
        return host * machine->leaf_hosts;
    case HOP_GLOBAL:
        return host * machine->leaf_hosts * machine->spines;
    default: /* a bus, a cable */
        return host;
    }
}

void route_name(const struct machine *machine, const struct hop *hop, char *text, size_t size)
{
    static const char *const before[HOPS] = {
        "the outgoing port of rank",    "the incoming port of rank",
        "the memory of host",           "the way out of PCIe half",
        "the way into PCIe half",       "the outgoing side of adapter",
        "the incoming side of adapter", "the uplink of leaf switch",
        "the downlink of leaf switch",  "the cable of node",
        "the cable of router",          "the cable of group",
    };
    static const char *const sides[] = {"+x", "-x", "+y", "-y", "+z", "-z"};
    bool core = hop->kind == HOP_UPLINK || hop->kind == HOP_DOWNLINK;
    int length = snprintf(text, size, "%s %d", before[hop->kind], hop->owner);

    if (length < 0 || (size_t)length >= size)
        return;
    text += length;
    size -= (size_t)length;
    if (hop->kind == HOP_CABLE)
        snprintf(text, size, " to %s", sides[hop->sub % 6]);
    else if (hop->kind == HOP_LOCAL)
        snprintf(text, size, " to number %d of its group", hop->sub);
    else if (hop->kind == HOP_GLOBAL)
        snprintf(text, size, " to the group %d further on", hop->sub);
    else if (core && machine->fabric == FABRIC_RAILS)
        snprintf(text, size, " of rail %d", hop->sub / machine->spines);
    else if (core && machine->routes == ROUTES_FIXED)
        snprintf(text, size, " to spine %d", hop->sub);
}
