/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h - what the parts of the TCP transport share.
 *
 *     network   one per communicator: listener, epoll, peers        tcp.c
 *     peer      another rank: its lines, messages that wait         tcp/peer.c
 *     line      a socket: line 0 for control, the others for data   tcp/line.c (bytes)
 *                                                                   tcp/hello.c (who is it?)
 *                                                                   tcp/seal.c (is it changed?)
 *
 * A message goes out on the first data line that is free, straight from its slot, and comes in
 * straight into the slot that its number belongs to; so lines need not keep the order. Where they
 * can, long messages leave from memory of the caller and come to it (tcp/zcopy.c). The control line
 * never carries data: it is nearly empty, so that a failure can always be told, and the kernel's
 * keepalive works on it whatever the program does. (A user timeout on a data line would take a rank
 * for dead that computes while its window is full.)
 *
 * Everything here runs under network->lock.
 */
#ifndef RONDO_TRANSPORT_TCP_ENGINE_H
#define RONDO_TRANSPORT_TCP_ENGINE_H

#include "base/clock.h"
#include "base/lock.h"
#include "base/proof.h"
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <sys/uio.h>

enum {
    TCP_LINES = 9,       /* per peer at most: control and 8 for data */
    TCP_BATCH = 8,       /* messages that one system call may send */
    TCP_AHEAD = 8192,    /* bytes that are read beside what is asked for */
    TCP_STRANGERS = 256, /* places for accepted connections that have not proved anything yet */
};

/* ---- What travels ---------------------------------------------------------------------------- */

enum tcp_kind {
    TCP_DATA = 1, /* a message and its payload */
    TCP_CREDIT,   /* slots given back, when no message goes that way */
    /* On the control line: */
    TCP_NOTE,  /* for another transport */
    TCP_FAIL,  /* the sender's communicator is broken; result and culprit in `flag`, a sentence */
    TCP_BYE,   /* the sender closes its communicator */
    TCP_WIDEN, /* please open all data lines: large messages wait here */
    TCP_ASK,   /* what are you calling, and whom do you wait for? */
    TCP_TELL,  /* this, see the call header; a struct network_wait in `flag` and `consumed` */
};

struct tcp_frame {
    uint8_t kind, channel, inlined, unused;
    uint32_t bytes;    /* that follow */
    uint64_t flag;     /* of the message */
    uint32_t consumed; /* messages of this channel that the sender has given back */
    unsigned char call_header[sizeof(struct call_header)];
};
_Static_assert(sizeof(struct tcp_frame) == 48, "wire format");

struct tcp_hello {
    char magic[8];
    int32_t from, to, size;
    uint32_t line;
    uint64_t comm;
    unsigned char nonce[PROOF_NONCE];
};
struct tcp_challenge {
    unsigned char nonce[PROOF_NONCE];
    unsigned char proof[PROOF_BYTES];
};
_Static_assert(sizeof(struct tcp_hello) == 64, "wire format");
_Static_assert(sizeof(struct tcp_challenge) == 64, "wire format");

enum tcp_verdict { TCP_WELCOME = 0x57454c43, TCP_BUSY = 0x42555359 };

/* The first record of the acceptor. */
struct tcp_answer {
    uint32_t verdict;
    unsigned char tag[SEAL_TAG];
};
_Static_assert(sizeof(struct tcp_answer) == 20, "wire format");

/* ---- Lines ----------------------------------------------------------------------------------- */

struct tcp_message {
    struct tcp_frame frame;
    const char *payload;
    char *slot; /* zero-copy send: it goes there if the owner wants to write over it */
};

enum tcp_line_state {
    TCP_CONNECTING, /* dialed: the system is at it */
    TCP_CHALLENGED, /* dialed: the hello is out */
    TCP_PROVED,     /* dialed: the proof is out */
    TCP_GREETED,    /* accepted: nothing has come */
    TCP_DOUBTED,    /* accepted: the challenge is out */
    TCP_OPEN,
    TCP_CLOSED, /* freed at the end of progress() */
};

struct tcp_line {
    struct tcp_network *network;
    struct tcp_peer *peer; /* NULL: a stranger */
    struct tcp_line *next; /* among strangers, or the closed */
    int fd, index;
    enum tcp_line_state state;
    bool dialed;
    double deadline; /* of the handshake */
    bool blocked;    /* the socket took no more: told when it does */

