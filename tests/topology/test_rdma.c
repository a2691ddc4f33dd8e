/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_rdma.c - RDMA ports from folders that look like /sys/class/infiniband: what soft-RoCE, RoCE
 * adapters in a container and InfiniBand adapters show there; and which GID is chosen of them.
 */
#include "topology/rdma.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[64];
static struct rdma_port *ports;
static int count;

static void begin(void)
{
    strcpy(root, "/tmp/rondo_rdma_XXXXXX");
    cr_assert_not_null(mkdtemp(root));
}

static void end(void)
{
    char command[96];

    rdma_list_free(ports, count);
    snprintf(command, sizeof(command), "rm -r %s", root);
    cr_expect_eq(system(command), 0);
}

TestSuite(rdma, .init = begin, .fini = end);

/* A file below the root, with the folders on its way. */
static void put(const char *device, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s/%s", root, device, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    file = fopen(path, "w");
    cr_assert_not_null(file, "%s", path);
    fputs(text, file);
    fclose(file);
}

static void put_gid(const char *device, int index, const char *gid, const char *type)
{
    char name[64];

    snprintf(name, sizeof(name), "ports/1/gids/%d", index);
    put(device, name, gid);
    if (type) {
        snprintf(name, sizeof(name), "ports/1/gid_attrs/types/%d", index);
        put(device, name, type);
    }
}

static void put_port(const char *device, const char *layer, const char *rate)
{
    put(device, "node_type", "1: CA\n");
    put(device, "ports/1/state", "4: ACTIVE\n");
    put(device, "ports/1/link_layer", layer);
    put(device, "ports/1/rate", rate);
}

/* The guest of tests/vm shows such a device. */
static void put_soft_roce(const char *device)
{
    put_port(device, "Ethernet\n", "2.5 Gb/sec (1X SDR)\n");
    put(device, "ports/1/gid_attrs/ndevs/0", "veth0\n");
    put_gid(device, 0, "fe80:0000:0000:0000:6032:55ff:feb6:5748\n", "RoCE v2\n");
    put_gid(device, 1, "0000:0000:0000:0000:0000:ffff:0a4d:0001\n", "RoCE v2\n");
    put_gid(device, 2, "0000:0000:0000:0000:0000:0000:0000:0000\n", "RoCE v2\n");
}

/* An adapter with both versions of RoCE and two addresses. */
static void put_roce(const char *device)
{
    put_port(device, "Ethernet\n", "100 Gb/sec (4X EDR)\n");
    put(device, "device/numa_node", "1\n");
    put_gid(device, 0, "fe80:0000:0000:0000:0ac0:ebff:fe12:3456\n", "IB/RoCE v1\n");
    put_gid(device, 1, "fe80:0000:0000:0000:0ac0:ebff:fe12:3456\n", "RoCE v2\n");
    put_gid(device, 2, "0000:0000:0000:0000:0000:ffff:c0a8:0105\n", "IB/RoCE v1\n");
    put_gid(device, 3, "0000:0000:0000:0000:0000:ffff:c0a8:0105\n", "RoCE v2\n");
    put_gid(device, 4, "fd00:0000:0000:0000:0000:0000:0000:0007\n", "IB/RoCE v1\n");
    put_gid(device, 5, "fd00:0000:0000:0000:0000:0000:0000:0007\n", "RoCE v2\n");
    put_gid(device, 6, "0000:0000:0000:0000:0000:ffff:0a01:0205\n", "RoCE v2\n");
}

static const struct rdma_gid *choose(int port, const char *text)
{
    struct rdma_range range;

    cr_assert(rdma_range_read(text, &range) == RONDO_OK, "%s", text);
    return rdma_choose_gid(&ports[port], &range);
}

static void list(int expected)
{
    cr_assert(rdma_list(root, &ports, &count) == RONDO_OK);
    cr_assert_eq(count, expected);
}

Test(rdma, a_machine_without_devices_has_an_empty_list)
{
    list(0);
    cr_assert(rdma_list("/nowhere/at/all", &ports, &count) == RONDO_OK);
    cr_expect_eq(count, 0);
}

Test(rdma, soft_roce_uses_its_ipv4_address)
{
    char text[64];

    put_soft_roce("rxe0");
    list(1);
    cr_expect_str_eq(ports[0].device, "rxe0");
    cr_expect_str_eq(ports[0].net, "veth0");
    cr_expect(ports[0].active && ports[0].ethernet && ports[0].number == 1);
    cr_expect_eq(ports[0].gbit, 2.5);
    cr_expect_eq(ports[0].numa, -1);
    cr_expect_eq(ports[0].gid_count, 2, "the entry that is not set is left out");
    cr_expect_eq(choose(0, "")->index, 1);
    rdma_gid_text(choose(0, ""), text, sizeof(text));
    cr_expect_str_eq(text, "10.77.0.1");
}

