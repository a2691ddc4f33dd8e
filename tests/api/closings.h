/* SPDX-License-Identifier: BSD-3-Clause */
/* closings.h - bodies in which ranks close communicators of their own. */
#ifndef RONDO_TESTS_API_CLOSINGS_H
#define RONDO_TESTS_API_CLOSINGS_H

#include "../world.h"

struct closings {
    rondo_collective collective;
    size_t count;
    int calls, rounds;
    bool early; /* the culprit makes one call less than the others */
    int culprit;
};

/* Communicators are opened, used and closed, by each rank when it is through with its calls. */
rondo_result closings_live(rondo_comm *comm, void *argument, char *sentence);
/* The culprit sends rank 0 a message and closes; rank 0 waits for two. */
rondo_result closings_receive(rondo_comm *comm, void *argument, char *sentence);
/* The culprit closes a parent of which the others open a communicator with it, then one without;
 * `early`: before they begin. */
rondo_result closings_among(rondo_comm *comm, void *argument, char *sentence);

#endif
