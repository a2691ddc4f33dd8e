/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connection.h - links over a network: what a transport has to do that moves bytes.
 *
 *     executor        writer's host                          reader's host        executor
 *     fills a slot -> [outbox ring]  == push: put, bytes ==> [inbox ring] -> polls the slot's flag
 *     polls the counter <- credit    <== give_back ========  counter      <- gives slots back
 *
 * Both ranks have a ring of link.h's layout in memory of their own, so the executor waits on a
 * flag or a counter whatever the transport is. Only two calls tell the transport that something
 * is to be sent; all else happens in progress(), which whoever holds the communicator's turn
 * calls: while its call is blocked, and at the end of it until flushed(). A blocked call always
 * progresses, so who waits for credit also receives. No function here waits, except doze(), and
 * reclaim() for an adapter.
 *
 * Orders of memory: what arrives is stored before the slot's flag (release; pairs with
 * step_wait_data()), and link_credit.consumed of an outbox only when its bytes are not needed any
 * more (release; pairs with step_wait_credit()).
 */
#ifndef RONDO_TRANSPORT_LINK_CONNECTION_H
#define RONDO_TRANSPORT_LINK_CONNECTION_H

#include "base/fail.h"
#include "transport/link/call_header.h"
#include "transport/link/device_memory.h"
#include "transport/link/link.h"

/* ---- One channel between two ranks: what link_out.connection and link_in.connection point to
 * -- */

struct connection;

/* The rings of messages that a device fills and reads, of which the host sees flags and counters
 * only. */
struct connection_rings {
    uint64_t out, in; /* device memory of the layout of the link's slots; 0: in the slots, and: */
    void *memory;     /* pages that hold both rings of slots and nothing of other connections */
    size_t bytes;
};

struct connection_ops {
    /*
     * Writer: the message in `slot` is complete: `bytes` at `payload`, which is the slot's payload
     * or, if it is inlined, the room beside its flag; the reader wants it in the same of the two.
     * `flag` is what the reader's slot gets: low half the message's number, counted from 1 without
     * gaps, high half the fingerprint. All stays as it is until the reader has given it back.
     *
     * A transport that has reclaim() also sends zero-copy, from where takes() says so: the
     * payload's memory which stays as it is until flushed(), let_go(), or a reclaim() that names
     * it.
     */
    void (*push)(struct connection *connection, struct link_slot *slot, const char *payload,
                 size_t bytes, uint64_t flag);
    /* Reader: `received` messages have been read since the start (a number that wraps). */
    void (*give_back)(struct connection *connection, uint32_t received);
    /* Writer: this memory is about to be written. What is being sent zero-copy of it, over whatever
     * connection of the network, and is not sent yet, is copied into its slot; where an adapter
     * reads it at this moment, that is waited for. NULL: there are no zero-copy sends. */
    void (*reclaim)(struct connection *connection, const void *at, size_t bytes);
    /* Writer: would a message from there save a copy? NULL: always. */
    bool (*takes)(struct connection *connection, const void *payload, size_t bytes);
    /*
     * Reader: the message with that flag may have its payload put `at`, if it is so long and none
     * of it has come. Then `delivered` is its flag by the time that the slot's is stored. For one
     * message at a time, until let_go(). NULL: all messages come to slots.
     */
    void (*post_receive)(struct connection *connection, uint64_t flag, void *at, size_t bytes);
    /* False: not known until the ranks are connected, which is seen to. The same at every call
     * after that, and on both sides as to device memory. */
    bool (*rings)(struct connection *connection, struct connection_rings *ret_rings);
    /* Does what push() does for a message that lies in the ring of the device; `payload` is where
     * it would lie in the slot. NULL: there is no such ring. */
    void (*push_device)(struct connection *connection, struct link_slot *slot, const char *payload,
                        size_t bytes, uint64_t flag);
};

struct connection {
    const struct connection_ops *ops; /* first member of what a transport keeps */
    int peer, channel;
    uint64_t posted;    /* flag of the last message that the executor may have expected */
    uint64_t delivered; /* flag of the last message that went where it was expected; never 0 */
    void *delivered_to; /* there */
};

static inline void connection_push(struct connection *connection, struct link_slot *slot,
                                   const char *payload, size_t bytes, uint64_t flag)
{
    connection->ops->push(connection, slot, payload, bytes, flag);
}

static inline bool connection_zcopies(const struct connection *connection)
{
    return connection && connection->ops->reclaim;
}

static inline bool connection_posts(const struct connection *connection)
{
    return connection && connection->ops->post_receive;
}

