/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.h - a reliable connection to one port of a peer: a queue pair and its completions.
 *
 * Writes are collected and handed to the adapter together. One in VERBS_SIGNAL asks for a
 * completion, which stands for those before it. An arriving immediate is counted and its empty
 * receive posted again. Any failure is final; its sentence is kept until somebody asks.
 *
 * A peer that is gone should be reported by the adapter, which repeats what is not acknowledged so
 * many times. Soft-RoCE now and then forgets to, so somebody has to look at the clock as well.
 */
#ifndef RONDO_TRANSPORT_VERBS_QUEUE_H
#define RONDO_TRANSPORT_VERBS_QUEUE_H

#include "transport/verbs/device.h"

enum { VERBS_SIGNAL = 16, VERBS_BATCH = 4, VERBS_INLINE = 128 };

/* The endpoint of a queue pair, which the other side needs to connect; part of a note, in the byte
 * order of both (they are alike). */
struct verbs_port_endpoint {
    unsigned char gid[16];
    uint32_t queue, first; /* number of the queue pair, and of its first packet */
    uint16_t lid;
    uint8_t mtu, ethernet;
    uint32_t data_key, control_key; /* of the memory that may be written */
    uint32_t device_key;            /* of the device's memory that may be written */
};

struct verbs_queue {
    struct verbs_device *device;
    struct ibv_qp *qp;
    struct ibv_cq *cq;
    uint32_t first;        /* packet number that we begin with */
    unsigned depth;        /* writes that fit */
    unsigned inlined;      /* bytes that may travel inside of a request */
    uint64_t posted;       /* writes handed over */
    uint64_t completed;    /* of these, known to be done */
    uint64_t signalled;    /* the last one that asked for a completion */
    uint64_t arrived;      /* immediates that came */
    uint8_t traffic_class; /* of what is sent; set before verbs_queue_connect() */
    int batched;
    struct ibv_send_wr batch[VERBS_BATCH];
    struct ibv_sge pieces[VERBS_BATCH];
    enum ibv_wc_status status; /* the first failure */
    int error;                 /* errno of a request that was refused */
    double asked, looked;      /* when verbs_queue_attend() last probed, and was last called */
    uint64_t seen;             /* `completed` at that time */
    double silent;             /* seconds of being looked at without the completion that is due */
    bool mute;                 /* for too long */
};

struct verbs_write {
    const void *from;
    uint32_t bytes, local_key;
    uint64_t to;
    uint32_t remote_key;
    bool immediate; /* the peer's `arrived` counts it, after all that was written before */
    bool device;    /* from memory that the processor cannot read */
    bool signalled; /* `completed` will count it even if nothing follows */
};

/* `receives`: immediates that may be under way at once; `depth`: writes that may. */
rondo_result verbs_queue_open(struct verbs_device *device, unsigned depth, unsigned receives,
                              struct verbs_queue *ret_queue);
void verbs_queue_close(struct verbs_queue *queue); /* of zeroes: nothing */
void verbs_queue_endpoint(const struct verbs_queue *queue,
                          struct verbs_port_endpoint *ret_endpoint);
rondo_result verbs_queue_connect(struct verbs_queue *queue, const struct verbs_port_endpoint *peer);

/* True if the queue has room for so many writes. */
static inline bool verbs_queue_room(const struct verbs_queue *queue, unsigned writes)
{
    return queue->posted - queue->completed + (unsigned)queue->batched + writes <= queue->depth;
}

/* Up to VERBS_BATCH of them between two flushes. */
void verbs_queue_add(struct verbs_queue *queue, const struct verbs_write *write);
void verbs_queue_flush(struct verbs_queue *queue);
/* Look at completions; true if there were any. */
bool verbs_queue_poll(struct verbs_queue *queue);
/* A write of nothing, which asks for a completion: when it is there all before it are done; when
 * the peer is gone, it fails. There is room for one beyond `depth`. */
void verbs_queue_probe(struct verbs_queue *queue);
/* While something is waited for: sees to it that a completion is due, by a probe now and then, and
 * gives the peer up after `patience` seconds without it. After a poll; nothing fails before. */
void verbs_queue_attend(struct verbs_queue *queue, double now, double patience);
/* Stop a queue: nothing that was posted reads or writes memory any more; it is of no use after
 * that. */
void verbs_queue_stop(struct verbs_queue *queue);
static inline bool verbs_queue_idle(const struct verbs_queue *queue)
{
    return queue->completed == queue->posted && !queue->batched;
}

static inline bool verbs_queue_failed(const struct verbs_queue *queue)
{
    return queue->status != IBV_WC_SUCCESS || queue->error || queue->mute;
}
/* "mlx5_0 port 1 (10.1.2.3): transport retry counter exceeded; is the peer down, ...?" */
void verbs_queue_describe(const struct verbs_queue *queue, char *text, size_t room);

#endif
