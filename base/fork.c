/* SPDX-License-Identifier: BSD-3-Clause */
/* fork.c - see fork.h. */
#include "base/fork.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static _Atomic uint32_t none; /* nothing was made yet */
static _Atomic uint32_t last; /* number that was given out; children count on */
_Atomic(_Atomic uint32_t *) fork_number = &none;

/* The section of all lists, whose bounds the linker sets. */
extern const struct fork_renewed __start_fork_renewed[] __attribute__((visibility("hidden")));
extern const struct fork_renewed __stop_fork_renewed[] __attribute__((visibility("hidden")));

static struct lock loading = LOCK_AT(LOCK_LOADING);
FORK_RENEWS({.lock = &loading});

static struct kept {
    struct kept *next;
    void *memory;
} * _Atomic kept;

void fork_prevent(void)
{
    lock_take(&loading);
}

void fork_allow(void)
{
    lock_give(&loading);
}

/* ---- Sockets --------------------------------------------------------------------------------- */

/* These are all that a process may have by the usual fs.nr_open; of those above children keep their
 * copies. Of the table only pages exist that have sockets. */
enum { SOCKETS = 1 << 20 };

/* The inode of each socket, by descriptor; 0: none was noted. The program may have closed ours and
 * use the number for a file of its own, which a child keeps. */
static _Atomic uint64_t inodes[SOCKETS];
static atomic_int sockets_end; /* behind the highest of them */

static uint64_t inode_of(int fd)
{
    struct stat status;

    return fstat(fd, &status) || !S_ISSOCK(status.st_mode) ? 0 : status.st_ino;
}

void fork_note_socket(int fd)
{
    int end = atomic_load_explicit(&sockets_end, memory_order_relaxed);

    if (fd >= SOCKETS)
        return;
    /* Relaxed: only a child reads them, in which nothing else runs. */
    atomic_store_explicit(&inodes[fd], inode_of(fd), memory_order_relaxed);
    while (end <= fd && !atomic_compare_exchange_weak_explicit(
                            &sockets_end, &end, fd + 1, memory_order_relaxed, memory_order_relaxed))
        continue;
}

void fork_close_socket(int fd)
{
    uint64_t inode = fd < SOCKETS ? atomic_load_explicit(&inodes[fd], memory_order_relaxed) : 0;

    if (!inode || inode == inode_of(fd)) /* or it is the program's by now */
        close(fd);
    if (inode) /* unless another thread has the number and has noted it by now */
        atomic_compare_exchange_strong_explicit(&inodes[fd], &inode, 0, memory_order_relaxed,
                                                memory_order_relaxed);
}

/* In a child. */
static void close_sockets(void)
{
    int end = atomic_load_explicit(&sockets_end, memory_order_relaxed);

    for (int fd = 0; fd < end; fd++) {
        uint64_t inode = atomic_load_explicit(&inodes[fd], memory_order_relaxed);

        if (inode && inode == inode_of(fd))
            fork_close_socket(fd);
    }
}

/* ---- Children -------------------------------------------------------------------------------- */

/* In a child of fork(), before anything else runs: gives the lock that this thread took in the
 * parent, and clears `none`, for where a page can't be wiped. */
static void begin_child(void)
{
    fork_allow();
    close_sockets();
    atomic_store_explicit(&none, 0, memory_order_relaxed);
    /* Between two lists there may be gaps, of zeros. */
    for (const struct fork_renewed *one = __start_fork_renewed; one < __stop_fork_renewed; one++) {
        if (one->lock)
            lock_init(one->lock, one->lock->level);
        if (one->shared)
            lock_shared_init(one->shared, one->shared->level);
    }
}

/* Before any thread can hold a lock. The C library forgets the handler when it unloads the library
 * whose it is. */
__attribute__((constructor)) static void handle_forks(void)
{
    pthread_atfork(fork_prevent, fork_allow, begin_child);
}

/* A page that is wiped; without one (Linux before 4.14) a variable that begin_child() clears. */
static _Atomic uint32_t *make_number(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    _Atomic uint32_t *expected = &none;

    if (memory == MAP_FAILED)
        return &none;
    /* Release, pairs with the acquire in fork_is_foreign(). */
    if (madvise(memory, page, MADV_WIPEONFORK) == 0 &&
        atomic_compare_exchange_strong_explicit(&fork_number, &expected, (_Atomic uint32_t *)memory,
                                                memory_order_acq_rel, memory_order_acquire))
        return memory;
    munmap(memory, page);
    return expected; /* another thread's, or `none` */
}

uint32_t fork_home(void)
{
    _Atomic uint32_t *number = atomic_load_explicit(&fork_number, memory_order_acquire);
    uint32_t home, before = 0;

    if (number == &none && !atomic_load_explicit(&none, memory_order_relaxed))
        number = make_number();
    home = atomic_load_explicit(number, memory_order_relaxed);
    if (home)
        return home;
    home = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return atomic_compare_exchange_strong_explicit(number, &before, home, memory_order_relaxed,
                                                   memory_order_relaxed)
               ? home
               : before;
}

rondo_result fork_refuse(const char *function, const char *what)
{
    return rondo_fail(RONDO_ERROR_INVALID,
                      "%s: process %d was forked, and the %s is its parent's. A child may close "
                      "it, which does nothing to the parent, start a program (exec), or open a "
                      "communicator of its own.",
                      function, (int)getpid(), what);
}

void fork_keep(void *memory)
{
    struct kept *one = malloc(sizeof(*one));

    if (!one)
        return;
    one->memory = memory;
    one->next = atomic_load_explicit(&kept, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&kept, &one->next, one, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}
