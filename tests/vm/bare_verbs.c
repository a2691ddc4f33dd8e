/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bare_verbs.c - what two processes get from verbs when they do nothing else: what no library can
 * pass between the same two devices.
 *
 *     bare_verbs DEVICE PEER_DEVICE lat ROUNDS     lines "KEY us", of writes of 8 bytes:
 *         turns     one answers the other, per write, as ib_write_lat
 *         at_once   both write, then wait for what the other wrote, per exchange
 *     bare_verbs DEVICE PEER_DEVICE bw ROUNDS      lines "KEY GB/s", of 512 KiB each:
 *         stream    one way to a process that sleeps all the time, as ib_write_bw
 *         messages  one way; each is copied into place, wakes its reader, and is copied out
 *         exchange  the same both ways at once, each way
 *         crossing  both ways at once without copies, each way
 * The order changes from round to round, as devices made of software have good and bad seconds.
 */
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MESSAGE = 512 << 10,
    PLACES = 8,
    MESSAGES = 24, /* of a round */
    UNDER_WAY = 2, /* messages */
    PINGS = 1000,  /* of a round */
    QUEUED = 128,  /* writes, and immediates */
    PAGE = 4096,   /* of flags, before the places */
    SIGNAL = 16,
};
static const uint64_t ARRIVED = UINT64_MAX; /* the wr_id of receives */

struct endpoint {
    uint32_t queue, key;
    uint64_t memory;
    union ibv_gid gid;
};

static struct {
    int rank, wire; /* a socket to the other process */
    struct ibv_context *context;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *memory; /* flags, places that are written to, places to write from */
    struct endpoint peer;
    uint64_t posted, completed, arrived;
} end;

