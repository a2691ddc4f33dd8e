/* SPDX-License-Identifier: BSD-3-Clause */
/* shm.h - the arena of a rank: the rings that peers on its node write to, and its alarm. */
#ifndef RONDO_TRANSPORT_MEMORY_SHM_H
#define RONDO_TRANSPORT_MEMORY_SHM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a rank's arena: its alarm, and the rings of all lanes from all ranks. */
size_t shm_arena_bytes(int size, int lanes, int slots, size_t slot_bytes);
/* At the beginning of it: what peers store in words of their own. */
struct shm_alarm {
    _Atomic uint32_t rung; /* nonzero: look at the boards of all ranks of this node */
    char unused[60];
    _Atomic uint8_t gone[]; /* [rank], nonzero: it has closed the communicator */
};
size_t shm_alarm_bytes(int size);

#endif