static inline bool connection_takes(struct connection *connection, const void *payload,
                                    size_t bytes)
{
    return connection_zcopies(connection) &&
           (!connection->ops->takes || connection->ops->takes(connection, payload, bytes));
}

static inline void connection_give_back(struct connection *connection, uint32_t received)
{
    connection->ops->give_back(connection, received);
}

/* ---- All connections of a transport in one communicator -------------------------------------- */

enum { NETWORK_KEY = 32, NETWORK_NOTE = 256 };

/* Why a communicator broke, as it travels to the peers. */
struct network_failure {
    rondo_result result;
    int culprit; /* the rank to blame, -1 unknown */
    const char *sentence;
    bool answered; /* this rank lets its networks move on, so peers may still connect */
    /* Nothing broke and nobody is told: what the culprit has not taken is no failure, and neither
     * closing nor flushed() waits until it has acknowledged that. By who holds the turn. */
    bool forsakes;
};

/* The wait of a rank, if it lasts, as its peers learn of it (comm/failure/blame.h). */
struct network_wait {
    uint64_t blames;
    uint32_t heartbeats;
};

/* The communicator, as far as networks see it. */
struct network_owner {
    /* The call in progress, which travels with every message (call_header.h). */
    const struct call_header_page *page;
    /* What is rare; called from progress(), tell() and close() only. */
    void *context; /* handed to all of them */
    /* waits() writes, and waited() takes, what travels with the answer to a peer's watch(). */
    void (*waits)(void *context, struct network_wait *ret_wait);
    void (*waited)(void *context, int peer, const struct network_wait *wait);
    /* The communicator of `peer` is broken; the sentence is terminated and printable. */
    void (*failed)(void *context, int peer, const struct network_failure *failure);
    /* The peer is gone, and what it sent has come. `parted`: it has closed its end, or nobody has
     * listened there any more when it was dialed. NULL: nobody needs to know. */
    void (*left)(void *context, int peer, bool parted);
    /* A note of the peer's (network_ops.note), up to NETWORK_NOTE bytes. */
    void (*note)(void *context, int peer, const void *bytes, size_t count);
};

struct network;

struct network_ops {
    const char *name;
    /*
     * Move what can be moved: what was pushed to the wire, what arrived into inbox rings, credits,
     * handshakes. An error has its sentence set, and network->culprit the rank to blame.
     */
    rondo_result (*progress)(struct network *network, bool *ret_moved);
    /* True if all that was pushed and given back will reach its peers without further progress().
     * If not, ret_peer (may be NULL) is one that it waits for. */
    bool (*flushed)(struct network *network, int *ret_peer);
    /* True if some of what was pushed and given back to that rank is what flushed() waits for. */
    bool (*owes)(struct network *network, int rank);
    /* Sleep until there may be something for progress(), at most so many seconds. NULL: nothing
     * could end that, as what comes is seen in memory; so looks at it cost next to nothing. */
    void (*doze)(struct network *network, double seconds);
    /*
     * A wait for `peer` lasts: see to it that its end would be noticed, which may need a
     * connection. RONDO_OK while it may still come; else the sentence says what happened to it, or
     * to what this rank needs for hearing it, and network->culprit is the rank to blame.
     * Called about once a millisecond.
     */
    rondo_result (*watch)(struct network *network, int peer);
    /* The communicator is broken: tell every peer that can be told within a moment. Any thread. */
    void (*tell)(struct network *network, const struct network_failure *failure);
    /* A few bytes to the peer's owner->note, in order, beside the data. NULL: it can't. */
    rondo_result (*note)(struct network *network, int peer, const void *bytes, size_t count);
    /* A note has come that may be of this network on the peer's side: those that have no note() of
     * their own send them over their control network. NULL: it sends none. */
    void (*hear)(struct network *network, int peer, const void *bytes, size_t count);
    /* "HOST:0", at which other hosts reach this one; an error says why none is known. NULL: this
     * network has no such addresses. */
    rondo_result (*place)(struct network *network, char *ret_text, size_t room);
    /* Returns which way the network uses memory of that device; `wanted` is RONDO_GPUDIRECT. NULL:
     * it can't. */
    enum device_way (*try_device)(struct network *network, const struct device_source *device,
                                  const char *wanted);
    /* A call has failed: no memory of zero-copy sends or posted receives is touched any more. NULL:
     * none is. */
    void (*let_go)(struct network *network);
    /* Frees it; says good-bye to peers. Accepts NULL. */
    void (*close)(struct network *network);
};

struct network {
    const struct network_ops *ops; /* first member of what a transport keeps */
    int culprit;
    bool carries; /* messages of some peer; else it is there for notes, and to watch */
};

#endif
