/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topology.h - what is connected to what, by hwloc: cores, caches, NUMA nodes, packages, PCI
 * devices, GPUs and NICs. A recorded machine (hwloc XML) can stand in for this one, so that orders
 * over hardware nobody has are tested.
 */
#ifndef RONDO_TOPOLOGY_TOPOLOGY_H
#define RONDO_TOPOLOGY_TOPOLOGY_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct topology;

enum topology_device_kind { TOPOLOGY_GPU, TOPOLOGY_NIC, TOPOLOGY_RDMA };

struct topology_device {
    enum topology_device_kind kind;
    char name[32];    /* "mlx5_0", "eth0", "cuda0" or the PCI address where there is no driver */
    char pci[16];     /* "0000:3b:00.0", "" if virtual */
    int numa;         /* nearest NUMA node, -1 unknown */
    double link_GBps; /* PCI link, 0 unknown */
};

/*
 * This machine, or with `xml` (a file name; NULL or "": none) the recorded one, which is what
 * `rondo topo` and `rondo doctor` do with RONDO_TOPOLOGY.
 */
rondo_result topology_open(const char *xml, struct topology **ret_topology);
/* This machine as if it had no devices, for callers that only place ranks on cores: reading devices
 * takes six times as long as reading all else. */
rondo_result topology_open_cores(struct topology **ret_topology);
void topology_close(struct topology *topology);

/*
 * Physical cores that this process may use: those in its CPU set, but no more than its quota
 * grants. At least 1.
 */
int topology_cores(const struct topology *topology);
/*
 * Cores that all ranks on this machine together may use: as topology_cores(), before this process
 * was bound. A rank that mpirun has bound has one core, and still nobody shares it: compare the
 * number of local ranks with this.
 */
int topology_machine_cores(const struct topology *topology);
int topology_threads(const struct topology *topology); /* hardware threads that it may use */
/* The least that the cgroup of a process, or one above it, grants. */
struct topology_quota {
    int cpus;       /* rounded up; 0: no quota */
    uint64_t group; /* the same for all processes that share it, and for no others of the machine */
};
/* That of this process, without a machine. */
struct topology_quota topology_own_quota(void);
/* CPUs granted by the cgroup's quota, rounded up; 0: no quota. */
int topology_cpu_limit(const struct topology *topology);
bool topology_is_recorded(const struct topology *topology);
int topology_packages(const struct topology *topology);
int topology_numa_nodes(const struct topology *topology);
/* The size of one cache of that level; 0: there is none. */
size_t topology_cache_bytes(const struct topology *topology, int level);
int topology_devices(const struct topology *topology);
/* Ordered by kind, PCI address and name; NULL when there is none of that index. */
const struct topology_device *topology_device_at(const struct topology *topology, int index);
const char *topology_device_kind_name(enum topology_device_kind kind); /* "GPU", "NIC", "RDMA" */
/*
 * The device of this kind that is nearest to `device`, the first one of equals, never itself; -1:
 * there is none, or nobody knows where `device` is.
 */
int topology_nearest(const struct topology *topology, enum topology_device_kind kind, int device);

/* ---- Links between GPUs ---------------------------------------------------------------------- */

/* The fastest way for bytes between two GPUs. */
enum topology_link_kind {
    TOPOLOGY_LINK_UNKNOWN,
    TOPOLOGY_LINK_SAME,     /* one GPU, or two halves of one board */
    TOPOLOGY_LINK_NVLINK,   /* from one to the other */
    TOPOLOGY_LINK_NVSWITCH, /* by a switch that all with such links hang on */
    TOPOLOGY_LINK_SWITCH,   /* one PCI switch */
    TOPOLOGY_LINK_SWITCHES, /* several of them, under one port */
    TOPOLOGY_LINK_BRIDGE,   /* the host bridge */
    TOPOLOGY_LINK_NODE,     /* several host bridges of one NUMA node */
    TOPOLOGY_LINK_MACHINE   /* from NUMA node to NUMA node */
};

struct topology_link {
    enum topology_link_kind kind;
    int lanes;   /* NVLinks, 0: another kind */
    double GBps; /* one way, by what the hardware can do; 0 unknown */
    /* Why one does not read the other's memory, as the driver has it: a clause; NULL: it does, or
     * nothing is known. */
    const char *no_peer;
};

/*
 * Ask NVML, where this machine has it, and the tree otherwise. GPUs that only NVML knows are added:
 * containers may hide their PCI functions. To be called right after the open, if at all.
 */
