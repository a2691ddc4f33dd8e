/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topology.c - a recorded machine that anybody may have written (topology/recording.c, and what is
 * made of it: places, orders, drawings). hwloc reads it in a process of its own, which is part of
 * what is tried, so there are hundreds of inputs per second, not thousands.
 */
#include "tests/fuzz/fuzz.h"

#include "topology/topology.h"

#include <stdlib.h>

/* Asks for all that `rondo topo` shows. */
static void look(const struct topology *topology)
{
    int devices = topology_devices(topology);
    char text[128];

    for (int i = 0; i < devices; i++) {
        const struct topology_device *device = topology_device_at(topology, i);

        fuzz_expect(topology_device_kind_name(device->kind), "a device is of a kind");
        for (int k = 0; k < devices; k++)
            topology_device_distance(topology, i, k);
        topology_nearest(topology, TOPOLOGY_RDMA, i);
    }
    for (int rank = 0; rank < 3; rank++) {
        struct topology_place place;

        topology_place(topology, rank, 3, &place);
        fuzz_expect(topology_place_distance(&place, &place) >= 0, "a distance is not negative");
    }
    for (int i = 0; i < 2; i++)
        if (topology_link(topology, 0, i))
            topology_link_describe(topology_link(topology, 0, i), text, sizeof(text));
    for (int level = 1; level < 4; level++)
        topology_cache_bytes(topology, level);
}

/* Does what `rondo topo` does with all that. */
static void show(const struct topology *topology)
{
    int devices = topology_devices(topology);
    int *order = calloc((size_t)devices + 1, sizeof(*order));
    FILE *nowhere = fopen("/dev/null", "w");

    fuzz_expect(order && nowhere, "there is memory");
    if (devices) {
        topology_ring(devices, topology_distance_of_devices, topology, order);
        topology_tree(devices, topology_distance_of_devices, topology, order);
    }
    topology_print(topology, nowhere);
    fuzz_expect(!topology_write_svg(topology, "/dev/null", 3), "a machine can be drawn");
    fuzz_expect(!topology_write_xml(topology, "/dev/null"), "a machine can be recorded");
    fclose(nowhere);
    free(order);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct topology *topology;

    if (topology_open(fuzz_file(bytes, count), &topology))
        return 0;
    fuzz_expect(topology_cores(topology) >= 0, "cores are not negative");
    (void)!topology_find_links(topology);
    look(topology);
    show(topology);
    topology_close(topology);
    return 0;
}
