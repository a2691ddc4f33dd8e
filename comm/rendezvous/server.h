/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h - the meeting point: one thread that serves every connection at once.
 *
 * A client is a connection that has proved nothing yet; it has a few seconds, a fixed buffer, and
 * no influence on the job. A correct claim makes it a member, and it gets a position
 * (rendezvous/relay_tree.h). The rendezvous is decided once: every rank is there, or a sentence
 * says why not. Then the listener is closed and every member gets the same answer.
 *
 * A relay (rendezvous/relay.c) is a meeting point for those who wait with it: what its own
 * connection says decides, and what it finds out itself it tells through that.
 */
#ifndef RONDO_COMM_RENDEZVOUS_SERVER_H
#define RONDO_COMM_RENDEZVOUS_SERVER_H

#include "comm/rendezvous/relay_tree.h"
#include "comm/rendezvous/wire.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

/* The order for server.c. The listener belongs to it from the call on. */
struct server_task {
    const struct bootstrap_place *place;
    int listener;
    int stop;          /* a file descriptor that becomes readable to end early, or -1 */
    int size;          /* 0: the first member tells */
    size_t blob_bytes; /* with size 0: the first member tells */
    const void *blob; /* of rank 0 when it is the server; NULL: every rank comes through a socket */
    double timeout;   /* seconds, 0: for ever */
    double late;      /* seconds until the log says who is waited for, 0: never */
    bool relays;      /* decides nothing but failures; claims bring no blobs */
    struct connector *above;             /* of a relay: where it waits itself */
    const struct bootstrap_watch *watch; /* NULL: none */
};

struct server;

/* Serves until it is decided and told. `server` is memory of the caller, who has nothing else to do
 * with it. ret_blobs (may be NULL): size * blob_bytes. The sentence is that which the members
 * got. */
rondo_result server_run(struct server *server, const struct server_task *task, void *ret_blobs);

/* ---- The rendezvous: who is there. rendezvous/roster.c; no sockets in it --------------------- */

struct member {
    bool present;    /* has claimed */
    bool arrived;    /* its blob is here */
    bool positioned; /* it waits for the answer */
    unsigned pid;
    char host[WIRE_HOST];
};

struct roster {
    const char *address;
    bool relays;
    int size; /* 0: not known yet */
    size_t blob_bytes;
    int claims;             /* proven ones, also those that do not fit */
    int present;            /* blobs that are complete */
    int positioned;         /* members that wait for the answer */
    struct member *members; /* [size], by rank: those that have claimed */
    unsigned char *blobs;   /* [size * blob_bytes] */
    struct relay_tree tree;
    bool decided;
    rondo_result result;
    char sentence[WIRE_SENTENCE];
    const void *answer; /* once it is decided: the blobs, or the sentence */
    size_t answer_bytes;
    unsigned char answer_hash[WIRE_HASH];
};

/* With size 0 nothing is allocated until the first claim. */
rondo_result roster_init(struct roster *roster, const struct server_task *task);
void roster_done(struct roster *roster);
/* A proven claim: true if the rank's blob may come now. False: the rendezvous is decided, with a
 * sentence. */
bool roster_claim(struct roster *roster, const struct wire_claim *claim, size_t blob_bytes);
unsigned char *roster_blob(struct roster *roster, int rank);
/* The rank's blob is complete. */
void roster_arrive(struct roster *roster, int rank);
/* The rank has taken its position, here or at a relay. */
void roster_position(struct roster *roster, int rank);
/* All ranks have taken their positions, and nothing is known against it: they get all blobs. */
bool roster_is_complete(const struct roster *roster);
void roster_complete(struct roster *roster);
void roster_leave(struct roster *roster, int rank); /* its connection broke before the decision */
void roster_stop(struct roster *roster);            /* the server has to end early */
/* `refused`: how often a connection could not be accepted for lack of file descriptors. */
void roster_time_out(struct roster *roster, double waited, unsigned refused);
/* A relay has found out why it can't work. The sentence need not be terminated. */
void roster_news(struct roster *roster, rondo_result result, const char *sentence);
/* At a relay: the answer has come, and goes before what it thought itself. All blobs, which stay
 * where they are, or a failure whose sentence is set. */
void roster_told(struct roster *roster, rondo_result result, const void *blobs, size_t bytes);

/* ---- Its parts, for a relay ------------------------------------------------------------------ */

struct client;

struct server {
    const struct server_task *task;
    struct roster roster;
    int listener;
    double accept_after; /* out of descriptors, or full: not before this time */
    double settled;      /* when it is decided that all ranks have come; 0: they have not */
    double began;        /* when the first rank began to wait for others, 0: none has come */
    int reminders;       /* that the log has of this wait */
    unsigned refused;
    struct client **clients; /* oldest first */
    size_t count, room;
    struct pollfd *polls; /* [room + 2] */
};

enum server_end { SERVER_DECIDED, SERVER_STOPPED, SERVER_TIMED_OUT };

rondo_result server_open(struct server *server, const struct server_task *task);
/* Until it is decided, task->stop has something to read, or time is over. */
enum server_end server_gather(struct server *server);
/* Tell all members, each within its deadline. `linger`: also those that come a moment later. */
void server_answer(struct server *server, bool linger);
void server_close(struct server *server);

#endif
