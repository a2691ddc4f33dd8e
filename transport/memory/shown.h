/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shown.h - pages that other processes of the node may read, and that nobody but this one writes.
 *
 * They lie in an anonymous file of their own: the heap must be writable for peers, who fill its
 * slots. The kernel enforces it: once this process has its mapping, the file is sealed against
 * further ones that could write, against write() and against a change of its size.
 */
#ifndef RONDO_TRANSPORT_MEMORY_SHOWN_H
#define RONDO_TRANSPORT_MEMORY_SHOWN_H

#include "rondo/rondo.h"
#include "transport/link/endpoint.h"

#include <stdbool.h>

enum { SHOWN_PAGE = 4096, SHOWN_PAGES = 1 << 14 }; /* sparse: one for every communicator */
#define SHOWN_BYTES ((size_t)SHOWN_PAGES * SHOWN_PAGE)

/* Open the file if need be, and keep it open until shown_leave(). The heap does so for as long as
 * it is open itself: by its identity peers know the process, and with it this file. */
rondo_result shown_enter(struct shown_handle *ret_handle);
void shown_leave(void);

/* A page of zeros, and where peers find it. Thread-safe. One that is never given back stays as it
 * is for as long as the process lives. */
rondo_result shown_take(void **ret_page, uint64_t *ret_offset);
void shown_give(void *page);

/* The mapping in this process; NULL: closed. */
char *shown_base(void);

#endif
