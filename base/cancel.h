/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cancel.h - pthread_cancel() takes effect when a public function has returned, not within it.
 *
 * A thread that was cancelled where it waits would keep what it has for ever: the turn of a
 * communicator, locks, half a handshake. To give that back is an unwinding for every place that
 * sleeps, reads or writes, and peers would be left in the middle of the call all the same. So
 * whoever is to stop a call aborts it, and the cancellation follows.
 */
#ifndef RONDO_BASE_CANCEL_H
#define RONDO_BASE_CANCEL_H

#include <pthread.h>

static inline int cancel_hold(void)
{
    int before = PTHREAD_CANCEL_ENABLE;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void cancel_restore(const int *before)
{
    int held;

    pthread_setcancelstate(*before, &held);
}

/* From here to the end of the block. No system call; about 10 ns. */
#define CANCEL_LATER() \
    __attribute__((cleanup(cancel_restore), unused)) const int cancel_before = cancel_hold()

#endif
