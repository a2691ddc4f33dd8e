/* SPDX-License-Identifier: BSD-3-Clause */
/* connector.h - a rank's side of the talk with a meeting point (rendezvous/wire.h). */
#ifndef RONDO_COMM_RENDEZVOUS_CONNECTOR_H
#define RONDO_COMM_RENDEZVOUS_CONNECTOR_H

#include "comm/rendezvous/socket.h"
#include "comm/rendezvous/wire.h"

#include "base/fail.h"

struct connector {
    const struct bootstrap_place *place;
    const struct wire_position *relay;   /* whom we talk to; NULL: the meeting point itself */
    const struct bootstrap_watch *watch; /* until the meeting point is reached; NULL: none */
    unsigned holder;                     /* it has our rank already; 0: nobody has */
    int rank, size;
    bool served;      /* since before anybody could come; who finds nobody comes too late */
    double refused;   /* when a port was first found closed */
    unsigned attempt; /* to connect: a name may have several addresses */
    double timeout, deadline;
    double began, late; /* when the rank began to wait, and after how long the log says so */
    int reminders;      /* that the log has of that */
    const void *blob;
    size_t blob_bytes; /* to hand in */
    size_t each;       /* of every rank, to hear */
    int fd;
    struct wire_session session;
    const char *last;    /* why the last attempt to connect failed */
    rondo_result rumour; /* what the last one that listened there said of us, unproved */
    char heard[FAIL_SENTENCE_MAX];
    bool nobody; /* has proved to be the meeting point, until the end of the trying */
    bool told;   /* a proven reply has come */
};

/* Connect, claim, and hear that who listens there knows our secret; tries until the deadline, a
 * relay once. */
rondo_result connector_reach(struct connector *me);
/* Say hello and claim the rank on a fresh connection, me->fd: true if the meeting point proves
 * that it is one. */
bool connector_enter(struct connector *me);
/* The blob. */
rondo_result connector_hand_in(struct connector *me);
/* Wait for a position (ret_position may be NULL: it has one) or the reply, which fills ret_blobs or
 * is an error. With a position ret_position->header is set. */
rondo_result connector_hear(struct connector *me, struct wire_position *ret_position,
                            void *ret_blobs);
/* Log for whom the rank waits, when it is time for that; returns when it will be. */
double connector_remind(struct connector *me);
/* Say that the position is taken, and where others may wait, or "". */
rondo_result connector_take_position(struct connector *me, const char *address, bool moved);
void connector_close(struct connector *me);
/* The error for a connection that broke. */
rondo_result connector_broken(const struct connector *me, enum socket_outcome outcome);

#endif
