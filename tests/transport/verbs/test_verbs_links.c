/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_verbs_links.c - the RDMA transport over an adapter that takes every freedom: writes arrive
 * in any order and in pieces, notes late; adapters fail; memory cannot be registered.
 */
#include "base/clock.h"
#include "tests/transport/verbs/fake_verbs.h"
#include "tests/transport/verbs/verbs_nodes.h"
#include "transport/memory/heap.h"
#include "transport/verbs/cell.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void open_with(int devices)
{
    fake_verbs_open(devices);
    cr_assert(nodes_open() == RONDO_OK, "%s", fail_sentence());
}

static void begin(void)
{
    open_with(1);
}

static void end(void)
{
    fake.moves_when_polled = 1000;
    nodes_close();
    cr_expect_eq(fake.living, 0, "%d objects of the adapter are lost", fake.living);
    cr_expect_null(heap_base(), "memory of the heap is lost");
    fake_verbs_close();
}

static unsigned draw(unsigned below)
{
    static uint64_t state = 3;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

/* One send and one receive on a random channel between random ranks; false: something was wrong. */
static bool exchange(int limit)
{
    int from = (int)draw(NODES), to = (from + 1 + (int)draw(NODES - 1)) % NODES;
    int channel = (int)draw(NODE_CHANNELS);

    if (nodes[from].out[channel * NODES + to].sent < (uint32_t)limit)
        node_send(from, to, channel);
    from = (int)draw(NODES);
    to = (from + 1 + (int)draw(NODES - 1)) % NODES;
    return node_receive(to, from, channel) >= 0;
}

static bool all_received(int limit)
{
    for (int to = 0; to < NODES; to++)
        for (int channel = 0; channel < NODE_CHANNELS; channel++)
            for (int from = 0; from < NODES; from++)
                if (from != to && nodes[to].in[channel * NODES + from].received != (uint32_t)limit)
                    return false;
    return true;
}

/* So many messages on every channel of every pair, in random order. */
static void exchange_many(int limit)
{
    for (int round = 0; round < 1000000 && !all_received(limit); round++) {
        cr_assert(exchange(limit), "round %d: a message is wrong", round);
        if (draw(20) == 0)
            cr_assert(nodes_deliver() == RONDO_OK, "%s", fail_sentence());
        if (draw(3) == 0)
            cr_assert(nodes_progress() == RONDO_OK, "%s", fail_sentence());
        fake_verbs_move((int)draw(12));
    }
    cr_assert(all_received(limit), "messages are missing");
    for (int rank = 0; rank < NODES; rank++)
        cr_expect(traffic_heard(rank));
}

/* Until all is joined and nothing is under way. */
static void settle(void)
{
    for (int i = 0; i < 8; i++) {
        cr_assert(nodes_deliver() == RONDO_OK, "%s", fail_sentence());
        cr_assert(nodes_progress() == RONDO_OK, "%s", fail_sentence());
        fake_verbs_settle();
    }
}

TestSuite(verbs_links, .init = begin, .fini = end);

Test(verbs_links, messages_arrive_whole_and_in_order_over_a_wire_without_order)
{
    exchange_many(60);
    cr_expect_gt(fake.out_of_order, 1000);
}

Test(verbs_links, an_adapter_without_inline_data_serves_as_well)
{
    fake.inlined = 0;
    exchange_many(30);
}

Test(verbs_links, messages_leave_from_memory_that_is_written_again)
{
    nodes_zcopy = true;
    fake.moves_when_polled = 1;
    exchange_many(48);
    nodes_zcopy = false;
}

Test(verbs_links, nothing_is_written_before_the_peer_can_receive)
{
    for (int i = 0; i < NODE_SLOTS; i++)
        cr_assert(node_send(0, 1, 0));
    cr_expect(!node_send(0, 1, 0), "all slots are full");
    cr_assert(nodes_progress() == RONDO_OK);
    cr_expect_eq(fake.writes, 0);
    cr_expect(!nodes[0].network->ops->flushed(nodes[0].network, NULL));
    settle();
    cr_expect(nodes[0].network->ops->flushed(nodes[0].network, NULL));
    for (int i = 0; i < NODE_SLOTS; i++)
        cr_expect_eq(node_receive(1, 0, 0), 1);
}

Test(verbs_links, both_may_begin_at_once)
{
    cr_assert(node_send(0, 1, 0) && node_send(1, 0, 1));
    cr_assert(nodes_progress() == RONDO_OK);
    settle();
    cr_expect_eq(node_receive(1, 0, 0), 1);
    cr_expect_eq(node_receive(0, 1, 1), 1);
}

Test(verbs_links, who_says_nothing_is_not_connected_and_nothing_is_pinned)
{
    cr_assert(node_send(0, 1, 0));
    settle();
    cr_expect_eq(fake.registered, 6, "three ranges on each side of one pair, but %d",
                 fake.registered);
}

Test(verbs_links, slots_are_given_back_in_halves)
{
    unsigned long before;

    cr_assert(node_send(0, 1, 0));
    settle();
    before = fake.writes;
    cr_expect_eq(node_receive(1, 0, 0), 1);
    cr_expect_eq(fake.writes, before, "one of four is kept back");
    cr_assert(node_send(0, 1, 0));
    settle();
    cr_expect_eq(node_receive(1, 0, 0), 1);
    settle();
    cr_expect_eq(atomic_load_explicit(&nodes[0].out[1].credit->consumed, memory_order_acquire), 2);
}

/* ---- Several rails --------------------------------------------------------------------------- */

Test(verbs_rails, long_messages_are_spread_over_all_rails, .fini = end)
{
    open_with(3);
    exchange_many(48);
    cr_expect_gt(fake.immediates, fake.writes / 4);
}

Test(verbs_rails, memory_is_shown_to_all_rails, .fini = end)
{
    open_with(3);
    nodes_zcopy = true;
    fake.moves_when_polled = 1;
    exchange_many(48);
    nodes_zcopy = false;
}

/* ---- What goes wrong ------------------------------------------------------------------------- */

static rondo_result watch(int rank, int peer)
{
    return nodes[rank].network->ops->watch(nodes[rank].network, peer);
}

Test(verbs_links, a_peer_that_does_not_answer_is_named_with_the_port)
{
    cr_assert(node_send(0, 1, 0));
    settle();
    cr_expect(watch(0, 1) == RONDO_OK, "%s", fail_sentence());
    fake.fate = IBV_WC_RETRY_EXC_ERR;
    cr_assert(node_send(0, 1, 0));
    fake_verbs_settle();
    cr_expect(watch(0, 1) == RONDO_ERROR_PEER);
    cr_expect_eq(nodes[0].network->culprit, 1);
    cr_expect_not_null(strstr(fail_sentence(),
                              "Rank 0 to rank 1, fake0 port 1 (10.77.0.1): transport retry counter "
                              "exceeded; is the peer down"),
                       "%s", fail_sentence());
    cr_expect(watch(0, 2) == RONDO_OK, "the other peer is well");
}

Test(verbs_links, who_only_waits_probes_and_finds_out_as_well)
{
    cr_assert(node_send(1, 0, 0));
    settle();
    cr_expect(watch(0, 1) == RONDO_OK);
    fake.fate = IBV_WC_RETRY_EXC_ERR;
    for (int i = 0; i < 6000 && watch(0, 1) == RONDO_OK; i++) {
        fake_verbs_settle();
        usleep(10000);
    }
    cr_expect(watch(0, 1) == RONDO_ERROR_PEER);
}

Test(verbs_patience, an_adapter_that_never_completes_is_given_up, .fini = end)
{
    setenv("RONDO_TCP_TIMEOUT", "1", 1);
    open_with(1);
    cr_assert(node_send(0, 1, 0));
    settle();
    cr_assert(node_send(0, 1, 0));
    for (int i = 0; i < 30000 && watch(0, 1) == RONDO_OK; i++)
        usleep(10000);
    cr_expect(watch(0, 1) == RONDO_ERROR_PEER);
    cr_expect_not_null(strstr(fail_sentence(), "Rank 0 to rank 1, fake0 port 1 (10.77.0.1): "
                                               "nothing was acknowledged for "),
                       "%s", fail_sentence());
    unsetenv("RONDO_TCP_TIMEOUT");
}

Test(verbs_links, a_process_that_ended_is_known_from_the_other_network)
{
    nodes[0].fate = RONDO_ERROR_PEER;
    cr_expect(watch(0, 2) == RONDO_ERROR_PEER);
    cr_expect_eq(nodes[0].network->culprit, 2);
}

Test(verbs_links, an_adapter_that_died_is_an_error)
{
    cr_assert(node_send(0, 1, 0));
    settle();
    fake.events = 1;
    fake.event = IBV_EVENT_DEVICE_FATAL;
    cr_expect(watch(0, 1) == RONDO_ERROR_SYSTEM);
    cr_expect_eq(nodes[0].network->culprit, 0, "it is rank 0's own");
    cr_expect_not_null(strstr(fail_sentence(), "Rank 0 to rank 1: fake0 port 1 cannot be used"),
                       "%s", fail_sentence());
}

Test(verbs_links, each_registration_may_fail_and_nothing_is_lost)
{
    for (int allowed = 0; allowed < 3; allowed++) {
        fake.allowed = allowed;
        fake.fail_registrations = 1000;
        cr_assert(node_send(0, 1, 0));
        cr_expect(nodes_progress() == RONDO_ERROR_MEMORY);
        cr_expect_not_null(strstr(fail_sentence(), "Rank 0 to rank 1: Cannot register"), "%s",
                           fail_sentence());
        cr_expect_eq(nodes[0].network->culprit, 0);
        nodes_close();
        cr_expect_eq(fake.living, 0);
        fake.fail_registrations = 0;
        cr_assert(nodes_open() == RONDO_OK);
    }
}

Test(verbs_links, an_adapter_without_queues_is_a_sentence)
{
    fake.fail_queues = true;
    cr_assert(node_send(0, 1, 0));
    cr_expect(nodes_progress() == RONDO_ERROR_SYSTEM);
    cr_expect_not_null(strstr(fail_sentence(), "queue pair"), "%s", fail_sentence());
}

Test(verbs_links, a_queue_that_finds_no_way_is_a_sentence_with_the_ranks)
{
    fake.fail_connects = true;
    cr_assert(node_send(0, 1, 0) && nodes_progress() == RONDO_OK);
    cr_expect(nodes_deliver() == RONDO_ERROR_SYSTEM);
    cr_expect_not_null(strstr(fail_sentence(), "Rank 1 to rank 0: fake0 port 1 cannot be made"),
                       "%s", fail_sentence());
    cr_expect_eq(nodes[1].network->culprit, 1);
}

Test(verbs_links, a_note_that_makes_no_sense_is_refused)
{
    static const size_t lengths[] = {3, 168, NETWORK_NOTE, 5000};
    char note[5000] = {9};

    nodes[0].network->ops->hear(nodes[0].network, 0, note, 3);
    cr_expect(nodes_progress() == RONDO_OK, "we have no link to ourselves");
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        nodes[0].network->culprit = -1;
        nodes[0].network->ops->hear(nodes[0].network, 1, note, lengths[i]);
        cr_expect(nodes_progress() == RONDO_ERROR_PEER, "%zu bytes", lengths[i]);
        cr_expect_eq(nodes[0].network->culprit, 1);
    }
}