rondo_result topology_find_links(struct topology *topology);
/* Between GPUs of these indices, 0 .. topology_gpus() - 1; NULL: links were not looked for. */
const struct topology_link *topology_link(const struct topology *topology, int a, int b);
/* Does as topology_link(), by PCI addresses in any usual notation; NULL also if one of them is not
 * known, else *ret_distance is topology_distance_of_devices(). Accepts NULL for it. */
const struct topology_link *topology_link_of(const struct topology *topology, const char *pci_a,
                                             const char *pci_b, int *ret_distance);
/* "NVML 13.580.65", or what was looked at instead and why. */
const char *topology_link_source(const struct topology *topology);
/* "4 x NVLink", "a host bridge", and in short "L4", "B"; cut where the text ends. */
void topology_link_describe(const struct topology_link *link, char *text, size_t size);
void topology_link_code(const struct topology_link *link, char *text, size_t size);

/* ---- Placement: which core a local rank gets, like `mpirun --bind-to core --map-by core` ----- */

struct topology_place {
    int core;    /* logical indices in the machine, -1: on several cores */
    int package; /* -1: unknown, or several */
    int numa;
    int l3;      /* the last cache that cores share: L2 where there is no L3 */
    bool shared; /* ranks outnumber cores: another rank has the same core */
};
/*
 * Rank i gets core i, so neighbours in rank share caches; ranks that outnumber the cores go round
 * and round.
 */
void topology_place(const struct topology *topology, int local_rank, int local_size,
                    struct topology_place *ret_place);
/*
 * Bind the calling thread there. Does nothing (RONDO_OK) when ranks outnumber cores, or under a CPU
 * quota: a quota grants time, not places, and other containers on the machine would bind to the
 * same first cores.
 */
rondo_result topology_bind(const struct topology *topology, const struct topology_place *place);

/*
 * Finds where somebody is who may run on these hardware threads (bit i of word w: thread 64 w + i,
 * as the system numbers them): the core, cache, NUMA node and package that have all of them.
 */
void topology_place_of_cpus(const struct topology *topology, const uint64_t *cpus, int words,
                            struct topology_place *ret_place);

/* ---- Orders over places or GPUs -------------------------------------------------------------- */

/* Distances. Places and devices use the same scale. */
enum {
    TOPOLOGY_SAME,   /* the same core or device */
    TOPOLOGY_LINKED, /* GPUs with NVLinks between them, if links were looked for */
    TOPOLOGY_CLOSE,  /* cores under one shared cache; devices under one PCI switch or bridge */
    TOPOLOGY_NUMA,   /* cores of one NUMA node; devices under one host bridge or of one NUMA node */
    TOPOLOGY_PACKAGE, /* one package */
    TOPOLOGY_MACHINE  /* different packages */
};
int topology_place_distance(const struct topology_place *a, const struct topology_place *b);
/* By PCI alone. */
int topology_device_distance(const struct topology *topology, int device_a, int device_b);
/*
 * topology_place_distance() as a `distance` of the two functions below: `places` is an array of
 * struct topology_place, a and b are indices into it.
 */
int topology_distance_of_places(const void *places, int a, int b);
/*
 * topology_device_distance() as a `distance`, with NVLinks counted: a and b are indices of devices
 * of a `struct topology`. GPUs come first: n of them have the indices 0 .. n - 1.
 */
int topology_distance_of_devices(const void *topology, int a, int b);
int topology_gpus(const struct topology *topology);

/*
 * The ring over `count` points with the least sum of distances that a search finds (exact up to 10
 * points, nearest neighbour improved by 2-opt beyond); ret_order[0] is 0. Ties are broken by the
 * smallest index: same answer everywhere. `distance` is symmetric and 0 or more.
 */
void topology_ring(int count, int (*distance)(const void *context, int a, int b),
                   const void *context, int *ret_order);
/*
 * Parents of a tree that crosses long distances once: members of a near group hang under its first.
 * -1: the root.
 */
void topology_tree(int count, int (*distance)(const void *context, int a, int b),
                   const void *context, int *ret_parents);

/* ---- Text ------------------------------------------------------------------------------------ */

rondo_result topology_write_xml(const struct topology *topology, const char *file);
/* A picture with so many ranks on the usable cores. */
rondo_result topology_write_svg(const struct topology *topology, const char *file, int ranks);
void topology_print(const struct topology *topology, FILE *to);

#endif
