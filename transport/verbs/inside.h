/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inside.h - links over RDMA: the network (connection.h) of one communicator, its peers, their
 * channels.
 *
 * A message is written by the adapter straight into the reader's slot, then a cell that announces
 * it into a ring that the reader polls; slots are given back by a write into the writer's memory.
 * No peer's processor is asked for any of it. Peers are connected when there is something to say;
 * what they have to know of each other for that goes as notes over another network, which also
 * notices when processes end.
 *
 *     verbs.c        the network: progress, watching, closing
 *     verbs/meet.c   getting connected to a peer, when there is first something to say
 *     verbs/link.c   messages, credits, cells
 *     verbs/zcopy.c  messages that leave from the caller's memory
 *
 * Memory for one peer, in this process's heap; it is pinned when the peer is connected:
 *
 *     control:  | cells from it | cells to it |
 *     inbox:    | ring of channel 0 | ring of channel 1 | ...  the adapter writes payload here
 *     outbox:   | ring of channel 0 | ring of channel 1 | ...  and reads it from here
 *     device:   | inbox | outbox |    the same in memory of a device, for messages that it moves
 *
 * The inbox may be written in any order (relaxed), control memory never is: see verbs/cell.h.
 */
#ifndef RONDO_TRANSPORT_VERBS_INSIDE_H
#define RONDO_TRANSPORT_VERBS_INSIDE_H

#include "transport/link/ops.h"
#include "transport/verbs/cell.h"
#include "transport/verbs/queue.h"

/* The RDMA ports of a rank: its part of the endpoint. */
struct verbs_endpoint {
    uint8_t rails;    /* 0: this rank has no RDMA */
    uint8_t ethernet; /* or InfiniBand */
    uint8_t version;
    uint8_t long_slots; /* messages shall be long, and there may be memory for that */
    uint8_t unused[4];
};

struct verbs_message {
    const char *payload;
    char *slot; /* where it may move to if it is sent zero-copy */
    size_t bytes;
    uint64_t flag;
    bool inlined, device;
    bool zcopy; /* in memory of the caller, and not in the slot */
};

/* Memory of the caller that adapters read. Complete in the order in which they were posted. */
struct verbs_zcopy {
    const char *at;
    size_t bytes;
    struct verbs_region *regions[VERBS_RAILS];
    uint64_t until[VERBS_RAILS]; /* what the rail must have completed */
};

struct verbs_channel {
    struct connection base; /* first member */
    struct verbs_peer *peer;
    /* Writer. Numbers of messages wrap, so places in rings are counted on their own. */
    struct verbs_message *messages; /* [slots]: pushed, not yet posted */
    uint32_t pushed, posted;
    unsigned push_at, post_at;
    char *outbox;
    uint32_t granted;              /* what was given back to us, as last seen */
    struct link_credit out_credit; /* the same for the executor */
    /* Reader. */
    uint32_t arrived; /* the last message whose flag is stored */
    uint32_t returned, credited;
    unsigned arrive_at;
    char *inbox;
    struct link_credit in_credit; /* the executor's counter, which nobody else reads */
};

enum verbs_state {
    VERBS_APART,   /* nothing was said */
    VERBS_CALLING, /* our hello is on its way */
    VERBS_HEARD,   /* theirs has come: we can receive */
    VERBS_JOINED,  /* both ends can receive */
};

struct verbs_rail {
    struct verbs_queue queue;
    struct verbs_region *control, *inbox, *outbox;
    struct ibv_mr *device_inbox, *device_outbox; /* NULL: none */
    uint64_t expected;                           /* immediates that cells have announced */
    struct verbs_port_endpoint peer;             /* the port that it is paired with */
};

struct verbs_peer {
    bool forsaken; /* it has closed its end: its zero-copy sends are not waited for */
    bool lost;     /* its connection had failed before the communicator broke */
    struct verbs_network *network;
    int rank;
    struct call_header_page *page; /* the owner's, for call headers of this peer's */
    enum verbs_state state;
    struct verbs_channel *channels;
    char *control, *inbox, *outbox;
    int rails; /* that we have; until JOINED */
    int pairs; /* that are paired with one of the peer's: rail[0 .. pairs - 1] */
    int home;  /* the pair for everything that is not striped */
    struct verbs_rail rail[VERBS_RAILS];
    struct verbs_zcopy *zcopies; /* a ring of verbs_zcopies_room() */
    unsigned first_zcopy, zcopy_count;
    uint64_t cells_in, cells_out; /* so many read and written */
    unsigned cell_in, cell_out;   /* places of the next ones */
    struct verbs_cell due;        /* the next cell, if its payload is still under way */
    bool is_due;
    struct verbs_cell own; /* the one that is being written */
    uint64_t peer_control, peer_inbox, peer_device;
    struct device_memory device; /* ours; of zeroes: none */
    bool uses_device;            /* both sides have it */
    struct {
        size_t count;
        char bytes[NETWORK_NOTE];
    } notes[2]; /* that have come and were not read: a hello and a "joined" at the most */
    int note_count;
    bool owes; /* something is pushed or given back that was not posted */
};

