/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoint.h - what ranks tell each other when a communicator opens: each its endpoint to all
 * others, in a fixed layout, as it travels. Every network has a part of it, which it alone
 * understands.
 */
#ifndef RONDO_TRANSPORT_LINK_ENDPOINT_H
#define RONDO_TRANSPORT_LINK_ENDPOINT_H

#include <stdint.h>
#include <string.h>

/* The handle by which a peer maps the memory that a process shows (memory/shown.h). */
struct shown_handle {
    int32_t fd;
    int32_t unused;
    uint64_t bytes;
};

/* The handle by which a peer maps the shared heap of a process (memory/heap.h). */
struct heap_handle {
    unsigned char id[16]; /* of the process, random; also at the beginning of the heap */
    int32_t pid;
    int32_t fd;
    uint64_t bytes;
    struct shown_handle shown;
};

/* The GPU of a rank; comm/gpu/endpoint.c says what it is used for. */
enum { DEVICE_UUID = 16, DEVICES_SEEN = 16 };
/* Between two devices: enum topology_link_kind, how many links of that kind, their rate one way,
 * and how far apart topology_distance_of_devices() holds them to be. */
struct device_link {
    uint8_t kind, lanes;
    uint16_t GBps;
    uint8_t distance, unused;
};
struct device_endpoint {
    uint64_t arena; /* offset in the heap, 0: the rank has no device */
    uint8_t way;    /* enum device_way: what its adapters and it were found to be able to */
    uint8_t unused[7];
    unsigned char uuid[DEVICE_UUID];
    unsigned char seen[DEVICES_SEEN][DEVICE_UUID]; /* devices that its own one reads and writes */
    struct device_link links[DEVICES_SEEN];        /* the way to each of those devices */
};

/* The link from the endpoint's device to that of the other endpoint; NULL: it does not reach it. */
static inline const struct device_link *device_endpoint_link(const struct device_endpoint *endpoint,
                                                             const struct device_endpoint *other)
{
    for (int i = 0; i < DEVICES_SEEN; i++)
        if (memcmp(endpoint->seen[i], other->uuid, DEVICE_UUID) == 0)
            return &endpoint->links[i];
    return NULL;
}

/* Where a rank sits in its machine, as struct topology_place has it. */
struct place_endpoint {
    int16_t core, package, numa, l3;
};

/* Room for the parts of all networks (transport/networks.h). */
enum { ENDPOINT_PARTS = 192 };

/* Room for the settings that must be equal everywhere, as "NAME=VALUE NAME=VALUE ...", which may be
 * cut at its end. */
enum { ENDPOINT_SETTINGS = 352 };

/* The endpoint of a rank, which it sends to all other ranks. */
struct endpoint {
    uint32_t magic;
    uint32_t version;
    unsigned char host[16]; /* same bytes: same kernel and process ids, so memory can be shared */
    struct heap_handle heap;
    uint64_t arena;  /* offset in the heap: the rings into this rank */
    uint64_t status; /* offset in what its process shows */
    uint64_t slot_bytes;
    uint32_t slots;
    uint32_t settings; /* hash of the settings below, uncut */
    int32_t rank, size;
    uint64_t cpus[16]; /* that the rank may run on; none: nobody knows */
    struct place_endpoint place;
    int32_t quota;        /* cores' worth of time that its control group gets, 0: no limit */
    uint32_t security;    /* enum seal_mode */
    uint64_t machine;     /* the kernel: ranks with the same one share its cores */
    uint64_t quota_group; /* that control group: ranks with the same one share its quota */
    uint64_t parts[ENDPOINT_PARTS / sizeof(uint64_t)]; /* of networks, one behind the other */
    struct device_endpoint device;
    char settings_text[ENDPOINT_SETTINGS];
};

#endif