/* A cell as the peer would write it, but with a wrong field. */
static rondo_result forge(const struct verbs_cell *wrong)
{
    /* The inbox follows control memory, cells of both directions on whole pages: for every slot,
     * and for two halves of them that are given back. */
    size_t half = NODE_CHANNELS * (NODE_SLOTS + 2) * VERBS_CELL;
    char *cells = nodes[0].in[1].slots - (2 * half + 4095) / 4096 * 4096;
    struct verbs_cell cell = *wrong;

    verbs_cell_seal(&cell, 1);
    memcpy(cells + VERBS_CELL, &cell, sizeof(cell));
    return nodes_progress();
}

Test(verbs_links, a_cell_that_makes_no_sense_is_refused)
{
    static const struct verbs_cell wrong[] = {
        {.flag = 2, .inlined = 1, .bytes = 8, .channel = NODE_CHANNELS},
        {.flag = 7, .inlined = 1, .bytes = 8},
        {.flag = 2, .bytes = NODE_SLOT_BYTES + 1, .rails = 1},
        {.flag = 2, .bytes = 100, .rails = 2},
        {.flag = 2, .bytes = 100, .rails = 0},
        {.flag = 2, .inlined = 1, .bytes = 8, .returned = 1},
        {.credit = 1, .returned = 1},
        {.credit = 1, .channel = NODE_CHANNELS},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        cr_assert(node_send(1, 0, 0));
        settle();
        cr_expect(forge(&wrong[i]) == RONDO_ERROR_PEER, "%zu", i);
        cr_expect_eq(nodes[0].network->culprit, 1);
        fake.moves_when_polled = 1000;
        nodes_close();
        cr_assert(nodes_open() == RONDO_OK);
    }
}

