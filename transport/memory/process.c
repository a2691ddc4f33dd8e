/* SPDX-License-Identifier: BSD-3-Clause */
/* process.c - the table of mapped processes, with a use count each. */
#include "transport/memory/process.h"

#include "base/caller/descriptor.h"
#include "base/fail.h"
#include "base/fork.h"
#include "base/lock.h"
#include "transport/memory/pages.h"
#include "transport/memory/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/*
 * The beginning of a heap, mapped here. Each is as long as peers' memory was asked for, and twice
 * the one before at least; the older ones stay, as somebody has addresses in them.
 */
struct window {
    struct window *older;
    char *base;
    uint64_t bytes;
};

struct process {
    struct process *next;
    struct heap_handle handle;
    unsigned users;
    bool own;
    struct watch watch;              /* not of our own process */
    _Atomic(struct window *) newest; /* NULL: none is mapped yet, or it is our own process */
    const char *shown;               /* of others: read-only */
};

static struct lock table_lock = LOCK_AT(LOCK_PROCESSES);
FORK_RENEWS({.lock = &table_lock});
static struct process *table;

/* Why a file of the process can't be opened, by errno. */
static rondo_result closed_to_us(const struct process *process, const char *name)
{
    int pid = (int)process->handle.pid, error = errno;

    if (error == EMFILE || error == ENFILE || error == ENOMEM)
        return rondo_fail_errno(RONDO_ERROR_SYSTEM,
                                "Cannot open the shared heap of process %d (ulimit -n?)", pid);
    if (watch_ended(&process->watch))
        return watch_say_ended(pid);
    errno = error;
    return rondo_fail_errno(
        RONDO_ERROR_SYSTEM,
        "Cannot open the shared heap of process %d (%s). Ranks of a host must run as the same "
        "user, in one user namespace, see each other's processes, and be programs that this user "
        "may read (not mode 711, no file capabilities); RONDO_TRANSPORT=tcp does without",
        pid, name);
}

/* A file that `process` says to be its, of `bytes`, which nobody can cut short under us. */
static rondo_result open_shared(const struct process *process, int file, uint64_t bytes, int how,
                                int *ret_fd)
{
    int pid = (int)process->handle.pid, fd, seals;
    struct stat status;
    char name[64];

    snprintf(name, sizeof(name), "/proc/%d/fd/%d", pid, file);
    fd = descriptor_above(open(name, how | O_CLOEXEC));
    if (fd < 0)
        return closed_to_us(process, name);
    seals = fcntl(fd, F_GET_SEALS); /* before the size, which does not change after */
    if (!fstat(fd, &status) && (uint64_t)status.st_size == bytes &&
        bytes >= sizeof(struct heap_head) && seals >= 0 && seals & F_SEAL_SHRINK) {
        *ret_fd = fd;
        return RONDO_OK;
    }
    close(fd);
    return rondo_fail(RONDO_ERROR_PEER,
                      "The shared heap of process %d is not what it said, or is not sealed against "
                      "being cut short.",
                      pid);
}

static rondo_result no_room(const struct process *process, uint64_t bytes)
{
    return rondo_fail_errno(RONDO_ERROR_MEMORY,
                            "Cannot map %llu bytes of address space for the memory of process %d "
                            "(ulimit -v?)",
                            (unsigned long long)bytes, (int)process->handle.pid);
}

static rondo_result check_identity(const struct process *process, int fd)
{
    const struct heap_handle *handle = &process->handle;
    struct heap_head head;

    if (pread(fd, &head, sizeof(head), 0) == sizeof(head) &&
        memcmp(head.id, handle->id, sizeof(handle->id)) == 0)
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_PEER,
                      "Process %d is not the one that joined: it has ended and its number was "
                      "given to another.",
                      (int)handle->pid);
}

/* Open its heap, which is there as long as the process is. */
static rondo_result open_heap(const struct process *process, int *ret_fd)
{
    const struct heap_handle *handle = &process->handle;
    rondo_result result = open_shared(process, handle->fd, handle->bytes, O_RDWR, ret_fd);

    if (!result) {
        result = check_identity(process, *ret_fd);
        if (result)
            close(*ret_fd);
    }
    return result;
}

