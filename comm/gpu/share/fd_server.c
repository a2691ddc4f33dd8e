/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fd_server.c - files of device memory handed from process to process, where a peer may not take
 * them by itself: pidfd_getfd() needs the right to attach, which Yama (kernel.yama.ptrace_scope
 * from 1 on), a seccomp filter or a process that is not dumpable refuse to equal users.
 *
 *     owner   nonce                                      ->
 *     peer    order, rank, nonce, proof                  <-
 *     owner   proof, and the files of the order (SCM_RIGHTS)  ->
 *
 * The owner listens at an abstract UNIX socket whose name only the communicator's ranks can
 * compute, and answers while it waits for the peers to map its order (share.c): so it needs no
 * thread, and gives nothing but the files of that order. Both look at the other's user, the peer
 * also at the owner's process; both prove that they know the job's secret.
 */
#include "comm/gpu/arena.h"

#include "base/caller/descriptor.h"
#include "base/caller/times.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/net/socket.h"
#include "base/proof.h"
#include "transport/memory/process.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static const char asks[] = "asks for files", gives[] = "gives files";

struct wish {
    uint32_t order;
    int32_t owner, peer;
};

struct demand {
    struct wish wish;
    unsigned char nonce[PROOF_NONCE], proof[PROOF_BYTES];
};

union files {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(GPU_PIECES * sizeof(int))];
};

/* ---- The socket ------------------------------------------------------------------------------ */

static socklen_t name_of(const rondo_comm *comm, int rank, struct sockaddr_un *ret_address)
{
    const uint64_t who[2] = {comm->id, (uint64_t)rank};
    unsigned char hash[PROOF_KEY];
    char name[64] = "rondo-files-";

    proof_derive(comm->key, who, sizeof(who), hash);
    sodium_bin2hex(name + strlen(name), 33, hash, 16);
    return socket_abstract(name, ret_address);
}