/* ---- The end --------------------------------------------------------------------------------- */

Test(verbs_links, what_was_pushed_arrives_though_its_writer_closes)
{
    for (int i = 0; i < NODE_SLOTS; i++)
        cr_assert(node_send(0, 1, 0));
    settle();
    cr_expect_eq(node_receive(1, 0, 0), 1);
    cr_expect_eq(node_receive(1, 0, 0), 1);
    settle();
    cr_assert(node_send(0, 1, 0));
    fake.moves_when_polled = 5;
    nodes[0].network->ops->close(nodes[0].network);
    nodes[0].network = NULL;
    cr_assert(nodes_progress() == RONDO_OK, "%s", fail_sentence());
    for (int i = 0; i < 3; i++)
        cr_expect_eq(node_receive(1, 0, 0), 1);
}

/* An adapter whose packet got lost sends it again after 0.3 to 1.1 s. */
Test(verbs_patience, closing_outlasts_an_adapter_that_sends_again, .fini = end)
{
    setenv("RONDO_TCP_TIMEOUT", "60", 1);
    open_with(1);
    cr_assert(node_send(0, 1, 0));
    settle();
    cr_expect_eq(node_receive(1, 0, 0), 1);
    cr_assert(node_send(0, 1, 0));
    nodes[0].held = clock_seconds() + 2.5;
    nodes[0].network->ops->close(nodes[0].network);
    nodes[0].network = NULL;
    cr_assert(nodes_progress() == RONDO_OK, "%s", fail_sentence());
    cr_expect_eq(node_receive(1, 0, 0), 1);
    unsetenv("RONDO_TCP_TIMEOUT");
}

