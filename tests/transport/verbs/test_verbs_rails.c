/* SPDX-License-Identifier: BSD-3-Clause */
/* test_verbs_rails.c - which ports are rails, with which of the peer's each is paired. */
#include "base/fail.h"
#include "tests/transport/verbs/fake_verbs.h"
#include "transport/verbs/inside.h"
#include "transport/verbs/open.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct verbs_rails rails;

/* ---- Rails ----------------------------------------------------------------------------------- */

static struct rdma_gid gids[3] = {
    {{[10] = 0xff, [11] = 0xff, [12] = 10, 1, 0, 1}, 0, RDMA_GID_ROCE_V2},
    {{[10] = 0xff, [11] = 0xff, [12] = 10, 2, 0, 1}, 0, RDMA_GID_ROCE_V2},
    {{[10] = 0xff, [11] = 0xff, [12] = 192, 168, 0, 1}, 0, RDMA_GID_ROCE_V2}};
static const struct rdma_port ports[] = {
    {"mlx5_0", "eth0", 1, true, true, true, false, 100, 0, 1, &gids[0]},
    {"mlx5_0", "eth1", 2, true, true, true, false, 100, 0, 1, &gids[1]},
    {"mlx5_1", "eth2", 1, true, true, true, false, 25, 1, 1, &gids[2]},
    {"mlx5_2", "eth3", 1, false, true, true, false, 25, 1, 0, NULL},
    {"siw0", "eth4", 1, true, true, false, false, 25, 1, 1, &gids[2]},
};
enum { PORTS = sizeof(ports) / sizeof(ports[0]) };

static int choose(const char *names, const char *range, const struct rdma_port **chosen)
{
    struct rdma_range wanted;
    int count = 0;

    cr_assert(rdma_range_read(range, &wanted) == RONDO_OK);
    return verbs_rails_choose(ports, PORTS, names, &wanted, chosen, &count) ? -1 : count;
}

Test(rails, all_active_ports_are_rails)
{
    const struct rdma_port *chosen[VERBS_PORTS];

    cr_assert_eq(choose("", "", chosen), 3);
    cr_expect(chosen[0] == &ports[0] && chosen[1] == &ports[1] && chosen[2] == &ports[2]);
}

Test(rails, a_range_leaves_ports_of_other_networks_out)
{
    const struct rdma_port *chosen[VERBS_PORTS];

    cr_assert_eq(choose("", "192.168.0.0/16", chosen), 1);
    cr_expect_eq(chosen[0], &ports[2]);
    cr_assert_eq(choose("", "10.0.0.0/8", chosen), 2);
}

Test(rails, names_choose_ports_and_their_order)
{
    const struct rdma_port *chosen[VERBS_PORTS];

    cr_assert_eq(choose("mlx5_1,mlx5_0:2", "", chosen), 2);
    cr_expect(chosen[0] == &ports[2] && chosen[1] == &ports[1]);
    cr_assert_eq(choose("mlx5_0", "", chosen), 2, "both ports of it");
}

Test(rails, of_more_names_than_rails_the_first_ones_are_used)
{
    const struct rdma_port *chosen[VERBS_PORTS];

    cr_assert_eq(choose("mlx5_1,mlx5_0:2,mlx5_1,mlx5_0:1,mlx5_0:2", "", chosen), 4);
    cr_expect(chosen[0] == &ports[2] && chosen[3] == &ports[0]);
    cr_assert_eq(choose("mlx5_1,mlx5_1,mlx5_0,mlx5_1", "", chosen), 4);
    cr_expect_eq(choose("mlx5_0,mlx5_0,mlx5_2", "", chosen), -1, "a wrong name is one anywhere");
}