static void need(bool fine, const char *what)
{
    if (fine)
        return;
    perror(what);
    exit(1);
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Each gets what the other has; who waits, sleeps. */
static void trade(const void *own, void *theirs, size_t bytes)
{
    need(write(end.wire, own, bytes) == (ssize_t)bytes, "write");
    need(recv(end.wire, theirs, bytes, MSG_WAITALL) == (ssize_t)bytes, "recv");
}

static void meet(void)
{
    char byte = 0;

    trade(&byte, &byte, 1);
}

/* ---- The queue pair -------------------------------------------------------------------------- */

static void open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_pd *pd;
    struct ibv_qp_init_attr attributes = {.cap = {QUEUED, QUEUED, 1, 1, .max_inline_data = 64},
                                          .qp_type = IBV_QPT_RC};
    size_t bytes = PAGE + (size_t)2 * PLACES * MESSAGE;

    for (int i = 0; list && list[i]; i++)
        if (strcmp(ibv_get_device_name(list[i]), name) == 0)
            end.context = ibv_open_device(list[i]);
    need(end.context, name);
    pd = ibv_alloc_pd(end.context);
    end.channel = ibv_create_comp_channel(end.context);
    need(pd && end.channel, "a domain");
    end.cq = ibv_create_cq(end.context, 3 * QUEUED, NULL, end.channel, 0);
    attributes.send_cq = attributes.recv_cq = end.cq;
    end.qp = ibv_create_qp(pd, &attributes);
    end.memory = aligned_alloc(PAGE, bytes);
    need(end.qp && end.memory, "a queue");
    memset(end.memory, 0, bytes);
    end.mr = ibv_reg_mr(pd, end.memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    need(end.mr, "memory");
}

/* The address of RoCE v2 and IPv4. */
static uint8_t find_gid(union ibv_gid *ret_gid)
{
    struct ibv_gid_entry entry;

    for (uint8_t i = 0; i < 16; i++)
        if (!ibv_query_gid_ex(end.context, 1, i, &entry, 0) &&
            entry.gid_type == IBV_GID_TYPE_ROCE_V2 && entry.gid.raw[10] == 0xff) {
            *ret_gid = entry.gid;
            return i;
        }
    need(false, "an address");
    return 0;
}

static void expect(void)
{
    struct ibv_recv_wr request = {.wr_id = ARRIVED}, *bad;

    need(!ibv_post_recv(end.qp, &request, &bad), "a receive");
}

static void connect_queue(void)
{
    struct endpoint own = {
        .queue = end.qp->qp_num, .key = end.mr->rkey, .memory = (uintptr_t)end.memory};
    uint8_t index = find_gid(&own.gid);
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    int error = ibv_modify_qp(end.qp, &attributes,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    for (int i = 0; i < QUEUED; i++)
        expect();
    trade(&own, &end.peer, sizeof(own));
    attributes = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_4096,
        .dest_qp_num = end.peer.queue,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.grh = {.dgid = end.peer.gid, .sgid_index = index, .hop_limit = 64},
                    .is_global = 1,
                    .port_num = 1}};
    error |= ibv_modify_qp(end.qp, &attributes,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attributes = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 16, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    error |= ibv_modify_qp(end.qp, &attributes,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    need(!error, "a connection");
    meet();
}

static void post(size_t from, size_t to, uint32_t bytes, bool signalled, bool immediate)
{
    struct ibv_sge piece = {(uintptr_t)end.memory + from, bytes, end.mr->lkey};
    struct ibv_send_wr *bad,
        request = {.wr_id = ++end.posted,
                   .sg_list = &piece,
                   .num_sge = 1,
                   .opcode = immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
                   .send_flags =
                       (bytes <= 64 ? IBV_SEND_INLINE : 0) | (signalled ? IBV_SEND_SIGNALED : 0),
                   .wr.rdma = {end.peer.memory + to, end.peer.key}};

    need(!ibv_post_send(end.qp, &request, &bad), "a write");
}

static bool look(void)
{
    struct ibv_wc done[SIGNAL];
    int count = ibv_poll_cq(end.cq, SIGNAL, done);

    for (int i = 0; i < count; i++) {
        need(done[i].status == IBV_WC_SUCCESS, ibv_wc_status_str(done[i].status));
        if (done[i].wr_id == ARRIVED) {
            end.arrived++;
            expect();
        } else {
            end.completed = done[i].wr_id;
        }
    }
    return count > 0;
}

/* Until something completes. */
static void sleep_on(void)
{
    struct pollfd file = {.fd = end.channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;

    need(!ibv_req_notify_cq(end.cq, 0), "notification");
    while (!look() && poll(&file, 1, 1) <= 0)
        continue;
    if (poll(&file, 1, 0) > 0 && !ibv_get_cq_event(end.channel, &cq, &context))
        ibv_ack_cq_events(cq, 1);
    look();
}

/* ---- Measuring ------------------------------------------------------------------------------- */

/* Seconds of all pings. */
static double ping(bool at_once)
{
    static uint64_t number;
    const _Atomic(uint64_t) *in = (const _Atomic(uint64_t) *)(const void *)end.memory;
    uint64_t *out = (uint64_t *)(void *)(end.memory + PAGE / 2);
    double begin;

    meet();
    begin = seconds();
    for (int i = 1; i <= PINGS; i++) {
        number++;
        while (!at_once && end.rank && atomic_load_explicit(in, memory_order_acquire) < number)
            continue;
        *out = number;
        post(PAGE / 2, 0, 8, i % SIGNAL == 0 || i == PINGS, false);
        while ((at_once || !end.rank) && atomic_load_explicit(in, memory_order_acquire) < number)
            continue;
        while (end.posted - end.completed > QUEUED / 2)
            look();
    }
    begin = seconds() - begin;
    while (end.completed != end.posted)
        look();
    return begin;
}

static void copy_out(uint64_t number)
{
    static char where[PLACES][MESSAGE];

    memcpy(where[number % PLACES], end.memory + PAGE + number % PLACES * MESSAGE, MESSAGE);
}

static void copy_in(uint64_t number)
{
    static char from[PLACES][MESSAGE];

    memcpy(end.memory + PAGE + (PLACES + number % PLACES) * MESSAGE, from[number % PLACES],
           MESSAGE);
}

struct way {
    const char *name;
    bool both, copies, silent; /* the reader sleeps until all is over */
};

/* Seconds of all messages. */
static double carry(const struct way *way)
{
    uint64_t sent = 0, taken = 0, before = end.arrived;
    uint64_t out = way->both || !end.rank ? MESSAGES : 0;
    uint64_t in = (way->both || end.rank) && !way->silent ? MESSAGES : 0;
    double begin;

    meet();
    begin = seconds();
    while (sent < out || taken < in || (out && end.completed != end.posted)) {
        bool may = sent < out && end.posted - end.completed < UNDER_WAY;

        if (may) {
            size_t at = PAGE + sent % PLACES * MESSAGE;

            if (way->copies)
                copy_in(sent);
            post(at + (size_t)PLACES * MESSAGE, at, MESSAGE, true, !way->silent);
            sent++;
        }
        if (!look() && !may && taken == end.arrived - before) {
            if (way->silent)
                continue; /* as perftest does */
            sleep_on();
        }
        for (; taken < end.arrived - before && taken < in; taken++)
            if (way->copies)
                copy_out(taken);
    }
    return seconds() - begin;
}

static void report(const char *name, double own, double scale, bool rate)
{
    double theirs;

    trade(&own, &theirs, sizeof(own));
    if (!end.rank)
        printf("%s %.4f\n", name, rate ? scale / (own > theirs ? own : theirs) : own * scale);
    fflush(stdout);
}

static void measure(bool latency, int rounds)
{
    static const struct way ways[] = {{.name = "stream", .silent = true},
                                      {.name = "messages", .copies = true},
                                      {.name = "exchange", .copies = true, .both = true},
                                      {.name = "crossing", .both = true}};

    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < 2 && latency; k++)
            if ((i + k) % 2)
                report("turns", ping(false), 1e6 / PINGS / 2, false);
            else
                report("at_once", ping(true), 1e6 / PINGS, false);
        for (int k = 0; k < 4 && !latency; k++) {
            const struct way *way = &ways[(k * (i % 2 ? 3 : 1) + i) % 4];

            report(way->name, carry(way), (double)MESSAGES * MESSAGE / 1e9, true);
        }
    }
}

int main(int argc, char **argv)
{
    int wires[2];

    if (argc != 5)
        return fprintf(stderr, "usage: %s DEVICE PEER_DEVICE lat|bw ROUNDS\n", argv[0]), 2;
    need(!socketpair(AF_UNIX, SOCK_STREAM, 0, wires), "socketpair");
    end.rank = fork() == 0;
    end.wire = wires[end.rank];
    close(wires[!end.rank]);
    open_device(argv[1 + end.rank]);
    connect_queue();
    measure(strcmp(argv[3], "lat") == 0, atoi(argv[4]));
    meet();
    return 0;
}
