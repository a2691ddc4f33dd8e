/* SPDX-License-Identifier: BSD-3-Clause */
/* retired.h - spans of the heap that nobody here uses any more, but peers may still touch: they are
 * handed out again when the last lease on them is over. Not thread-safe: the heap has a lock. */
#ifndef RONDO_TRANSPORT_MEMORY_RETIRED_H
#define RONDO_TRANSPORT_MEMORY_RETIRED_H

#include "transport/memory/lease.h"

/* The span that begins at page `start`. The leases are the list's now. */
void retired_add(size_t start, struct lease *leases);
/* Calls give() for every span whose leases are over. */
void retired_reap(void (*give)(size_t start));
/* Forget all spans after fork(): they are the parent's. */
void retired_forget(void);

#endif
