/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inside.h - what the files of topology/ share: the opened machine. Nobody outside the room
 * includes it.
 */
#ifndef RONDO_TOPOLOGY_INSIDE_H
#define RONDO_TOPOLOGY_INSIDE_H

#include "topology/topology.h"

#include <hwloc.h>

struct topology {
    hwloc_topology_t hwloc;
    bool recorded;         /* read from a file: nothing can be bound here, and no quota holds */
    hwloc_bitmap_t usable; /* hardware threads that this process may use */
    int threads;           /* how many these are */
    int cores;             /* cores that have one of them, before the quota */
    hwloc_obj_t *core;     /* these cores in logical order */
    int machine_cores;     /* cores that any process of this machine or container may use */
    int cpu_limit;         /* CPUs that the cgroup's quota grants, rounded up; 0: no quota */
    int devices;
    struct topology_device *device; /* by kind, PCI address, name */
    hwloc_obj_t *device_object;     /* where each hangs in the tree; parallel to `device` */
    int linked;                     /* GPUs between which links are known */
    struct topology_link *link;     /* [linked * linked], NULL: not looked for */
    char link_source[320];
};

/*
 * device.c: what hwloc does not report by itself goes into the tree, then the table of devices is
 * made from the tree.
 */
rondo_result topology_find_devices(struct topology *topology);
void topology_add_virtual_nics(hwloc_topology_t hwloc, const char *folder);
/* A GPU that hwloc does not see; the table stays in order. */
rondo_result topology_add_gpu(struct topology *topology, const char *pci, const char *name);
/* False of a device that was added so: nothing is known of its place. */
bool topology_is_in_tree(const struct topology *topology, int device);

/* quota.c: `self` is /proc/self/cgroup, `mount` /sys/fs/cgroup. */
struct topology_quota topology_read_quota(const char *self, const char *mount);

/*
 * place.c: logical index of the package, NUMA node, last cache of an object; -1 where the machine
 * has none.
 */
int topology_index_of(const struct topology *topology, hwloc_obj_t object, hwloc_obj_type_t type);

#endif