struct verbs_network {
    struct network base; /* first member */
    struct network_job job;
    struct verbs_rails rails;
    uint8_t traffic_class;      /* of what is sent; 0: the adapter's */
    unsigned batch;             /* slots that are given back at once */
    unsigned cells;             /* of a peer: see verbs/link.c */
    struct verbs_peer **peers;  /* [rank], NULL: not linked by verbs */
    struct verbs_peer **active; /* those that are HEARD or JOINED */
    int active_count;
    double patience;  /* seconds until a peer that acknowledges nothing is given up */
    unsigned zcopy;   /* messages in memory of the caller that are not over */
    bool zcopies_not; /* memory could not be registered */
    bool wanting;     /* something was pushed to a peer that is APART */
    bool noted;       /* a note has come */
    unsigned idle;    /* looks since something moved */
    bool soft;        /* the kernel moves the bytes: it needs the processor that we wait on */
    atomic_bool broken;
};

/* ---- Layout ---------------------------------------------------------------------------------- */

static inline size_t verbs_ring_bytes(const struct verbs_network *network)
{
    return (size_t)network->job.slots * link_stride(network->job.slot_bytes);
}
static inline size_t verbs_box_bytes(const struct verbs_network *network)
{
    return ((size_t)network->job.channels * verbs_ring_bytes(network) + 4095) / 4096 * 4096;
}
static inline size_t verbs_half(const struct verbs_network *network)
{
    return (size_t)network->cells * VERBS_CELL;
}
static inline size_t verbs_control_bytes(const struct verbs_network *network)
{
    return (2 * verbs_half(network) + 4095) / 4096 * 4096; /* shares no page with the inbox */
}

/* The most messages that may be under way to a peer. */
static inline unsigned verbs_zcopies_room(const struct verbs_network *network)
{
    return (unsigned)network->job.channels * (unsigned)network->job.slots;
}

/* ---- verbs/meet.c ---------------------------------------------------------------------------- */

/* Pairs ports of two ranks, of which `low` is the lower one: takes the two that are the most alike
 * of those that are left, and of equals the first. Returns how many pairs there are. */
int verbs_meet_pairs(const struct verbs_port_endpoint *low, int lows,
                     const struct verbs_port_endpoint *high, int highs,
                     int ret_pairs[VERBS_RAILS][2]);
/* Makes this rank the culprit of an error that it met on the way to the peer. */
rondo_result verbs_blame_own(struct verbs_peer *peer, rondo_result result);
/* See to it that the peer is or gets connected. */
rondo_result verbs_meet(struct verbs_peer *peer);
/* Take a note of the peer's that the control network brought; its words are not believed. */
rondo_result verbs_meet_note(struct verbs_peer *peer, const void *bytes, size_t count);
/* Give back the queues and registrations of a peer. */
void verbs_part(struct verbs_peer *peer);

/* ---- verbs/try.c ----------------------------------------------------------------------------- */

/*
 * Returns which way the rails use that device's memory, if all do so: tried by a connection of each
 * rail with itself, unless `wanted` (RONDO_GPUDIRECT) says otherwise. The log says what was found.
 */
enum device_way verbs_try_device(struct network *network, const struct device_source *device,
                                 const char *wanted);

/* ---- verbs/device_memory.c ------------------------------------------------------------------- */

/* Memory of the device for the peer, known to all rails; where that cannot be had the log says why,
 * and the host's slots serve. */
void verbs_take_device(struct verbs_peer *peer);
void verbs_give_device(struct verbs_peer *peer); /* after its queues were closed */

/* ---- verbs/zcopy.c --------------------------------------------------------------------------- */

/* True if a message that lies at `from` is worth a zero-copy send. */
bool verbs_zcopy_takes(const struct verbs_network *network, const void *from, size_t bytes);
/* Send zero-copy the memory of a message that is about to be posted. NULL: the message is in its
 * slot now, as its memory can't be registered. */
struct verbs_zcopy *verbs_zcopy_begin(struct verbs_peer *peer, struct verbs_message *message);
/* Note that the zero-copy message was posted on these rails (bits). */
void verbs_zcopy_posted(struct verbs_peer *peer, struct verbs_zcopy *zcopy, unsigned rails);
/* Looks which zero-copy sends are over; true if any. */
bool verbs_zcopy_collect(struct verbs_peer *peer);
/* Make memory ready to be written: no message is sent from there when this returns. */
void verbs_zcopy_reclaim(struct verbs_network *network, const void *at, size_t bytes);
/* No memory is read for the peer any more; connections that can't promise that are of no use after
 * it. */
void verbs_zcopy_forsake(struct verbs_peer *peer);
/* Does the same for all peers. */
void verbs_zcopy_end(struct verbs_network *network);
/* The rail's queue was closed: its regions of all zero-copy sends go back to `memory`. */
void verbs_zcopy_drop(struct verbs_peer *peer, int rail, struct verbs_memory *memory);

/* ---- verbs/link.c ---------------------------------------------------------------------------- */

extern const struct connection_ops verbs_connection_ops;
/* Take what came from the peer; true if anything did. */
rondo_result verbs_take(struct verbs_peer *peer, bool *ret_moved);
/* Post what is pushed and owed, as far as there is room; true if anything was posted. */
bool verbs_give(struct verbs_peer *peer);
/* Fails if the connection has failed or been silent for too long; the sentence says how. */
rondo_result verbs_check_queues(struct verbs_peer *peer, double now);

#endif
