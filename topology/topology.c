/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topology.c - opens the machine, this one or a recorded one, and answers how much of everything
 * there is.
 *
 * hwloc reads the operating system. What this process may use is less: the CPU set it was started
 * with (taskset, mpirun, cgroup cpuset) is intersected with the machine, and a cgroup's CPU quota
 * caps the number of cores. Objects are numbered as if all were allowed, alike in all processes.
 * Nothing changes after the open, so that all other functions may be called from any thread.
 */
#include "topology/inside.h"

#include "base/caller/descriptor.h"
#include "base/fail.h"
#include "topology/recording.h"

#include <stdlib.h>
#include <unistd.h>

/*
 * Components that would start a GPU runtime or talk to an X server from inside somebody's process.
 * And "pci" leaks what libpciaccess allocates; Linux tells the same about PCI through sysfs, which
 * hwloc then reads by itself.
 */
static void leave_out_slow_components(hwloc_topology_t hwloc)
{
    static const char *const names[] = {"gl", "opencl", "cuda", "levelzero", "pci"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, names[i]);
}

static rondo_result load_recording(const char *file, struct topology *topology)
{
    char *xml = NULL;
    size_t bytes = 0;
    rondo_result result = topology_read_recording(file, &xml, &bytes);

    if (!result && (hwloc_topology_set_xmlbuffer(topology->hwloc, xml, (int)bytes) ||
                    hwloc_topology_load(topology->hwloc)))
        result = rondo_fail(RONDO_ERROR_SYSTEM, "hwloc does not read %s a second time", file);
    free(xml);
    topology->recorded = true;
    return result;
}

static rondo_result load(const char *xml, bool devices, struct topology *topology)
{
    topology->hwloc = topology_prepare();
    if (!topology->hwloc)
        return rondo_fail_errno(RONDO_ERROR_MEMORY, "cannot start hwloc to read the machine");
    if (xml)
        return load_recording(xml, topology);
    leave_out_slow_components(topology->hwloc);
    if (!devices)
        hwloc_topology_set_io_types_filter(topology->hwloc, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc_topology_load(topology->hwloc))
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "hwloc cannot read this machine; "
                                                    "`lstopo` may say more");
    return RONDO_OK;
}

/*
 * The CPU set of all threads of this process within the machine. A bound thread must not hide the
 * others' cores.
 */
static rondo_result find_usable(struct topology *topology)
{
    topology->usable = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology->hwloc));
    hwloc_bitmap_t own = hwloc_bitmap_alloc();

    if (!topology->usable || !own) {
        hwloc_bitmap_free(own);
        return rondo_fail(RONDO_ERROR_MEMORY, "out of memory while reading the machine");
    }
    hwloc_bitmap_and(topology->usable, topology->usable,
                     hwloc_topology_get_topology_cpuset(topology->hwloc));
    if (!topology->recorded && !hwloc_get_cpubind(topology->hwloc, own, HWLOC_CPUBIND_PROCESS) &&
        hwloc_bitmap_intersects(own, topology->usable))
        hwloc_bitmap_and(topology->usable, topology->usable, own);
    topology->threads = hwloc_bitmap_weight(topology->usable);
    hwloc_bitmap_free(own);
    return RONDO_OK;
}

static rondo_result find_cores(struct topology *topology)
{
    int depth = hwloc_get_type_or_below_depth(topology->hwloc, HWLOC_OBJ_CORE);
    hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(topology->hwloc);
    hwloc_obj_t core = NULL;

    topology->core =
        calloc(hwloc_get_nbobjs_by_depth(topology->hwloc, depth), sizeof(*topology->core));
    if (!topology->core)
        return rondo_fail(RONDO_ERROR_MEMORY, "out of memory while reading the machine");
    while ((core = hwloc_get_next_obj_by_depth(topology->hwloc, depth, core))) {
        topology->machine_cores += hwloc_bitmap_intersects(core->cpuset, allowed);
        if (hwloc_bitmap_intersects(core->cpuset, topology->usable))
            topology->core[topology->cores++] = core;
    }
    if (!topology->cores)
        return rondo_fail(RONDO_ERROR_SYSTEM, "hwloc reports a machine without cores");
    return RONDO_OK;
}

static rondo_result open_machine(const char *xml, bool devices, struct topology **ret_topology)
{
    struct topology *topology = calloc(1, sizeof(*topology));
    rondo_result result;

    if (!topology)
        return rondo_fail(RONDO_ERROR_MEMORY, "out of memory while reading the machine");
    result = load(xml, devices, topology);
    if (!result)
        result = find_usable(topology);
    if (!result)
        result = find_cores(topology);
    if (!result && !topology->recorded)
        topology->cpu_limit = topology_own_quota().cpus;
    if (!result && devices)
        result = topology_find_devices(topology);
    if (result) {
        topology_close(topology);
        return result;
    }
    *ret_topology = topology;
    return RONDO_OK;
}

rondo_result topology_open(const char *xml, struct topology **ret_topology)
{
    return open_machine(xml && *xml ? xml : NULL, true, ret_topology);
}

rondo_result topology_open_cores(struct topology **ret_topology)
{
    return open_machine(NULL, false, ret_topology);
}

void topology_close(struct topology *topology)
{
    if (!topology)
        return;
    free(topology->device);
    free(topology->device_object);
    free(topology->link);
    free(topology->core);
    hwloc_bitmap_free(topology->usable);
    if (topology->hwloc)
        hwloc_topology_destroy(topology->hwloc);
    free(topology);
}

int topology_cores(const struct topology *topology)
{
    if (topology->cpu_limit && topology->cpu_limit < topology->cores)
        return topology->cpu_limit;
    return topology->cores;
}

int topology_machine_cores(const struct topology *topology)
{
    int cores = topology->machine_cores;

    return topology->cpu_limit && topology->cpu_limit < cores ? topology->cpu_limit : cores;
}

int topology_threads(const struct topology *topology)
{
    return topology->threads;
}

int topology_cpu_limit(const struct topology *topology)
{
    return topology->cpu_limit;
}

bool topology_is_recorded(const struct topology *topology)
{
    return topology->recorded;
}

int topology_packages(const struct topology *topology)
{
    return hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_PACKAGE);
}

int topology_numa_nodes(const struct topology *topology)
{
    return hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_NUMANODE);
}

size_t topology_cache_bytes(const struct topology *topology, int level)
{
    int depth;

    if (level < 1 || level > 5)
        return 0;
    depth = hwloc_get_cache_type_depth(topology->hwloc, (unsigned)level, HWLOC_OBJ_CACHE_DATA);
    if (depth < 0)
        return 0;
    return hwloc_get_obj_by_depth(topology->hwloc, depth, 0)->attr->cache.size;
}

/* hwloc's own writer of files loses errors of write(). */
rondo_result topology_write_xml(const struct topology *topology, const char *file)
{
    char *text = NULL;
    int bytes, failed;
    FILE *to;

    if (hwloc_topology_export_xmlbuffer(topology->hwloc, &text, &bytes, 0))
        return rondo_fail(RONDO_ERROR_MEMORY, "out of memory while recording the machine");
    to = descriptor_stream(file, "w");
    failed = !to || fputs(text, to) < 0;
    if (to)
        failed |= fclose(to); /* whose error comes last, so errno is of it */
    if (failed)
        rondo_fail_errno(RONDO_ERROR_SYSTEM, "cannot write the machine to %s", file);
    hwloc_free_xmlbuffer(topology->hwloc, text);
    return failed ? RONDO_ERROR_SYSTEM : RONDO_OK;
}
