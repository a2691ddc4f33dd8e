/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exposure.h - buffers of the calls of this process, as long as peers may use them.
 *
 * Memory that is taken back from the peers of one communicator (leave.h) takes whole pages. What
 * peers of another communicator write on the same pages would be lost without anybody noticing; and
 * where a registered range was, they would read zeros. So that one is found here, and fails. And
 * whoever deregisters a range finds here which calls have to end before it moves.
 */
#ifndef RONDO_COMM_STATE_EXPOSURE_H
#define RONDO_COMM_STATE_EXPOSURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct exposed {
    _Atomic(const char *) begin, end; /* `end` NULL: nothing */
    atomic_bool plain; /* it is not in the heap: it is used where the caller has it */
};

struct exposure {
    struct exposed written; /* peers write to it */
    struct exposed read;    /* peers read it */
};

static inline void exposed_set(struct exposed *exposed, const void *memory, size_t bytes)
{
    const char *begin = memory;

    atomic_store_explicit(&exposed->plain, false, memory_order_relaxed);
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
    /* Pairs with the fences in withdrawn_note(), drop_registered() and registered_hide(). */
    atomic_thread_fence(memory_order_seq_cst);
}

/* Peers are told where it is: `plain` memory at the caller's address, other memory in the heap. */
static inline void exposure_tell(struct exposure *exposure, bool plain_output, bool plain_input)
{
    atomic_store_explicit(&exposure->written.plain, plain_output, memory_order_relaxed);
    atomic_store_explicit(&exposure->read.plain, plain_input, memory_order_relaxed);
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

static inline bool exposed_touches(const struct exposed *exposed, const char *begin,
                                   const char *end)
{
    return atomic_load_explicit(&exposed->begin, memory_order_acquire) < end &&
           begin < atomic_load_explicit(&exposed->end, memory_order_acquire);
}

/* True if peers use it in the heap, and it touches [begin, end). */
static inline bool exposed_maps(const struct exposed *exposed, const char *begin, const char *end)
{
    return exposed_touches(exposed, begin, end) &&
           !atomic_load_explicit(&exposed->plain, memory_order_relaxed);
}

#endif
