/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_lines.h - two ranks in one thread, whose TCP lines are pairs of sockets: rank 0 is examined,
 * rank 1 says what the input wants.
 */
#ifndef RONDO_TESTS_FUZZ_TCP_LINES_H
#define RONDO_TESTS_FUZZ_TCP_LINES_H

#include "tests/fuzz/fuzz.h"
#include "transport/tcp/engine.h"

enum { LINES_RANKS = 2, LINES_CHANNELS = 2, LINES_SLOTS = 4, LINES_SLOT_BYTES = 8192 };

struct lines_rank {
    struct endpoint endpoint;
    struct tcp_endpoint part;
    struct network *network;
    struct link_out out[LINES_CHANNELS * LINES_RANKS];
    struct link_in in[LINES_CHANNELS * LINES_RANKS];
    struct call_header_page page, pages[LINES_RANKS];
};

extern struct lines_rank lines_ranks[LINES_RANKS];

void lines_open(enum seal_mode security);
void lines_close(void);
struct tcp_network *lines_network(int rank);
struct tcp_peer *lines_peer(int rank); /* the other rank, as this one sees it */

/* A connection: rank 0 has accepted it, and rank 1 dials it if `dials`, else the other end is in
 * *ret_end. The line of rank 0. */
struct tcp_line *lines_accept(int *ret_end, unsigned index, bool dials);
/* A connection that rank 0 has dialed; the other end is the caller's. */
struct tcp_line *lines_dial(int *ret_end);
/* Both go on with the handshake of a line that rank 1 has dialed. */
void lines_shake(struct tcp_line *line);

#endif
