/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * processes.c - may ranks of one machine reach each other as Rondo does it?
 *
 * Ranks are siblings, not ancestors, and some rules (Yama) tell these apart. So a child is forked
 * that reaches for its parent, never the other way round. Each check does the real thing and
 * reports the errno that came back.
 */
#include "cli/common/lines.h"
#include "cli/doctor/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEAP_BYTES = 1 << 16, PATTERN = 0x5a };

/* ---- Shared heap ----------------------------------------------------------------------------- */

/*
 * Map the heap `fd` of process `pid` a second time through /proc; errno, 0 if what was written is
 * there.
 */
static int map_through_proc(pid_t pid, int fd)
{
    char path[64];
    unsigned char *memory;
    int own, result = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
    own = open(path, O_RDWR | O_CLOEXEC);
    if (own < 0)
        return errno;
    memory = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
    if (memory == MAP_FAILED)
        result = errno;
    close(own);
    if (result)
        return result;
    result = memory[HEAP_BYTES - 1] == PATTERN ? 0 : EIO;
    munmap(memory, HEAP_BYTES);
    return result;
}

/* A heap as a rank has one: a memfd, mapped, with a byte written at its end. -1 with errno set. */
static int make_heap(void)
{
    int fd = memfd_create("rondo-doctor", MFD_CLOEXEC);
    unsigned char *memory;

    if (fd < 0)
        return -1;
    if (ftruncate(fd, HEAP_BYTES)) {
        close(fd);
        return -1;
    }
    memory = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        close(fd);
        return -1;
    }
    memory[HEAP_BYTES - 1] = PATTERN;
    munmap(memory, HEAP_BYTES);
    return fd;
}

/* ---- In a child that reaches for its parent -------------------------------------------------- */

struct target {
    pid_t parent;
    int heap;
    uint64_t *word; /* in the parent */
};

static int try_heap(const struct target *target)
{
    return map_through_proc(target->parent, target->heap);
}

static int try_pidfd(const struct target *target)
{
    int fd = (int)syscall(SYS_pidfd_open, target->parent, 0);

    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int try_attach(const struct target *target)
{
    uint64_t word = 0;
    struct iovec here = {&word, sizeof(word)};
    struct iovec there = {target->word, sizeof(word)};

    if (process_vm_readv(target->parent, &here, 1, &there, 1, 0) != (ssize_t)sizeof(word))
        return errno ? errno : EIO;
    return word == PATTERN ? 0 : EIO;
}

static int in_child(int (*try)(const struct target *target), const struct target *target)
{
    int status = 0;
    pid_t child = fork();

    if (child < 0)
        return errno;
    if (!child) {
        *target->word = 0; /* the child's copy: only reading the parent's gives the pattern */
        _exit(try(target));
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

/* ---- What the answers mean ------------------------------------------------------------------- */

/* -1: there is none. */
static int number_in(const char *file, const char *key)
{
    char text[64];

    return line_after(file, key, text, sizeof(text)) ? atoi(text) : -1;
}

static void check_attach(struct doctor_report *report, const struct target *target)
{
    const char *subject = "cross-memory attach";
    int error = in_child(try_attach, target);
    int scope = number_in("/proc/sys/kernel/yama/ptrace_scope", "");
    int seccomp = number_in("/proc/self/status", "Seccomp:");

    if (!error)
        doctor_say(report, DOCTOR_OK, subject, NULL,
                   "process_vm_readv reads another process's plain memory");
    else if (error == EPERM && scope > 0)
        doctor_say(report, DOCTOR_NOTE, subject,
                   "`sysctl kernel.yama.ptrace_scope=0` allows it; without it large plain buffers "
                   "go through shared memory",
                   "forbidden by Yama: kernel.yama.ptrace_scope is %d", scope);
    else if ((error == EPERM || error == ENOSYS) && seccomp > 0)
        doctor_say(report, DOCTOR_NOTE, subject,
                   "start the container with --cap-add SYS_PTRACE; without it large plain buffers "
                   "go through shared memory",
                   "forbidden by the container's seccomp filter: %s", strerror(error));
    else
        doctor_say(report, DOCTOR_NOTE, subject,
                   "large plain buffers go through shared memory; rondo_mem_alloc() memory never "
                   "needs this",
                   "not possible: %s", strerror(error));
}

static void check_sockets(struct doctor_report *report)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length;
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "rondo-doctor-%d", (int)getpid());
    length = (socklen_t)(sizeof(sa_family_t) + 1 + strlen(address.sun_path + 1));
    if (listener >= 0 && client >= 0 && !bind(listener, (struct sockaddr *)&address, length) &&
        !listen(listener, 1) && !connect(client, (struct sockaddr *)&address, length))
        doctor_say(report, DOCTOR_OK, "abstract Unix sockets", NULL,
                   "ranks of one machine can meet without a port or a file");
    else
        doctor_say(report, DOCTOR_FAIL, "abstract Unix sockets",
                   "let ranks meet at a TCP port: RONDO_ADDRESS=127.0.0.1:PORT", "not allowed: %s",
                   strerror(errno));
    if (listener >= 0)
        close(listener);
    if (client >= 0)
        close(client);
}

static void check_heap(struct doctor_report *report, const struct target *target)
{
    int error = map_through_proc(getpid(), target->heap);

    if (error)
        doctor_say(report, DOCTOR_FAIL, "shared heap", "mount /proc in the container",
                   "memfd_create works, but its memory cannot be opened through /proc/self/fd: %s",
                   strerror(error));
    else
        doctor_say(report, DOCTOR_OK, "shared heap", NULL,
                   "memfd_create works and its memory opens through /proc");
    error = in_child(try_heap, target);
    if (error)
        doctor_say(report, DOCTOR_FAIL, "heaps of other ranks",
                   "run all ranks as one user, in one PID namespace, with /proc mounted without "
                   "hidepid; programs must not clear their dumpable flag",
                   "/proc/PID/fd of another process of this user cannot be opened: %s",
                   strerror(error));
    else
        doctor_say(report, DOCTOR_OK, "heaps of other ranks", NULL,
                   "/proc/PID/fd of another process of this user opens and maps");
}

static void check_pidfd(struct doctor_report *report, const struct target *target)
{
    int error = in_child(try_pidfd, target);

    if (error)
        doctor_say(report, DOCTOR_NOTE, "death of ranks",
                   "needs Linux 5.3 and a seccomp filter that lets pidfd_open pass; without it "
                   "ranks are watched by /proc, which costs more in a long wait",
                   "pidfd_open is not possible: %s", strerror(error));
    else
        doctor_say(report, DOCTOR_OK, "death of ranks", NULL,
                   "pidfd_open works, so a dead rank is noticed at once");
}

void doctor_check_processes(struct doctor_report *report)
{
    uint64_t word = PATTERN;
    struct target target = {.parent = getpid(), .heap = make_heap(), .word = &word};

    if (target.heap < 0) {
        doctor_say(report, DOCTOR_FAIL, "shared heap",
                   "needs Linux 3.17, and memory: see `ulimit -v` and the container's limits",
                   "memfd_create with %d KiB failed: %s", HEAP_BYTES >> 10, strerror(errno));
    } else {
        check_heap(report, &target);
        close(target.heap);
    }
    check_pidfd(report, &target);
    check_attach(report, &target);
    check_sockets(report);
}