Test(rdma, roce_v2_goes_before_v1_and_ipv4_before_ipv6)
{
    put_roce("mlx5_0");
    list(1);
    cr_expect_eq(ports[0].gid_count, 7);
    cr_expect_eq(ports[0].numa, 1);
    cr_expect_eq(choose(0, "")->index, 3);
}

Test(rdma, a_range_decides_among_addresses)
{
    put_roce("mlx5_0");
    list(1);
    cr_expect_eq(choose(0, "10.0.0.0/8")->index, 6);
    cr_expect_eq(choose(0, "192.168.1.5")->index, 3);
    cr_expect_eq(choose(0, "fd00::/8")->index, 5);
    cr_expect_eq(choose(0, "fe80::/10")->index, 1);
    cr_expect_null(choose(0, "172.16.0.0/12"));
}

Test(rdma, entries_of_other_network_namespaces_are_skipped)
{
    put_port("mlx5_0", "Ethernet\n", "100 Gb/sec (4X EDR)\n");
    put_gid("mlx5_0", 0, "", NULL); /* read() fails there; here the file is empty */
    put_gid("mlx5_0", 1, "0000:0000:0000:0000:0000:ffff:c0a8:0105\n", NULL);
    put_gid("mlx5_0", 2, "0000:0000:0000:0000:0000:ffff:c0a8:0106\n", "RoCE v2\n");
    list(1);
    cr_expect_eq(ports[0].gid_count, 2);
    cr_expect_eq(choose(0, "")->index, 2);
}

Test(rdma, infiniband_takes_the_first_whatever_the_range)
{
    put_port("mlx4_0", "InfiniBand\n", "56 Gb/sec (4X FDR)\n");
    put_gid("mlx4_0", 0, "fe80:0000:0000:0000:f452:1403:0012:3451\n", NULL);
    put_gid("mlx4_0", 1, "fe80:0000:0000:0000:0000:0000:0000:0000\n", NULL);
    list(1);
    cr_expect(!ports[0].ethernet && ports[0].gid_count == 1);
    cr_expect_eq(choose(0, "10.0.0.0/8")->index, 0);
    cr_expect_eq(choose(0, "10.0.0.0/8")->type, RDMA_GID_INFINIBAND);
}

/* EFA, OmniPath, RoCE, siw and usNIC show these files. */
Test(rdma, only_infiniband_and_roce_have_reliable_connections)
{
    put_port("efa_0", "Unknown\n", "100 Gb/sec (4X EDR)\n");
    put("efa_0", "node_type", "7: unspecified\n");
    put_gid("efa_0", 0, "fe80:0000:0000:0000:0011:22ff:fe33:4455\n", NULL);
    put_port("hfi1_0", "InfiniBand\n", "100 Gb/sec (4X EDR)\n");
    put_port("odd_0", "Unknown\n", "100 Gb/sec (4X EDR)\n");
    put_roce("roce_0");
    put_port("siw_0", "Ethernet\n", "2.5 Gb/sec (1X SDR)\n");
    put("siw_0", "node_type", "4: RNIC\n");
    put_gid("siw_0", 0, "0250:5600:0001:0000:0000:0000:0000:0000\n", NULL);
    put_port("usnic_0", "Ethernet\n", "40 Gb/sec (4X QDR)\n");
    put("usnic_0", "node_type", "6: usNIC UDP\n");
    list(6);
    for (int i = 0; i < count; i++)
        cr_expect_eq(ports[i].reliable, i == 1 || i == 3, "%s", ports[i].device);
}

Test(rdma, ports_come_in_the_order_of_their_numbers)
{
    put_roce("mlx5_10");
    put_roce("mlx5_2");
    put("mlx5_2", "ports/2/state", "1: DOWN\n");
    list(3);
    cr_expect_str_eq(ports[0].device, "mlx5_2");
    cr_expect(ports[1].number == 2 && !ports[1].active && ports[1].gid_count == 0);
    cr_expect_str_eq(ports[2].device, "mlx5_10");
    cr_expect_null(choose(1, ""));
}

Test(rdma, what_is_no_range_is_refused_in_a_sentence)
{
    static const char *const wrong[] = {"10.0.0/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1",
                                        "eth0",     "fd00::/129",  "/8",        "10.0.0.0/8x"};
    struct rdma_range range;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        cr_expect(rdma_range_read(wrong[i], &range) == RONDO_ERROR_INVALID, "%s", wrong[i]);
}

Test(rdma, bits_of_a_range_need_not_fill_bytes)
{
    unsigned char in[16] = {[10] = 0xff, [11] = 0xff, [12] = 172, [13] = 31};
    unsigned char out[16] = {[10] = 0xff, [11] = 0xff, [12] = 172, [13] = 32};
    struct rdma_range range;

    cr_assert(rdma_range_read("172.16.0.0/12", &range) == RONDO_OK);
    cr_expect(rdma_range_has(&range, in));
    cr_expect(!rdma_range_has(&range, out));
}
