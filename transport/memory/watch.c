/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/memory/watch.h"

#include "base/caller/descriptor.h"
#include "base/fail.h"
#include "base/process.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

rondo_result watch_say_ended(int pid)
{
    return rondo_fail(RONDO_ERROR_PEER, "Process %d has ended; look at its output for the reason.",
                      pid);
}

rondo_result watch_open(int pid, struct watch *ret_watch)
{
    struct watch watch = {.pid = pid};
    char state = '\0';
    int error;

    watch.pidfd = descriptor_above((int)syscall(SYS_pidfd_open, pid, 0));
    error = errno;
    watch.started = process_started(pid, &state);
    *ret_watch = watch;
    if (watch.pidfd >= 0 || watch.started)
        return RONDO_OK;
    if (error == ESRCH || state) /* nobody has waited for it */
        return watch_say_ended(pid);
    errno = error;
    return rondo_fail_errno(RONDO_ERROR_SYSTEM,
                            "Cannot watch process %d (by pidfd_open, nor by /proc); "
                            "RONDO_TRANSPORT=tcp does without",
                            pid);
}

void watch_close(struct watch *watch)
{
    if (watch->pidfd >= 0)
        close(watch->pidfd);
    watch->pidfd = -1;
}

/* A process whose files can't be read any more, as there are too many open, lives on. */
static bool has_gone(const struct watch *watch)
{
    char state = '\0', name[32];
    uint64_t started = process_started(watch->pid, &state);

    if (started || state)
        return started != watch->started;
    snprintf(name, sizeof(name), "/proc/%d", watch->pid);
    return access(name, F_OK) && errno == ENOENT;
}

bool watch_ended(const struct watch *watch)
{
    struct pollfd watched = {.fd = watch->pidfd, .events = POLLIN};

    return watch->pidfd >= 0 ? poll(&watched, 1, 0) > 0 : has_gone(watch);
}
