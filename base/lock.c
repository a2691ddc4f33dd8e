/* SPDX-License-Identifier: BSD-3-Clause */
/* lock.c - see lock.h. */
#include "base/lock.h"

#include "base/log.h"

#include <assert.h>

#define LOCK_NAME(level, guards)   #level,
#define LOCK_GUARDS(level, guards) guards,
static const char *const names[] = {FOR_EACH_LOCK(LOCK_NAME)};
static const char *const guarded[] = {FOR_EACH_LOCK(LOCK_GUARDS)};

const char *lock_level_name(enum lock_level level)
{
    return names[level];
}

const char *lock_level_guards(enum lock_level level)
{
    return guarded[level];
}

#ifndef NDEBUG
enum { HELD_MOST = 16 };

static _Thread_local struct {
    const void *lock;
    enum lock_level level;
} held[HELD_MOST];
static _Thread_local int held_count;

void lock_note_wait(enum lock_level level)
{
    bool in_order = true;

    for (int i = 0; i < held_count && in_order; i++) {
        in_order = held[i].level < level;
        if (!in_order)
            log_warn("A thread that holds a lock %s (%s) waits for a lock %s (%s), which is not "
                     "further down the order of locks in docs/locks.md. Threads that do so can "
                     "wait for each other for ever: give the first one before.",
                     names[held[i].level], guarded[held[i].level], names[level], guarded[level]);
    }
    assert(in_order && "locks are taken in the order of their levels");
}

void lock_note_held(const void *lock, enum lock_level level)
{
    assert(held_count < HELD_MOST && "a thread holds a few locks at a time");
    held[held_count].lock = lock;
    held[held_count++].level = level;
}

/* Not always the last one that was taken. */
void lock_note_given(const void *lock)
{
    int at = held_count - 1;

    while (at >= 0 && held[at].lock != lock)
        at--;
    assert(at >= 0 && "a lock is given by the thread that holds it");
    for (held_count--; at < held_count; at++)
        held[at] = held[at + 1];
}
#endif
