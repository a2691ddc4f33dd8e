/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p.h - messages with tags: a communicator of its own whose turn one thread keeps.
 *
 * Between two ranks travel *parcels*: an envelope, and behind it the payload, as two messages of
 * that communicator. Short messages go whole; of a long one goes an offer first, which the receiver
 * accepts when somebody asks for it:
 *
 *     sender                      receiver
 *     WHOLE tag, payload   --->   posted receive, or kept until there is one
 *     OFFER tag, number    --->   posted receive, or kept until there is one
 *                          <---   ACCEPT number
 *     LONG number, payload --->   straight to the output of that receive
 *
 * Instead of ACCEPT the receiver answers REFUSE where the message is too long for its receive, and
 * when its end closes: the send is over then, without its payload. One that was on its way then
 * ends when its sender sees that the end is closed (look.c).
 *
 * Every peer has a route: the envelope that is awaited from it, always, or the payload behind it;
 * and a queue of parcels to it. While a transfer is not over somebody advances all routes, a caller
 * that waits or else the thread. The thread also takes what comes otherwise (LOOK_UNASKED).
 * Through networks only the thread waits for messages, without the lock; who does not wait moves
 * what has come.
 *
 * One lock guards everything. Who makes rounds holds it while it moves data and gives it between
 * them.
 */
#ifndef RONDO_COMM_P2P_P2P_H
#define RONDO_COMM_P2P_P2P_H

#include "rondo/p2p.h"

#include "base/lock.h"
#include "comm/failure/network.h"
#include "comm/state/task.h"

#include <pthread.h>

enum { P2P_WHOLE_MOST = 64 * 1024 }; /* bytes of a message that goes without an offer */

enum p2p_kind { P2P_WHOLE, P2P_OFFER, P2P_ACCEPT, P2P_LONG, P2P_REFUSE };

/* Travels before a payload. */
struct p2p_head {
    uint32_t kind;
    int32_t tag; /* of P2P_REFUSE: 0, or RONDO_ERROR_PEER as the receiver's end closes */
    uint64_t bytes;
    uint64_t number; /* of an offer */
};
_Static_assert(sizeof(struct p2p_head) == 24, "the same on every host");

enum transfer_state { TRANSFER_POSTED, TRANSFER_MATCHED, TRANSFER_OVER };

struct rondo_transfer {
    rondo_transfer *next; /* in the list that it is in */
    rondo_p2p *p2p;
    enum transfer_state state;
    bool sends, probes;      /* neither: it receives */
    rondo_envelope envelope; /* the source is the peer of a send */
    char *memory;
    size_t room;
    uint64_t number; /* of the offer, of a long message */
    double began;  /* when what waits for any source, or itself, was first looked at, 0: not yet */
    int reminders; /* that the log has of it since then */
    rondo_result result;
    char *sentence;  /* of an error; NULL: none */
    uint32_t traced; /* number in the trace, if there is one */
};

struct transfers {
    rondo_transfer *first;
};

/* A message that nobody had asked for when it came. */
struct unexpected {
    struct unexpected *next;
    rondo_envelope envelope;
    bool offered;    /* it is with the sender */
    uint64_t number; /* of the offer */
    char *payload;
    bool whole;            /* the payload is there */
    rondo_transfer *taker; /* asked for before that */
};

struct parcel {
    struct parcel *next;
    struct p2p_head head;
    rondo_transfer *transfer; /* over when the payload has gone; NULL: there is no payload */
};

struct route {
    struct p2p_head in, out;    /* of the messages on their way */
    bool behind_in, behind_out; /* the payload is on its way, not the envelope */
    rondo_transfer *to;         /* whom the payload is for, or ... */
    struct unexpected *kept;    /* ... where it is kept, or ... */
    char *lost;                 /* ... memory for what nobody can take */
    struct parcel *first, **last;
    bool held;     /* the first message is with the network, which has yet to send it */
    bool gone;     /* the peer was at the last look: closed, or ended */
    bool moves;    /* something did since then */
    double moved;  /* the last look by which something had */
    int reminders; /* that the log has of the wait since then */
};