    struct tcp_hello hello;
    struct tcp_challenge challenge;
    size_t filled; /* of what the handshake waits for */
    union {
        struct tcp_hello hello;
        struct tcp_challenge challenge;
        unsigned char proof[PROOF_BYTES];
        struct tcp_answer answer;
    } coming;

    struct tcp_message batch[TCP_BATCH]; /* being sent */
    int batched;
    size_t sent; /* bytes of the batch */

    struct seal out, in; /* tcp/seal.c */
    bool sealed;         /* what follows the handshake is records */
    bool spoiled;        /* what came was wrong: nothing more is read */
    char *stage;         /* records to be sent: bytes [begin, end) of it */
    size_t stage_begin, stage_end, stage_room;
    size_t staged; /* of network->unsent, what is there in whole */
    bool stage_holds_data;

    struct tcp_frame frame; /* whose payload is coming */
    struct link_slot *slot; /* TCP_DATA: where it belongs */
    char *to;               /* the rest of it */
    size_t left;
    size_t part;    /* of `left`, what comes before the next tag; all of it where there are none */
    size_t record;  /* bytes of that record in all */
    bool due;       /* its tag is what comes next */
    bool aimed;     /* `to` is where it stays, be that its slot or where it was expected */
    bool delivered; /* the latter */
    size_t have;    /* bytes in `ahead` */
    bool digests;   /* they are being looked at: `have` and `ahead` are old */
    char ahead[TCP_AHEAD];
    char aside[FAIL_SENTENCE_MAX]; /* payload of control frames */
};

/* ---- Peers ----------------------------------------------------------------------------------- */

struct tcp_link {
    struct connection base; /* first: comes back from the executor */
    struct tcp_peer *peer;
    char *inbox;                /* its first slot */
    struct link_credit *credit; /* of the outbox */
    uint32_t pushed;
    uint32_t given;       /* messages of the peer's that were given back */
    uint32_t given_index; /* slot of the next one */
    uint32_t told;        /* of `given`, what the peer knows */
    struct {
        uint64_t flag; /* 0: none is */
        char *at;
        size_t bytes;
    } expected; /* a message that may go right to where it is wanted */
};

enum tcp_peer_state {
    TCP_NEW,
    TCP_DIALING,
    TCP_AWAITED, /* the peer dials */
    TCP_UP,
    TCP_GONE,
};

struct tcp_peer {
    struct tcp_network *network;
    int rank;
    enum tcp_peer_state state;
    struct call_header_page *page; /* the owner's, for call headers of this peer's */
    struct tcp_endpoint endpoint;
    struct tcp_line *lines[TCP_LINES];
    bool dials;  /* we open the lines */
    bool wide;   /* all data lines are wanted */
    bool bye;    /* it said so */
    bool failed; /* it has left the communicator with an error: it takes no more messages */
    int order[NET_ADDRESSES], attempt;
    int refused;  /* the attempt, from 1, at which nobody listened; 0: none was */
    double began; /* the first attempt to dial, 0: none */
    double since; /* TCP_AWAITED: dial again then; TCP_UP: when the first line ended, 0: none has */
    double asked; /* when the last TCP_ASK went */
    double troubled; /* since when lines that are dialed are dropped: data lines in TCP_UP, the
                        control line before; 0: none was since one passed */
    double again;    /* TCP_UP: when data lines are dialed next, 0: they need not be */
    struct tcp_peer *next; /* among the deferred */
    bool deferred;
    bool asking;               /* a question is out that has no answer yet: one at a time */
    struct tcp_message *queue; /* messages that no line has taken */
    uint32_t head, tail;       /* they wrap; the room is a power of 2 */
    char *control;             /* bytes for the control line */
    size_t control_bytes, control_room;
    char why[200]; /* TCP_GONE: a clause; tampered: which record */
    bool tampered; /* what came was not what it sent */
    bool has_secret;
    unsigned char secret[SEAL_KEY]; /* from which the keys of its lines are made */
    struct tcp_link links[];
};

/* This rank lacks a descriptor, memory of the system or a local port for a connection. */
struct tcp_shortage {
    double since; /* 0: it lacks nothing */
    int number;   /* errno */
};

