/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exposure.h - buffers of the calls of this process, as long as peers may use them.
 *
 * Memory that is taken back from the peers of one communicator (leave.h) takes whole pages. What
 * peers of another communicator write on the same pages would be lost without anybody noticing; and
 * where a registered range was, they would read zeros. So that one is found here, and fails.
 */
#ifndef RONDO_COMM_STATE_EXPOSURE_H
#define RONDO_COMM_STATE_EXPOSURE_H

#include <stdatomic.h>
#include <stddef.h>

struct exposed {
    _Atomic(const char *) begin, end; /* `end` NULL: nothing */
};

struct exposure {
    struct exposed written; /* peers write to it */
    struct exposed read;    /* peers read it */
};

static inline void exposed_set(struct exposed *exposed, const void *memory, size_t bytes)
{
    const char *begin = memory;

    atomic_store_explicit(&exposed->begin, begin, memory_order_relaxed);
    atomic_store_explicit(&exposed->end, begin && bytes ? begin + bytes : NULL,
                          memory_order_relaxed);
}

/* Before it is asked whether peers can be told of that memory, and before they are. NULL: there is
 * none that they use so. */
static inline void exposure_open(struct exposure *exposure, const void *written, size_t to_write,
                                 const void *read, size_t to_read)
{
    exposed_set(&exposure->written, written, to_write);
    exposed_set(&exposure->read, read, to_read);
    /* Pairs with the fences in withdrawn_note() and heap_withdraw(). */
    atomic_thread_fence(memory_order_seq_cst);
}

static inline void exposed_clear(struct exposed *exposed)
{
    atomic_store_explicit(&exposed->end, NULL, memory_order_release);
    atomic_store_explicit(&exposed->begin, NULL, memory_order_relaxed);
}

/* Peers have read and written what they will. */
static inline void exposure_close(struct exposure *exposure)
{
    exposed_clear(&exposure->written);
    exposed_clear(&exposure->read);
}

static inline int exposed_touches(const struct exposed *exposed, const char *begin, const char *end)
{
    return atomic_load_explicit(&exposed->begin, memory_order_acquire) < end &&
           begin < atomic_load_explicit(&exposed->end, memory_order_acquire);
}

#endif
