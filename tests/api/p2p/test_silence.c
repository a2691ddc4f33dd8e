/* SPDX-License-Identifier: BSD-3-Clause */
/* test_silence.c - how long messages with tags wait for a silent peer. Ranks are threads of the
 * test, which also says what time it is. */
#include "comm/p2p/p2p.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <pthread.h>

enum { RANKS = 2 };

static rondo_comm *comms[RANKS];
static rondo_p2p *ends[RANKS];

static void *open_end(void *argument)
{
    int rank = *(const int *)argument;

    cr_assert(rondo_p2p_open(comms[rank], &ends[rank]) == RONDO_OK, "%s", rondo_last_error(NULL));
    return NULL;
}

static void open_ends(void)
{
    const rondo_config config = RONDO_CONFIG_INIT;
    int second = 1, first = 0;
    pthread_t thread;

    cr_assert(rondo_comm_open_all(RANKS, &config, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_assert_eq(pthread_create(&thread, NULL, open_end, &second), 0);
    open_end(&first);
    pthread_join(thread, NULL);
}

static void close_ends(void)
{
    for (int r = 0; r < RANKS; r++) {
        rondo_p2p_close(ends[r]);
        rondo_comm_close(comms[r]);
    }
}

TestSuite(silence, .init = open_ends, .fini = close_ends);

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
