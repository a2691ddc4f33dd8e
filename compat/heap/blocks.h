/* SPDX-License-Identifier: BSD-3-Clause */
/* blocks.h - which addresses are blocks of the heap, and how long. No function allocates. */
#ifndef RONDO_COMPAT_HEAP_BLOCKS_H
#define RONDO_COMPAT_HEAP_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

struct block {
    void *memory;
    size_t bytes;    /* of whole pages; 0: there is no such block */
    bool is_private; /* a forked child's own pages */
};

/* False: the table is full. */
bool blocks_add(void *memory, size_t bytes);
struct block blocks_find(const void *memory);
bool blocks_remove(const void *memory, struct block *ret_block);

/* For fork(): between these two only this thread changes the table. */
void blocks_lock(void);
void blocks_unlock(void);
/* With the lock held: there are blocks that are not private; each of them is made so. */
bool blocks_any(void);
void blocks_each(void (*make_private)(char *memory, size_t bytes));

#endif
