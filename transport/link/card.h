/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * card.h - what ranks tell each other when a communicator opens: each its card to all others, in a
 * fixed layout, as it travels. Every means of transport has a part of it.
 */
#ifndef RONDO_TRANSPORT_LINK_CARD_H
#define RONDO_TRANSPORT_LINK_CARD_H

#include <stdint.h>

/* The card by which a peer maps the memory that a process shows (memory/shown.h). */
struct shown_card {
    int32_t fd;
    int32_t unused;
    uint64_t bytes;
};

/* The card by which a peer maps the shared heap of a process (memory/heap.h). */
struct heap_card {
    unsigned char id[16]; /* of the process, random; also at the beginning of the heap */
    int32_t pid;
    int32_t fd;
    uint64_t bytes;
    struct shown_card shown;
};

enum { TCP_ADDRESSES = 4, TCP_PUBLIC_KEY = 32 };

struct tcp_address {
    uint8_t family; /* 4 or 6, 0: none */
    uint8_t prefix; /* bits of its network */
    uint16_t unused;
    unsigned char bytes[16];
};

/* The addresses and port at which a rank listens (tcp/tcp.h). */
struct tcp_card {
    uint64_t space; /* which network namespace of which kernel: loopback works within it alone */
    uint16_t port;  /* 0: this rank does not listen */
    uint16_t count;
    uint8_t has_aes, unused[3];
    unsigned char public_key[TCP_PUBLIC_KEY];    /* X25519, of this communicator alone */
    struct tcp_address addresses[TCP_ADDRESSES]; /* best first */
};

/* The RDMA ports of a rank (verbs/verbs.h). */
struct verbs_card {
    uint8_t rails;    /* 0: this rank has no RDMA */
    uint8_t ethernet; /* or InfiniBand */
    uint8_t version;
    uint8_t long_slots; /* messages shall be long (network.c), and there may be memory for that */
    uint8_t unused[4];
};

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
    struct device_link links[DEVICES_SEEN];        /* the way to each of those devices */
};

/* The card of a rank, which it sends to all other ranks. */
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

#endif
