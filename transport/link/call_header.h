/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call_header.h - the call that a rank is in, in three words which transports do not understand.
 *
 * A rank writes it on a page of its own. Ranks of its host read that page; to other hosts it
 * travels as the call header of every message, and a transport puts what it hears on a page that
 * stands for the sender. So nobody is called for a message, and whoever compares calls reads pages,
 * wherever the peer is. A page has one writer at a time. Its words are guarded by their number, odd
 * while they change, so readers retry or give up.
 */
#ifndef RONDO_TRANSPORT_LINK_CALL_HEADER_H
#define RONDO_TRANSPORT_LINK_CALL_HEADER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * The names of the last CALL_HEADER_PAST calls, to compare with a rank that went on without waiting
 * for anybody: two words per call, at index call % CALL_HEADER_PAST. Readers ask for the last
 * CALL_HEADER_READ only, as the older half may be overwritten while it is read.
 */
enum { CALL_HEADER_WORDS = 3, CALL_HEADER_PAST = 16, CALL_HEADER_READ = CALL_HEADER_PAST / 2 };

struct past_call {
    _Atomic uint64_t name; /* number << 32 | fingerprint, the low half of the last word */
    _Atomic uint64_t what; /* the first word */
};

struct call_header_page {
    _Atomic uint32_t sequence; /* twice the calls begun; the words belong to it while it is even */
    _Atomic uint32_t ended;    /* calls ended; does not travel */
    _Atomic uint64_t words[CALL_HEADER_WORDS];
    struct past_call past[CALL_HEADER_PAST];
};

/* The header as it travels. It is not believed: it serves sentences only. */
struct call_header {
    uint32_t call; /* 0: the rank is in none, or its page is being written */
    unsigned char words[CALL_HEADER_WORDS * sizeof(uint64_t)];
};
_Static_assert(sizeof(struct call_header) == 28, "wire format");

/* Writer: a call begins, which is noted among the past ones as well. The record is the words of it.
 * `shown`: the page shows these already, as the call is the same as the one before. */
static inline void call_header_begin(struct call_header_page *page, uint32_t call,
                                     const void *record, bool shown)
{
    struct past_call *past = &page->past[call % CALL_HEADER_PAST];
    uint64_t words[CALL_HEADER_WORDS];
    uint32_t fingerprint;

    memcpy(words, record, sizeof(words));
    fingerprint = (uint32_t)words[CALL_HEADER_WORDS - 1];
    atomic_store_explicit(&past->what, words[0], memory_order_relaxed);
    /* Release, pairs with the acquire in status_past(). */
    atomic_store_explicit(&past->name, (uint64_t)call << 32 | fingerprint, memory_order_release);
    if (!shown) {
        atomic_store_explicit(&page->sequence, 2 * call - 1, memory_order_relaxed);
        /* Pairs with the fence in call_header_read(): who sees a new word also sees the odd
         * number. */
        atomic_thread_fence(memory_order_release);
        for (int i = 0; i < CALL_HEADER_WORDS; i++)
            atomic_store_explicit(&page->words[i], words[i], memory_order_relaxed);
    }
    atomic_store_explicit(&page->sequence, 2 * call, memory_order_release);
}

/* Writer: does the page show these words? */
static inline bool call_header_shows(const struct call_header_page *page,
                                     const uint64_t words[CALL_HEADER_WORDS])
{
    uint64_t others = 0;

    for (int i = 0; i < CALL_HEADER_WORDS; i++)
        others |= words[i] ^ atomic_load_explicit(&page->words[i], memory_order_relaxed);
    return !others;
}

/* Reader: the words of that call; false: the page shows another, or none in whole. */
static inline bool call_header_read(const struct call_header_page *page, uint32_t call,
                                    uint64_t ret_words[CALL_HEADER_WORDS])
{
    uint64_t words[CALL_HEADER_WORDS];

    if (atomic_load_explicit(&page->sequence, memory_order_acquire) != 2 * call)
        return false;
    for (int i = 0; i < CALL_HEADER_WORDS; i++)
        words[i] = atomic_load_explicit(&page->words[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&page->sequence, memory_order_relaxed) != 2 * call)
        return false;
    memcpy(ret_words, words, sizeof(words));
    return true;
}

/* A transport, on any thread: what to say on a message, out of the page of its own rank. */
static inline void call_header_say(const struct call_header_page *page, void *ret_call_header)
{
    uint64_t words[CALL_HEADER_WORDS];
    struct call_header call_header = {0};
    uint32_t call = atomic_load_explicit(&page->sequence, memory_order_acquire) / 2;

    if (call && call_header_read(page, call, words)) {
        call_header.call = call;
        memcpy(call_header.words, words, sizeof(words));
    }
    memcpy(ret_call_header, &call_header, sizeof(call_header));
}

/* A transport: a message of that rank has come with this call header. Messages of different lines
 * overtake each other, so a header may be older than what the page shows. */
static inline void call_header_hear(struct call_header_page *page, const void *heard)
{
    uint64_t words[CALL_HEADER_WORDS];
    struct call_header call_header;
    uint32_t shown = atomic_load_explicit(&page->sequence, memory_order_relaxed), ahead;

    memcpy(&call_header, heard, sizeof(call_header));
    ahead = 2 * call_header.call - shown; /* a difference, as numbers wrap */
    if (!call_header.call || !ahead || (shown && ahead > UINT32_MAX / 2))
        return;
    memcpy(words, call_header.words, sizeof(words));
    call_header_begin(page, call_header.call, words, call_header_shows(page, words));
}

#endif
