/* SPDX-License-Identifier: BSD-3-Clause */
/* blame.h - what a rank has found out about those that it waits for (failure/blame.h). */
#ifndef RONDO_COMM_STATE_BLAME_H
#define RONDO_COMM_STATE_BLAME_H

#include <stdbool.h>
#include <stdint.h>

enum { BLAME_PEERS = 8 }; /* of more, the others are waited for by ranks that know of them */

/* One that is waited for, and when its heartbeats were last seen to change. */
struct blame_peer {
    int rank;
    uint32_t heartbeats;
    bool heartbeat;       /* they have changed in this wait */
    double since, looked; /* `looked`: when it was last waited for */
};

/* One wait: whom for, and what has been found out. */
struct blame {
    double began, looked;
    int told; /* lines of the log about it */
    int count;
    struct blame_peer peers[BLAME_PEERS];
    bool known, circular; /* the rank to blame is, or it is not while some peer waits as we do */
    int culprit, by;      /* who that is, and the peer through which we wait for it, or itself */
};

#endif
