/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm.h - the arena of a rank: the rings that peers on its host write to, and its alarm. The
 * transport over it, shm_transport, is declared in transport/link/ops.h.
 */
#ifndef RONDO_TRANSPORT_MEMORY_SHM_H
#define RONDO_TRANSPORT_MEMORY_SHM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a rank's arena: its alarm, and the rings of all channels from all ranks. */
size_t shm_arena_bytes(int size, int channels, int slots, size_t slot_bytes);
/* At the beginning of it, and there when the rank has closed the communicator: an alarm that all
 * peers ring, a byte for each peer that it alone stores, and behind them the credit lines of the
 * last channel, whose writers may wait for all their messages to be given back. */
struct shm_alarm {
    _Atomic uint32_t rung; /* nonzero: look at the status pages of all ranks of this host */
    char unused[60];
    _Atomic uint8_t gone[]; /* [rank], nonzero: it has closed the communicator */
};
size_t shm_alarm_bytes(int size);

#endif
