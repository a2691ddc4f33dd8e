/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma.h - RDMA ports of this machine as sysfs describes them, and which address (GID) of a port
 * ranks should use. Needs no RDMA library, so that it can be told what is missing where there is
 * none, and that recorded machines can be tested.
 *
 * On Ethernet (RoCE) a port has many GIDs: per IP address of its interface one for RoCE v1, which
 * no router passes, and one for RoCE v2. Two ports understand each other if both use v2 and their
 * addresses can reach each other.
 */
#ifndef RONDO_TOPOLOGY_RDMA_H
#define RONDO_TOPOLOGY_RDMA_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stddef.h>

enum rdma_gid_type { RDMA_GID_INFINIBAND, RDMA_GID_ROCE_V1, RDMA_GID_ROCE_V2 };

struct rdma_gid {
    unsigned char raw[16]; /* an IPv6 address; ::ffff:a.b.c.d is the IPv4 address a.b.c.d */
    int index;
    enum rdma_gid_type type;
};

struct rdma_port {
    char device[64]; /* mlx5_0 */
    char net[32];    /* its network interface, "" if it has none */
    int number;      /* of the port, from 1 */
    bool active, ethernet;
    bool reliable; /* has reliable connections of InfiniBand or RoCE; iWARP, EFA and usNIC do not */
    bool soft;     /* no adapter: the kernel's processors do its work */
    double gbit;   /* per second, 0: not known */
    int numa;      /* node that it is wired to, -1: not known */
    int gid_count;
    struct rdma_gid *gids; /* those that are set */
};

/* A range of addresses: the first `bits` of `raw`. */
struct rdma_range {
    unsigned char raw[16];
    int bits;
};

/* All ports below `folder` (/sys/class/infiniband), by device and port; none is no error. */
rondo_result rdma_list(const char *folder, struct rdma_port **ret_ports, int *ret_count);
void rdma_list_free(struct rdma_port *ports, int count);

/* "10.1.0.0/16", "fd00::/8", an address alone, or "" for everything. */
rondo_result rdma_range_read(const char *text, struct rdma_range *ret_range);
bool rdma_range_has(const struct rdma_range *range, const unsigned char raw[16]);

/*
 * The GID to use: the first on InfiniBand; on Ethernet one in the range, v2 before v1, IPv4 before
 * IPv6 before link-local, the lowest index of equals. NULL: none is in the range.
 */
const struct rdma_gid *rdma_choose_gid(const struct rdma_port *port,
                                       const struct rdma_range *range);
/* Writes a GID as people do: "10.1.2.3" or "fe80::1". */
void rdma_gid_text(const struct rdma_gid *gid, char *text, size_t room);

#endif
