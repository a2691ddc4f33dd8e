/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.c - queue pairs: opening in three states, posting in batches, counting completions.
 *
 * Requests on a reliable connection complete in order, so a completion's number (wr_id) says that
 * all writes up to it are done. Receives carry no number, completions of both kinds mix freely.
 */
#include "transport/verbs/queue.h"

#include "base/caller/times.h"
#include "base/fail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* An adapter gives up on a peer after 4.096 us * 2^16 = 0.27 s, 7 times. A count of 7 would be for
 * ever for receives that are not ready, and with soft-RoCE for all. */
enum {
    TIMEOUT = 16,
    RETRIES = 6,
    RECEIVER_DELAY = 12 /* 0.64 ms */,
    HOPS = 64,
    SUBNET_PREFIX = 8 /* bytes of a GID */,
    POLLED = 16,
    SERVICE_LEVELS = 15
};

#define RECEIVED UINT64_MAX /* the wr_id of receives */

/* ---- Opening --------------------------------------------------------------------------------- */

static rondo_result post_receives(struct verbs_queue *queue, unsigned count)
{
    struct ibv_recv_wr request = {.wr_id = RECEIVED}, *bad;

    while (count--) {
        int error = ibv_post_recv(queue->qp, &request, &bad);

        if (error) {
            errno = error;
            return rondo_fail_errno(RONDO_ERROR_SYSTEM, "%s does not take receives",
                                    queue->device->name);
        }
    }
    return RONDO_OK;
}

static rondo_result create(struct verbs_queue *queue, unsigned receives)
{
    static const uint32_t inlined[] = {VERBS_INLINE, 96, 64, 0}; /* some adapters have less */
    const struct verbs_calls *calls = queue->device->calls;
    struct ibv_qp_init_attr attributes = {
        .send_cq = queue->cq,
        .recv_cq = queue->cq,
        .cap = {.max_send_wr = queue->depth + 1,
                .max_recv_wr = receives,
                .max_send_sge = 1,
                .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };

    for (size_t i = 0; i < sizeof(inlined) / sizeof(inlined[0]) && !queue->qp; i++) {
        attributes.cap.max_inline_data = inlined[i];
        queue->qp = calls->create_qp(queue->device->pd, &attributes);
    }
    if (!queue->qp)
        return rondo_fail_errno(
            RONDO_ERROR_SYSTEM,
            "%s port %d has no queue pair for another reliable connection; locked memory "
            "(`ulimit -l`) or the adapter's number of queues may be at its end",
            queue->device->name, queue->device->port);
    queue->inlined = attributes.cap.max_inline_data;
    return RONDO_OK;
}

static rondo_result modify(struct verbs_queue *queue, struct ibv_qp_attr *attributes, int mask,
                           const char *state)
{
    int error = queue->device->calls->modify_qp(queue->qp, attributes, mask);

    if (!error)
        return RONDO_OK;
    errno = error > 0 ? error : errno;
    return rondo_fail_errno(RONDO_ERROR_SYSTEM, "%s port %d cannot be made %s", queue->device->name,
                            queue->device->port, state);
}

static rondo_result initialize(struct verbs_queue *queue)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT,
                                     .pkey_index = queue->device->pkey_index,
                                     .port_num = (uint8_t)queue->device->port,
                                     .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

    return modify(queue, &attributes,
                  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "ready");
}

rondo_result verbs_queue_open(struct verbs_device *device, unsigned depth, unsigned receives,
                              struct verbs_queue *ret_queue)
{
    unsigned most = (unsigned)device->most_requests - 1;
    struct verbs_queue queue = {.device = device, .depth = depth < most ? depth : most};
    unsigned completions = receives + queue.depth + 1;
    rondo_result result;

