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
#include <stdint.h>

enum { PAGES_HUGE_BYTES = 2 << 20 };

/* True if shared memory that asks for huge pages gets them; the log says so the first time. */
bool pages_are_huge(void);
/* Bytes that a file may have (ulimit -f). One that is made larger is a signal which kills. */
size_t pages_file_most(void);
/* Address space for as many bytes, at a multiple of a huge page if possible, where nothing is yet;
 * NULL and errno. It is not memory, also for those who lock or dump all that a process has. */
void *pages_reserve(size_t bytes);
/* Puts a part of a shared file into such a place, hidden; false and errno. */
bool pages_put(void *place, int fd, uint64_t offset, size_t bytes);
/* Leaves a mapping out of core dumps, which would fill all of its address space with pages. */
void pages_hide(void *base, size_t bytes);
/* Both, for the first `bytes` of a file. */
void *pages_map(int fd, size_t bytes);
/*
 * Ask for huge pages in a block of the heap, and bring its pages now rather than in the first
 * collective. A wish: what the system does not do is done when the block is used.
 */
void pages_prepare(void *block, size_t bytes);

#endif
