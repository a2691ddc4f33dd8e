/* SPDX-License-Identifier: BSD-3-Clause */
/* vote.c - see vote.h. */
#include "comm/state/vote.h"

#include <string.h>

static const unsigned char magic[8] = {'r', 'o', 'n', 'd', 'o', ' ', 'v', 't'};

_Static_assert(sizeof(struct vote) == 8 * VOTE_WORDS, "a vote is whole words");
_Static_assert(sizeof(struct vote_note) <= 256, "a note holds a vote");

static void begin(struct vote_page *page, uint64_t before)
{
    atomic_store_explicit(&page->changes, before + 1, memory_order_relaxed);
    /* Pairs with the fence in vote_read(): who sees a new word also sees the odd number. */
    atomic_thread_fence(memory_order_release);
}

static void store(struct vote_page *page, size_t at, uint64_t word)
{
    atomic_store_explicit(&page->words[at], word, memory_order_relaxed);
}

void vote_show(struct vote_page *page, const struct vote *vote)
{
    uint64_t before = atomic_load_explicit(&page->changes, memory_order_relaxed);
    uint64_t words[VOTE_WORDS];

    memcpy(words, vote, sizeof(words));
    begin(page, before);
    for (size_t i = 0; i < VOTE_WORDS; i++)
        store(page, i, words[i]);
    /* Release, pairs with the acquire in vote_read(). */
    atomic_store_explicit(&page->changes, before + 2, memory_order_release);
}

bool vote_read(const struct vote_page *page, uint64_t *seen, struct vote *ret_vote)
{
    uint64_t changes = atomic_load_explicit(&page->changes, memory_order_acquire);
    uint64_t words[VOTE_WORDS];

    if (changes == *seen || changes % 2)
        return false;
    for (size_t i = 0; i < VOTE_WORDS; i++)
        words[i] = atomic_load_explicit(&page->words[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&page->changes, memory_order_relaxed) != changes)
        return false;
    memcpy(ret_vote, words, sizeof(words));
    *seen = changes;
    return true;
}

/* ---- Notes ----------------------------------------------------------------------------------- */

static const size_t head_words[VOTE_HEAD] = {offsetof(struct vote, number) / 8,
                                             offsetof(struct vote, purpose) / 8,
                                             offsetof(struct vote, flags) / 8,
                                             offsetof(struct vote, promised) / 8,
                                             offsetof(struct vote, accepted) / 8,
                                             offsetof(struct vote, proposal.flags) / 8,
                                             offsetof(struct vote, proposal.purposes) / 8,
                                             offsetof(struct vote, decided) / 8,
                                             offsetof(struct vote, verdict.flags) / 8,
                                             offsetof(struct vote, verdict.purposes) / 8,
                                             offsetof(struct vote, asks) / 8};
static const size_t set_words[VOTE_SETS] = {
    offsetof(struct vote, proposal.failed) / 8, offsetof(struct vote, verdict.failed) / 8,
    offsetof(struct vote, suspects) / 8, offsetof(struct vote, lost) / 8};

static uint32_t words_of(int size)
{
    return ((uint32_t)size + 63) / 64;
}

int vote_notes(int size)
{
    return (int)(words_of(size) + VOTE_PART - 1) / VOTE_PART;
}

struct vote_note vote_note(const struct vote *vote, int size, int index)
{
    struct vote_note note = {.at = (uint32_t)index * VOTE_PART, .words = words_of(size)};
    uint64_t words[VOTE_WORDS];

    memcpy(note.magic, magic, sizeof(magic));
    memcpy(words, vote, sizeof(words));
    for (int i = 0; i < VOTE_HEAD; i++)
        note.head[i] = words[head_words[i]];
    for (int set = 0; set < VOTE_SETS; set++)
        for (uint32_t i = 0; i < VOTE_PART && note.at + i < note.words; i++)
            note.sets[set][i] = words[set_words[set] + note.at + i];
    return note;
}

/* Bits beyond the last rank count for nothing, whatever came. */
static uint64_t within(uint64_t word, uint32_t at, int size)
{
    int left = size - (int)at * 64;

    return left >= 64 ? word : word & (((uint64_t)1 << left) - 1);
}

bool vote_hear(struct vote_page *mirror, int size, const void *bytes, size_t count)
{
    uint64_t before = atomic_load_explicit(&mirror->changes, memory_order_relaxed);
    struct vote_note note;

    if (count != sizeof(note) || memcmp(bytes, magic, sizeof(magic)) != 0)
        return false;
    memcpy(&note, bytes, sizeof(note));
    if (note.words != words_of(size) || note.at >= note.words || note.at % VOTE_PART)
        return true; /* nobody of ours sends that */
    if (before % 2 == 0)
        begin(mirror, before++);
    for (int i = 0; i < VOTE_HEAD; i++)
        store(mirror, head_words[i], note.head[i]);
    for (int set = 0; set < VOTE_SETS; set++)
        for (uint32_t i = 0; i < VOTE_PART && note.at + i < note.words; i++)
            store(mirror, set_words[set] + note.at + i,
                  within(note.sets[set][i], note.at + i, size));
    if (note.at + VOTE_PART >= note.words)
        /* Release, pairs with the acquire in vote_read(). */
        atomic_store_explicit(&mirror->changes, before + 1, memory_order_release);
    return true;
}