struct rondo_p2p {
    rondo_comm *comm;
    struct lock lock;
    pthread_cond_t posted, over; /* for the thread; for who waits for transfers and messages */
    pthread_t thread;
    int users;          /* the owner, and transfers */
    int pending;        /* transfers that are not over, and probes */
    double glanced;     /* when a probe that does not wait last had peers looked at */
    double interrupted; /* when rounds in which something moved were last interrupted for that */
    unsigned busy;      /* such rounds, so far */
    unsigned looks;     /* at peers, so far */
    double still_since; /* when a look first found that nothing moves, 0: something has since */
    bool driven;        /* one of those that wait makes the rounds, and the thread sleeps */
    atomic_int knocks;  /* threads that want the lock */
    bool closing;
    bool restarts;       /* the next look begins all waits anew */
    bool alone;          /* all peers had closed their ends at the last look */
    uint32_t home;       /* of the process that made it: fork_home() */
    rondo_result failed; /* all that begins from now on ends with it */
    char sentence[FAIL_SENTENCE_MAX];
    uint64_t offers; /* made by this rank */
    struct transfers receives, probes, offered, accepted;
    struct unexpected *first, **last;
    struct route *routes; /* [rank] */
    struct task *tasks;   /* [rank] from there, [size + rank] to there */
    struct batch batch;
    /* Of the communicator, which does not write down the tasks that move messages. */
    struct recorder *recorder;
    struct trace *trace; /* where transfers are written; NULL: nowhere */
};

/* ---- open.c ---------------------------------------------------------------------------------- */

void p2p_enter(rondo_p2p *p2p);
/* Give the lock, and free what the last user leaves. */
void p2p_leave(rondo_p2p *p2p);

/* ---- match.c: all with the lock held --------------------------------------------------------- */

void transfers_add(struct transfers *list, rondo_transfer *transfer);
void transfers_remove(struct transfers *list, const rondo_transfer *transfer);
/* Ends a transfer, with the thread's last sentence if that is an error. */
void transfer_end(rondo_transfer *transfer, rondo_result result);
/* Find a message that came for a receive which is posted now, or post it. */
rondo_result match_receive(rondo_transfer *transfer);
/* Finds where the payload behind an envelope goes: sets the route's `to`, `kept` or `lost`. */
rondo_result match_envelope(rondo_p2p *p2p, int source);
/* The payload is there. */
void match_payload(rondo_p2p *p2p, int source);
/* A message of this rank to itself, which is over then. */
rondo_result match_own(rondo_transfer *send);
/* Refuse all offers that nobody has asked for, as this end closes. */
rondo_result match_refuse_offers(rondo_p2p *p2p);
/* Ends a send whose message is lost, as its receiver has closed its end. */
void match_end_lost(rondo_transfer *send);
const struct unexpected *match_find(const rondo_p2p *p2p, int source, int tag);

/* ---- progress.c ------------------------------------------------------------------------------ */

/* All but the last with the lock held. Queue a parcel. */
rondo_result progress_send(rondo_p2p *p2p, int peer, const struct p2p_head *head,
                           rondo_transfer *transfer);
/* Ends all sends that are queued to a peer, which has closed its end. */
void progress_end_lost(rondo_p2p *p2p, int peer);
/* Begin to receive the next envelope of a peer. */
void progress_await_envelope(rondo_p2p *p2p, int peer);
/* Advance the routes of these peers, which may be this rank; true if any moved. */
bool progress_peers(rondo_p2p *p2p, int first, int last);
/* Advance all routes, and about once a millisecond look at peers, for who does not wait. */
void progress_glance(rondo_p2p *p2p);
/* Advance all routes; where nothing moves, pause once without the lock. */
void progress_round(rondo_p2p *p2p, struct waiter *waiter);
/* Wake the thread if there is work for it. */
void progress_hand_over(rondo_p2p *p2p);
void *progress_run(void *p2p);

/* ---- look.c ---------------------------------------------------------------------------------- */

/* Ends what waits in vain, and finds a peer that will not do its part: then the batch has an error.
 * With the lock held, about once a millisecond, and each time after a round. */
void p2p_look_after(rondo_p2p *p2p, double now);
/* Forget how long transfers have waited. With the lock held. */
void p2p_restart_waits(rondo_p2p *p2p);

/* ---- tracing.c ------------------------------------------------------------------------------- */

/* A transfer is posted, or is about to end with `result`. With the lock held, and only where there
 * is a trace. */
void p2p_trace_post(rondo_transfer *transfer);
void p2p_trace_end(const rondo_transfer *transfer, rondo_result result);

/* In a sentence: what is known of a peer whose end is closed. */
static inline const char *p2p_how_closed(const rondo_p2p *p2p, int peer)
{
    return networks_mirror(p2p->comm, peer)
               ? "has closed its messages (rondo_p2p_close), or has ended,"
               : "has closed its messages (rondo_p2p_close)";
}

/* The messages on their way from a peer, and to it. */
static inline struct task *p2p_task_from(const rondo_p2p *p2p, int peer)
{
    return &p2p->tasks[peer];
}

static inline struct task *p2p_task_to(const rondo_p2p *p2p, int peer)
{
    return &p2p->tasks[p2p->comm->size + peer];
}

#endif
