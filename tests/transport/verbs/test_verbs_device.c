/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_verbs_device.c - memory of a GPU and adapters: they are tried with each other before, and
 * messages go from device to device over an adapter that takes every freedom, or by way of the host
 * where there is no room.
 */
#include "base/fail.h"
#include "tests/transport/verbs/fake_device.h"
#include "tests/transport/verbs/fake_verbs.h"
#include "tests/transport/verbs/verbs_nodes.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

enum { SOME = 40 };

static void begin(void)
{
    fake_verbs_open(2);
    fake_device = (struct fake_device){0};
}

static void end(void)
{
    fake.moves_when_polled = 1000;
    nodes_close();
    cr_expect_eq(fake.living, 0, "%d objects of the adapter are lost", fake.living);
    cr_expect_eq(fake_device.living, 0, "%d pieces of the device are lost", fake_device.living);
    fake_verbs_close();
}

TestSuite(verbs_device, .init = begin, .fini = end);

/* ---- Trying ---------------------------------------------------------------------------------- */

static enum device_way try_as(const char *wanted)
{
    struct network *network;
    struct verbs_endpoint endpoint;
    const struct network_wish wish = {.rank = 0};
    enum device_way way;

    cr_assert(verbs_transport.open(&wish, &endpoint, &network) == RONDO_OK, "%s", fail_sentence());
    nodes[0] = (struct node){.network = network}; /* closed at the end */
    way = verbs_try_device(network, &fake_device_source, wanted);
    network->ops->close(network);
    nodes[0].network = NULL;
    return way;
}

Test(verbs_device, adapters_that_write_what_they_should_are_used)
{
    fake.moves_when_polled = 100000;
    cr_expect_eq(try_as("auto"), DEVICE_DMABUF);
    cr_expect_eq(try_as("dmabuf"), DEVICE_DMABUF);
    cr_expect_gt(fake.writes, 2 * 2 * 6);
}

Test(verbs_device, what_was_found_is_remembered_while_the_port_is_open)
{
    struct network *network;
    struct verbs_endpoint endpoint;
    const struct network_wish wish = {.rank = 0};
    unsigned long writes;

    fake.moves_when_polled = 100000;
    cr_assert(verbs_transport.open(&wish, &endpoint, &network) == RONDO_OK);
    cr_expect_eq(verbs_try_device(network, &fake_device_source, "auto"), DEVICE_DMABUF);
    writes = fake.writes;
    cr_expect_eq(verbs_try_device(network, &fake_device_source, "auto"), DEVICE_DMABUF);
    cr_expect_eq(fake.writes, writes);
    network->ops->close(network);
}

Test(verbs_device, an_adapter_whose_writes_get_lost_is_not_used)
{
    fake.moves_when_polled = 100000;
    fake.astray = true;
    cr_expect_eq(try_as("auto"), DEVICE_STAGED);
    cr_expect(strstr(fail_sentence(), "into the device is wrong"), "%s", fail_sentence());
}

Test(verbs_device, an_adapter_that_does_not_write_is_given_up)
{
    cr_expect_eq(try_as("dmabuf"), DEVICE_STAGED);
    cr_expect(strstr(fail_sentence(), "took more than 2 s"), "%s", fail_sentence());
}

Test(verbs_device, an_adapter_whose_writes_fail_is_not_used)
{
    fake.moves_when_polled = 100000;
    fake.fate = IBV_WC_RETRY_EXC_ERR;
    cr_expect_eq(try_as("auto"), DEVICE_STAGED);
    cr_expect(strstr(fail_sentence(), "retry counter"), "%s", fail_sentence());
}

Test(verbs_device, an_adapter_without_dmabuf_is_not_used)
{
    fake.moves_when_polled = 100000;
    fake.no_dmabuf = true;
    cr_expect_eq(try_as("dmabuf"), DEVICE_STAGED);
    cr_expect(strstr(fail_sentence(), "knows no dmabuf"), "%s", fail_sentence());
    cr_expect_eq(fake.writes, 0);
}