Test(rails, what_cannot_be_used_is_named)
{
    const struct rdma_port *chosen[VERBS_PORTS];
    struct rdma_range all = {.bits = 0};
    int count = 0;

    cr_expect_eq(choose("mlx5_1,mlx5_2", "", chosen), -1);
    cr_expect_not_null(strstr(fail_sentence(), "'mlx5_2'"), "%s", fail_sentence());
    cr_expect_eq(choose("siw0", "", chosen), -1, "it has no reliable connections");
    cr_expect_eq(choose("mlx5", "", chosen), -1, "the beginning of a name is no name");
    cr_expect_eq(choose("", "172.16.0.0/12", chosen), -1);
    cr_expect(verbs_rails_choose(NULL, 0, "", &all, chosen, &count) == RONDO_ERROR_UNSUPPORTED);
    cr_expect_not_null(strstr(fail_sentence(), "no RDMA device"), "%s", fail_sentence());
}

Test(rails, a_port_without_queues_is_not_opened)
{
    fake_verbs_open(1);
    fake.fail_queues = true;
    cr_expect(verbs_rails_open(&rails) != RONDO_OK);
    cr_expect_not_null(strstr(fail_sentence(), "fake0 port 1 has no queue pair"), "%s",
                       fail_sentence());
    cr_expect_eq(fake.living, 0);
    fake_verbs_close();
}

Test(rails, ports_that_cannot_be_opened_are_left_out)
{
    fake_verbs_open(6);
    fake.closed = 1 << 0 | 1 << 2;
    cr_assert(verbs_rails_open(&rails) == RONDO_OK, "%s", fail_sentence());
    cr_assert_eq(rails.count, 4);
    cr_expect_str_eq(rails.device[0]->name, "fake1");
    cr_expect_str_eq(rails.device[3]->name, "fake5");
    verbs_rails_close();
    cr_expect_eq(fake.living, 0);
    fake.closed = 63;
    cr_expect(verbs_rails_open(&rails) != RONDO_OK);
    cr_expect_not_null(strstr(fail_sentence(), "Cannot open fake5"), "%s", fail_sentence());
    fake_verbs_close();
}

Test(rails, are_opened_after_the_process_was_prepared_for_forks)
{
    fake_verbs_open(1);
    cr_assert(verbs_rails_open(&rails) == RONDO_OK);
    cr_expect_eq(fake.prepared, 1);
    verbs_rails_close();
    fake_verbs_close();
}

Test(rails, a_named_port_that_cannot_be_opened_is_an_error)
{
    fake_verbs_open(2);
    fake.closed = 1 << 1;
    setenv("RONDO_VERBS_DEVICES", "fake0,fake1", 1);
    cr_expect(verbs_rails_open(&rails) != RONDO_OK);
    cr_expect_not_null(strstr(fail_sentence(), "Cannot open fake1"), "%s", fail_sentence());
    cr_expect_eq(fake.living, 0);
    fake_verbs_close();
}

/* The name of the only rail that another communicator gets; "": none. */
static const char *only_rail(void)
{
    struct verbs_rails again = {0};

    if (verbs_rails_open(&again))
        return "";
    verbs_rails_close();
    return again.count == 1 ? again.device[0]->name : "several";
}

Test(queues, carry_as_much_inline_as_the_adapter_takes)
{
    static const unsigned most[] = {1024, 100, 64, 63}, expected[] = {VERBS_INLINE, 96, 64, 0};
    struct verbs_queue queue;

    fake_verbs_open(1);
    cr_assert(verbs_rails_open(&rails) == RONDO_OK);
    for (int i = 0; i < 4; i++) {
        fake.inlined = most[i];
        cr_assert(verbs_queue_open(rails.device[0], 4, 4, &queue) == RONDO_OK);
        cr_expect_eq(queue.inlined, expected[i]);
        verbs_queue_close(&queue);
    }
    verbs_rails_close();
    fake_verbs_close();
}

