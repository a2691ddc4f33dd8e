/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.h - the ends of several ranks in one process, whose test sees inside of them and may drive
 * them. */
#ifndef RONDO_TESTS_API_P2P_ENDS_H
#define RONDO_TESTS_API_P2P_ENDS_H

#include "comm/p2p/p2p.h"

enum { RANKS = 3, RANKS_MOST = 8 };

extern rondo_p2p *ends[RANKS_MOST]; /* NULL: closed */

/* Open and close the ends of RANKS ranks. */
void ends_open(void);
void ends_close(void);
/* The same, of so many ranks that only TCP links. */
void ends_open_distant(int count);

/* While somebody else moves a rank's messages, it does nothing by itself. */
void end_drive(int rank, bool driven);
/* Rank 1 closes its end, and looks at nothing that has come to it since end_drive(1, true). */
void end_close_unread(void);

void end_send_number(int from, int to, int tag);
void end_receive_number(int by, int source, int tag);
/* The transfer ends because rank 1 has closed its end, with these words in its sentence. */
void end_expect_closed(rondo_transfer *transfer, const char *words);

#endif
