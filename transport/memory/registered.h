/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * registered.h - private memory that became part of the shared heap without changing its address
 * (rondo_comm_register).
 *
 * The contents are copied to a place in the heap, then that place is mapped over the old pages.
 * Peers see it as any other offset. Moving out copies back into fresh private pages.
 *
 * Only whole pages move: what else lies on the first and on the last page is somebody else's
 * business. The place has room for what the range has of those two as well, at the same distance,
 * so that all of the range can lie there; a call that uses those bytes copies them there and back.
 * Between calls they are not looked at.
 *
 * Changes are guarded by the heap's lock, lookups by a read lock of their own that is only taken
 * when there is anything to find.
 */
#ifndef RONDO_TRANSPORT_MEMORY_REGISTERED_H
#define RONDO_TRANSPORT_MEMORY_REGISTERED_H

#include "rondo/rondo.h"

#include <stdbool.h>

/* RONDO_OK for private anonymous memory that may be written. Whatever else is moved changes for
 * somebody: a file, a worker process, a driver; or for its owner, who has write-protected it. */
rondo_result registered_check(const void *memory, size_t bytes);
/* `place` is in the heap that begins at `base`, and has all pages that the range touches. */
rondo_result registered_move_in(void *memory, size_t bytes, int fd, const char *base,
                                const char *place);
/*
 * The range that begins at `memory` is about to be moved out: it is not found from now on, but is
 * still a block. A call either does not find it, or whoever looks after this finds what the call
 * shows (comm/state/exposure.h).
 */
void registered_hide(const void *memory);
/* Back to private pages; tells at which offset of the heap the place is. If it fails, the range is
 * found again. */
rondo_result registered_move_out(void *memory, uint64_t *ret_offset);
/* False: it is not all in whole pages of a range. */
bool registered_find(const void *memory, size_t bytes, uint64_t *ret_offset);
/* Tells where there is room for all of it; false: it is not all in a range. */
bool registered_room(const void *memory, size_t bytes, uint64_t *ret_offset);
/*
 * The registered range that holds `memory` is none from now on: its pages stay where they are, and
 * what lies there is the caller's business; `offset`: of its place. False: there is none.
 */
bool registered_drop(const void *memory, char **ret_begin, size_t *ret_bytes, uint64_t *ret_offset);
/* The registered range that holds `memory`; false: there is none. */
bool registered_block(const void *memory, char **ret_begin, size_t *ret_bytes);
/* True if any byte of the range belongs to the heap already. */
bool registered_overlaps(const void *memory, size_t bytes);
/* Forget all ranges after fork(): they are the parent's. */
void registered_forget(void);

#endif
