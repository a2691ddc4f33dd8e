/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocks.c - a table of fixed size with open addressing: a block is at the first place that is free
 * from the one that its address gives. Who is removed is replaced by a later one that would not be
 * found across the gap, so there are no marks of removed blocks.
 */
#include "compat/heap/blocks.h"

#include <pthread.h>
#include <stdint.h>

enum { PLACES = 1 << 16, BLOCKS_MAX = PLACES / 4 * 3, PAGE_SHIFT = 12 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block table[PLACES];
static size_t count;

void blocks_lock(void)
{
    pthread_mutex_lock(&lock);
}

void blocks_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static size_t home_of(const void *memory)
{
    uint64_t page = (uint64_t)(uintptr_t)memory >> PAGE_SHIFT;

    return (size_t)(page * 0x9e3779b97f4a7c15u >> 48) % PLACES;
}

/* With the lock held. The place of the block, or the free one where it is not. */
static size_t place_of(const void *memory)
{
    size_t place = home_of(memory);

    while (table[place].bytes && table[place].memory != memory)
        place = (place + 1) % PLACES;
    return place;
}

bool blocks_add(void *memory, size_t bytes)
{
    bool room;

    blocks_lock();
    room = count < BLOCKS_MAX;
    if (room) {
        table[place_of(memory)] = (struct block){.memory = memory, .bytes = bytes};
        count++;
    }
    blocks_unlock();
    return room;
}

struct block blocks_find(const void *memory)
{
    struct block found;

    blocks_lock();
    found = table[place_of(memory)];
    blocks_unlock();
    return found;
}

/* With the lock held. Later blocks move into the gap, unless they are at home between both. */
static void close_gap(size_t gap)
{
    size_t place = gap;

    table[gap].bytes = 0;
    for (;;) {
        size_t home;

        place = (place + 1) % PLACES;
        if (!table[place].bytes)
            return;
        home = home_of(table[place].memory);
        if ((place - home) % PLACES < (place - gap) % PLACES)
            continue;
        table[gap] = table[place];
        table[place].bytes = 0;
        gap = place;
    }
}

bool blocks_remove(const void *memory, struct block *ret_block)
{
    size_t place;

    blocks_lock();
    place = place_of(memory);
    *ret_block = table[place];
    if (ret_block->bytes) {
        close_gap(place);
        count--;
    }
    blocks_unlock();
    return ret_block->bytes > 0;
}

bool blocks_any(void)
{
    return count > 0;
}

void blocks_each(void (*make_private)(char *memory, size_t bytes))
{
    for (size_t place = 0; place < PLACES && count; place++)
        if (table[place].bytes && !table[place].is_private) {
            make_private(table[place].memory, table[place].bytes);
            table[place].is_private = true;
        }
}