Test(queues, one_that_was_silent_for_too_long_says_so_though_it_was_stopped)
{
    struct verbs_queue queue = {.mute = true, .silent = 4, .status = IBV_WC_WR_FLUSH_ERR};
    char text[512];

    fake_verbs_open(1);
    cr_assert(verbs_rails_open(&rails) == RONDO_OK);
    queue.device = rails.device[0];
    verbs_queue_describe(&queue, text, sizeof(text));
    cr_expect_not_null(strstr(text, "nothing was acknowledged for 4.0 s"), "%s", text);
    verbs_rails_close();
    fake_verbs_close();
}

Test(rails, a_new_communicator_gets_ports_that_are_well)
{
    fake_verbs_open(2);
    cr_assert(verbs_rails_open(&rails) == RONDO_OK && rails.count == 2);
    cr_expect_str_eq(only_rail(), "several");
    fake.down = 1;
    cr_expect_str_eq(only_rail(), "fake1");
    fake.moved = 2;
    cr_expect_str_eq(only_rail(), "");
    fake.down = fake.moved = 0;
    cr_expect_str_eq(only_rail(), "several");
    fake.events = 1;
    fake.event = IBV_EVENT_DEVICE_FATAL;
    cr_expect_str_eq(only_rail(), "fake1", "the first is unusable for good,");
    verbs_rails_close();
    cr_expect_str_eq(only_rail(), "several", "but may be opened anew");
    fake.down = 3;
    cr_expect_str_eq(only_rail(), "");
    cr_expect_eq(fake.living, 0);
    fake_verbs_close();
}

Test(rails, an_event_of_the_port_is_remembered_and_a_fatal_one_ends_its_use)
{
    char text[256];

    fake_verbs_open(1);
    cr_assert(verbs_rails_open(&rails) == RONDO_OK);
    fake.events = 1;
    fake.event = IBV_EVENT_PORT_ERR;
    cr_expect(verbs_device_check(rails.device[0]) == RONDO_OK, "cables come back");
    verbs_device_describe(rails.device[0], text, sizeof(text));
    cr_expect_str_eq(text, "fake0 port 1 (10.77.0.1), which says: port error");
    fake.events = 1;
    fake.event = IBV_EVENT_GID_CHANGE;
    cr_expect(verbs_device_check(rails.device[0]) == RONDO_OK);
    verbs_device_describe(rails.device[0], text, sizeof(text));
    cr_expect_str_eq(text, "fake0 port 1 (10.77.0.1), which says: port error");
    fake.events = 1;
    fake.event = IBV_EVENT_PORT_ACTIVE;
    fake.event_port = 2;
    cr_expect(verbs_device_check(rails.device[0]) == RONDO_OK);
    verbs_device_describe(rails.device[0], text, sizeof(text));
    cr_expect_str_eq(text, "fake0 port 1 (10.77.0.1), which says: port error", "not port 2");
    fake.events = 1;
    fake.event_port = 1;
    cr_expect(verbs_device_check(rails.device[0]) == RONDO_OK);
    verbs_device_describe(rails.device[0], text, sizeof(text));
    cr_expect_str_eq(text, "fake0 port 1 (10.77.0.1)");
    fake.events = 1;
    fake.event = IBV_EVENT_DEVICE_FATAL;
    cr_expect(verbs_device_check(rails.device[0]) == RONDO_ERROR_SYSTEM);
    cr_expect_not_null(strstr(fail_sentence(), "local catastrophic error"), "%s", fail_sentence());
    verbs_rails_close();
    fake_verbs_close();
}

/* ---- Pairs of ports -------------------------------------------------------------------------- */

static struct verbs_port_endpoint ipv4(unsigned a, unsigned b, unsigned c, unsigned d)
{
    return (struct verbs_port_endpoint){.ethernet = 1,
                                        .gid = {[10] = 0xff,
                                                [11] = 0xff,
                                                (unsigned char)a,
                                                (unsigned char)b,
                                                (unsigned char)c,
                                                (unsigned char)d}};
}

