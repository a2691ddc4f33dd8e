/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transport.h - how two ranks get connected: a transport makes the links (link.h) of a pair of
 * ranks. A new transport is one file that defines a `struct transport_ops`, and one line in
 * transport.c.
 */
#ifndef RONDO_TRANSPORT_TRANSPORT_H
#define RONDO_TRANSPORT_TRANSPORT_H

#include "transport/device_memory.h"
#include "transport/link.h"
#include "transport/memory/heap.h"
#include "transport/tcp/tcp.h"
#include "transport/verbs/verbs.h"

struct network;
struct process;

/* Transports that move bytes have a struct network (connection.h) per communicator. */
enum network_id { NETWORK_TCP, NETWORK_VERBS, NETWORKS };

/* The GPU of a rank; comm/gpu/card.c says what it is used for. */
enum { DEVICE_UUID = 16, DEVICES_SEEN = 16 };
/* Between two devices: enum topology_link_kind, how many links of that kind, their rate one way. */
struct device_link {
    uint8_t kind, lanes;
    uint16_t GBps;
};
struct device_card {
    uint64_t arena; /* offset in the heap, 0: the rank has no device */
    uint8_t way;    /* enum device_way: what its adapters and it were found to be able to */
    uint8_t unused[7];
    unsigned char uuid[DEVICE_UUID];
    unsigned char seen[DEVICES_SEEN][DEVICE_UUID]; /* devices that its own one reads and writes */
    struct device_link links[DEVICES_SEEN];        /* ... and what is between */
};

/* What a rank tells all others when a communicator opens. Fixed layout: it is what travels. */
struct rank_card {
    uint32_t magic;
    uint32_t version;
    unsigned char host[16]; /* same bytes: same kernel and process ids, so memory can be shared */
    struct heap_card heap;
    uint64_t arena; /* offset in the heap: the rings into this rank */
    uint64_t board; /* offset in what its process shows */
    uint64_t slot_bytes;
    uint32_t slots;
    uint32_t settings; /* hash of what must be equal everywhere */
    int32_t rank, size;
    uint64_t cpus[16]; /* that the rank may run on */
    int32_t quota;     /* cores' worth of time that its control group gets, 0: no limit */
    uint32_t security; /* enum seal_mode */
    uint64_t machine;  /* the kernel: ranks with the same one share its cores */
    struct tcp_card tcp;
    struct verbs_card verbs;
    struct device_card device;
};

/* Two ranks that are to be linked, as the communicator knows them. */
struct transport_pair {
    const struct rank_card *own, *peer;
    struct process *process;         /* of the peer, if it is on this node */
    struct network *const *networks; /* [enum network_id], NULL: not there */
    int lanes;
};

struct transport_ops {
    const char *name;
    /* Can these two talk this way? No side effects; when not, `why` is a clause for the log. */
    bool (*can_connect)(const struct rank_card *a, const struct rank_card *b, const char **why);
    /* Fill out[lane * size + peer] and in[...] for every lane. Nothing to undo on failure. */
    rondo_result (*connect)(const struct transport_pair *pair, struct link_out *out,
                            struct link_in *in);
};

extern const struct transport_ops shm_transport;
extern const struct transport_ops verbs_transport;
extern const struct transport_ops tcp_transport;

/* The best transport for a pair, of all ("auto") or the one of that name;
 * RONDO_ERROR_UNSUPPORTED with a sentence that says why none can. */
rondo_result transport_choose(const struct rank_card *own, const struct rank_card *peer,
                              const char *wanted, const struct transport_ops **ret_transport);

/* Bytes of a rank's arena: its alarm, and the rings of all lanes from all ranks. */
size_t shm_arena_bytes(int size, int lanes, int slots, size_t slot_bytes);
/* At the beginning of it: what peers store in words of their own. */
struct shm_alarm {
    _Atomic uint32_t rung; /* nonzero: look at the boards of all ranks of this node */
    char unused[60];
    _Atomic uint8_t gone[]; /* [rank], nonzero: it has closed the communicator */
};
size_t shm_alarm_bytes(int size);

#endif
