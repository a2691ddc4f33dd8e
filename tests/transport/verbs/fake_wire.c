/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_wire.c - memory, queues and what is under way between them; see fake_verbs.h. For one
 * thread.
 */
#include "tests/transport/verbs/fake_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { QUEUES = 4096, COMPLETIONS = FAKE_COMPLETIONS, WRITES = 8192 };

struct fake_cq {
    struct ibv_cq cq;
    struct ibv_wc done[COMPLETIONS];
    unsigned begin, end;
};

struct fake_qp {
    struct ibv_qp qp;
    struct fake_cq *completions;
    uint32_t peer;
    unsigned receives;
    enum ibv_qp_state state;
};

struct write {
    struct fake_qp *from;
    char *bytes; /* own copy if it was inline */
    const char *source;
    char *to;
    uint32_t length, moved, key;
    unsigned offsets; /* of which a word has arrived, when there are few */
    uint64_t number;
    bool immediate, signalled, placed;
    enum ibv_wc_status status;
};

struct fake_verbs fake;
static struct fake_qp *queues[QUEUES];
static struct write writes[WRITES];
static int write_count;
static uint64_t random_state = 1;

static unsigned draw(unsigned below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % below;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

struct fake_mr {
    struct ibv_mr mr;
    struct fake_mr *next;
    int access;
    char *mapped; /* where the bytes of a file are; NULL: at the address */
    size_t offset;
};
static struct fake_mr *memory;
static uint32_t keys = 100;

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *at, size_t bytes, int access)
{
    struct fake_mr *mr;

    if (fake.allowed > 0) {
        fake.allowed--;
    } else if (fake.fail_registrations > 0) {
        fake.fail_registrations--;
        errno = ENOMEM;
        return NULL;
    }
    mr = calloc(1, sizeof(*mr));
    mr->mr = (struct ibv_mr){
        .context = pd->context, .pd = pd, .addr = at, .length = bytes, .lkey = ++keys};
    mr->mr.rkey = mr->mr.lkey;
    mr->access = access;
    mr->next = memory;
    memory = mr;
    fake.living++;
    fake.registered++;
    return &mr->mr;
}

static struct ibv_mr *reg_mr_iova2(struct ibv_pd *pd, void *at, size_t bytes, uint64_t iova,
                                   unsigned access)
{
    (void)iova;
    return reg_mr(pd, at, bytes, (int)access);
}

