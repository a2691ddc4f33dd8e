/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faults.c - the system under the sockets of this process, as bad as it may be: bytes come and go
 * in pieces, late, after signals, and connections overtake each other. RONDO_FAULTS=SEED:PER_MILLE
 * says how often; every process and thread draws from a row of its own, so a seed is a run again as
 * far as the scheduler lets it.
 *
 * The linker leads the library's calls here (--wrap), so the library has no code for this and pays
 * nothing. Nothing that happens here is an error: results must be as without.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

ssize_t __real_send(int fd, const void *bytes, size_t count, int flags);
ssize_t __real_recv(int fd, void *bytes, size_t count, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
bool __real_socket_say(int fd, const void *bytes, size_t count);
ssize_t __wrap_send(int fd, const void *bytes, size_t count, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t count, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
bool __wrap_socket_say(int fd, const void *bytes, size_t count);

enum fault { NONE, SHORT, AGAIN, INTERRUPTED, LATE };

/* Calls that were not as they should be, of this process. */
extern _Atomic unsigned long faults_struck;
_Atomic unsigned long faults_struck;

/* socket_say() may count on the room of a fresh connection: there nothing is cut. */
static _Thread_local bool exempt;

static uint64_t draw(void)
{
    static _Thread_local uint64_t state;
    static _Thread_local pid_t owner;
    const char *text = getenv("RONDO_FAULTS");

    if (owner != gettid()) { /* also after fork() */
        owner = gettid();
        state = text ? strtoull(text, NULL, 10) * 0x9e3779b97f4a7c15u + 1 : 1;
        state ^= (uint64_t)(owner - getpid()) << 32;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 11;
}

static unsigned per_mille(void)
{
    const char *text = getenv("RONDO_FAULTS");
    char *end;

    if (!text)
        return 0;
    (void)!strtoull(text, &end, 10);
    return *end == ':' ? (unsigned)strtoul(end + 1, NULL, 10) : 0;
}

static enum fault next_fault(void)
{
    if (exempt || draw() % 1000 >= per_mille())
        return NONE;
    atomic_fetch_add_explicit(&faults_struck, 1, memory_order_relaxed);
    return (enum fault)(SHORT + draw() % 4);
}

/* True if the call ends here, with errno. */
static bool strikes(enum fault fault)
{
    if (fault == LATE) {
        const struct timespec time = {.tv_nsec = (long)(draw() % 2000000)};

        nanosleep(&time, NULL);
    }
    errno = fault == AGAIN ? EAGAIN : EINTR;
    return fault == AGAIN || fault == INTERRUPTED;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t count, int flags)
{
    enum fault fault = next_fault();

    if (strikes(fault))
        return -1;
    return __real_send(fd, bytes, fault == SHORT && count ? 1 + draw() % count : count, flags);
}

ssize_t __wrap_recv(int fd, void *bytes, size_t count, int flags)
{
    enum fault fault = next_fault();

    if (strikes(fault))
        return -1;
    return __real_recv(fd, bytes, fault == SHORT && count ? 1 + draw() % count : count, flags);
}

/* A message with a part of its first piece. */
static struct msghdr cut(const struct msghdr *message, struct iovec *piece)
{
    struct msghdr less = *message;

    *piece = message->msg_iov[0];
    piece->iov_len = 1 + draw() % piece->iov_len;
    less.msg_iov = piece;
    less.msg_iovlen = 1;
    return less;
}

static bool can_be_cut(const struct msghdr *message)
{
    return message->msg_iovlen && message->msg_iov[0].iov_len && !message->msg_control;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    enum fault fault = next_fault();
    struct iovec piece;
    struct msghdr less;

    if (strikes(fault))
        return -1;
    if (fault != SHORT || !can_be_cut(message))
        return __real_sendmsg(fd, message, flags);
    less = cut(message, &piece);
    return __real_sendmsg(fd, &less, flags);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
    enum fault fault = next_fault();
    struct iovec piece;
    struct msghdr less;

    if (strikes(fault))
        return -1;
    if (fault != SHORT || !can_be_cut(message))
        return __real_recvmsg(fd, message, flags);
    less = cut(message, &piece);
    return __real_recvmsg(fd, &less, flags);
}

bool __wrap_socket_say(int fd, const void *bytes, size_t count)
{
    bool said;

    exempt = true;
    said = __real_socket_say(fd, bytes, count);
    exempt = false;
    return said;
}
