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

static hwloc_obj_t package_of(const struct topology *topology, hwloc_obj_t core)
{
    return hwloc_get_ancestor_obj_by_type(topology->hwloc, HWLOC_OBJ_PACKAGE, core);
}

/* NUMA nodes hang beside the tree of cores: they are found by their set. */
static hwloc_obj_t numa_of(const struct topology *topology, hwloc_obj_t core)
{
    int node = hwloc_bitmap_first(core->nodeset);

    return node < 0 ? NULL : hwloc_get_numanode_obj_by_os_index(topology->hwloc, (unsigned)node);
}

/* The last cache that is a core's neighbours' too. */
static hwloc_obj_t cache_of(const struct topology *topology, hwloc_obj_t core)
{
    hwloc_obj_t cache = hwloc_get_ancestor_obj_by_type(topology->hwloc, HWLOC_OBJ_L3CACHE, core);

    if (!cache && hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_L3CACHE) == 0)
        cache = hwloc_get_ancestor_obj_by_type(topology->hwloc, HWLOC_OBJ_L2CACHE, core);
    return cache;
}

static int index_of(hwloc_obj_t object)
{
    return object ? (int)object->logical_index : -1;
}

/* The index of an object that has all of the set, -1: it has not. */
static int index_around(hwloc_obj_t object, hwloc_const_bitmap_t set)
{
    return object && hwloc_bitmap_isincluded(set, object->cpuset) ? index_of(object) : -1;
}

static hwloc_bitmap_t set_of(const uint64_t *cpus, int words)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    for (int bit = 0; set && bit < 64 * words; bit++)
        if (cpus[bit / 64] >> bit % 64 & 1)
            hwloc_bitmap_set(set, (unsigned)bit);
    return set;
}

void topology_place_of_cpus(const struct topology *topology, const uint64_t *cpus, int words,
                            struct topology_place *ret_place)
{
    hwloc_bitmap_t set = set_of(cpus, words);
    int first = set ? hwloc_bitmap_first(set) : -1;
    hwloc_obj_t thread =
        first < 0 ? NULL : hwloc_get_pu_obj_by_os_index(topology->hwloc, (unsigned)first);

    *ret_place = (struct topology_place){.core = -1, .package = -1, .numa = -1, .l3 = -1};
    if (thread) {
        hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology->hwloc, HWLOC_OBJ_CORE, thread);

        ret_place->core = index_around(core ? core : thread, set);
        ret_place->package = index_around(package_of(topology, thread), set);
        ret_place->numa = index_around(numa_of(topology, thread), set);
        ret_place->l3 = index_around(cache_of(topology, thread), set);
    }
    hwloc_bitmap_free(set);
}

int topology_index_of(const struct topology *topology, hwloc_obj_t object, hwloc_obj_type_t type)
{
    switch (type) {
    case HWLOC_OBJ_PACKAGE:
        return index_of(package_of(topology, object));
    case HWLOC_OBJ_NUMANODE:
        return index_of(numa_of(topology, object));
    default:
        return index_of(cache_of(topology, object));
    }
}

void topology_place(const struct topology *topology, int local_rank, int local_size,
                    struct topology_place *ret_place)
{
    int cores = topology_cores(topology);
    hwloc_obj_t core = topology->core[local_rank % cores];

    *ret_place = (struct topology_place){
        .core = index_of(core),
        .package = index_of(package_of(topology, core)),
        .numa = index_of(numa_of(topology, core)),
        .l3 = index_of(cache_of(topology, core)),
        .shared = local_size > cores,
    };
}

/* NULL: this process may not use that core. */
static hwloc_obj_t usable_core(const struct topology *topology, int number)
{
    for (int i = 0; i < topology->cores; i++)
        if (index_of(topology->core[i]) == number)
            return topology->core[i];
    return NULL;
}

rondo_result topology_bind(const struct topology *topology, const struct topology_place *place)
{
    hwloc_obj_t core = usable_core(topology, place->core);
    hwloc_bitmap_t set;
    int failed;

    if (!core)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "this process may not use core %d, or there is none: %d are usable",
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
    set = hwloc_bitmap_dup(core->cpuset);
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
    if (a->core == b->core && a->core >= 0)
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
