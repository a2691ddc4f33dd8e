/* SPDX-License-Identifier: BSD-3-Clause */
/* list.h - arrays that grow. */
#ifndef RONDO_PLAN_SIMULATE_LIST_H
#define RONDO_PLAN_SIMULATE_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Makes room for `needed` items of `size` bytes; false: there is no memory, and nothing changed. */
static inline bool list_grow(void **items, uint32_t *room, uint32_t needed, size_t size)
{
    uint64_t wanted = *room ? *room : 16;
    void *moved;

    if (needed <= *room)
        return true;
    while (wanted < needed)
        wanted += wanted / 2;
    moved = wanted <= UINT32_MAX ? realloc(*items, (size_t)wanted * size) : NULL;
    if (!moved)
        return false;
    *items = moved;
    *room = (uint32_t)wanted;
    return true;
}

#endif
