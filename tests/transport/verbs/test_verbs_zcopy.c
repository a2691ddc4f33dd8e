/* SPDX-License-Identifier: BSD-3-Clause */
/* test_verbs_zcopy.c - messages that an adapter reads from the caller's memory. */
#include "tests/transport/verbs/fake_verbs.h"
#include "tests/transport/verbs/verbs_nodes.h"
#include "transport/memory/heap.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 100000, MANY = 16 << 20 };

static char *zcopy; /* MANY bytes of the heap */
static struct connection *writer;

static void begin(void)
{
    void *memory;

    fake_verbs_open(1);
    cr_assert(nodes_open() == RONDO_OK, "%s", fail_sentence());
    cr_assert(heap_alloc(MANY, &memory) == RONDO_OK);
    zcopy = memory;
    memset(zcopy, 'a', BYTES);
    writer = nodes[0].out[1].connection;
}

static void end(void)
{
    fake.moves_when_polled = 1000;
    nodes_close();
    heap_free(zcopy);
    cr_expect_eq(fake.living, 0, "%d objects of the adapter are lost", fake.living);
    cr_expect_null(heap_base(), "memory of the heap is lost");
    fake_verbs_close();
}

TestSuite(verbs_zcopy, .init = begin, .fini = end);

static uint64_t flag_of(uint32_t number)
{
    return (uint64_t)7 << 32 | number;
}

static void send_zcopy(uint32_t number, const char *from)
{
    struct link_out *out = &nodes[0].out[1];
    struct link_slot *slot =
        (struct link_slot *)(void *)(out->slots + (number - 1) % out->slot_count * out->stride);

    out->sent = number;
    connection_push(writer, slot, from, BYTES, flag_of(number));
}

/* Notes and progress of all, but the adapter moves nothing. */
static void join(void)
{
    for (int i = 0; i < 4; i++)
        cr_assert(nodes_deliver() == RONDO_OK, "%s", fail_sentence());
}

/* The payload of the next message at rank 1, all of one letter; 0: it has not come. */
static char come(uint32_t number)
{
    const struct link_in *in = &nodes[1].in[0];
    const struct link_slot *slot =
        (const struct link_slot *)(const void *)(in->slots +
                                                 (number - 1) % in->slot_count * in->stride);

    fake_verbs_settle();
    cr_assert(nodes_progress() == RONDO_OK, "%s", fail_sentence());
    if (atomic_load_explicit(&slot->head.flag, memory_order_acquire) != flag_of(number))
        return 0;
    for (int i = 0; i < BYTES; i++)
        cr_assert_eq(slot->payload[i], slot->payload[0], "byte %d", i);
    return slot->payload[0];
}

static bool flushed(void)
{
    return nodes[0].network->ops->flushed(nodes[0].network, NULL);
}

Test(verbs_zcopy, only_long_messages_in_memory_that_lasts_are_taken)
{
    char *plain = malloc(BYTES);

    cr_expect(connection_takes(writer, zcopy, BYTES));
    cr_expect(connection_takes(writer, zcopy + MANY - BYTES, BYTES));
    cr_expect_not(connection_takes(writer, zcopy, 1000));
    cr_expect_not(connection_takes(writer, plain, BYTES));
    free(plain);
}

Test(verbs_zcopy, memory_is_read_where_it_is_and_the_call_lasts_until_then)
{
    send_zcopy(1, zcopy);
    join();
    cr_expect_not(flushed());
    memset(zcopy, 'b', BYTES); /* which nobody may do: it shows that there is no copy */
    cr_expect_eq(come(1), 'b');
    cr_expect(flushed());
}

Test(verbs_zcopy, what_is_not_posted_moves_to_its_slot)
{
    send_zcopy(1, zcopy);
    writer->ops->reclaim(writer, zcopy + BYTES - 1, 1);
    memset(zcopy, 'b', BYTES);
    join();
    cr_expect_eq(come(1), 'a');
}

Test(verbs_zcopy, who_writes_over_it_waits_for_the_adapter)
{
    send_zcopy(1, zcopy);
    join();
    send_zcopy(2, zcopy + BYTES);
    memset(zcopy + BYTES, 'c', BYTES);
    fake.moves_when_polled = 3;
    writer->ops->reclaim(writer, zcopy, BYTES);
    memset(zcopy, 'b', BYTES);
    cr_expect_eq(come(1), 'a');
    cr_expect_eq(come(2), 'c');
}

Test(verbs_zcopy, other_memory_is_not_waited_for)
{
    send_zcopy(1, zcopy);
    join();
    writer->ops->reclaim(writer, zcopy + BYTES, BYTES);
    writer->ops->reclaim(writer, zcopy, 0);
    cr_expect_not(flushed());
    cr_expect_eq(come(1), 'a');
}

Test(verbs_zcopy, an_adapter_that_fails_is_not_waited_for)
{
    send_zcopy(1, zcopy);
    join();
    fake.fate = IBV_WC_RETRY_EXC_ERR;
    send_zcopy(2, zcopy + BYTES);
    fake.moves_when_polled = 1000;
    writer->ops->reclaim(writer, zcopy + BYTES, BYTES);
    cr_expect(nodes[0].network->ops->watch(nodes[0].network, 1) == RONDO_ERROR_PEER);
}