Test(verbs_patience, closing_gives_up_an_adapter_that_never_completes, .fini = end)
{
    double began = clock_seconds();

    setenv("RONDO_TCP_TIMEOUT", "1", 1);
    open_with(1);
    cr_assert(node_send(0, 1, 0));
    settle();
    cr_assert(node_send(0, 1, 0));
    nodes[0].network->ops->close(nodes[0].network);
    nodes[0].network = NULL;
    cr_expect_gt(nodes[0].naps, 0);
    cr_expect_lt(clock_seconds() - began, PATIENCE_CLOSE);
    unsetenv("RONDO_TCP_TIMEOUT");
}

Test(verbs_links, who_closes_does_not_wait_for_a_peer_that_has_closed)
{
    cr_assert(node_send(0, 1, 0));
    settle();
    nodes[1].network->ops->close(nodes[1].network);
    nodes[1].network = NULL;
    nodes[0].fate = RONDO_ERROR_PEER;
    cr_assert(node_send(0, 1, 0));
    nodes[0].network->ops->close(nodes[0].network);
    nodes[0].network = NULL;
    cr_expect_eq(nodes[0].naps, 0);
}

Test(verbs_links, a_broken_one_closes_without_waiting)
{
    struct network_failure failure = {.result = RONDO_ERROR_PEER, .culprit = 1, .sentence = "gone"};

    cr_assert(node_send(0, 1, 0));
    settle();
    cr_assert(node_send(0, 1, 0));
    nodes[0].network->ops->tell(nodes[0].network, &failure);
    nodes[0].network->ops->close(nodes[0].network);
    nodes[0].network = NULL;
}

Test(verbs_links, nothing_is_lost_over_many_lifetimes)
{
    fake.moves_when_polled = 1000;
    for (int i = 0; i < 300; i++) {
        cr_assert(node_send(0, 1, 0) && node_send(2, 1, 1));
        settle();
        cr_assert(node_receive(1, 0, 0) == 1 && node_receive(1, 2, 1) == 1);
        nodes_close();
        cr_assert_eq(fake.living, 0, "lifetime %d", i);
        cr_assert_null(heap_base());
        cr_assert(nodes_open() == RONDO_OK);
    }
}

/* Both ends of each pair; not those that try an adapter out. */
Test(verbs_class, is_that_of_every_queue)
{
    fake_verbs_open(1);
    fake.traffic_class = 0x60;
    cr_assert(nodes_open() == RONDO_OK, "%s", fail_sentence());
    exchange_many(3);
    cr_expect(fake.marked == NODES * (NODES - 1), "%lu queues", fake.marked);
    end();
}