struct tcp_network {
    struct network base;      /* first: comes back from the communicator */
    struct tcp_network *next; /* of this process */
    struct lock lock;
    struct tcp_endpoint endpoint;
    struct network_owner owner;
    unsigned char key[NETWORK_KEY], private_key[SEAL_KEY];
    enum seal_mode security;
    uint64_t comm;
    int rank, size, channels, slots;
    size_t slot_bytes, stride, ring_bytes; /* of a ring: whole pages */
    int streams;                           /* data lines per peer */
    const char *congestion;
    uint8_t traffic_class; /* 0: the system's */
    double patience;       /* seconds until a host that does not answer is given up */
    int listener, epoll;
    struct tcp_peer **peers; /* [rank], NULL: not over TCP */
    char *rings;
    size_t rings_bytes;
    struct tcp_line *strangers, *closed;
    int stranger_count;
    bool shut; /* all their places are taken: no event is asked for from the listener */
    struct tcp_shortage accept_shortage, dial_shortage;
    uint32_t queue_room;
    _Atomic size_t unsent;     /* messages in queues and batches, and control bytes */
    struct tcp_peer *deferred; /* something long was pushed, and nothing was sent since */
    struct tcp_peer *failed;   /* gone with messages for it waiting */
    double timed;              /* when deadlines were last looked at */
    struct tcp_line *hot;      /* from which alone something came at the last looks, or NULL */
    unsigned in_a_row, looks;  /* how often it did; looks at all */
    bool moved;
    bool broken; /* the failure has been told, and is told on lines that are dialed later, too */
    struct network_failure failure;
    char sentence[FAIL_SENTENCE_MAX];
};

/* True if a message of this line has begun, and is not complete. */
static inline bool tcp_line_is_amid(const struct tcp_line *line)
{
    return line->left || line->due;
}

/* True if there are bytes for the peer that the system has not taken yet. */
bool tcp_peer_waits(const struct tcp_peer *peer);
/* Add to the bytes that wait to be sent (a negative `more` wraps). Release, pairs with the acquire
 * of flushed(), which has no lock: memory of zero-copy sends is not read any more. */
static inline void tcp_count_unsent(struct tcp_network *network, size_t more)
{
    size_t unsent = atomic_load_explicit(&network->unsent, memory_order_relaxed);

    atomic_store_explicit(&network->unsent, unsent + more, memory_order_release);
}

static inline bool tcp_is_shortage(int number)
{
    return number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM;
}

static inline void tcp_note_shortage(struct tcp_shortage *shortage, int number)
{
    if (!shortage->since)
        shortage->since = clock_seconds();
    shortage->number = number;
}

static inline size_t tcp_unsent(const struct tcp_network *network)
{
    return atomic_load_explicit(&network->unsent, memory_order_acquire);
}

/* ---- tcp.c ----------------------------------------------------------------------------------- */

extern const struct network_ops tcp_network_ops;
extern const struct connection_ops tcp_link_ops;
/* Serve sockets that are ready; wait so long for one. */
void tcp_work(struct tcp_network *network, int milliseconds);
/* Free lines that were closed. */
void tcp_bury(struct tcp_network *network);

/* ---- tcp/end.c ------------------------------------------------------------------------------- */

/* Why the communicator is broken, if the peer can be told now. */
void tcp_tell_peer(struct tcp_peer *peer);
void tcp_tell(struct network *base, const struct network_failure *failure);
void tcp_close(struct network *base);
/* List a complete network for the others of this process, which look at it when they close. */
void tcp_enlist(struct tcp_network *network);

/* ---- tcp/place.c ----------------------------------------------------------------------------- */

/* Tells where ranks of other hosts can meet this one: see networks_place(). */
rondo_result tcp_place(struct network *base, char *ret_text, size_t room);

/* ---- tcp/socket.c: sockets ------------------------------------------------------------------- */

/* Ask for events (of epoll) of a line's socket, or of the listener's, which has no line; false:
 * errno says why that can't be. */
bool tcp_socket_watch(const struct tcp_network *network, int fd, uint32_t events,
                      struct tcp_line *line);
/* Close it: no event of it comes any more. */
void tcp_socket_close(const struct tcp_network *network, int fd);
/* Set the socket options of a data line or of the control line. */
void tcp_tune(int fd, bool control, const struct tcp_network *network);
/* The congestion control of a connected data line: a name, or auto. */
void tcp_congest(int fd, const char *wanted);
/* Acknowledge now what has come, not with the next answer or in 40 ms. */
void tcp_acknowledge(int fd);

/* ---- tcp/line.c: bytes ----------------------------------------------------------------------- */

