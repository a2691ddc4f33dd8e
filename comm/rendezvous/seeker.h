/* SPDX-License-Identifier: BSD-3-Clause */
/* seeker.h - a rank's side of the talk with a meeting point (rendezvous/wire.h). */
#ifndef RONDO_COMM_RENDEZVOUS_SEEKER_H
#define RONDO_COMM_RENDEZVOUS_SEEKER_H

#include "comm/rendezvous/socket.h"
#include "comm/rendezvous/wire.h"

struct seeker {
    const struct bootstrap_place *place;
    const struct wire_seat *relay;       /* whom we talk to; NULL: the meeting point itself */
    const struct bootstrap_watch *watch; /* until the meeting point is reached; NULL: none */
    int rank, size;
    double timeout, deadline;
    const void *blob;
    size_t blob_bytes; /* to hand in */
    size_t each;       /* of every rank, to hear */
    int fd;
    struct wire_session session;
    const char *last;    /* why the last attempt to connect failed */
    rondo_result rumour; /* what the last one that listened there said of us, unproved */
    char heard[384];
    bool told; /* a proven reply has come */
};

/* Connect, claim, and hear that who listens there knows our secret; tries until the deadline, a
 * relay once. */
rondo_result seeker_reach(struct seeker *me);
/* The blob. */
rondo_result seeker_hand_in(struct seeker *me);
/* Wait for a seat (ret_seat may be NULL: it has one) or the reply, which fills ret_blobs or is
 * an error. With a seat ret_seat->header is set. */
rondo_result seeker_hear(struct seeker *me, struct wire_seat *ret_seat, void *ret_blobs);
/* Say that the seat is taken, and where others may sit, or "". */
rondo_result seeker_sit(struct seeker *me, const char *address, bool moved);
void seeker_close(struct seeker *me);
/* The error for a connection that broke. */
rondo_result seeker_broken(const struct seeker *me, enum socket_outcome outcome);

#endif