static struct ibv_mr *reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t iova,
                                    int fd, int access)
{
    struct fake_mr *mr;
    char *mapped;

    errno = fake.no_dmabuf ? EOPNOTSUPP : fd < 0 ? EBADF : ENOMEM;
    if (fake.no_dmabuf || fd < 0 || bytes > fake.dmabuf_room)
        return NULL;
    mapped = mmap(NULL, offset + bytes, PROT_READ | PROT_WRITE,
                  fake.astray ? MAP_PRIVATE : MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        abort();
    mr = (struct fake_mr *)(void *)reg_mr(pd, (void *)(uintptr_t)iova, bytes, access);
    if (!mr) {
        munmap(mapped, offset + bytes);
        return NULL;
    }
    mr->mapped = mapped;
    mr->offset = offset;
    fake.dmabuf_room -= bytes;
    return &mr->mr;
}

static int dereg_mr(struct ibv_mr *gone)
{
    struct fake_mr **at = &memory, *mr;

    for (int i = 0; i < write_count; i++)
        if (writes[i].key == gone->lkey && !writes[i].placed)
            writes[i].status = IBV_WC_LOC_PROT_ERR;
    while (&(*at)->mr != gone)
        at = &(*at)->next;
    mr = *at;
    *at = (*at)->next;
    if (mr->mapped) {
        munmap(mr->mapped, mr->offset + gone->length);
        fake.dmabuf_room += gone->length;
    }
    free(gone);
    fake.living--;
    fake.registered--;
    return 0;
}

/* Where `bytes` at `at` are, if they may be used with this key and these rights. */
static char *find(uint32_t key, uint64_t at, size_t bytes, int access)
{
    for (struct fake_mr *mr = memory; mr; mr = mr->next) {
        uint64_t begin = (uintptr_t)mr->mr.addr;

        if (mr->mr.lkey != key)
            continue;
        if ((mr->access & access) != access || at < begin || at + bytes > begin + mr->mr.length)
            return NULL;
        return mr->mapped ? mr->mapped + mr->offset + (at - begin) : (char *)(uintptr_t)at;
    }
    return NULL;
}

/* ---- Writes ---------------------------------------------------------------------------------- */

static void complete(struct fake_cq *cq, const struct ibv_wc *done)
{
    if (cq->end - cq->begin == COMPLETIONS)
        abort(); /* a real queue would be lost */
    cq->done[cq->end++ % COMPLETIONS] = *done;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
    struct fake_qp *from = (struct fake_qp *)(void *)qp;

    for (; request; request = request->next) {
        size_t length = request->num_sge ? request->sg_list->length : 0;
        struct write write = {
            .from = from,
            .length = (uint32_t)length,
            .number = request->wr_id,
            .immediate = request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM,
            .signalled = request->send_flags & IBV_SEND_SIGNALED,
            .status = from->state == IBV_QPS_RTS ? fake.fate : IBV_WC_WR_FLUSH_ERR,
        };

        if (from->state != IBV_QPS_RTS || write_count == WRITES) {
            *bad = request;
            return EINVAL;
        }
        if (length && request->send_flags & IBV_SEND_INLINE) {
            write.bytes = malloc(length);
            memcpy(write.bytes, (const char *)(uintptr_t)request->sg_list->addr, length);
            write.source = write.bytes;
        } else if (length) {
            write.key = request->sg_list->lkey;
            write.source = find(write.key, request->sg_list->addr, length, 0);
            if (!write.source)
                write.status = IBV_WC_LOC_PROT_ERR;
        }
        if (length)
            write.to = find(request->wr.rdma.rkey, request->wr.rdma.remote_addr, length,
                            IBV_ACCESS_REMOTE_WRITE);
        if (length && !write.status && !write.to)
            write.status = IBV_WC_REM_ACCESS_ERR;
        if (!queues[from->peer % QUEUES] || queues[from->peer % QUEUES]->state < IBV_QPS_RTR)
            write.status = IBV_WC_RETRY_EXC_ERR;
        write.placed = !length;
        writes[write_count++] = write;
        fake.writes++;
        fake.immediates += write.immediate;
    }
    return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *request, struct ibv_recv_wr **bad)
{
    (void)request;
    (void)bad;
    ((struct fake_qp *)(void *)qp)->receives++;
    return 0;
}

/* One word of one write, at random, not in order: a bit per word where there are few of them. */
static void place(struct write *write)
{
    uint32_t at;

    if (write->length > 8 * 32) { /* long: from either end, so as well not in order */
        at = write->moved;
        write->moved += 4096;
        for (uint32_t i = at; i < at + 4096 && i < write->length; i += 4)
            memcpy(write->to + i, write->source + i, 4);
        write->placed = write->moved >= write->length;
        return;
    }
    do
        at = draw((write->length + 7) / 8);
    while (write->offsets >> at & 1);
    write->offsets |= 1u << at;
    for (uint32_t i = 8 * at; i < 8 * at + 8 && i < write->length; i++)
        write->to[i] = write->source[i];
    fake.out_of_order += at != write->moved / 8;
    write->moved += 8;
    write->placed = write->moved >= write->length;
}

/* In the order of the queue: those that are in place complete. */
static void retire(void)
{
    int kept = 0;

    for (int i = 0; i < write_count; i++) {
        struct write *write = &writes[i];
        struct ibv_wc done = {.wr_id = write->number, .status = write->status};
        struct fake_qp *peer = queues[write->from->peer % QUEUES];
        bool earlier = false;

        for (int j = 0; j < kept; j++)
            earlier |= writes[j].from == write->from;
        if (earlier || (!write->placed && !write->status)) {
            writes[kept++] = *write;
            continue;
        }
        if (write->immediate && !write->status && peer) {
            if (!peer->receives--)
                abort(); /* nobody granted room for it */
            complete(peer->completions,
                     &(struct ibv_wc){.wr_id = UINT64_MAX, .opcode = IBV_WC_RECV_RDMA_WITH_IMM});
        }
        if (write->signalled || write->status)
            complete(write->from->completions, &done);
        free(write->bytes);
    }
    write_count = kept;
}

void fake_verbs_move(int words)
{
    while (words-- > 0 && write_count) {
        struct write *write = &writes[draw((unsigned)write_count)];

        if (!write->placed && !write->status)
            place(write);
        retire();
    }
}

void fake_verbs_settle(void)
{
    while (write_count)
        fake_verbs_move(1);
}

/* ---- Queues ---------------------------------------------------------------------------------- */

static int poll_cq(struct ibv_cq *queue, int count, struct ibv_wc *ret_done)
{
    struct fake_cq *cq = (struct fake_cq *)(void *)queue;
    int taken = 0;

    fake_verbs_move(fake.moves_when_polled);
    while (taken < count && cq->begin != cq->end)
        ret_done[taken++] = cq->done[cq->begin++ % COMPLETIONS];
    return taken;
}

static struct ibv_cq *create_cq(struct ibv_context *context, int entries, void *owner,
                                struct ibv_comp_channel *channel, int vector)
{
    struct fake_cq *cq = calloc(1, sizeof(*cq));

    (void)channel;
    (void)vector;
    cq->cq = (struct ibv_cq){.context = context, .cq_context = owner, .cqe = entries};
    fake.living++;
    return &cq->cq;
}

static int destroy_cq(struct ibv_cq *cq)
{
    free(cq);
    fake.living--;
    return 0;
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes)
{
    struct fake_qp *qp;
    uint32_t number = 1;

    while (number < QUEUES && queues[number])
        number++;
    errno = fake.fail_queues ? ENOMEM : EINVAL;
    if (fake.fail_queues || number == QUEUES || attributes->cap.max_inline_data > fake.inlined)
        return NULL;
    qp = calloc(1, sizeof(*qp));
    qp->qp = (struct ibv_qp){.context = pd->context, .pd = pd, .qp_num = number};
    qp->completions = (struct fake_cq *)(void *)attributes->send_cq;
    queues[number] = qp;
    fake.living++;
    return &qp->qp;
}

static int modify_qp(struct ibv_qp *queue, struct ibv_qp_attr *attributes, int mask)
{
    struct fake_qp *qp = (struct fake_qp *)(void *)queue;

    if (mask & IBV_QP_STATE) {
        if (fake.fail_connects && attributes->qp_state == IBV_QPS_RTR)
            return ENETUNREACH;
        if (attributes->qp_state != qp->state + 1 && attributes->qp_state != IBV_QPS_ERR)
            return EINVAL;
        for (int i = 0; i < write_count && attributes->qp_state == IBV_QPS_ERR; i++)
            if (writes[i].from == qp)
                writes[i].status = IBV_WC_WR_FLUSH_ERR;
        qp->state = attributes->qp_state;
    }
    if (mask & IBV_QP_DEST_QPN)
        qp->peer = attributes->dest_qp_num;
    if (mask & IBV_QP_PKEY_INDEX)
        fake.partition = attributes->pkey_index;
    if (mask & IBV_QP_AV)
        fake.global += attributes->ah_attr.is_global;
    if (mask & IBV_QP_AV && attributes->ah_attr.is_global)
        fake.marked += attributes->ah_attr.grh.traffic_class == fake.traffic_class;
    else if (mask & IBV_QP_AV)
        fake.marked += attributes->ah_attr.sl == (fake.traffic_class & 15);
    return 0;
}

static int destroy_qp(struct ibv_qp *queue)
{
    int kept = 0;

    for (int i = 0; i < write_count; i++)
        if (&writes[i].from->qp == queue)
            free(writes[i].bytes);
        else
            writes[kept++] = writes[i];
    write_count = kept;
    queues[queue->qp_num] = NULL;
    free(queue);
    fake.living--;
    return 0;
}

void fake_wire_fill(struct verbs_calls *calls)
{
    calls->reg_mr = reg_mr;
    calls->dereg_mr = dereg_mr;
    calls->create_cq = create_cq;
    calls->destroy_cq = destroy_cq;
    calls->create_qp = create_qp;
    calls->modify_qp = modify_qp;
    calls->destroy_qp = destroy_qp;
    calls->reg_mr_iova2 = reg_mr_iova2;
    calls->reg_dmabuf_mr = reg_dmabuf_mr;
}

void fake_wire_context(struct ibv_context *context)
{
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    context->ops.poll_cq = poll_cq;
}