    if (receives > most || completions > (unsigned)device->most_completions)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "%s has queues of at most %d requests and %d completions: RONDO_SLOTS is "
                          "too large for it.",
                          device->name, device->most_requests, device->most_completions);
    if (getrandom(&queue.first, sizeof(queue.first), 0) != sizeof(queue.first))
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "The system gives no random numbers");
    queue.first &= 0xffffff;
    queue.cq = device->calls->create_cq(device->context, (int)completions, NULL, NULL, 0);
    if (!queue.cq)
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "%s has no room for a completion queue",
                                device->name);
    result = create(&queue, receives);
    if (!result)
        result = initialize(&queue);
    if (!result)
        result = post_receives(&queue, receives);
    if (result) {
        verbs_queue_close(&queue);
        return result;
    }
    *ret_queue = queue;
    return RONDO_OK;
}

void verbs_queue_close(struct verbs_queue *queue)
{
    if (queue->qp)
        queue->device->calls->destroy_qp(queue->qp);
    if (queue->cq)
        queue->device->calls->destroy_cq(queue->cq);
    *queue = (struct verbs_queue){0};
}

/* ---- Connecting ------------------------------------------------------------------------------ */

void verbs_queue_endpoint(const struct verbs_queue *queue, struct verbs_port_endpoint *ret_endpoint)
{
    const struct verbs_device *device = queue->device;

    *ret_endpoint = (struct verbs_port_endpoint){.queue = queue->qp->qp_num,
                                                 .first = queue->first,
                                                 .lid = device->lid,
                                                 .mtu = (uint8_t)device->mtu,
                                                 .ethernet = device->ethernet};
    memcpy(ret_endpoint->gid, device->gid.raw, sizeof(ret_endpoint->gid));
}

static rondo_result expect_from(struct verbs_queue *queue, const struct verbs_port_endpoint *peer)
{
    const struct verbs_device *device = queue->device;
    bool small = peer->mtu >= IBV_MTU_256 && peer->mtu < device->mtu;
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = small ? (enum ibv_mtu)peer->mtu : device->mtu,
        .dest_qp_num = peer->queue,
        .rq_psn = peer->first,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = RECEIVER_DELAY,
        .ah_attr = {.dlid = peer->lid, .port_num = (uint8_t)device->port},
    };

    if (!device->ethernet)
        attributes.ah_attr.sl = queue->traffic_class & SERVICE_LEVELS;
    if (device->routed || memcmp(device->gid.raw, peer->gid, SUBNET_PREFIX) != 0) {
        attributes.ah_attr.is_global = 1;
        attributes.ah_attr.grh.hop_limit = HOPS;
        attributes.ah_attr.grh.traffic_class = queue->traffic_class;
        attributes.ah_attr.grh.sgid_index = (uint8_t)device->gid.index;
        memcpy(attributes.ah_attr.grh.dgid.raw, peer->gid, sizeof(peer->gid));
    }
    return modify(queue, &attributes,
                  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                  "ready to receive from the peer");
}

rondo_result verbs_queue_connect(struct verbs_queue *queue, const struct verbs_port_endpoint *peer)
{
    rondo_result result = expect_from(queue, peer);
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTS,
        .timeout = TIMEOUT,
        .retry_cnt = RETRIES,
        .rnr_retry = RETRIES,
        .sq_psn = queue->first,
        .max_rd_atomic = 1,
    };

    if (result)
        return result;
    return modify(queue, &attributes,
                  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                  "ready to send to the peer");
}

/* ---- Writing --------------------------------------------------------------------------------- */

void verbs_queue_add(struct verbs_queue *queue, const struct verbs_write *write)
{
    struct ibv_send_wr *request = &queue->batch[queue->batched];
    struct ibv_sge *piece = &queue->pieces[queue->batched];

    queue->batched++;
    *piece = (struct ibv_sge){
        .addr = (uintptr_t)write->from, .length = write->bytes, .lkey = write->local_key};
    *request = (struct ibv_send_wr){
        .wr_id = queue->posted + (unsigned)queue->batched,
        .sg_list = piece,
        .num_sge = write->bytes > 0,
        .opcode = write->immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
        .wr.rdma = {.remote_addr = write->to, .rkey = write->remote_key},
    };
    if (write->bytes <= queue->inlined && !write->device)
        request->send_flags |= IBV_SEND_INLINE;
    if (write->signalled || request->wr_id - queue->signalled >= VERBS_SIGNAL) {
        request->send_flags |= IBV_SEND_SIGNALED;
        queue->signalled = request->wr_id;
    }
}

