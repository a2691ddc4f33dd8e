/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap.h - the symmetric heap: one sparse anonymous file per process, of which peers on the
 * node map what is in use.
 *
 * rondo_mem_alloc(), the slot rings of every communicator and registered memory all live in it, so
 * that an address in this process is an offset that means the same to every peer, and no file
 * descriptor is passed after the start. It costs address space, not memory: pages come when touched
 * and go back when freed. It is sealed: nobody can cut it short under those who have it mapped. The
 * kernel removes it with the last process that maps it, also after kill -9; /dev/shm is not used.
 * What peers may read and not write lies elsewhere, see shown.h.
 */
#ifndef RONDO_TRANSPORT_MEMORY_HEAP_H
#define RONDO_TRANSPORT_MEMORY_HEAP_H

#include "rondo/rondo.h"
#include "transport/link/endpoint.h"
#include "transport/memory/lease.h"
#include "transport/memory/shown.h"

#include <stdint.h>

/* First page of every heap: tells a peer that it mapped the right one. */
struct heap_head {
    unsigned char id[16];
};

/* Open it if need be, and keep it open until heap_leave(). */
rondo_result heap_enter(struct heap_handle *ret_handle);
void heap_leave(void);

/* Page aligned, zeroed. Freeing gives the pages back to the system at once. Thread-safe. */
rondo_result heap_alloc(size_t bytes, void **ret_memory);
rondo_result heap_free(void *memory);
/*
 * Frees a block as heap_free() does, but the first `keep` bytes stay as they are, and the place is
 * handed out again only when the lease is over, NULL: never. Peers may go on using it until then.
 * The lease is the heap's.
 */
void heap_retire(void *memory, size_t keep, struct lease *lease);

/* From now on `forget` hears of memory that is about to be freed or mapped anew: nobody may keep it
 * registered with an adapter. There is one such function in a process. */
void heap_watch(void (*forget)(const void *begin, size_t bytes));

/* Memory of the heap, or registered, that is taken back from peers which may still touch it. */
struct heap_withdrawal {
    const void *memory;
    size_t bytes;
    struct lease *lease; /* over when they will not touch it any more; NULL: never */
    /* Peers are told of none of [begin, end) from now on, but may have been told before. `emptied`:
     * it is a whole registered range, whose pages in the heap are given back to the system next, so
     * that peers read zeros there; else they read what was there. */
    void (*warn)(void *context, const char *begin, const char *end, bool emptied);
    void *context;
};
/*
 * The memory keeps its address and what lies there, and is as private as malloc()'s from now on; so
 * is all of a registered range, which is registered no more, and what else lies on the pages of it.
 * Whatever peers store into the pages that they know is lost. The lease is the heap's.
 */
rondo_result heap_withdraw(const struct heap_withdrawal *withdrawal);

/* Find where [memory, memory + bytes) lies in the heap, as peers see it; false if it does not. No
 * lock on the way. */
bool heap_find(const void *memory, size_t bytes, uint64_t *ret_offset);
char *heap_base(void);
/* True if the handle describes the heap of this process, which is open. */
bool heap_is(const struct heap_handle *handle);
/* The allocation or registered range that `memory` lies in; false: it is no such memory. */
bool heap_block(const void *memory, char **ret_begin, size_t *ret_bytes);

/* Move the whole pages of a private range into the heap, at the same address; and back, which waits
 * for withdrawals: if nothing is registered there, none of them is about to map the pages anew. */
rondo_result heap_register(void *memory, size_t bytes);
rondo_result heap_deregister(void *memory);

#endif
