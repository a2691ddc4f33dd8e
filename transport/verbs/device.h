/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h - the RDMA ports that this process uses, its *rails*: opened once, shared by all
 * communicators, closed with the last of them.
 *
 * Rails are the first four active ports with an address in RONDO_VERBS_ADDRESSES that can be
 * opened, or those that RONDO_VERBS_DEVICES names, in its order.
 */
#ifndef RONDO_TRANSPORT_VERBS_DEVICE_H
#define RONDO_TRANSPORT_VERBS_DEVICE_H

#include "base/lock.h"
#include "topology/rdma.h"
#include "transport/link/device_memory.h"
#include "transport/verbs/memory.h"

enum {
    VERBS_RAILS = 4,
    VERBS_PORTS = 64, /* of a machine, at which we look */
    VERBS_TROUBLE = 160,
    VERBS_TRIALS = 16
};

/* The result of trying the port with memory of a GPU: verbs/try.h. */
struct verbs_trial {
    int way;       /* enum device_way */
    char name[32]; /* of the GPU */
    rondo_result result;
    char sentence[256];
};

struct verbs_device {
    const struct verbs_calls *calls;
    struct ibv_context *context;
    struct ibv_pd *pd;
    char name[64]; /* mlx5_0 */
    int port;
    bool ethernet, soft; /* as in topology/rdma.h */
    struct rdma_gid gid;
    uint16_t lid;
    uint16_t pkey_index; /* of the partition that its queues are in */
    bool routed;         /* all packets carry GIDs */
    enum ibv_mtu mtu;
    int most_requests, most_completions; /* of a queue */
    struct verbs_memory memory;
    struct lock lock;
    bool dead;                   /* the adapter said that it is unusable */
    char trouble[VERBS_TROUBLE]; /* the last thing that it said, "": nothing */
    struct lock trying;          /* of what follows */
    int trials;
    struct verbs_trial trial[VERBS_TRIALS];
};

/* Those of the process, or of them the ones that a communicator found usable when it was opened. */
struct verbs_rails {
    int count;
    struct verbs_device *device[VERBS_RAILS];
};

/* Chooses which ports may be rails, best first; `names` as of RONDO_VERBS_DEVICES, of which there
 * are VERBS_RAILS at the most. Pure, for tests. */
rondo_result verbs_rails_choose(const struct rdma_port *ports, int count, const char *names,
                                const struct rdma_range *range,
                                const struct rdma_port *ret_rails[VERBS_PORTS], int *ret_count);

/* Fails with a sentence, mostly RONDO_ERROR_UNSUPPORTED: no libibverbs, or no port that is active
 * and in the range. */
rondo_result verbs_rails_open(struct verbs_rails *ret_rails);
void verbs_rails_close(void);

/*
 * Check what the adapter has told of the port since the last call: RONDO_OK, or RONDO_ERROR_SYSTEM
 * with a sentence if the port is unusable for good. Never waits.
 */
rondo_result verbs_device_check(struct verbs_device *device);
/* A clause for sentences about it: "mlx5_0 port 1 (10.1.2.3)", and what it said last. */
void verbs_device_describe(struct verbs_device *device, char *text, size_t room);

#endif
