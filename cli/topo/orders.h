/* SPDX-License-Identifier: BSD-3-Clause */
/* orders.h - what `rondo topo` has found out, before it is shown as text or JSON. */
#ifndef RONDO_CLI_TOPO_ORDERS_H
#define RONDO_CLI_TOPO_ORDERS_H

#include "topology/topology.h"

/* A ring and a tree over the same points. */
struct topo_order {
    int count;
    int *ring;    /* points in order */
    int *parents; /* of the tree, -1: the root */
    int (*distance)(const void *context, int a, int b);
    const void *context;
};

struct topo_orders {
    const struct topology *topology;
    struct topology_place *places; /* of the ranks */
    struct topo_order ranks, gpus;
};

/* False: out of memory. */
bool topo_orders_open(const struct topology *topology, int ranks, struct topo_orders *ret_orders);
void topo_orders_close(struct topo_orders *orders);

void topo_orders_print(const struct topo_orders *orders, FILE *to);
/* "-" is stdout. False: it could not be written, and stderr says why. */
bool topo_orders_write_json(const struct topo_orders *orders, const char *file);

#endif
