/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.c - which core a local rank gets, binding it there, and how far two such places are from
 * each other.
 *
 * Placement is compact: rank i sits on usable core i in hwloc's logical order, which goes through
 * all cores of a cache, then of a NUMA node, then of a package. So ranks close in number are close
 * in the machine, which is what rings and trees over rank numbers like, and it is what `mpirun
 * --map-by core --bind-to core` does too.
 */
#include "topology/inside.h"

#include "base/fail.h"
#include "base/log.h"

static int package_of(const struct topology *topology, hwloc_obj_t core)
{
    hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology->hwloc, HWLOC_OBJ_PACKAGE, core);

    return package ? (int)package->logical_index : -1;
}

/* NUMA nodes hang beside the tree of cores: they are found by their set. */
static int numa_of(const struct topology *topology, hwloc_obj_t core)
{
    int node = hwloc_bitmap_first(core->nodeset);
    hwloc_obj_t numa =
        node < 0 ? NULL : hwloc_get_numanode_obj_by_os_index(topology->hwloc, (unsigned)node);

    return numa ? (int)numa->logical_index : -1;
}

/* The last cache that is a core's neighbours' too. */
static int cache_of(const struct topology *topology, hwloc_obj_t core)
{
    hwloc_obj_t cache = hwloc_get_ancestor_obj_by_type(topology->hwloc, HWLOC_OBJ_L3CACHE, core);

    if (!cache && hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_L3CACHE) == 0)
        cache = hwloc_get_ancestor_obj_by_type(topology->hwloc, HWLOC_OBJ_L2CACHE, core);
    return cache ? (int)cache->logical_index : -1;
}

int topology_numa_of_cpus(const struct topology *topology, const uint64_t *cpus, int words)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    hwloc_obj_t node = NULL;
    int found = -1;

    if (!set)
        return -1;
    for (int bit = 0; bit < 64 * words; bit++)
        if (cpus[bit / 64] >> bit % 64 & 1)
            hwloc_bitmap_set(set, (unsigned)bit);
    while (!hwloc_bitmap_iszero(set) && found < 0 &&
           (node = hwloc_get_next_obj_by_type(topology->hwloc, HWLOC_OBJ_NUMANODE, node)))
        if (hwloc_bitmap_isincluded(set, node->cpuset))
            found = (int)node->logical_index;
    hwloc_bitmap_free(set);
    return found;
}

int topology_index_of(const struct topology *topology, hwloc_obj_t object, hwloc_obj_type_t type)
{
    switch (type) {
    case HWLOC_OBJ_PACKAGE:
        return package_of(topology, object);
    case HWLOC_OBJ_NUMANODE:
        return numa_of(topology, object);
    default:
        return cache_of(topology, object);
    }
}

void topology_place(const struct topology *topology, int local_rank, int local_size,
                    struct topology_place *ret_place)
{
    int cores = topology_cores(topology);
    int index = local_rank % cores;
    hwloc_obj_t core = topology->core[index];

    *ret_place = (struct topology_place){
        .core = index,
        .package = package_of(topology, core),
        .numa = numa_of(topology, core),
        .l3 = cache_of(topology, core),
        .shared = local_size > cores,
    };
}

rondo_result topology_bind(const struct topology *topology, const struct topology_place *place)
{
    hwloc_bitmap_t set;
    int failed;

    if (place->core < 0 || place->core >= topology->cores)
        return rondo_fail(RONDO_ERROR_INVALID, "there is no core %d to bind to: %d are usable",
                          place->core, topology->cores);
    if (place->shared)
        return RONDO_OK;
    if (topology->recorded)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "not bound to core %d: the machine is a recorded one, not this one; "
                          "unset RONDO_TOPOLOGY, or say RONDO_BIND=none",
                          place->core);
    if (topology->cpu_limit && topology->cpu_limit < topology->cores) {
        log_info("not bound to a core: the CPU quota grants %d of %d cores, and grants no place",
                 topology->cpu_limit, topology->cores);
        return RONDO_OK;
    }
    set = hwloc_bitmap_dup(topology->core[place->core]->cpuset);
    if (!set)
        return rondo_fail(RONDO_ERROR_MEMORY, "out of memory while binding to core %d",
                          place->core);
    hwloc_bitmap_and(set, set, topology->usable);
    failed = hwloc_set_cpubind(topology->hwloc, set, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(set);
    if (failed)
        return rondo_fail_errno(RONDO_ERROR_SYSTEM,
                                "cannot bind this thread to core %d; RONDO_BIND=none stops trying",
                                place->core);
    return RONDO_OK;
}

int topology_place_distance(const struct topology_place *a, const struct topology_place *b)
{
    if (a->core == b->core)
        return TOPOLOGY_SAME;
    if (a->l3 == b->l3 && a->l3 >= 0)
        return TOPOLOGY_CLOSE;
    if (a->package != b->package)
        return TOPOLOGY_MACHINE;
    return a->numa == b->numa && a->numa >= 0 ? TOPOLOGY_NUMA : TOPOLOGY_PACKAGE;
}

int topology_distance_of_places(const void *places, int a, int b)
{
    const struct topology_place *place = places;

    return topology_place_distance(&place[a], &place[b]);
}
