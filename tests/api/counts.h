/* SPDX-License-Identifier: BSD-3-Clause */
/* counts.h - what ranks do in the tests of collectives whose counts differ from rank to rank. */
#ifndef RONDO_TESTS_API_COUNTS_H
#define RONDO_TESTS_API_COUNTS_H

#include "../world.h"
#include "rondo/collectives.h"

enum counts_call { COUNTS_ALL_TO_ALL, COUNTS_ALL_GATHER, COUNTS_REDUCE_SCATTER, COUNTS_CALLS };
enum counts_layout { COUNTS_PACKED, COUNTS_GAPS, COUNTS_REVERSED, COUNTS_LAYOUTS };

/* The argument of the bodies says which call is made, and how. */
struct counts {
    enum counts_call call;
    enum counts_layout layout;
    rondo_type type;
    size_t longest; /* counts are between 0 and this one, but many are 0 */
    bool in_place;
    bool streamed; /* in a group of three on a stream, with arrays that do not last */
};

/* Makes one call and checks every element of the output and what is between blocks. */
rondo_result counts_run(rondo_comm *comm, void *argument, char *sentence);
/* All calls in all layouts and types, in place where they can be; the argument is ignored. */
rondo_result counts_run_all(rondo_comm *comm, void *argument, char *sentence);
/* Rank 1 expects or gives one element more in block 2 than the others do. */
rondo_result counts_differ(rondo_comm *comm, void *argument, char *sentence);
/* Rank 1 is killed in the middle of calls. */
rondo_result counts_lose_a_rank(rondo_comm *comm, void *argument, char *sentence);

#endif
