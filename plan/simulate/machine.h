/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine.h - the machine that a simulation runs on, as a table of numbers.
 *
 * Ranks sit in hosts, `host_ranks` in each, in the order of their numbers. Inside of a host every
 * rank has a port of its own for each direction, and what it sends to ranks there it stores with
 * its own hands: a step that fills such a slot lasts as long as the bytes travel. Between hosts a
 * message leaves from its slot by itself, through an adapter and a fabric. All links are shared by
 * what travels at the same time.
 *
 *     rank -- port --(switch, memory or PCIe)-- port -- rank          in a host
 *     rank -- adapter --( fabric )-- adapter -- rank                  between hosts
 *
 * docs/simulator.md has all keys, the machines that have a name, and where their numbers are from.
 */
#ifndef RONDO_PLAN_SIMULATE_MACHINE_H
#define RONDO_PLAN_SIMULATE_MACHINE_H

#include "rondo/rondo.h"

#include <stdbool.h>

enum machine_inside { INSIDE_SWITCH, INSIDE_MEMORY, INSIDE_PCIE };
enum machine_fabric { FABRIC_FLAT, FABRIC_TREE, FABRIC_RAILS, FABRIC_TORUS, FABRIC_DRAGONFLY };
enum machine_routes { ROUTES_ADAPTIVE, ROUTES_FIXED };

struct machine {
    const char *name;
    int host_ranks, inside; /* enum machine_inside */
    double port_bw;         /* bytes/s, as all below; of a rank's port inside of its host */
    double bus_bw;          /* of a host's memory, or of the uplink of half of its PCIe ranks */
    double inside_latency;  /* seconds */
    int nics;               /* adapters of a host */
    double nic_bw, network_latency;
    double hop_latency;        /* of every link of the fabric */
    double message;            /* seconds that a rank is busy for each message between hosts */
    int fabric, routes;        /* enum machine_fabric, enum machine_routes */
    int leaf_hosts;            /* hosts below a leaf switch; in a dragonfly below a router */
    int spines;                /* uplinks of a leaf switch; routers of a group in a dragonfly */
    double oversubscription;   /* how many times less bandwidth goes up than comes from below */
    int x, y, z;               /* hosts of a torus; z = 1: of two dimensions */
    double cable_bw;           /* of each direction of a torus, or between routers of a dragonfly */
    double copy_bw, reduce_bw; /* of a rank */
    double step;               /* seconds that each copy or reduce step lasts at least */
    int together;              /* programs of a rank that move data at a time */
    int slots, slot_bytes;     /* of a link */
};

/* The name of the i-th machine that has one, and a sentence about it; NULL: there are fewer. */
const char *machine_name(int i, const char **ret_sentence);
/* A machine by its name. RONDO_ERROR_INVALID: there is none. */
rondo_result machine_find(const char *name, struct machine *ret_machine);
/* Sets what a key names: "nic_GBps" to "50", "fabric" to "tree". RONDO_ERROR_INVALID. */
rondo_result machine_set(struct machine *machine, const char *key, const char *value);
/* "dgx" or "dgx,nic_GBps=25,fabric=tree". RONDO_ERROR_INVALID. */
rondo_result machine_parse(const char *text, struct machine *ret_machine);
/* True if its numbers go together, and so many ranks have a place. RONDO_ERROR_INVALID. */
rondo_result machine_check(const struct machine *machine, int ranks);
/* The i-th key, what it means, and its value in a machine; NULL: there are not so many. */
const char *machine_key(int i, const char **ret_sentence);
void machine_value(const struct machine *machine, int i, char text[64]);

#endif
