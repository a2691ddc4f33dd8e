/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.c - `rondo topo --json`: the machine, its devices, the places of the ranks, rings and
 * trees.
 */
#include "cli/topo/orders.h"

#include "cli/common/json_file.h"

static json_t *numbers(const int *values, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_integer(values[i]));
    return list;
}

static json_t *machine_of(const struct topology *topology)
{
    json_t *caches = json_object();

    for (int level = 1; level <= 4; level++) {
        size_t bytes = topology_cache_bytes(topology, level);
        char name[16];

        snprintf(name, sizeof(name), "L%d", level);
        if (bytes)
            json_object_set_new(caches, name, json_integer((json_int_t)bytes));
    }
    return json_pack("{s:b,s:i,s:i,s:i,s:i,s:i,s:o}", "recorded", topology_is_recorded(topology),
                     "packages", topology_packages(topology), "numa_nodes",
                     topology_numa_nodes(topology), "cores", topology_cores(topology), "threads",
                     topology_threads(topology), "cpu_limit", topology_cpu_limit(topology),
                     "cache_bytes", caches);
}

static json_t *devices_of(const struct topology *topology)
{
    json_t *list = json_array();

    for (int i = 0; i < topology_devices(topology); i++) {
        const struct topology_device *device = topology_device_at(topology, i);

        json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:i,s:f}", "kind",
                                              topology_device_kind_name(device->kind), "name",
                                              device->name, "pci", device->pci, "numa",
                                              device->numa, "link_GBps", device->link_GBps));
    }
    return list;
}

static json_t *links_of(const struct topology *topology)
{
    json_t *list = json_array();
    int gpus = topology_gpus(topology);

    for (int a = 0; a < gpus; a++)
        for (int b = a + 1; b < gpus; b++) {
            const struct topology_link *link = topology_link(topology, a, b);
            char words[64];

            if (!link)
                continue;
            topology_link_describe(link, words, sizeof(words));
            json_array_append_new(list,
                                  json_pack("{s:i,s:i,s:s,s:i,s:f}", "from", a, "to", b, "kind",
                                            words, "lanes", link->lanes, "GBps", link->GBps));
        }
    return list;
}

static json_t *places_of(const struct topo_orders *orders)
{
    json_t *list = json_array();

    for (int rank = 0; rank < orders->ranks.count; rank++) {
        const struct topology_place *place = &orders->places[rank];

        json_array_append_new(list, json_pack("{s:i,s:i,s:i,s:i,s:i,s:b}", "rank", rank, "core",
                                              place->core, "cache", place->l3, "numa", place->numa,
                                              "package", place->package, "shared", place->shared));
    }
    return list;
}

static json_t *order_of(const struct topo_order *order)
{
    return json_pack("{s:o,s:o}", "ring", numbers(order->ring, order->count), "parents",
                     numbers(order->parents, order->count));
}

bool topo_orders_write_json(const struct topo_orders *orders, const char *file)
{
    json_t *all = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "machine", machine_of(orders->topology),
                            "devices", devices_of(orders->topology), "links",
                            links_of(orders->topology), "places", places_of(orders), "ranks",
                            order_of(&orders->ranks), "gpus", order_of(&orders->gpus));

    return json_file_write("rondo topo", file, all);
}
