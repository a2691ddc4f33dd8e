/* SPDX-License-Identifier: BSD-3-Clause */
/* test_distant.c - messages with tags to ranks of other hosts: what the network still holds, and
 * what becomes of it. Ranks are threads of the test. */
#include "tests/api/p2p/ends.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>

static void open_ends(void)
{
    ends_open_distant(RANKS);
}

TestSuite(distant, .init = open_ends, .fini = ends_close);

Test(distant, a_probe_that_does_not_wait_finds_by_itself_what_has_arrived)
{
    enum { LOOKS = 1000000 };
    rondo_result result = RONDO_IN_PROGRESS;
    rondo_envelope found;

    end_send_number(1, 0, 3);
    end_receive_number(0, 1, 3);
    end_drive(0, true);
    end_send_number(1, 0, 4);
    for (int look = 0; look < LOOKS && result == RONDO_IN_PROGRESS; look++)
        result = rondo_p2p_probe(ends[0], RONDO_ANY_SOURCE, RONDO_ANY_TAG, 0, &found);
    cr_expect(result == RONDO_OK && found.source == 1 && found.tag == 4, "%s",
              rondo_result_string(result));
    end_drive(0, false);
    end_receive_number(0, 1, 4);
}

Test(distant, a_peer_that_closes_its_end_ends_what_waits_for_it_alone)
{
    static char input[P2P_WHOLE_MOST + 1];
    rondo_transfer *offered, *received, *sent;

    end_send_number(1, 0, 3);
    end_receive_number(0, 1, 3);
    end_drive(1, true);
    cr_assert(rondo_p2p_send(ends[0], input, sizeof(input), 1, 7, &offered) == RONDO_OK);
    cr_assert(rondo_p2p_recv(ends[0], input, 1, 1, 9, &received) == RONDO_OK);
    end_close_unread();
    end_expect_closed(offered, "65537 bytes with tag 7 from rank 0 are lost");
    end_expect_closed(received, "Rank 0 waits for a message with tag 9 from rank 1");
    cr_expect(rondo_p2p_send(ends[0], input, 1, 1, 7, &sent) == RONDO_ERROR_PEER);
    end_send_number(0, 2, 3);
    end_receive_number(2, 0, 3);
}

/* ---- A network that delivers nothing --------------------------------------------------------- */

static rondo_result move_nothing(struct network *network, bool *ret_moved)
{
    (void)network;
    *ret_moved = false;
    return RONDO_OK;
}

static bool wait_for_second(struct network *network, int *ret_peer)
{
    (void)network;
    if (ret_peer)
        *ret_peer = 1;
    return false;
}

static bool owe_second(struct network *network, int rank)
{
    (void)network;
    return rank == 1;
}

static rondo_result see_all(struct network *network, int rank)
{
    (void)network;
    (void)rank;
    return RONDO_OK;
}

static void tell_nobody(struct network *network, const struct network_failure *failure)
{
    (void)network;
    (void)failure;
}

static void close_nothing(struct network *network)
{
    (void)network;
}

static const struct network_ops to_second = {.progress = move_nothing,
                                             .flushed = wait_for_second,
                                             .owes = owe_second,
                                             .watch = see_all,
                                             .tell = tell_nobody,
                                             .close = close_nothing};
static struct network network = {.ops = &to_second};

static void add_network(void)
{
    lock_take(&ends[0]->lock);
    ends[0]->comm->networks.open[0] = &network;
    lock_give(&ends[0]->lock);
}

Test(distant, closing_waits_for_a_network_no_longer_than_the_timeout)
{
    cr_assert(rondo_p2p_set_timeout(ends[0], 0.1) == RONDO_OK);
    add_network();
    rondo_p2p_close(ends[0]);
    ends[0] = NULL;
}

/* There is no timeout. */
Test(distant, closing_does_not_wait_until_a_peer_that_has_closed_takes_something)
{
    cr_assert(rondo_p2p_set_timeout(ends[0], 0) == RONDO_OK);
    add_network();
    /* Relaxed: rank 0 sees it in some round. */
    atomic_store_explicit(&ends[0]->comm->mirrors[1].closed, STATUS_PARTED, memory_order_relaxed);
    rondo_p2p_close(ends[0]);
    ends[0] = NULL;
}

/* ---- Peers that were never connected --------------------------------------------------------- */

/* Ranks meet those at distances of 1, 2 and 4 when they open their ends. */
static void open_strangers(void)
{
    setenv("RONDO_ALGORITHM", "direct", 1);
    ends_open_distant(8);
}

TestSuite(strangers, .init = open_strangers, .fini = ends_close);

/* Rank 4 sends a byte to rank 7, which accepts no connection: the network keeps it. */
static rondo_transfer *send_to_deaf(const char *input)
{
    rondo_transfer *sent;
    bool waits = false;

    end_drive(7, true);
    cr_assert(rondo_p2p_send(ends[4], input, 1, 7, 5, &sent) == RONDO_OK);
    for (; !waits; sched_yield()) {
        lock_take(&ends[4]->lock);
        waits = networks_owe(&ends[4]->comm->networks, 7);
        lock_give(&ends[4]->lock);
    }
    return sent;
}

/* Rank 4 keeps apart what waits for rank 7: it notices that rank 1 takes nothing, and does not hold
 * up what rank 2 has taken. */
Test(strangers, what_is_sent_to_one_peer_does_not_decide_what_was_sent_to_another)
{
    char input = 1, output = 0;
    rondo_transfer *deaf, *lost, *received;

    rondo_p2p_close(ends[1]);
    ends[1] = NULL;
    deaf = send_to_deaf(&input);
    cr_assert(rondo_p2p_send(ends[4], &input, 1, 1, 6, &lost) == RONDO_OK);
    end_expect_closed(lost, "1 bytes with tag 6 from rank 4 are lost");
    end_send_number(4, 2, 3);
    end_receive_number(2, 4, 3);
    cr_expect(rondo_transfer_wait(deaf, 0, NULL) == RONDO_IN_PROGRESS);

    end_drive(7, false);
    cr_assert(rondo_p2p_recv(ends[7], &output, 1, 4, 5, &received) == RONDO_OK);
    cr_expect(rondo_transfer_wait(received, -1, NULL) == RONDO_OK && output == input);
    cr_expect(rondo_transfer_wait(deaf, -1, NULL) == RONDO_OK);
    rondo_transfer_close(received);
    rondo_transfer_close(deaf);
}
