/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pages.h - the pages of shared heaps: huge ones where the system gives them to shared memory, and
 * there before they are used.
 *
 * A huge page (2 MiB) needs a place that is a multiple of it, in the file and in every process that
 * maps it. The owner asks for them, for large blocks only; whoever touches one first gets it whole.
 */
#ifndef RONDO_TRANSPORT_MEMORY_PAGES_H
#define RONDO_TRANSPORT_MEMORY_PAGES_H

#include <stdbool.h>
#include <stddef.h>

enum { PAGES_HUGE_BYTES = 2 << 20 };

/* True if shared memory that asks for huge pages gets them; the log says so the first time. */
bool pages_are_huge(void);
/* Bytes that a file may have (ulimit -f). One that is made larger is a signal which kills. */
size_t pages_file_most(void);
/* Leaves a mapping out of core dumps, which would fill all of its address space with pages. */
void pages_hide(void *base, size_t bytes);
/* The whole of a shared file, at a multiple of a huge page if possible, hidden; NULL and errno. */
void *pages_map(int fd, size_t bytes);
/*
 * Ask for huge pages in a block of the heap, and bring its pages now rather than in the first
 * collective. A wish: what the system does not do is done when the block is used.
 */
void pages_prepare(void *block, size_t bytes);

#endif
