/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p.h - what ranks do in the tests of messages with tags. */
#ifndef RONDO_TESTS_API_P2P_H
#define RONDO_TESTS_API_P2P_H

#include "tests/world.h"
#include "rondo/p2p.h"

rondo_result p2p_take_in_any_order(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_cross(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_take_from_any(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_keep_order(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_probe_first(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_wait_by_threads(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_beside_collectives(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_send_to_busy(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_refuse_long_ones(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_refuse_unread(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_send_to_closed(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_close_over_sends(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_close_early(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_refuse_arguments(rondo_comm *comm, void *argument, char *sentence);
/* A rank waits in one of these ways for a message that never comes. */
struct p2p_wait {
    int source, tag;
    enum { P2P_RECEIVE, P2P_PROBE, P2P_PROBE_AGAIN } by; /* the last: without waiting */
};
/* Ranks 0 and 2 wait when rank 1 is killed. The argument is a struct p2p_wait. */
rondo_result p2p_lose_a_rank(rondo_comm *comm, void *argument, char *sentence);
/* Rank 1 of 6 is killed, and what names it ends alone: rank 4 was never connected with it, if the
 * ranks met in rounds of distances 1, 2 and 4. */
rondo_result p2p_lose_a_stranger(rondo_comm *comm, void *argument, char *sentence);
/* Rank 0 waits, the others are silent, or have closed their ends. */
rondo_result p2p_wait_in_vain(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_wait_for_closed(rondo_comm *comm, void *argument, char *sentence);
/* Rank 1 does its part when the log has told of rank 0's wait. */
struct p2p_wait_told {
    int log;          /* log_copy_open() */
    bool sends;       /* rank 0 does, and not receives */
    int source;       /* of which it receives */
    const char *line; /* what the log tells */
};
rondo_result p2p_wait_told(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_abort(rondo_comm *comm, void *argument, char *sentence);

#endif