/* A line over `fd`, watched; NULL and the socket closed if there is no memory. */
struct tcp_line *tcp_line_new(struct tcp_network *network, int fd, enum tcp_line_state state);
/* Close the socket; the memory goes at the end of progress(). */
void tcp_line_close(struct tcp_line *line);
/* Write until the socket takes no more or there is nothing left. */
void tcp_line_send(struct tcp_line *line);
void tcp_line_receive(struct tcp_line *line);
/* Be told when it can be written, or no longer. */
void tcp_line_watch(struct tcp_line *line, bool writable);

/* ---- tcp/hello.c: who is it? ----------------------------------------------------------------- */

/* The socket is connected: say who we are. */
void tcp_hello_begin(struct tcp_line *line);
/* Something came before the line is open. */
void tcp_hello_receive(struct tcp_line *line);
/* Everybody who waits to be accepted. */
void tcp_hello_accept(struct tcp_network *network);
/* Off the list of strangers; closed, unless it belongs to a peer by now. */
void tcp_hello_drop(struct tcp_line *line);

/* ---- tcp/seal.c: records --------------------------------------------------------------------- */

/* A key of this communicator's, for the endpoint. */
void tcp_seal_make_keys(struct tcp_network *network);
/* Hello and challenge are there: the keys of the line; false if that can't be. */
bool tcp_seal_begin(struct tcp_line *line, struct tcp_peer *peer);
void tcp_seal_end(struct tcp_line *line);
/* To the stage, as far as there is room: messages of the batch; frames of peer->control. */
void tcp_seal_batch(struct tcp_line *line);
void tcp_seal_control(struct tcp_line *line);
/* Note that so many bytes of the stage are with the system. */
void tcp_seal_sent(struct tcp_line *line, size_t bytes);
/* The frame that came, with its tag if there is one; a part of the payload, which lies before
 * line->to. False: it was changed on the way, the line is spoiled. */
bool tcp_seal_open_frame(struct tcp_line *line, const char *bytes);
bool tcp_seal_open_part(struct tcp_line *line, const char *tag);
/* Set line->part to the bytes of line->left that come before the next tag. */
void tcp_seal_next_part(struct tcp_line *line);

/* ---- tcp/peer.c: the other rank -------------------------------------------------------------- */

/* Why a connection could not be made, as a clause. */
const char *tcp_dial_error(int error);
/* See to it that there will be a control line. */
void tcp_peer_dial(struct tcp_peer *peer);
/* All data lines, not just the first one. */
void tcp_peer_widen(struct tcp_peer *peer);
/* A line has passed its handshake, or failed to, or came to its end later. */
void tcp_peer_opened(struct tcp_peer *peer, struct tcp_line *line);
void tcp_peer_refused(struct tcp_line *line, const char *why);
/* Notes that nobody listened at the address in turn, if `number` (errno) says so. */
void tcp_note_refusal(struct tcp_peer *peer, int index, int number);
void tcp_peer_ended(struct tcp_line *line, int error);
void tcp_peer_gone(struct tcp_peer *peer, const char *why);
/* Room in the queue for one more message. The queue is long enough for all slots. */
struct tcp_message *tcp_peer_append(struct tcp_peer *peer);
/* Give what waits to lines that are free. */
void tcp_peer_send(struct tcp_peer *peer);
/* A frame for the control line, with `bytes` behind it. */
void tcp_peer_control(struct tcp_peer *peer, const struct tcp_frame *frame, const void *bytes);
/* Deadlines. */
void tcp_peer_look(struct tcp_peer *peer, double now);
/* The error for a peer that is gone. */
rondo_result tcp_peer_lost(const struct tcp_peer *peer);

/* ---- tcp/take.c: what frames mean ------------------------------------------------------------ */

/* Find where the payload of line->frame belongs; false: nobody of ours sends that. */
bool tcp_take_post(struct tcp_line *line);
/* The first payload of line->frame comes: say for good where to. */
void tcp_take_aim(struct tcp_line *line);
/* A whole frame came; false if the line has ended through it. */
bool tcp_take(struct tcp_line *line);

/* ---- tcp/zcopy.c: memory of the caller ------------------------------------------------------- */

/* Copy what is being sent zero-copy of this range to slots, so that no message waits to be sent
 * from there. */
void tcp_zcopy_reclaim(struct tcp_network *network, const char *at, size_t bytes);
/* End all zero-copy sends: the caller's memory is not touched after this. */
void tcp_zcopy_end(struct tcp_network *network);

#endif
