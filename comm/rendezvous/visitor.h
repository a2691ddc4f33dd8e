/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * visitor.h - one connection to the meeting point, as seen by the server.
 *
 * It walks HELLO -> CLAIM -> BLOB -> WAITING -> SEATING -> SEATED -> REPLY, one non-blocking step
 * at a time; whatever goes wrong before its claim is proven only closes it. WAITING: until there is
 * a seat for it; SEATING: it has been told where. If that is at a relay, it leaves us from there.
 * Somebody who gets an answer while still sending (a wrong secret, a second rank 3) is LEAVING:
 * what it sends is thrown away until it hangs up, because closing over unread bytes would make the
 * system throw away our answer instead.
 */
#ifndef RONDO_COMM_RENDEZVOUS_VISITOR_H
#define RONDO_COMM_RENDEZVOUS_VISITOR_H

#include "comm/rendezvous/server.h"

enum visitor_stage {
    VISITOR_HELLO,
    VISITOR_CLAIM,
    VISITOR_BLOB,
    VISITOR_WAITING,
    VISITOR_SEATING,
    VISITOR_SEATED,
    VISITOR_REPLY,
    VISITOR_LEAVING,
    VISITOR_GONE
};

struct visitor {
    int fd;
    enum visitor_stage stage;
    double since, deadline; /* when it came; when it is dropped */
    struct wire_session session;
    union {
        struct wire_hello hello;
        struct wire_claim claim;
        struct wire_seat seated;
        struct wire_news news;
    } in;
    size_t filled; /* of `in`, or of the blob */
    int rank;
    struct relay who; /* the member, as far as others need to know it */
    struct wire_seat seat;
    bool unread; /* it was still sending when its answer began */
    struct wire_reply reply;
    size_t sent; /* of reply and body together */
};

void visitor_init(struct visitor *visitor, int fd, const unsigned char *secret);
/* Is the visitor a stranger, who has proved nothing (any more)? Strangers go first when room is
 * short. */
bool visitor_is_stranger(const struct visitor *visitor);
/* Is the visitor here only to be told where to go? */
bool visitor_is_passing(const struct visitor *visitor);
/* Do one step for a visitor that is ready for reading or writing, without waiting. */
void visitor_serve(struct visitor *visitor, struct meeting *meeting);
/* The meeting is decided: begin to tell this member. */
void visitor_answer(struct visitor *visitor, const struct meeting *meeting);
/* Give a seat to a visitor that is WAITING, if there is one. Without patience there is. */
void visitor_seat(struct visitor *visitor, struct meeting *meeting, bool patient);
/* Close it; the log says why. A member that goes before the decision takes the job with it. */
void visitor_drop(struct visitor *visitor, struct meeting *meeting, const char *why);

#endif
