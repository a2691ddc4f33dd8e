/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exposure.h - memory of this process that peers write to at the moment, call by call; and that
 * calls use at another place than the caller's (reach.c).
 *
 * Memory that is taken back from the peers of one communicator (leave.h) takes whole pages. What
 * peers of another communicator write on the same pages would be lost without anybody noticing; so
 * that one is found here, and fails.
 */
#ifndef RONDO_COMM_STATE_EXPOSURE_H
#define RONDO_COMM_STATE_EXPOSURE_H

#include <stdatomic.h>
#include <stddef.h>

struct exposure {
    _Atomic(const char *) begin, end; /* equal: nothing */
};

/* Before it is asked whether peers can be told of that memory, and before they are. */
static inline void exposure_open(struct exposure *exposure, const void *memory, size_t bytes)
{
    atomic_store_explicit(&exposure->begin, (const char *)memory, memory_order_relaxed);
    atomic_store_explicit(&exposure->end, (const char *)memory + bytes, memory_order_relaxed);
    /* Pairs with the fence in withdrawn_note(). */
    atomic_thread_fence(memory_order_seq_cst);
}

/* Peers have written what they will write. */
static inline void exposure_close(struct exposure *exposure)
{
    atomic_store_explicit(&exposure->end, NULL, memory_order_release);
    atomic_store_explicit(&exposure->begin, NULL, memory_order_relaxed);
}

static inline int exposure_touches(const struct exposure *exposure, const char *begin,
                                   const char *end)
{
    return atomic_load_explicit(&exposure->begin, memory_order_acquire) < end &&
           begin < atomic_load_explicit(&exposure->end, memory_order_acquire);
}

#endif
