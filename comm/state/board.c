/* SPDX-License-Identifier: BSD-3-Clause */
/* board.c - the record of the call is guarded by its number:
 * odd while it changes, so readers retry or give up. */
#include "comm/state/board.h"

#include "base/collective.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct call_record) == 24 && offsetof(struct call_record, count) == 8,
               "a record is three words");
_Static_assert(sizeof(struct invitation) == 8 * BOARD_INVITATION, "an invitation is whole words");
_Static_assert(sizeof(struct board) <= 4096, "a board is at most a page");
_Static_assert(offsetof(struct board, sequence) == 64 && offsetof(struct board, inside) == 128,
               "what changes in every call has lines of its own");

enum { WORDS = 3 };

/* Numbers of calls on boards have 31 bits, and wrap. */
static const uint32_t numbers = UINT32_MAX / 2;

void board_begin(struct board *board, uint32_t call, const struct call_record *record)
{
    uint64_t words[WORDS];

    memcpy(words, record, sizeof(words));
    atomic_store_explicit(&board->sequence, 2 * call - 1, memory_order_relaxed);
    /* Pairs with the fence in board_read(): who sees a new word also sees the odd number. */
    atomic_thread_fence(memory_order_release);
    for (int i = 0; i < WORDS; i++)
        atomic_store_explicit(&board->words[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&board->sequence, 2 * call, memory_order_release);
}

bool board_shows(const struct board *board, const struct call_record *record)
{
    uint64_t words[WORDS], others = 0;

    memcpy(words, record, sizeof(words));
    for (int i = 0; i < WORDS; i++)
        others |= words[i] ^ atomic_load_explicit(&board->words[i], memory_order_relaxed);
    return !others;
}

bool board_read(const struct board *board, uint32_t call, struct call_record *ret_record)
{
    uint64_t words[WORDS];

    if (atomic_load_explicit(&board->sequence, memory_order_acquire) != 2 * call)
        return false;
    for (int i = 0; i < WORDS; i++)
        words[i] = atomic_load_explicit(&board->words[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&board->sequence, memory_order_relaxed) != 2 * call)
        return false;
    memcpy(ret_record, words, sizeof(words));
    return true;
}

/* The call that has begun and not ended, or else the next. */
static uint32_t first_spoilt(const struct board *board)
{
    uint32_t ended = atomic_load_explicit(&board->ended, memory_order_acquire);
    uint32_t sequence = atomic_load_explicit(&board->sequence, memory_order_acquire);
    uint32_t begun = (sequence + 1) / 2;

    return (begun == (ended & numbers) ? begun + 1 : begun) & numbers;
}

bool board_spoils(const struct board *board, uint32_t call)
{
    /* Acquire, pairs with the release in board_fail(). */
    if (!atomic_load_explicit(&board->failed, memory_order_acquire))
        return false;
    return ((call - atomic_load_explicit(&board->spoils, memory_order_relaxed)) & numbers) <=
           numbers / 2;
}

bool board_past(const struct board *board, uint32_t call, struct call_record *ret_record)
{
    const struct past_call *past = &board->past[call % BOARD_PAST];
    uint64_t name = atomic_load_explicit(&past->name, memory_order_acquire);
    uint64_t what = atomic_load_explicit(&past->what, memory_order_relaxed);

    if (name >> 32 != call)
        return false;
    *ret_record = (struct call_record){.fingerprint = (uint32_t)name};
    memcpy(ret_record, &what, sizeof(what));
    return true;
}

void board_fail(struct board *board, rondo_result result, int culprit, const char *sentence)
{
    size_t length = strlen(sentence);

    if (atomic_load_explicit(&board->failed, memory_order_relaxed))
        return;
    if (length >= FAIL_SENTENCE_MAX)
        length = FAIL_SENTENCE_MAX - 1;
    for (size_t i = 0; i < length; i++)
        atomic_store_explicit(&board->sentence[i], sentence[i], memory_order_relaxed);
    atomic_store_explicit(&board->sentence[length], 0, memory_order_relaxed);
    atomic_store_explicit(&board->culprit, culprit, memory_order_relaxed);
    atomic_store_explicit(&board->spoils, first_spoilt(board), memory_order_relaxed);
    /* Release, pairs with the acquire in board_failure(). */
    atomic_store_explicit(&board->failed, (uint32_t)result, memory_order_release);
}

rondo_result board_failure(const struct board *board, int *ret_culprit,
                           char sentence[FAIL_SENTENCE_MAX])
{
    uint32_t failed = atomic_load_explicit(&board->failed, memory_order_acquire);
    size_t length = 0;

    if (!failed)
        return RONDO_OK;
    for (; length < FAIL_SENTENCE_MAX - 1; length++) {
        char c = atomic_load_explicit(&board->sentence[length], memory_order_relaxed);

        if (!c)
            break;
        sentence[length] = c >= ' ' && c <= '~' ? c : '?';
    }
    sentence[length] = 0;
    *ret_culprit = atomic_load_explicit(&board->culprit, memory_order_relaxed);
    return failed < RONDO_RESULTS && failed >= RONDO_ERROR_INVALID ? (rondo_result)failed
                                                                   : RONDO_ERROR_INTERNAL;
}

void board_invite(struct board *board, const struct invitation *invitation)
{
    uint64_t words[BOARD_INVITATION];
    uint32_t before = atomic_load_explicit(&board->invites, memory_order_relaxed);

    memcpy(words, invitation, sizeof(words));
    atomic_store_explicit(&board->invites, before + 1, memory_order_relaxed);
    /* Pairs with the fence in board_invited(): who sees a new word also sees the odd number. */
    atomic_thread_fence(memory_order_release);
    for (int i = 0; i < BOARD_INVITATION; i++)
        atomic_store_explicit(&board->invitation[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&board->invites, before + 2, memory_order_release);
}

bool board_invited(const struct board *board, const unsigned char tag[16],
                   struct invitation *ret_invitation)
{
    uint32_t number = atomic_load_explicit(&board->invites, memory_order_acquire);
    uint64_t words[BOARD_INVITATION];

    if (!number || number % 2)
        return false;
    for (int i = 0; i < BOARD_INVITATION; i++)
        words[i] = atomic_load_explicit(&board->invitation[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&board->invites, memory_order_relaxed) != number)
        return false;
    memcpy(ret_invitation, words, sizeof(words));
    ret_invitation->address[sizeof(ret_invitation->address) - 1] = '\0';
    return memcmp(ret_invitation->tag, tag, sizeof(ret_invitation->tag)) == 0;
}

void board_describe_past(const struct call_record *record, char *text, size_t size)
{
    rondo_collective collective = (rondo_collective)record->collective;
    int used = snprintf(text, size, "%s", rondo_collective_name(collective));

    if (used > 0 && (size_t)used < size && collective != RONDO_BARRIER)
        used += snprintf(text + used, size - (size_t)used, " of %s",
                         rondo_type_name((rondo_type)record->type));
    if (used > 0 && (size_t)used < size && collective_reduces(collective))
        used += snprintf(text + used, size - (size_t)used, ", %s", rondo_op_name(record->op));
    if (used > 0 && (size_t)used < size && collective_has_root(collective))
        snprintf(text + used, size - (size_t)used, ", root %d", record->root);
}

void board_describe(const struct call_record *record, char *text, size_t size)
{
    rondo_collective collective = (rondo_collective)record->collective;
    int used = snprintf(text, size, "%s", rondo_collective_name(collective));

    if (used > 0 && (size_t)used < size && collective != RONDO_BARRIER)
        used +=
            snprintf(text + used, size - (size_t)used, " of %llu %s",
                     (unsigned long long)record->count, rondo_type_name((rondo_type)record->type));
    if (used > 0 && (size_t)used < size && collective_reduces(collective))
        used += snprintf(text + used, size - (size_t)used, ", %s", rondo_op_name(record->op));
    if (used > 0 && (size_t)used < size && collective_has_root(collective))
        snprintf(text + used, size - (size_t)used, ", root %d", record->root);
}

static const unsigned char magic[8] = {'r', 'o', 'n', 'd', 'o', ' ', 'a', 't'};

struct invitation_note board_invitation_note(const struct invitation *invitation)
{
    struct invitation_note note = {.invitation = *invitation};

    memcpy(note.magic, magic, sizeof(magic));
    return note;
}

bool board_hear_invitation(struct board *mirror, const void *note, size_t bytes)
{
    struct invitation_note heard;

    if (bytes != sizeof(heard) || memcmp(note, magic, sizeof(magic)) != 0)
        return false;
    memcpy(&heard, note, sizeof(heard));
    board_invite(mirror, &heard.invitation);
    return true;
}