void verbs_queue_flush(struct verbs_queue *queue)
{
    struct ibv_send_wr *bad;
    int error;

    if (!queue->batched)
        return;
    for (int i = 0; i + 1 < queue->batched; i++)
        queue->batch[i].next = &queue->batch[i + 1];
    error = ibv_post_send(queue->qp, queue->batch, &bad);
    if (error && !queue->error)
        queue->error = error > 0 ? error : errno;
    queue->posted += (unsigned)queue->batched;
    queue->batched = 0;
}

void verbs_queue_stop(struct verbs_queue *queue)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_ERR};

    modify(queue, &attributes, IBV_QP_STATE, "silent");
}

void verbs_queue_probe(struct verbs_queue *queue)
{
    struct verbs_write nothing = {.signalled = true};

    verbs_queue_flush(queue);
    verbs_queue_add(queue, &nothing);
    verbs_queue_flush(queue);
}

void verbs_queue_attend(struct verbs_queue *queue, double now, double patience)
{
    double passed = now - queue->looked;

    if (queue->signalled <= queue->completed || queue->completed != queue->seen)
        queue->silent = 0;
    else /* a process that was stopped has not looked all the time */
        queue->silent += passed < LOOK_MISSED ? passed : LOOK_MISSED;
    queue->seen = queue->completed;
    queue->looked = now;
    queue->mute |= queue->silent > patience && queue->status == IBV_WC_SUCCESS;
    if (queue->signalled <= queue->completed && now - queue->asked >= LOOK_PROBE) {
        queue->asked = now;
        verbs_queue_probe(queue);
    }
}

/* ---- Completions ----------------------------------------------------------------------------- */

static void note_failure(struct verbs_queue *queue, enum ibv_wc_status status)
{
    if (queue->status == IBV_WC_SUCCESS)
        queue->status = status;
}

bool verbs_queue_poll(struct verbs_queue *queue)
{
    struct ibv_wc done[POLLED];
    int count = ibv_poll_cq(queue->cq, POLLED, done);
    unsigned received = 0;

    if (count < 0)
        note_failure(queue, IBV_WC_FATAL_ERR);
    for (int i = 0; i < count; i++) {
        if (done[i].status != IBV_WC_SUCCESS)
            note_failure(queue, done[i].status);
        else if (done[i].wr_id == RECEIVED)
            received++;
        else
            queue->completed = done[i].wr_id;
    }
    queue->arrived += received;
    if (received && post_receives(queue, received) && !queue->error)
        queue->error = EIO;
    return count > 0;
}

static const char unreachable[] = "is the peer down, or the cable or switch between?";

static const char *cause(const struct verbs_queue *queue)
{
    switch (queue->status) {
    case IBV_WC_RETRY_EXC_ERR:
        return unreachable;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return "the peer does not take what it granted room for";
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ABORT_ERR:
        return "has the peer closed the communicator?";
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_MW_BIND_ERR:
        return "was memory freed that is in use?";
    default:
        return "the kernel's log may say more";
    }
}

void verbs_queue_describe(const struct verbs_queue *queue, char *text, size_t room)
{
    char port[256];

    verbs_device_describe(queue->device, port, sizeof(port));
    if (queue->mute) /* what came later is of stopping it */
        snprintf(text, room, "%s: nothing was acknowledged for %.1f s; %s", port, queue->silent,
                 unreachable);
    else if (queue->status != IBV_WC_SUCCESS)
        snprintf(text, room, "%s: %s; %s", port, queue->device->calls->status_text(queue->status),
                 cause(queue));
    else
        snprintf(text, room, "%s: a request was refused: %s", port, strerror(queue->error));
}
