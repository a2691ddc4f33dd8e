/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ops.h - what a means of transport does: it makes the links (link.h) of a pair of ranks. A new one
 * is a folder that defines a `struct transport_ops`, and a line in transport/table.c; its name is a
 * word of RONDO_TRANSPORT then. tests/transport/toy is the smallest.
 */
#ifndef RONDO_TRANSPORT_LINK_OPS_H
#define RONDO_TRANSPORT_LINK_OPS_H

#include "rondo/rondo.h"
#include "transport/link/endpoint.h"
#include "transport/link/connection.h"
#include "transport/link/link.h"
#include "transport/link/seal.h"

#include <stdbool.h>

struct process;

/* Two ranks that are to be linked, as the communicator knows them, and of a transport with a
 * network what is that one's. */
struct transport_pair {
    const struct endpoint *own, *peer;
    struct process *process;          /* of the peer, if it is on this node */
    struct call_header_page *page;    /* for call headers of the peer's, if it is not */
    const void *own_part, *peer_part; /* of the endpoints */
    struct network *network;          /* NULL: not open */
    int channels;
};

/* A network that is to be opened. */
struct network_wish {
    int rank;
    bool must; /* it was asked for by name, or there is no other way: say in an error why not */
    uint8_t traffic_class; /* of what is sent, as IP has it; 0: the system's */
    enum seal_mode security;
    size_t long_rings; /* bytes of all rings to and from a peer, if slots are long */
};

/* The facts that all ranks of a communicator know of each other, and this one of itself. */
struct network_job {
    struct network_owner owner;
    struct network *control;  /* of transport_ops.control; outlives this network */
    const unsigned char *key; /* NETWORK_KEY bytes that only ranks of the job know */
    uint64_t comm;            /* which communicator of the job */
    enum seal_mode security;  /* of data; control is never less than authentic */
    int rank, size, channels, slots;
    size_t slot_bytes;
    /* All ranks have found their adapters to be able to use their devices' memory, this one so: */
    enum device_way way;
    const struct device_source *device; /* NULL: they have not; outlives the network */
};

/* Between two hosts with a rank each, messages that are longer than elsewhere are cheaper: */
enum link_length {
    LINK_SAME_LENGTH,  /* no */
    LINK_LONG_ONE_WAY, /* in calls where one is enough for what goes one way at a time */
    LINK_LONG,         /* always */
};

struct transport_ops {
    const char *name;
    /* True if these two can talk this way. No side effects; when not, `why` is a clause for the
     * log. */
    bool (*can_connect)(const struct transport_pair *pair, const char **why);
    /* Fill out[channel * size + peer] and in[...] for every channel. Nothing to undo on failure. */
    rondo_result (*connect)(const struct transport_pair *pair, struct link_out *out,
                            struct link_in *in);

    /* A transport that moves bytes has a network (connection.h) in every communicator that may have
     * ranks on several hosts; for one that doesn't, all of this is NULL. */
    size_t part_bytes; /* of its part of the endpoint */
    /* Make it, and fill that part, which is zeroes. */
    rondo_result (*open)(const struct network_wish *wish, void *ret_part,
                         struct network **ret_network);
    /* All endpoints are there; before the first connect(). */
    rondo_result (*start)(struct network *network, const struct network_job *job);
    /* Both parts are those of a pair that can connect. NULL: LINK_SAME_LENGTH. */
    enum link_length (*length)(const void *own_part, const void *peer_part);
    /* The transport whose network carries this one's notes, and notices that processes end: pairs
     * of this are connected by that, too. NULL: it needs none. */
    const struct transport_ops *control;
    bool optional; /* hosts may lack what it takes; then another is used */
};

extern const struct transport_ops shm_transport;
extern const struct transport_ops verbs_transport;
extern const struct transport_ops tcp_transport;

/* The table: best first, NULL last. */
extern const struct transport_ops *const transports[];

#endif