static uint64_t window_bytes(const struct process *process, uint64_t least)
{
    enum { FIRST = 64 << 20 };
    const struct window *newest = atomic_load_explicit(&process->newest, memory_order_relaxed);
    uint64_t bytes = newest ? 2 * newest->bytes : FIRST;

    if (bytes < least)
        bytes = (least + FIRST - 1) / FIRST * FIRST;
    return bytes < process->handle.bytes ? bytes : process->handle.bytes;
}

/* With the lock held: a window that holds so many bytes from the beginning. */
static rondo_result open_window(struct process *process, uint64_t least)
{
    uint64_t bytes = window_bytes(process, least);
    struct window *window = malloc(sizeof(*window));
    rondo_result result;
    int fd = -1;

    if (!window)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the heap of a process.");
    *window = (struct window){.older = atomic_load_explicit(&process->newest, memory_order_relaxed),
                              .bytes = bytes};
    result = open_heap(process, &fd);
    if (!result) {
        window->base = pages_map(fd, bytes);
        if (!window->base)
            result = no_room(process, bytes);
        close(fd);
    }
    if (result)
        free(window);
    else /* release, pairs with the acquire in process_map() */
        atomic_store_explicit(&process->newest, window, memory_order_release);
    return result;
}

static void close_windows(struct process *process)
{
    struct window *window = atomic_load_explicit(&process->newest, memory_order_relaxed);

    while (window) {
        struct window *older = window->older;

        munmap(window->base, window->bytes);
        free(window);
        window = older;
    }
}

/* The heap is the right one; what is used of it will be mapped then. */
static rondo_result find_heap(const struct process *process)
{
    int fd = -1;
    rondo_result result = open_heap(process, &fd);

    if (!result)
        close(fd);
    return result;
}

static rondo_result map_shown(struct process *process)
{
    const struct shown_handle *handle = &process->handle.shown;
    int fd = -1;
    rondo_result result = open_shared(process, handle->fd, handle->bytes, O_RDONLY, &fd);
    void *base;

    if (result)
        return result;
    base = mmap(NULL, handle->bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) {
        result = no_room(process, handle->bytes);
    } else {
        pages_hide(base, handle->bytes);
        process->shown = base;
    }
    close(fd);
    return result;
}

/* A handle with our process number is believed only if it describes our heap. */
static rondo_result use_own_heap(struct process *process)
{
    const struct heap_handle *handle = &process->handle;

    if (!heap_is(handle))
        return rondo_fail(RONDO_ERROR_PEER,
                          "A rank says that it is in process %d, as this one is, but its shared "
                          "heap is another.",
                          (int)handle->pid);
    process->shown = shown_base();
    return RONDO_OK;
}

static void release(struct process *process)
{
    close_windows(process);
    if (process->shown && !process->own)
        munmap((void *)(uintptr_t)process->shown, process->handle.shown.bytes);
    watch_close(&process->watch);
    free(process);
}

static rondo_result open_process(const struct heap_handle *handle, struct process **ret_process)
{
    struct process *process = calloc(1, sizeof(*process));
    rondo_result result = RONDO_OK;

    if (!process)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the table of processes.");
    process->handle = *handle;
    process->users = 1;
    process->watch = WATCH_NONE;
    process->own = handle->pid == (int32_t)getpid();
    if (process->own) {
        result = use_own_heap(process);
    } else {
        result = watch_open(handle->pid, &process->watch);
        if (!result)
            result = find_heap(process);
        if (!result)
            result = map_shown(process);
    }
    if (result) {
        release(process);
        return result;
    }
    *ret_process = process;
    return RONDO_OK;
}

rondo_result process_attach(const struct heap_handle *handle, struct process **ret_process)
{
    rondo_result result = RONDO_OK;
    /* After fork() our parent is in the table as "own". */
    bool own = handle->pid == (int32_t)getpid();
    struct process *process;

    lock_take(&table_lock);
    for (process = table; process; process = process->next)
        if (memcmp(process->handle.id, handle->id, sizeof(handle->id)) == 0 &&
            process->handle.pid == handle->pid && process->own == own)
            break;
    if (process) {
        process->users++;
    } else {
        result = open_process(handle, &process);
        if (!result) {
            process->next = table;
            table = process;
        }
    }
    lock_give(&table_lock);
    if (!result)
        *ret_process = process;
    return result;
}