static struct verbs_port_endpoint infiniband(unsigned char subnet, unsigned char serial)
{
    return (struct verbs_port_endpoint){.gid = {0xfe, 0x80, [7] = subnet, [15] = serial}};
}

/* Checks the pairs, which are written as "10 01": port 1 of the lower rank with 0 of the other. */
static void expect_pairs(const struct verbs_port_endpoint *low, int lows,
                         const struct verbs_port_endpoint *high, int highs, const char *expected)
{
    int pairs[VERBS_RAILS][2], count = verbs_meet_pairs(low, lows, high, highs, pairs);
    char text[64] = "";

    for (int i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d%d", i ? " " : "",
                 pairs[i][0], pairs[i][1]);
    cr_expect_str_eq(text, expected);
}

Test(pairs, are_of_the_ports_that_are_the_most_alike)
{
    const struct verbs_port_endpoint two[] = {ipv4(192, 168, 0, 1), ipv4(10, 1, 0, 1)};
    const struct verbs_port_endpoint one[] = {ipv4(10, 1, 0, 2)};
    const struct verbs_port_endpoint turned[] = {ipv4(10, 1, 0, 2), ipv4(192, 168, 0, 2)};
    const struct verbs_port_endpoint other[] = {infiniband(0, 1)};

    expect_pairs(two, 2, one, 1, "10");
    expect_pairs(one, 1, two, 2, "01");
    expect_pairs(two, 2, turned, 2, "01 10");
    expect_pairs(two, 2, other, 1, "");
}

Test(pairs, of_ports_that_are_equally_alike_are_in_their_order)
{
    const struct verbs_port_endpoint here[] = {ipv4(10, 0, 1, 1), ipv4(10, 0, 2, 1)};
    const struct verbs_port_endpoint there[] = {ipv4(10, 9, 1, 1), ipv4(10, 9, 2, 1)};

    expect_pairs(here, 2, there, 2, "00 11");
}

Test(pairs, on_infiniband_are_of_the_same_subnet_whatever_the_serial_numbers)
{
    const struct verbs_port_endpoint here[] = {infiniband(1, 8), infiniband(1, 4)};
    const struct verbs_port_endpoint there[] = {infiniband(1, 5), infiniband(1, 9)};
    const struct verbs_port_endpoint two[] = {infiniband(2, 5), infiniband(1, 9)};

    expect_pairs(here, 2, there, 2, "00 11");
    expect_pairs(here, 2, two, 2, "01 10");
}

/* ---- InfiniBand ------------------------------------------------------------------------------ */

/* True if packets to that peer, from a port of InfiniBand, carry GIDs. */
static bool is_global(const struct verbs_port_endpoint *peer)
{
    const struct rdma_port port = {.device = "fake0", .number = 1};
    const struct rdma_gid gid = {.raw = {0xfe, 0x80, [7] = 1, [15] = 7}};
    struct verbs_device *device;
    struct verbs_queue queue;
    const struct verbs_calls *calls;
    unsigned long before = fake.global;

    cr_assert(verbs_load(&calls) == RONDO_OK);
    cr_assert(verbs_device_open(calls, &port, &gid, &device) == RONDO_OK, "%s", fail_sentence());
    cr_assert(verbs_queue_open(device, 4, 4, &queue) == RONDO_OK, "%s", fail_sentence());
    cr_assert(verbs_queue_connect(&queue, peer) == RONDO_OK, "%s", fail_sentence());
    verbs_queue_close(&queue);
    verbs_device_close(device);
    return fake.global > before;
}

Test(infiniband, packets_carry_gids_to_other_subnets_and_where_the_port_wants_them)
{
    const struct verbs_port_endpoint near = infiniband(1, 5), far = infiniband(2, 5);

    fake_verbs_open(1);
    cr_expect(!is_global(&near));
    cr_expect(is_global(&far));
    fake.routed = true;
    cr_expect(is_global(&near));
    cr_expect_eq(fake.partition, 1, "the first of which the port is a full member");
    fake_verbs_close();
}
