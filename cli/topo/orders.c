/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * orders.c - `rondo topo`: the ring and the tree over the ranks and over the GPUs, computed
 * and shown as text.
 */
#include "cli/topo/orders.h"

#include <stdlib.h>

static bool order_open(struct topo_order *order, int count,
                       int (*distance)(const void *context, int a, int b), const void *context)
{
    size_t room = count > 0 ? (size_t)count : 1;

    *order = (struct topo_order){.count = count, .distance = distance, .context = context};
    order->ring = calloc(room, sizeof(*order->ring));
    order->parents = calloc(room, sizeof(*order->parents));
    if (!order->ring || !order->parents)
        return false;
    topology_ring(count, distance, context, order->ring);
    topology_tree(count, distance, context, order->parents);
    return true;
}

bool topo_orders_open(const struct topology *topology, int ranks, struct topo_orders *ret_orders)
{
    struct topo_orders orders = {.topology = topology};

    orders.places = calloc((size_t)ranks, sizeof(*orders.places));
    if (!orders.places)
        return false;
    for (int rank = 0; rank < ranks; rank++)
        topology_place(topology, rank, ranks, &orders.places[rank]);
    if (!order_open(&orders.ranks, ranks, topology_distance_of_places, orders.places) ||
        !order_open(&orders.gpus, topology_gpus(topology), topology_distance_of_devices,
                    topology)) {
        topo_orders_close(&orders);
        return false;
    }
    *ret_orders = orders;
    return true;
}

void topo_orders_close(struct topo_orders *orders)
{
    free(orders->places);
    free(orders->ranks.ring);
    free(orders->ranks.parents);
    free(orders->gpus.ring);
    free(orders->gpus.parents);
}

/* ---- Text ------------------------------------------------------------------------------------ */

static void print_run(int first, int last, FILE *to)
{
    if (first == last)
        fprintf(to, "%d", first);
    else
        fprintf(to, "%d%s%d", first, last == first + 1 ? " " : "..", last);
}

static bool same_box(const struct topology_place *a, const struct topology_place *b)
{
    return a->package == b->package && a->numa == b->numa && a->l3 == b->l3;
}

/* One line per run of ranks on neighbouring cores of one cache. */
static void print_places(const struct topo_orders *orders, FILE *to)
{
    const struct topology_place *places = orders->places;
    int count = orders->ranks.count;

    fprintf(to, "%d rank%s%s\n", count, count == 1 ? "" : "s",
            places[0].shared ? ", more than cores: they share them and are not bound" : "");
    for (int first = 0, next; first < count; first = next) {
        for (next = first + 1; next < count; next++)
            if (!same_box(&places[first], &places[next]) ||
                places[next].core != places[next - 1].core + 1)
                break;
        fprintf(to, "  %s ", next - first == 1 ? "rank " : "ranks");
        print_run(first, next - 1, to);
        fprintf(to, " on %s ", next - first == 1 ? "core " : "cores");
        print_run(places[first].core, places[next - 1].core, to);
        if (places[first].l3 >= 0)
            fprintf(to, ", cache %d", places[first].l3);
        if (places[first].numa >= 0)
            fprintf(to, ", NUMA node %d", places[first].numa);
        if (places[first].package >= 0)
            fprintf(to, ", package %d", places[first].package);
        fprintf(to, "\n");
    }
}

static void print_links(const int *links, FILE *to)
{
    static const char *const names[] = {"on the same core",
                                        "by NVLink",
                                        "under one cache or switch",
                                        "in one NUMA node or under one host bridge",
                                        "in one package",
                                        "across packages"};
    const char *between = "    links: ";

    for (int d = 0; d <= TOPOLOGY_MACHINE; d++)
        if (links[d]) {
            fprintf(to, "%s%d %s", between, links[d], names[d]);
            between = ", ";
        }
    fprintf(to, "\n");
}

/* Runs of consecutive points are written 0..7; a bar stands where the ring changes packages. */
static void print_ring(const struct topo_order *order, FILE *to)
{
    int links[TOPOLOGY_MACHINE + 1] = {0};

    fprintf(to, "  ring ");
    for (int first = 0, next; first < order->count; first = next) {
        int distance = 0;

        for (next = first + 1; next <= order->count; next++) {
            int a = order->ring[next - 1], b = order->ring[next % order->count];

            distance = order->distance(order->context, a, b);
            links[distance]++;
            if (next == order->count || distance == TOPOLOGY_MACHINE || b != a + 1)
                break;
        }
        fprintf(to, " ");
        print_run(order->ring[first], order->ring[next - 1], to);
        if (distance == TOPOLOGY_MACHINE)
            fprintf(to, " |");
    }
    fprintf(to, " %d\n", order->ring[0]);
    print_links(links, to);
}

static bool has_children(const struct topo_order *order, int node)
{
    for (int i = node + 1; i < order->count; i++)
        if (order->parents[i] == node)
            return true;
    return false;
}

/* Leaves first, in runs on one line; then each child that has children, with its own below. */
static void print_tree(const struct topo_order *order, int node, int depth, FILE *to)
{
    bool any = false;

    fprintf(to, depth ? "%*s%d" : "%*s %d", depth ? 9 + 4 * depth : 8, depth ? "" : "  tree  ",
            node);
    for (int i = node + 1, last; i < order->count; i = last + 1) {
        last = i;
        if (order->parents[i] != node || has_children(order, i))
            continue;
        while (last + 1 < order->count && order->parents[last + 1] == node &&
               !has_children(order, last + 1))
            last++;
        fprintf(to, any ? ", " : " - ");
        print_run(i, last, to);
        any = true;
    }
    fprintf(to, "\n");
    for (int i = node + 1; i < order->count; i++)
        if (order->parents[i] == node && has_children(order, i))
            print_tree(order, i, depth + 1, to);
}

static void print_tree_links(const struct topo_order *order, FILE *to)
{
    int links[TOPOLOGY_MACHINE + 1] = {0};

    for (int i = 1; i < order->count; i++)
        links[order->distance(order->context, i, order->parents[i])]++;
    print_links(links, to);
}

static void print_nearest(const struct topo_orders *orders, FILE *to)
{
    for (int gpu = 0; gpu < orders->gpus.count; gpu++) {
        int nic = topology_nearest(orders->topology, TOPOLOGY_RDMA, gpu);
        const struct topology_device *device;

        if (nic < 0)
            nic = topology_nearest(orders->topology, TOPOLOGY_NIC, gpu);
        if (nic < 0)
            continue;
        device = topology_device_at(orders->topology, nic);
        fprintf(to, "  GPU %d (%s) reaches the network through %s\n", gpu,
                topology_device_at(orders->topology, gpu)->name, device->name);
    }
}

void topo_orders_print(const struct topo_orders *orders, FILE *to)
{
    print_places(orders, to);
    if (orders->ranks.count > 1) {
        print_ring(&orders->ranks, to);
        print_tree(&orders->ranks, 0, 0, to);
        print_tree_links(&orders->ranks, to);
    }
    if (orders->gpus.count) {
        fprintf(to, "%d GPU%s\n", orders->gpus.count, orders->gpus.count == 1 ? "" : "s");
        print_nearest(orders, to);
    }
    if (orders->gpus.count > 1) {
        print_ring(&orders->gpus, to);
        print_tree(&orders->gpus, 0, 0, to);
        print_tree_links(&orders->gpus, to);
    }
}
