/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * print.c - the machine as a few lines of text: what there is, then its nested boxes, then its
 * devices.
 */
#include "topology/inside.h"

#include <string.h>

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

/* "512 KiB", "1.5 GiB" */
static void print_bytes(double bytes, FILE *to)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;

    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    fprintf(to, bytes < 10 && bytes != (double)(int)bytes ? "%.1f %s" : "%.0f %s", bytes,
            units[unit]);
}

static void print_caches(const struct topology *topology, FILE *to)
{
    const char *before = "  caches: ";

    for (int level = 1; level <= 3; level++) {
        if (!topology_cache_bytes(topology, level))
            continue;
        fprintf(to, "%sL%d ", before, level);
        print_bytes((double)topology_cache_bytes(topology, level), to);
        before = ", ";
    }
    fprintf(to, "%s\n", *before == ' ' ? "  caches: unknown" : "");
}

static void print_summary(const struct topology *topology, FILE *to)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology->hwloc, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    int cores = (int)hwloc_get_nbobjs_by_depth(
        topology->hwloc, hwloc_get_type_or_below_depth(topology->hwloc, HWLOC_OBJ_CORE));
    int threads = hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_PU);
    int packages = topology_packages(topology);
    int nodes = topology_numa_nodes(topology);

    fprintf(to, "%s: %s, %d package%s, %d NUMA node%s, %d core%s, %d thread%s\n",
            topology->recorded ? "recorded machine" : "this machine", model ? model : "unknown CPU",
            packages, plural(packages), nodes, plural(nodes), cores, plural(cores), threads,
            plural(threads));
    print_caches(topology, to);
    fprintf(to, "  usable here: %d core%s, %d thread%s", topology->cores, plural(topology->cores),
            topology->threads, plural(topology->threads));
    if (topology->cpu_limit)
        fprintf(to, ", of which a CPU quota grants the time of %d", topology->cpu_limit);
    fprintf(to, "\n");
}

static void print_numa(const struct topology *topology, int node, FILE *to)
{
    hwloc_obj_t numa = hwloc_get_obj_by_type(topology->hwloc, HWLOC_OBJ_NUMANODE, (unsigned)node);

    fprintf(to, "    NUMA node %d", node);
    if (numa && numa->attr->numanode.local_memory) {
        fprintf(to, ", ");
        print_bytes((double)numa->attr->numanode.local_memory, to);
    }
    fprintf(to, "\n");
}

/* Numbers of the usable cores from `first` to before `end`: "cores 0-3 6". */
static void print_numbers(const struct topology *topology, int first, int end, FILE *to)
{
    fprintf(to, "      core%s", plural(end - first));
    for (int last; first < end; first = last + 1) {
        unsigned number = topology->core[first]->logical_index;

        for (last = first; last + 1 < end; last++)
            if (topology->core[last + 1]->logical_index != number + (unsigned)(last + 1 - first))
                break;
        fprintf(to, " %u", number);
        if (last > first)
            fprintf(to, "-%u", number + (unsigned)(last - first));
    }
}

/*
 * Usable cores, one line per shared cache, with a heading where the package or the NUMA node
 * changes.
 */
static void print_cores(const struct topology *topology, FILE *to)
{
    struct topology_place last = {.package = -2, .numa = -2, .l3 = -2};

    for (int first = 0, next; first < topology->cores; first = next) {
        struct topology_place place;

        place.package = topology_index_of(topology, topology->core[first], HWLOC_OBJ_PACKAGE);
        place.numa = topology_index_of(topology, topology->core[first], HWLOC_OBJ_NUMANODE);
        place.l3 = topology_index_of(topology, topology->core[first], HWLOC_OBJ_L3CACHE);
        for (next = first + 1; next < topology->cores; next++) {
            hwloc_obj_t core = topology->core[next];

            if (topology_index_of(topology, core, HWLOC_OBJ_PACKAGE) != place.package ||
                topology_index_of(topology, core, HWLOC_OBJ_NUMANODE) != place.numa ||
                topology_index_of(topology, core, HWLOC_OBJ_L3CACHE) != place.l3)
                break;
        }
        if (place.package != last.package && place.package >= 0)
            fprintf(to, "  package %d\n", place.package);
        if (place.numa != last.numa && place.numa >= 0)
            print_numa(topology, place.numa, to);
        print_numbers(topology, first, next, to);
        if (place.l3 >= 0)
            fprintf(to, " share cache %d", place.l3);
        fprintf(to, "\n");
        last = place;
    }
}

static void print_devices(const struct topology *topology, FILE *to)
{
    if (topology->devices)
        fprintf(to, "  devices\n");
    for (int i = 0; i < topology->devices; i++) {
        const struct topology_device *device = &topology->device[i];

        fprintf(to, "    %-4s %-14s %-12s", topology_device_kind_name(device->kind), device->name,
                device->pci[0] ? device->pci : "virtual");
        if (device->numa >= 0)
            fprintf(to, "  NUMA node %d", device->numa);
        if (device->link_GBps > 0)
            fprintf(to, "  PCI link %.1f GB/s", device->link_GBps);
        fprintf(to, "\n");
    }
}

/* One line of the legend, unless an earlier pair has the same code. */
static void print_meaning(const struct topology *topology, int pair, FILE *to)
{
    const struct topology_link *link = &topology->link[pair];
    char code[16], other[16], words[64];

    topology_link_code(link, code, sizeof(code));
    for (int i = 0; i < pair; i++) {
        topology_link_code(&topology->link[i], other, sizeof(other));
        if (!strcmp(code, other) && topology->link[i].GBps == link->GBps)
            return;
    }
    topology_link_describe(link, words, sizeof(words));
    fprintf(to, "    %-5s %s", code, words);
    if (link->GBps > 0)
        fprintf(to, ", %.0f GB/s one way", link->GBps);
    fprintf(to, "\n");
}

static void print_links(const struct topology *topology, FILE *to)
{
    int gpus = topology->linked;

    if (!topology->link || gpus < 2)
        return;
    fprintf(to, "  links between GPUs, by %s\n    GPU  ", topology->link_source);
    for (int b = 0; b < gpus; b++)
        fprintf(to, " %-4d", b);
    for (int a = 0; a < gpus; a++) {
        fprintf(to, "\n    %-4d ", a);
        for (int b = 0; b < gpus; b++) {
            char code[16];

            topology_link_code(topology_link(topology, a, b), code, sizeof(code));
            fprintf(to, " %-4s", code);
        }
    }
    fprintf(to, "\n");
    for (int pair = 1; pair < gpus * gpus; pair++)
        if (topology->link[pair].kind != TOPOLOGY_LINK_SAME || pair % (gpus + 1))
            print_meaning(topology, pair, to);
}

void topology_print(const struct topology *topology, FILE *to)
{
    print_summary(topology, to);
    print_cores(topology, to);
    print_devices(topology, to);
    print_links(topology, to);
}
