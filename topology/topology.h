/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topology.h - what is connected to what, by hwloc: cores, caches, NUMA nodes, packages, PCI devices, GPUs and NICs.
 * A recorded machine (hwloc XML) can stand in for this one, so that orders over hardware nobody has are tested.
 */
#ifndef RONDO_TOPOLOGY_TOPOLOGY_H
#define RONDO_TOPOLOGY_TOPOLOGY_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stdio.h>

struct topology;

enum topology_device_kind { TOPOLOGY_GPU, TOPOLOGY_NIC, TOPOLOGY_RDMA };

struct topology_device {
    enum topology_device_kind kind;
    char name[32];   /* "mlx5_0", "eth0", "cuda0" or the PCI address where there is no driver */
    char pci[16];    /* "0000:3b:00.0", "" if virtual */
    int numa;        /* nearest NUMA node, -1 unknown */
    double link_GBps; /* PCI link, 0 unknown */
};

/* This machine, or with `xml` (a file name; NULL: none) the recorded one. */
rondo_result topology_open(const char *xml, struct topology **ret_topology);
void topology_close(struct topology *topology);

int topology_cores(const struct topology *topology);    /* physical cores that this process may use */
int topology_threads(const struct topology *topology);  /* hardware threads that it may use */
int topology_packages(const struct topology *topology);
int topology_numa_nodes(const struct topology *topology);
size_t topology_cache_bytes(const struct topology *topology, int level); /* of one cache of that level; 0: none */
int topology_devices(const struct topology *topology);
const struct topology_device *topology_device_at(const struct topology *topology, int index);

/* ---- Placement: which core a local rank gets, like `mpirun --bind-to core --map-by core` ------------------------------ */

struct topology_place {
    int core;    /* logical index among usable cores */
    int package, numa, l3; /* logical indices, -1 unknown */
    bool shared; /* ranks outnumber cores: another rank has the same core */
};
void topology_place(const struct topology *topology, int local_rank, int local_size,
                    struct topology_place *ret_place);
/* Bind the calling thread there. Does nothing (RONDO_OK) when ranks outnumber cores. */
rondo_result topology_bind(const struct topology *topology, const struct topology_place *place);

/* ---- Orders over places or GPUs ------------------------------------------------------------------------------------- */

/* How far apart, 0 the same core or device; larger is farther (cache, NUMA node, package / PCI switch, bridge). */
int topology_place_distance(const struct topology_place *a, const struct topology_place *b);
int topology_device_distance(const struct topology *topology, int device_a, int device_b);

/*
 * The ring over `count` points with the least sum of distances that a search finds (exact up to 10 points, nearest
 * neighbour improved by 2-opt beyond); ret_order[0] is 0. Ties are broken by the smallest index: same answer everywhere.
 */
void topology_ring(int count, int (*distance)(const void *context, int a, int b), const void *context,
                   int *ret_order);
/* Parents of a tree that crosses long distances once: members of a near group hang under its first. -1: the root. */
void topology_tree(int count, int (*distance)(const void *context, int a, int b), const void *context,
                   int *ret_parents);

/* ---- Text ------------------------------------------------------------------------------------------------------------ */

rondo_result topology_write_xml(const struct topology *topology, const char *file);
rondo_result topology_write_svg(const struct topology *topology, const char *file);
void topology_print(const struct topology *topology, FILE *to);

#endif