void process_hold(struct process *process)
{
    lock_take(&table_lock);
    process->users++;
    lock_give(&table_lock);
}

void process_detach(struct process *process)
{
    struct process **link = &table;

    if (!process)
        return;
    lock_take(&table_lock);
    if (--process->users == 0) {
        while (*link != process)
            link = &(*link)->next;
        *link = process->next;
        release(process);
    }
    lock_give(&table_lock);
}

bool process_is_own(const struct process *process)
{
    return process->own;
}

int process_id(const struct process *process)
{
    return process->handle.pid;
}

bool process_alive(const struct process *process)
{
    return process->own || !watch_ended(&process->watch);
}

bool process_has_ended(const struct heap_handle *handle)
{
    struct watch watch;
    rondo_result result = watch_open(handle->pid, &watch);
    bool gone = result ? result == RONDO_ERROR_PEER : watch_ended(&watch);

    watch_close(&watch);
    return gone;
}

/* The window that is mapped, if it holds so much. */
static char *window_base(const struct process *process, uint64_t bytes)
{
    const struct window *newest = atomic_load_explicit(&process->newest, memory_order_acquire);

    return newest && bytes <= newest->bytes ? newest->base : NULL;
}

rondo_result process_map(struct process *process, uint64_t offset, size_t bytes, char **ret_memory)
{
    rondo_result result = RONDO_OK;
    char *base;

    if (offset > process->handle.bytes || bytes > process->handle.bytes - offset)
        return rondo_fail(RONDO_ERROR_PEER,
                          "Process %d says that it has memory outside of its shared heap.",
                          (int)process->handle.pid);
    base = process->own ? heap_base() : window_base(process, offset + bytes);
    if (!base) {
        lock_take(&table_lock);
        if (!window_base(process, offset + bytes))
            result = open_window(process, offset + bytes);
        base = window_base(process, offset + bytes);
        lock_give(&table_lock);
    }
    if (!result)
        *ret_memory = base + offset;
    return result;
}

void *process_shown(const struct process *process, uint64_t offset, size_t bytes)
{
    uint64_t all = process->handle.shown.bytes;

    if (offset > all || bytes > all - offset)
        return NULL;
    return (void *)(uintptr_t)(process->shown + offset);
}

bool process_readable(const struct process *process, uint64_t address)
{
    char byte;
    struct iovec here = {&byte, 1};
    struct iovec there = {(void *)(uintptr_t)address, 1};

    return process_vm_readv(process->handle.pid, &here, 1, &there, 1, 0) == 1;
}

rondo_result process_read(const struct process *process, void *to, uint64_t from, size_t bytes)
{
    char *at = to;

    while (bytes) {
        struct iovec here = {at, bytes};
        struct iovec there = {(void *)(uintptr_t)from, bytes};
        ssize_t got = process_vm_readv(process->handle.pid, &here, 1, &there, 1, 0);

        if (got <= 0)
            return rondo_fail_errno(errno == ESRCH ? RONDO_ERROR_PEER : RONDO_ERROR_SYSTEM,
                                    "Cannot read %zu bytes of process %d (process_vm_readv); "
                                    "RONDO_CMA=off avoids it",
                                    bytes, process->handle.pid);
        at += got;
        from += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return RONDO_OK;
}

/* Not by its name in /proc: what a driver gives out can only be had as it is. */
rondo_result process_take_file(const struct process *process, int file, int *ret_file)
{
    int got = descriptor_above(process->own
                                   ? fcntl(file, F_DUPFD_CLOEXEC, 0)
                                   : (int)syscall(SYS_pidfd_getfd, process->watch.pidfd, file, 0));

    if (got < 0)
        return rondo_fail_errno(RONDO_ERROR_SYSTEM,
                                "Cannot take a file of process %d (pidfd_getfd; "
                                "kernel.yama.ptrace_scope may forbid it)",
                                process->handle.pid);
    *ret_file = got;
    return RONDO_OK;
}
