/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs_cell.c - sealing cells, and reading them while an adapter writes. */
#include "transport/verbs_cell.h"

#include <string.h>

enum { WORDS = VERBS_CELL / 8 };

/* Of all words but the first, so many; each step mixes well enough that no bit cancels out. */
static uint64_t hash(const uint64_t *words, unsigned count, uint64_t number)
{
    uint64_t sum = number * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;

    for (unsigned i = 1; i < count; i++) {
        sum = (sum ^ words[i]) * 0xbf58476d1ce4e5b9u;
        sum ^= sum >> 31;
    }
    sum *= 0x94d049bb133111ebu;
    return sum ^ sum >> 29;
}

void verbs_cell_seal(struct verbs_cell *cell, uint64_t number)
{
    uint64_t words[WORDS];

    cell->number = (uint32_t)number;
    memcpy(words, cell, sizeof(words));
    cell->check = hash(words, verbs_cell_bytes(cell) / 8, number);
}

bool verbs_cell_read(const struct verbs_cell *at, uint64_t number, struct verbs_cell *ret_cell)
{
    /* Whole words, so that what is checked is what is used. Acquire pairs with nothing in this
     * language: it keeps later reads of the payload in the slot behind that of the cell. */
    const _Atomic(uint64_t) *from = (const _Atomic(uint64_t) *)(const void *)at;
    uint64_t words[WORDS];
    struct verbs_cell cell;

    words[2] = atomic_load_explicit(&from[2], memory_order_acquire);
    if ((uint32_t)words[2] != (uint32_t)number) /* most looks end here */
        return false;
    for (unsigned i = 0; i < WORDS; i++)
        words[i] = atomic_load_explicit(&from[i], memory_order_acquire);
    memcpy(&cell, words, sizeof(cell));
    if (cell.inlined && cell.bytes > LINK_INLINE)
        return false;
    if (cell.check != hash(words, verbs_cell_bytes(&cell) / 8, number))
        return false;
    *ret_cell = cell;
    return true;
}
