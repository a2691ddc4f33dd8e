/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * withdrawn.h - memory that peers had mapped, and that its owner took back while some peer may
 * still touch it: after a failed call whose peer was stopped in the middle of a step.
 *
 *     before     address --> page of the heap <-- peer
 *     after      address --> private copy         page of the heap <-- peer
 *
 * The pages under the owner's addresses are exchanged, in place: the range becomes a private
 * mapping of the same part of the heap's file, and each page of it is copied by the system when it
 * is first written, which is done for all of them at once. So what other threads of the owner store
 * meanwhile is not lost, and what the peer stores from then on is seen by nobody.
 *
 * Lookups are lock-free while nothing is withdrawn, which is always but after such a failure.
 */
#ifndef RONDO_TRANSPORT_MEMORY_WITHDRAWN_H
#define RONDO_TRANSPORT_MEMORY_WITHDRAWN_H

#include "rondo/rondo.h"
#include "transport/memory/lease.h"

#include <stdatomic.h>
#include <stdint.h>

extern atomic_uint withdrawn_count; /* ranges; for the function below */

bool withdrawn_search(const void *memory, size_t bytes);
/* True if any byte of the range is withdrawn: peers must not be told of such memory. */
static inline bool withdrawn_touches(const void *memory, size_t bytes)
{
    return atomic_load_explicit(&withdrawn_count, memory_order_relaxed) &&
           withdrawn_search(memory, bytes);
}

/* From now on withdrawn_touches() finds the pages, which are exchanged by the next function. The
 * lease is the list's, also after an error; NULL: it is never over. */
rondo_result withdrawn_note(char *begin, char *end, struct lease *lease);
/* Exchange the pages of a range, but for those that are private already; what lies there stays.
 * `offset`: of `begin` in the file. */
rondo_result withdrawn_exchange(char *begin, char *end, int fd, uint64_t offset);
/* Ranges inside of [begin, end) are forgotten: their addresses are nobody's, or mapped anew.
 * Appends their leases to a list; false: one of them is never over. */
bool withdrawn_remove(const char *begin, const char *end, struct lease **leases);
/* Forget all pages after fork(): they are the parent's. */
void withdrawn_forget(void);

#endif
