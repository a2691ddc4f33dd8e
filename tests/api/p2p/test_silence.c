/* SPDX-License-Identifier: BSD-3-Clause */
/* test_silence.c - how long messages with tags wait for a silent peer. Ranks are threads of the
 * test, which also says what time it is. */
#include "tests/api/p2p/ends.h"

#include "base/clock.h"
#include "base/fail.h"
#include "tests/patience.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

TestSuite(silence, .init = ends_open, .fini = ends_close);

/* Otherwise a rank that sets one before it closes breaks what has waited for longer, on every rank.
 */
Test(silence, a_timeout_counts_from_when_it_was_set)
{
    const double timeout = 1000;
    rondo_p2p *p2p = ends[0];
    double before = clock_seconds(), after;
    rondo_transfer *known, *any;
    int first, second;

    cr_assert(rondo_p2p_set_timeout(p2p, 0) == RONDO_OK);
    cr_assert(rondo_p2p_recv(p2p, &first, sizeof(first), 1, 4, &known) == RONDO_OK);
    cr_assert(rondo_p2p_recv(p2p, &second, sizeof(second), RONDO_ANY_SOURCE, 5, &any) == RONDO_OK);
    lock_take(&p2p->lock);
    p2p_restart_waits(p2p);
    p2p_look_after(p2p, before - 2 * timeout);
    lock_give(&p2p->lock);

    cr_assert(rondo_p2p_set_timeout(p2p, timeout) == RONDO_OK);
    lock_take(&p2p->lock);
    after = clock_seconds();
    p2p_look_after(p2p, before + timeout - 1);
    cr_expect(p2p->batch.result == RONDO_OK && any->state == TRANSFER_POSTED);
    p2p_look_after(p2p, after + 2 * timeout + 1);
    cr_expect(p2p->batch.result == RONDO_ERROR_TIMEOUT && any->state == TRANSFER_OVER);
    lock_give(&p2p->lock);
    cr_expect(rondo_transfer_wait(known, -1, NULL) == RONDO_ERROR_TIMEOUT);
    cr_expect(rondo_transfer_wait(any, -1, NULL) == RONDO_ERROR_TIMEOUT);
    rondo_transfer_close(known);
    rondo_transfer_close(any);
}

/* Earlier looks, while other transfers were waited for, count for nothing in the next wait. */
Test(silence, a_timeout_counts_from_when_something_was_waited_for)
{
    const double timeout = 1000;
    rondo_p2p *p2p = ends[0];
    rondo_transfer *received;
    int output;

    cr_assert(rondo_p2p_set_timeout(p2p, timeout) == RONDO_OK);
    lock_take(&p2p->lock);
    p2p_look_after(p2p, clock_seconds() - 2 * timeout);
    lock_give(&p2p->lock);
    cr_assert(rondo_p2p_recv(p2p, &output, sizeof(output), 1, 4, &received) == RONDO_OK);
    lock_take(&p2p->lock);
    p2p_look_after(p2p, clock_seconds());
    cr_expect(p2p->batch.result == RONDO_OK, "%s", fail_sentence());
    lock_give(&p2p->lock);
    rondo_transfer_close(received);
}

/* ---- Messages that move without pause -------------------------------------------------------- */

static enum exec_state move_for_ever(struct execution *execution)
{
    (void)execution;
    return EXEC_MOVED;
}

/* Each round of rank 0 finds that a message of rank 1 has moved, and never pauses. */
static void keep_moving(void)
{
    static const struct backend for_ever = {.advance = move_for_ever};

    lock_take(&ends[0]->lock);
    p2p_task_from(ends[0], 1)->backend = &for_ever;
    lock_give(&ends[0]->lock);
}

Test(silence, a_silent_peer_is_noticed_while_messages_of_another_move_without_pause)
{
    rondo_transfer *known, *any;
    int output[2];

    cr_assert(rondo_p2p_set_timeout(ends[0], 0.1) == RONDO_OK);
    cr_assert(rondo_p2p_recv(ends[0], output, 1, RONDO_ANY_SOURCE, 5, &any) == RONDO_OK);
    cr_assert(rondo_p2p_recv(ends[0], output + 1, 1, 2, 4, &known) == RONDO_OK);
    keep_moving();
    cr_expect(rondo_transfer_wait(any, world_patience(10), NULL) == RONDO_ERROR_TIMEOUT);
    cr_expect(rondo_transfer_wait(known, world_patience(10), NULL) == RONDO_ERROR_TIMEOUT);
    cr_expect(strstr(rondo_last_error(NULL), "from rank 2"), "%s", rondo_last_error(NULL));
    rondo_p2p_abort(ends[0]); /* where it goes on, closing would wait */
    rondo_transfer_close(known);
    rondo_transfer_close(any);
}

/* Looks once, and expects that the receive still waits, or has an error. */
static void look_at_receive(rondo_transfer *received, bool waits)
{
    p2p_look_after(ends[0], clock_seconds());
    cr_expect((ends[0]->batch.result == RONDO_OK && received->state == TRANSFER_POSTED) == waits,
              "%s", fail_sentence());
}

