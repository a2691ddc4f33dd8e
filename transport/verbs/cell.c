/* SPDX-License-Identifier: BSD-3-Clause */
/* cell.c - sealing cells, and reading them while an adapter writes. */
#include "transport/verbs/cell.h"

#include <string.h>

enum { HEAD_WORDS = VERBS_CELL_HEAD / 8 };

/* A hash of the first `count` words but for the very first; each step mixes well enough that no bit
 * cancels out. */
static uint64_t hash(const struct verbs_cell *cell, unsigned count, uint64_t number)
{
    uint64_t sum = number * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du, word;

    for (unsigned i = 1; i < count; i++) {
        memcpy(&word, (const char *)cell + 8 * i, sizeof(word));
        sum = (sum ^ word) * 0xbf58476d1ce4e5b9u;
        sum ^= sum >> 31;
    }
    sum *= 0x94d049bb133111ebu;
    return sum ^ sum >> 29;
}

void verbs_cell_seal(struct verbs_cell *cell, uint64_t number)
{
    cell->number = (uint32_t)number;
    cell->check = hash(cell, verbs_cell_bytes(cell) / 8, number);
}

/* Whole words, so that what is checked is what is used. Acquire pairs with nothing in this
 * language: it keeps later reads of the payload in the slot behind that of the cell. */
static void copy_words(const struct verbs_cell *at, unsigned first, unsigned end,
                       struct verbs_cell *ret_cell)
{
    const _Atomic(uint64_t) *from = (const _Atomic(uint64_t) *)(const void *)at;

    for (unsigned i = first; i < end; i++) {
        uint64_t word = atomic_load_explicit(&from[i], memory_order_acquire);

        memcpy((char *)ret_cell + 8 * i, &word, sizeof(word));
    }
}

bool verbs_cell_read(const struct verbs_cell *at, uint64_t number, struct verbs_cell *ret_cell)
{
    unsigned count;

    copy_words(at, 0, HEAD_WORDS, ret_cell);
    if (ret_cell->number != (uint32_t)number ||
        (ret_cell->inlined && ret_cell->bytes > LINK_INLINE))
        return false;
    count = verbs_cell_bytes(ret_cell) / 8;
    copy_words(at, HEAD_WORDS, count, ret_cell);
    return ret_cell->check == hash(ret_cell, count, number);
}
