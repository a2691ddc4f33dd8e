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
rondo_result p2p_refuse_long_ones(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_close_early(rondo_comm *comm, void *argument, char *sentence);
rondo_result p2p_refuse_arguments(rondo_comm *comm, void *argument, char *sentence);
/* The argument is an int: others wait for any source. */
rondo_result p2p_lose_a_rank(rondo_comm *comm, void *argument, char *sentence);
/* The argument is an int: the source that rank 0 waits for. */
rondo_result p2p_wait_in_vain(rondo_comm *comm, void *argument, char *sentence);
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