/* Nobody waits long for the other. */
static void limit_waits(int file)
{
    const struct timeval limit = {.tv_sec = PATIENCE_FD};

    setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

/* Others are sent away before they are waited for: a crowd of them costs a peer no time. */
static bool is_of_peer(const rondo_comm *comm, int file)
{
    pid_t process;
    bool ours = socket_same_user(file, NULL, &process);

    for (int rank = 0; ours && rank < comm->size; rank++)
        if (comm->processes[rank] && process_id(comm->processes[rank]) == process)
            return true;
    return false;
}

/* ---- The owner ------------------------------------------------------------------------------- */

rondo_result gpu_fd_server_open(struct gpu_plans *plans)
{
    const rondo_comm *comm = plans->comm;
    struct sockaddr_un address;
    socklen_t length;

    if (plans->fd_server > 0)
        return RONDO_OK;
    length = name_of(comm, comm->rank, &address);
    plans->fd_server = socket_listen_at((struct sockaddr *)&address, length, SOCK_SEQPACKET);
    if (plans->fd_server >= 0)
        return RONDO_OK;
    plans->fd_server = 0;
    return rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot listen at an abstract UNIX socket");
}

static bool give(int file, const struct gpu_order *order, unsigned char proof[PROOF_BYTES])
{
    struct iovec text = {proof, PROOF_BYTES};
    union files files = {0};
    size_t bytes = (size_t)order->pieces * sizeof(int);
    struct msghdr message = {.msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = files.bytes,
                             .msg_controllen = CMSG_SPACE(bytes)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    *header = (struct cmsghdr){CMSG_LEN(bytes), SOL_SOCKET, SCM_RIGHTS};
    for (int i = 0; i < order->pieces; i++)
        memcpy(CMSG_DATA(header) + (size_t)i * sizeof(int), &order->piece[i].file, sizeof(int));
    return sendmsg(file, &message, MSG_NOSIGNAL) == PROOF_BYTES;
}

static bool serve(const struct gpu_plans *plans, int file)
{
    const struct gpu_order *order = &plans->own->order;
    unsigned char nonce[PROOF_NONCE], proof[PROOF_BYTES];
    struct demand demand;
    const struct proof_session session = {plans->comm->key, nonce, demand.nonce};

    limit_waits(file);
    if (!is_of_peer(plans->comm, file))
        return false;
    proof_nonce(nonce);
    if (send(file, nonce, sizeof(nonce), MSG_NOSIGNAL) != sizeof(nonce) ||
        recv(file, &demand, sizeof(demand), 0) != sizeof(demand) ||
        !proof_check(&session, asks, &demand.wish, sizeof(demand.wish), demand.proof) ||
        demand.wish.order != order->number || demand.wish.owner != plans->comm->rank)
        return false;
    proof_make(&session, gives, &demand.wish, sizeof(demand.wish), proof);
    return give(file, order, proof);
}

void gpu_fd_server_serve(const struct gpu_plans *plans)
{
    int file;

    while (plans->fd_server > 0 &&
           (file = descriptor_above(accept4(plans->fd_server, NULL, NULL, SOCK_CLOEXEC))) >= 0) {
        if (!serve(plans, file))
            log_info("somebody who asked for files of device memory got none");
        close(file);
    }
}

void gpu_fd_server_close(struct gpu_plans *plans)
{
    if (plans->fd_server > 0)
        close(plans->fd_server);
    plans->fd_server = 0;
}

/* ---- The peer -------------------------------------------------------------------------------- */

/* The files that came, and how many. */
static int unpack(struct msghdr *message, int ret_files[GPU_PIECES])
{
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    int count;

    if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
        return 0;
    count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(ret_files, CMSG_DATA(header), (size_t)count * sizeof(int));
    for (int i = 0; i < count; i++)
        ret_files[i] = descriptor_above(ret_files[i]);
    return count;
}

static rondo_result ask(const struct gpu_plans *plans, int file, const struct wish *wish,
                        int pieces, int ret_files[GPU_PIECES])
{
    unsigned char nonce[PROOF_NONCE], proof[PROOF_BYTES];
    struct demand demand = {.wish = *wish};
    const struct proof_session session = {plans->comm->key, nonce, demand.nonce};
    union files files = {0};
    struct iovec text = {proof, PROOF_BYTES};
    struct msghdr message = {.msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = files.bytes,
                             .msg_controllen = sizeof(files.bytes)};
    ssize_t got;
    int count;

    if (recv(file, nonce, sizeof(nonce), 0) != sizeof(nonce))
        return rondo_fail_errno(RONDO_ERROR_PEER, "rank %d does not answer", wish->owner);
    proof_nonce(demand.nonce);
    proof_make(&session, asks, wish, sizeof(*wish), demand.proof);
    if (send(file, &demand, sizeof(demand), MSG_NOSIGNAL) != sizeof(demand) ||
        (got = recvmsg(file, &message, MSG_CMSG_CLOEXEC)) < 0)
        return rondo_fail_errno(RONDO_ERROR_PEER, "rank %d gives no files", wish->owner);
    count = unpack(&message, ret_files); /* also with a wrong answer: they are open here now */
    if (got == PROOF_BYTES && count == pieces &&
        proof_check(&session, gives, wish, sizeof(*wish), proof))
        return RONDO_OK;
    for (int i = 0; i < count; i++)
        close(ret_files[i]);
    return rondo_fail(RONDO_ERROR_PEER, "rank %d gives %d files of %d, or is not who it should be",
                      wish->owner, count, pieces);
}

rondo_result gpu_fd_server_take(struct gpu_plans *plans, int rank, const struct gpu_order *order,
                                int ret_files[GPU_PIECES])
{
    const struct wish wish = {order->number, rank, plans->comm->rank};
    struct sockaddr_un address;
    socklen_t length = name_of(plans->comm, rank, &address);
    int file = descriptor_above(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    rondo_result result;
    pid_t process;

    if (file < 0)
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot open a UNIX socket");
    limit_waits(file);
    if (connect(file, (struct sockaddr *)&address, length))
        result = rondo_fail_errno(RONDO_ERROR_PEER, "rank %d has no socket for files", rank);
    else if (!socket_same_user(file, NULL, &process) ||
             process != process_id(plans->comm->processes[rank]))
        result =
            rondo_fail(RONDO_ERROR_PEER, "another process than rank %d's listens for it", rank);
    else
        result = ask(plans, file, &wish, order->pieces, ret_files);
    close(file);
    return result;
}
