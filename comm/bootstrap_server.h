/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bootstrap_server.h - the meeting point: one thread that serves every connection at once.
 *
 * A visitor is a connection that has proved nothing yet; it has a few seconds, a fixed buffer, and
 * no influence on the job. A correct claim makes it a member. The meeting is decided once: every
 * rank is there, or a sentence says why not. Then the listener is closed and every member gets the
 * same answer.
 */
#ifndef RONDO_COMM_BOOTSTRAP_SERVER_H
#define RONDO_COMM_BOOTSTRAP_SERVER_H

#include "comm/bootstrap_wire.h"

#include <stdbool.h>
#include <stddef.h>

/* What server.c is asked to do. The listener belongs to it from the call on. */
struct server_task {
    const struct bootstrap_place *place;
    int listener;
    int stop;          /* a file descriptor that becomes readable to end early, or -1 */
    int size;          /* 0: the first member tells */
    size_t blob_bytes; /* with size 0: the first member tells */
    const void *blob; /* of rank 0 when it is the server; NULL: every rank comes through a socket */
    double timeout;   /* seconds, 0: for ever */
};

/* ret_blobs (may be NULL): size * blob_bytes. The sentence is that which the members got. */
rondo_result server_run(const struct server_task *task, void *ret_blobs);

/* ---- The meeting: who is there. bootstrap_meeting.c; no sockets in it ----------------------- */

struct member {
    bool present; /* has claimed */
    bool arrived; /* and its blob is here */
    unsigned pid;
    char host[WIRE_HOST];
};

struct meeting {
    const char *address;
    int size; /* 0: not known yet */
    size_t blob_bytes;
    int claims;             /* proven ones, also those that do not fit */
    int present;            /* blobs that are complete */
    struct member *members; /* [size], by rank: those that have claimed */
    unsigned char *blobs;   /* [size * blob_bytes] */
    bool decided;
    rondo_result result;
    char sentence[1024];
};

/* With size 0 nothing is allocated until the first claim. */
rondo_result meeting_init(struct meeting *meeting, const struct server_task *task);
void meeting_done(struct meeting *meeting);
/* A proven claim: true if the rank's blob may come now. False: the meeting is decided, with a
 * sentence. */
bool meeting_claim(struct meeting *meeting, const struct wire_claim *claim, size_t blob_bytes);
unsigned char *meeting_blob(struct meeting *meeting, int rank);
/* The rank's blob is complete. */
void meeting_arrive(struct meeting *meeting, int rank);
void meeting_leave(struct meeting *meeting,
                   int rank);               /* its connection broke before the decision */
void meeting_stop(struct meeting *meeting); /* the server has to end early */
/* `refused`: how often a connection could not be accepted for lack of file descriptors. */
void meeting_time_out(struct meeting *meeting, double waited, unsigned refused);

#endif
