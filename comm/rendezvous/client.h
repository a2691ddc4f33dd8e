/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.h - one connection to the meeting point, as seen by the server.
 *
 * It walks HELLO -> CLAIM -> BLOB -> WAITING -> POSITIONING -> POSITIONED -> REPLY, one
 * non-blocking step at a time; whatever goes wrong before its claim is proven only closes it.
 * WAITING: until there is a position for it; POSITIONING: it has been told where. If that is at a
 * relay, it leaves us from there. Somebody who gets an answer while still sending (a wrong secret,
 * a second rank 3) is LEAVING: what it sends is thrown away until it hangs up, because closing over
 * unread bytes would make the system throw away our answer instead.
 */
#ifndef RONDO_COMM_RENDEZVOUS_CLIENT_H
#define RONDO_COMM_RENDEZVOUS_CLIENT_H

#include "comm/rendezvous/server.h"

enum client_state {
    CLIENT_HELLO,
    CLIENT_CLAIM,
    CLIENT_BLOB,
    CLIENT_WAITING,
    CLIENT_POSITIONING,
    CLIENT_POSITIONED,
    CLIENT_REPLY,
    CLIENT_LEAVING,
    CLIENT_GONE
};

struct client {
    int fd;
    enum client_state stage;
    double since, deadline; /* when it came; when it is dropped */
    struct wire_session session;
    union {
        struct wire_hello hello;
        struct wire_claim claim;
        struct wire_position positioned;
        struct wire_news news;
    } in;
    size_t filled; /* of `in`, or of the blob */
    int rank;
    struct relay who; /* the member, as far as others need to know it */
    struct wire_position position;
    bool unread; /* it was still sending when its answer began */
    struct wire_reply reply;
    size_t sent; /* of reply and body together */
};

void client_init(struct client *client, int fd, const unsigned char *secret);
/* True if the client is a stranger, who has proved nothing (any more). Strangers go first when room
 * is short. */
bool client_is_stranger(const struct client *client);
/* True if the client is here only to be told where to go. */
bool client_is_passing(const struct client *client);
/* Do one step for a client that is ready for reading or writing, without waiting. */
void client_serve(struct client *client, struct roster *roster);
/* The rendezvous is decided: begin to tell this member. */
void client_answer(struct client *client, const struct roster *roster);
/* Give a position to a client that is WAITING, if there is one. Without patience there is. */
void client_position(struct client *client, struct roster *roster, bool patient);
/* Close it; the log says why. A member that goes before the decision takes the job with it. */
void client_drop(struct client *client, struct roster *roster, const char *why);

#endif
