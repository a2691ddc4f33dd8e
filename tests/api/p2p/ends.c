/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.c - see ends.h. */
#include "tests/api/p2p/ends.h"

#include "tests/patience.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

rondo_p2p *ends[RANKS_MOST];

static rondo_comm *comms[RANKS_MOST];

static void *open_end(void *argument)
{
    rondo_comm *comm = argument;

    cr_assert(rondo_p2p_open(comm, &ends[rondo_comm_rank(comm)]) == RONDO_OK, "%s",
              rondo_last_error(NULL));
    return NULL;
}

static void open_ends(int count)
{
    const rondo_config config = RONDO_CONFIG_INIT;
    pthread_t threads[RANKS_MOST];

    cr_assert(rondo_comm_open_all(count, &config, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int r = 0; r < count; r++)
        cr_assert_eq(pthread_create(&threads[r], NULL, open_end, comms[r]), 0);
    for (int r = 0; r < count; r++)
        pthread_join(threads[r], NULL);
}

void ends_open(void)
{
    open_ends(RANKS);
}

void ends_open_distant(int count)
{
    setenv("RONDO_TRANSPORT", "tcp", 1);
    setenv("RONDO_INTERFACE", "lo", 1);
    open_ends(count);
}

void ends_close(void)
{
    for (int r = 0; r < RANKS_MOST; r++) {
        rondo_p2p_close(ends[r]);
        rondo_comm_close(comms[r]);
    }
}

void end_drive(int rank, bool driven)
{
    lock_take(&ends[rank]->lock);
    ends[rank]->driven = driven;
    lock_give(&ends[rank]->lock);
}

void end_close_unread(void)
{
    lock_take(&ends[1]->lock);
    ends[1]->driven = false;
    ends[1]->closing = true;
    lock_give(&ends[1]->lock);
    rondo_p2p_close(ends[1]);
    ends[1] = NULL;
}

void end_send_number(int from, int to, int tag)
{
    rondo_transfer *sent;

    cr_assert(rondo_p2p_send(ends[from], &tag, sizeof(tag), to, tag, &sent) == RONDO_OK);
    cr_assert(rondo_transfer_wait(sent, -1, NULL) == RONDO_OK, "%s", rondo_last_error(NULL));
    rondo_transfer_close(sent);
}

void end_receive_number(int by, int source, int tag)
{
    rondo_transfer *received;
    int number = 0;

    cr_assert(rondo_p2p_recv(ends[by], &number, sizeof(number), source, tag, &received) ==
              RONDO_OK);
    cr_assert(rondo_transfer_wait(received, -1, NULL) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_expect(number == tag);
    rondo_transfer_close(received);
}

void end_expect_closed(rondo_transfer *transfer, const char *words)
{
    cr_expect(rondo_transfer_wait(transfer, world_patience(10), NULL) == RONDO_ERROR_PEER);
    cr_expect(strstr(rondo_last_error(NULL), "ank 1 has closed its messages") &&
                  strstr(rondo_last_error(NULL), words),
              "%s", rondo_last_error(NULL));
    rondo_transfer_close(transfer);
}