Test(verbs_zcopy, memory_is_not_read_after_a_call_has_failed)
{
    send_zcopy(1, zcopy);
    join();
    send_zcopy(2, zcopy + BYTES);
    nodes[0].network->ops->let_go(nodes[0].network);
    memset(zcopy, 'b', 2 * BYTES);
    cr_expect_eq(come(1), 0, "the caller's new values came as the old message");
    cr_expect_eq(come(2), 0);
}

static rondo_result watch(void)
{
    return nodes[0].network->ops->watch(nodes[0].network, 1);
}

/* Rank 0 leaves a call that rank 2 made fail. */
static void leave_call(void)
{
    const struct network_failure failure = {
        .result = RONDO_ERROR_PEER, .culprit = 2, .sentence = "rank 2 is gone"};

    nodes[0].network->ops->tell(nodes[0].network, &failure);
    nodes[0].network->ops->let_go(nodes[0].network);
    fake_verbs_settle();
}

Test(verbs_zcopy, a_peer_to_which_a_failed_call_was_sending_lives)
{
    send_zcopy(1, zcopy);
    join();
    send_zcopy(2, zcopy + BYTES);
    cr_expect(watch() == RONDO_OK, "%s", fail_sentence());
    leave_call();
    cr_expect(watch() == RONDO_OK, "%s", fail_sentence());
    nodes[0].fate = RONDO_ERROR_PEER;
    cr_expect(watch() == RONDO_ERROR_PEER, "its process ends later");
    nodes[0].fate = RONDO_OK;
}

Test(verbs_zcopy, a_peer_whose_connection_failed_the_call_stays_lost)
{
    send_zcopy(1, zcopy);
    join();
    fake.fate = IBV_WC_RETRY_EXC_ERR;
    send_zcopy(2, zcopy + BYTES);
    fake_verbs_settle();
    cr_expect(watch() == RONDO_ERROR_PEER);
    leave_call();
    cr_expect(watch() == RONDO_ERROR_PEER);
}

/* Rank 1 got the message, and its acknowledgement got lost. */
Test(verbs_zcopy, a_peer_that_has_closed_its_end_is_not_waited_for)
{
    const struct network_failure failure = {.culprit = 1, .forsakes = true};

    send_zcopy(1, zcopy);
    join();
    cr_assert_not(flushed());
    nodes[0].network->ops->tell(nodes[0].network, &failure);
    cr_expect(flushed());
    cr_expect_not(connection_takes(writer, zcopy, BYTES));
    memset(zcopy, 'b', BYTES);
    cr_expect_eq(come(1), 0, "the caller's new values came as the old message");
}

Test(verbs_zcopy, a_call_that_failed_before_the_ranks_were_connected_reads_nothing)
{
    send_zcopy(1, zcopy);
    nodes[0].network->ops->let_go(nodes[0].network);
    memset(zcopy, 'b', BYTES);
    join();
    cr_expect_eq(come(1), 'a');
}

/* ---- Registering ----------------------------------------------------------------------------- */

Test(verbs_zcopy, parts_of_an_allocation_are_registered_once)
{
    int before;

    send_zcopy(1, zcopy);
    join();
    cr_expect_eq(come(1), 'a');
    before = fake.registered;
    send_zcopy(2, zcopy + BYTES);
    cr_expect_eq(fake.registered, before, "it lies in the same part");
    fake_verbs_settle();
    send_zcopy(3, zcopy + MANY - BYTES);
    cr_expect_eq(fake.registered, before + 1);
    fake_verbs_settle();
}

Test(verbs_zcopy, memory_that_is_freed_is_not_registered_any_more)
{
    int before;
    void *other;

    send_zcopy(1, zcopy);
    join();
    cr_expect_eq(come(1), 'a');
    before = fake.registered;
    heap_free(zcopy);
    cr_expect_eq(fake.registered, before - 1);
    cr_assert(heap_alloc(MANY, &other) == RONDO_OK);
    zcopy = other;
    memset(zcopy, 'n', BYTES);
    send_zcopy(2, zcopy);
    cr_expect_eq(come(2), 'n', "the pages of before were sent");
}

Test(verbs_zcopy, memory_that_was_registered_is_sent_from_until_it_is_private_again)
{
    char *own = aligned_alloc(4096, 128 << 10);
    int before;

    memset(own, 'o', 128 << 10);
    cr_assert(heap_register(own, 128 << 10) == RONDO_OK, "%s", fail_sentence());
    cr_assert(connection_takes(writer, own + 100, BYTES));
    send_zcopy(1, own + 100);
    join();
    cr_expect_eq(come(1), 'o');
    before = fake.registered;
    cr_assert(heap_deregister(own) == RONDO_OK);
    cr_expect_eq(fake.registered, before - 1);
    cr_expect_not(connection_takes(writer, own + 100, BYTES));
    free(own);
}

Test(verbs_zcopy, where_nothing_more_can_be_registered_messages_are_copied)
{
    send_zcopy(1, zcopy);
    join();
    cr_expect_eq(come(1), 'a');
    fake.fail_registrations = 1000;
    memset(zcopy + MANY - BYTES, 'z', BYTES);
    send_zcopy(2, zcopy + MANY - BYTES); /* in another part */
    memset(zcopy + MANY - BYTES, 'y', BYTES);
    cr_expect_eq(come(2), 'z');
    cr_expect_not(connection_takes(writer, zcopy, BYTES), "it is not tried for every message");
    cr_expect(flushed());
}
