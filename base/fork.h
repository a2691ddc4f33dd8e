/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork.h - which process made this? What belongs to a process that was forked is not its child's.
 *
 * A child has copies of all handles of its parent, and maps the same rings: if it used them, two
 * processes would be one rank. So a handle keeps the number of the process that made it, and every
 * call compares it with that of the calling process, which lies in a page that the kernel wipes in
 * a child (MADV_WIPEONFORK): two loads, no system call, and it sees children of a bare clone() as
 * well. Children of vfork() run in their parent's memory and are their parent here.
 *
 * Numbers are of this process and its ancestors only: 1 in the first that asks, 2 in its children
 * that ask, and so on. 0 is that of a child that has not made anything.
 */
#ifndef RONDO_BASE_FORK_H
#define RONDO_BASE_FORK_H

#include "base/fail.h"
#include "base/lock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern _Atomic(_Atomic uint32_t *) fork_number;

/* The number of this process, for what it makes; never 0. */
uint32_t fork_home(void);

/* True if the object was made by a process from which this one was forked. */
static inline bool fork_is_foreign(uint32_t home)
{
    /* Acquire, pairs with the release in fork_home(): the page is there. */
    _Atomic uint32_t *number = atomic_load_explicit(&fork_number, memory_order_acquire);

    return atomic_load_explicit(number, memory_order_relaxed) != home;
}

/* RONDO_ERROR_INVALID, with a sentence about the foreign `what` of `function`. */
rondo_result fork_refuse(const char *function, const char *what);

/*
 * A lock of the whole process may be held by another thread when it forks, which the child does
 * not have: there it shall be a new one. So each file that has such locks lists them once, as
 * {.lock = &one} or {.shared = &one}; the linker puts the lists of all files into one section.
 */
struct fork_renewed {
    struct lock *lock;
    struct lock_shared *shared;
};
#define FORK_RETAIN
#ifdef __has_attribute
#if __has_attribute(retain)
#undef FORK_RETAIN
#define FORK_RETAIN retain, /* whatever a linker takes for garbage */
#endif
#endif
#define FORK_RENEWS(...)                                                                   \
    __attribute__((used, FORK_RETAIN section("fork_renewed"),                              \
                   aligned(sizeof(struct fork_renewed)))) static const struct fork_renewed \
        fork_renewed_here[] = {__VA_ARGS__}

/* From here until fork_allow() other threads wait in fork(): what the C library knows of loaded
 * libraries is not whole for a child that is born while one is looked for. For what is done again
 * and again, and runs no code of others: that may want locks that a thread in fork() has. */
void fork_prevent(void);
void fork_allow(void);

/*
 * A child closes its copies of these sockets as it begins: else peers would hear of the end of this
 * process only when its last child ends. Nobody in the child uses their numbers. A child of a bare
 * clone() keeps its copies.
 */
void fork_note_socket(int fd);
/* Closes one of them. */
void fork_close_socket(int fd);

/* Memory of the parent's that a child gives up without freeing what hangs on it, which would be
 * another process's: it stays as it is until the child ends. */
void fork_keep(void *memory);

#endif
