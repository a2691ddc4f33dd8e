/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bootstrap_visitor.h - one connection to the meeting point, as seen by the server.
 *
 * It walks HELLO -> CLAIM -> BLOB -> SEATED -> REPLY, one non-blocking step at a time; whatever
 * goes wrong before its claim is proven only closes it. Somebody who gets an answer while still
 * sending (a wrong secret, a second rank 3) is LEAVING: what it sends is thrown away until it
 * hangs up, because closing over unread bytes would make the system throw away our answer instead.
 */
#ifndef RONDO_COMM_BOOTSTRAP_VISITOR_H
#define RONDO_COMM_BOOTSTRAP_VISITOR_H

#include "comm/bootstrap_server.h"

enum visitor_stage {
    VISITOR_HELLO,
    VISITOR_CLAIM,
    VISITOR_BLOB,
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
    } in;
    size_t filled; /* of `in`, or of the blob */
    int rank;
    bool unread; /* it was still sending when its answer began */
    struct wire_reply reply;
    size_t sent; /* of reply and body together */
};

void visitor_init(struct visitor *visitor, int fd, const unsigned char *secret);
/* Has proved nothing (any more): the first to go when room is short. */
bool visitor_is_stranger(const struct visitor *visitor);
/* It is ready for reading or writing: one step on, without waiting. */
void visitor_serve(struct visitor *visitor, struct meeting *meeting);
/* The meeting is decided: begin to tell this member. */
void visitor_answer(struct visitor *visitor, const struct meeting *meeting);
/* Close it; the log says why. A member that goes before the decision takes the job with it. */
void visitor_drop(struct visitor *visitor, struct meeting *meeting, const char *why);

#endif