Test(silence, a_peer_that_has_closed_its_end_is_waited_for_while_its_messages_move)
{
    rondo_transfer *received;
    int output;

    end_drive(0, true);
    cr_assert(rondo_p2p_recv(ends[0], &output, 1, 2, 4, &received) == RONDO_OK);
    rondo_p2p_close(ends[2]);
    ends[2] = NULL;
    lock_take(&ends[0]->lock);
    look_at_receive(received, true);
    ends[0]->routes[2].moves = true;
    look_at_receive(received, true);
    look_at_receive(received, false);
    lock_give(&ends[0]->lock);
    end_drive(0, false);
    cr_expect(rondo_transfer_wait(received, -1, NULL) == RONDO_ERROR_PEER);
    rondo_transfer_close(received);
}

/* ---- Peers that close their ends ------------------------------------------------------------- */

/* A send that is not over, as no slot is left for it, behind others that nobody takes. */
static rondo_transfer *send_until_full(const char *input, size_t bytes)
{
    for (;;) {
        rondo_transfer *sent;

        cr_assert(rondo_p2p_send(ends[0], input, bytes, 1, 8, &sent) == RONDO_OK);
        lock_take(&ends[0]->lock);
        while (progress_peers(ends[0], 1, 1)) {
        }
        lock_give(&ends[0]->lock);
        if (rondo_transfer_wait(sent, 0, NULL) == RONDO_IN_PROGRESS)
            return sent;
        rondo_transfer_close(sent);
    }
}

Test(silence, what_is_on_its_way_to_a_peer_that_closes_its_end_is_lost_alone)
{
    static char input[P2P_WHOLE_MOST + 1];
    rondo_transfer *offered, *queued, *received, *sent;

    end_drive(1, true);
    cr_assert(rondo_p2p_send(ends[0], input, sizeof(input), 1, 7, &offered) == RONDO_OK);
    queued = send_until_full(input, P2P_WHOLE_MOST);
    cr_assert(rondo_p2p_recv(ends[0], input, 1, 1, 9, &received) == RONDO_OK);
    end_close_unread();
    end_expect_closed(offered, "65537 bytes with tag 7 from rank 0 are lost");
    end_expect_closed(queued, "65536 bytes with tag 8 from rank 0 are lost");
    end_expect_closed(received, "Rank 0 waits for a message with tag 9 from rank 1");
    cr_expect(rondo_p2p_send(ends[0], input, 1, 1, 7, &sent) == RONDO_ERROR_PEER);
    end_send_number(0, 2, 3);
    end_receive_number(2, 0, 3);
}

/* ---- Opening --------------------------------------------------------------------------------- */

Test(opening, who_gets_no_thread_says_so)
{
    const size_t huge = (size_t)1 << 46; /* bytes of a stack */
    pthread_attr_t before, attributes;
    rondo_comm *comm;
    rondo_p2p *p2p;

    cr_assert(rondo_comm_open_all(1, NULL, &comm) == RONDO_OK, "%s", rondo_last_error(NULL));
    pthread_getattr_default_np(&before);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, huge);
    cr_assert(pthread_setattr_default_np(&attributes) == 0);
    cr_expect(rondo_p2p_open(comm, &p2p) == RONDO_ERROR_SYSTEM);
    cr_expect(strstr(rondo_last_error(NULL), "Cannot start the thread that moves messages"), "%s",
              rondo_last_error(NULL));
    cr_expect(strstr(rondo_last_error(comm), "Cannot start the thread"));
    pthread_setattr_default_np(&before);
    rondo_comm_close(comm);
}

/* ---- Memory that is shown -------------------------------------------------------------------- */

enum { LONG = 1 << 20 };

static bool is_shown(void)
{
    return atomic_load_explicit(&ends[0]->comm->exposures[1 + 1].read.end, memory_order_acquire);
}

/* Has rank 1 ask for the message, and no more. */
static void accept_message(void)
{
    lock_take(&ends[1]->lock);
    while (ends[1]->receives.first || ends[1]->routes[0].first)
        progress_peers(ends[1], 0, 0);
    lock_give(&ends[1]->lock);
}

static void *abort_first(void *argument)
{
    (void)argument;
    rondo_p2p_abort(ends[0]);
    return NULL;
}

Test(silence, a_sender_that_gives_up_waits_until_its_receiver_is_not_inside)
{
    static char input[LONG], output[LONG];
    rondo_transfer *sent, *received;
    _Atomic uint32_t *inside;
    pthread_t thread;

    end_drive(1, true);
    cr_assert(rondo_p2p_send(ends[0], input, LONG, 1, 7, &sent) == RONDO_OK);
    cr_assert(rondo_p2p_recv(ends[1], output, LONG, 0, 7, &received) == RONDO_OK);
    accept_message();
    while (!is_shown())
        sched_yield();

    inside = &ends[1]->comm->status_pages[1]->inside;
    atomic_store_explicit(inside, 1, memory_order_seq_cst);
    cr_assert_eq(pthread_create(&thread, NULL, abort_first, NULL), 0);
    while (!atomic_load_explicit(&ends[0]->comm->broken, memory_order_acquire))
        sched_yield();
    for (int i = 0; i < 1000; i++)
        sched_yield();
    cr_expect(is_shown(), "its receiver reads it");
    atomic_store_explicit(inside, 0, memory_order_seq_cst);
    pthread_join(thread, NULL);
    cr_expect(rondo_transfer_wait(sent, -1, NULL) == RONDO_ERROR_ABORTED);
    cr_expect(!is_shown());
    rondo_transfer_close(sent);

    end_drive(1, false);
    cr_expect(rondo_transfer_wait(received, -1, NULL) == RONDO_ERROR_ABORTED);
    rondo_transfer_close(received);
}