Test(verbs_device, an_adapter_that_refuses_device_memory_is_not_used)
{
    fake.dmabuf_room = 0;
    cr_expect_eq(try_as("dmabuf"), DEVICE_STAGED);
    cr_expect(strstr(fail_sentence(), "refused 262144 bytes"), "%s", fail_sentence());
}

Test(verbs_device, a_device_that_is_full_is_not_used)
{
    fake_device.full = true;
    cr_expect_eq(try_as("dmabuf"), DEVICE_STAGED);
    cr_expect(strstr(fail_sentence(), "the device is full"), "%s", fail_sentence());
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void open_nodes(const struct device_source *device)
{
    nodes_device = device;
    cr_assert(nodes_open() == RONDO_OK, "%s", fail_sentence());
}

static bool all_received(void)
{
    for (int to = 0; to < NODES; to++)
        for (int channel = 0; channel < NODE_CHANNELS; channel++)
            for (int from = 0; from < NODES; from++)
                if (from != to && nodes[to].in[channel * NODES + from].received != SOME)
                    return false;
    return true;
}

/* On every channel of every pair; on the second one they are the host's. */
static void exchange(int round)
{
    for (int from = 0; from < NODES; from++)
        for (int to = 0; to < NODES; to++) {
            if (from == to)
                continue;
            if (nodes[from].out[to].sent < SOME)
                node_send_device(from, to, 0);
            if (nodes[from].out[NODES + to].sent < SOME)
                node_send(from, to, 1);
            cr_assert(node_receive_device(to, from, 0) >= 0, "round %d: a device's", round);
            cr_assert(node_receive(to, from, 1) >= 0, "round %d: a host's", round);
        }
}

static void exchange_all(void)
{
    for (int round = 0; round < 100000 && !all_received(); round++) {
        exchange(round);
        cr_assert(nodes_deliver() == RONDO_OK, "%s", fail_sentence());
        cr_assert(nodes_progress() == RONDO_OK, "%s", fail_sentence());
        fake_verbs_move(round % 40);
    }
    cr_assert(all_received(), "messages are missing");
}

Test(verbs_device, messages_go_from_device_to_device_beside_those_of_the_host)
{
    open_nodes(&fake_device_source);
    exchange_all();
    for (int from = 0; from < NODES; from++)
        for (int to = 0; to < NODES; to++)
            cr_expect(from == to || node_has_device(from, to, 0), "from %d to %d", from, to);
    cr_expect_eq(fake_device.living, NODES * (NODES - 1));
}

Test(verbs_device, pairs_for_which_there_is_no_room_use_slots_of_the_host)
{
    int with = 0;

    open_nodes(&fake_device_source);
    /* Two boxes on two rails, for four of the six sides: both of one pair at least. */
    fake.dmabuf_room = 4 * 2 * 2 * (size_t)NODE_CHANNELS * NODE_SLOTS * (NODE_SLOT_BYTES + 4096);
    exchange_all();
    for (int from = 0; from < NODES; from++)
        for (int to = 0; to < NODES; to++) {
            if (from == to)
                continue;
            cr_expect_eq(node_has_device(from, to, 0), node_has_device(to, from, 0));
            with += node_has_device(from, to, 0);
        }
    cr_expect(with > 0 && with < NODES * (NODES - 1), "%d rings are of a device", with);
}

Test(verbs_device, a_device_that_is_full_is_not_written_to)
{
    open_nodes(&fake_device_source);
    fake_device.full = true;
    exchange_all();
    cr_expect(!node_has_device(0, 1, 0));
}

Test(verbs_device, who_is_not_connected_has_no_device_memory)
{
    open_nodes(&fake_device_source);
    cr_expect(!node_send_device(0, 1, 0), "it is not known where");
    cr_expect_eq(fake_device.living, 0);
    cr_assert(nodes_progress() == RONDO_OK, "%s", fail_sentence());
    cr_expect_eq(fake_device.living, 1, "of the one that begins");
}
