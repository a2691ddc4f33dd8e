/* SPDX-License-Identifier: BSD-3-Clause */
/* turn.h - calls on a communicator are served in the order
 * in which they were made, from whatever thread. */
#ifndef RONDO_COMM_STATE_TURN_H
#define RONDO_COMM_STATE_TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct turn {
    atomic_uint next, serving;
};

static inline unsigned turn_take(struct turn *turn)
{
    return atomic_fetch_add_explicit(&turn->next, 1, memory_order_relaxed);
}

/* Take several turns in a row, between which nobody else has one; returns the first. Each of them
 * has to be passed. */
static inline unsigned turn_take_several(struct turn *turn, unsigned count)
{
    return atomic_fetch_add_explicit(&turn->next, count, memory_order_relaxed);
}

/* Take the turn only if nobody has it, or waits for it. */
static inline bool turn_take_idle(struct turn *turn, unsigned *ret_ticket)
{
    /* Acquire, pairs with the release in turn_pass(). */
    unsigned serving = atomic_load_explicit(&turn->serving, memory_order_acquire);

    *ret_ticket = serving;
    return atomic_compare_exchange_strong_explicit(&turn->next, &serving, serving + 1,
                                                   memory_order_relaxed, memory_order_relaxed);
}

static inline bool turn_is(struct turn *turn, unsigned ticket)
{
    /* Acquire, pairs with the release in turn_pass(): what
     * the one before did to the communicator is seen. */
    return atomic_load_explicit(&turn->serving, memory_order_acquire) == ticket;
}

static inline void turn_pass(struct turn *turn)
{
    /* Only its holder passes the turn on, so this needs no read-modify-write. */
    unsigned serving = atomic_load_explicit(&turn->serving, memory_order_relaxed);

    atomic_store_explicit(&turn->serving, serving + 1, memory_order_release);
}

static inline bool turn_idle(struct turn *turn)
{
    return atomic_load_explicit(&turn->serving, memory_order_acquire) ==
           atomic_load_explicit(&turn->next, memory_order_relaxed);
}

#endif
