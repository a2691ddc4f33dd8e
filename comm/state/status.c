/* SPDX-License-Identifier: BSD-3-Clause */
/* status.c - see status.h; what guards the record of the call is in
 * transport/link/call_header.h. */
#include "comm/state/status.h"

#include "base/collective.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct call_record) == CALL_HEADER_WORDS * sizeof(uint64_t) &&
                   offsetof(struct call_record, count) == 8 &&
                   offsetof(struct call_record, fingerprint) == 16,
               "a record is what call headers are made of");
_Static_assert(sizeof(struct invitation) == 8 * STATUS_INVITATION, "an invitation is whole words");
_Static_assert(sizeof(struct status) <= 4096, "a status page is at most a page");
_Static_assert(offsetof(struct status, call) == 64 && offsetof(struct status, inside) == 384,
               "what changes in every call has lines of its own");

/* Numbers of calls on status pages have 31 bits, and wrap. */
static const uint32_t numbers = UINT32_MAX / 2;

bool status_read(const struct status *status, uint32_t call, struct call_record *ret_record)
{
    uint64_t words[CALL_HEADER_WORDS];

    if (!call_header_read(&status->call, call, words))
        return false;
    memcpy(ret_record, words, sizeof(words));
    return true;
}

/* The call that has begun and not ended, or else the next. */
static uint32_t first_spoilt(const struct status *status)
{
    uint32_t ended = atomic_load_explicit(&status->call.ended, memory_order_acquire);
    uint32_t sequence = atomic_load_explicit(&status->call.sequence, memory_order_acquire);
    uint32_t begun = (sequence + 1) / 2;

    return (begun == (ended & numbers) ? begun + 1 : begun) & numbers;
}

bool status_spoils(const struct status *status, uint32_t call)
{
    /* Acquire, pairs with the release in status_fail(). */
    if (!atomic_load_explicit(&status->failed, memory_order_acquire))
        return false;
    return ((call - atomic_load_explicit(&status->spoils, memory_order_relaxed)) & numbers) <=
           numbers / 2;
}

bool status_past(const struct status *status, uint32_t call, struct call_record *ret_record)
{
    const struct past_call *past = &status->call.past[call % CALL_HEADER_PAST];
    uint64_t name = atomic_load_explicit(&past->name, memory_order_acquire);
    uint64_t what = atomic_load_explicit(&past->what, memory_order_relaxed);

    if (name >> 32 != call)
        return false;
    *ret_record = (struct call_record){.fingerprint = (uint32_t)name};
    memcpy(ret_record, &what, sizeof(what));
    return true;
}

void status_fail(struct status *status, rondo_result result, int culprit, const char *sentence)
{
    size_t length = strlen(sentence);

    if (atomic_load_explicit(&status->failed, memory_order_relaxed))
        return;
    if (length >= FAIL_SENTENCE_MAX)
        length = FAIL_SENTENCE_MAX - 1;
    for (size_t i = 0; i < length; i++)
        atomic_store_explicit(&status->sentence[i], sentence[i], memory_order_relaxed);
    atomic_store_explicit(&status->sentence[length], 0, memory_order_relaxed);
    atomic_store_explicit(&status->culprit, culprit, memory_order_relaxed);
    atomic_store_explicit(&status->spoils, first_spoilt(status), memory_order_relaxed);
    /* Release, pairs with the acquire in status_failure(). */
    atomic_store_explicit(&status->failed, (uint32_t)result, memory_order_release);
}

rondo_result status_failure(const struct status *status, int *ret_culprit,
                            char sentence[FAIL_SENTENCE_MAX])
{
    uint32_t failed = atomic_load_explicit(&status->failed, memory_order_acquire);
    size_t length = 0;

    if (!failed)
        return RONDO_OK;
    for (; length < FAIL_SENTENCE_MAX - 1; length++) {
        char c = atomic_load_explicit(&status->sentence[length], memory_order_relaxed);

        if (!c)
            break;
        sentence[length] = c >= ' ' && c <= '~' ? c : '?';
    }
    sentence[length] = 0;
    *ret_culprit = atomic_load_explicit(&status->culprit, memory_order_relaxed);
    return failed < RONDO_RESULTS && failed >= RONDO_ERROR_INVALID ? (rondo_result)failed
                                                                   : RONDO_ERROR_INTERNAL;
}

void status_invite(struct status *status, const struct invitation *invitation)
{
    uint64_t words[STATUS_INVITATION];
    uint32_t before = atomic_load_explicit(&status->invites, memory_order_relaxed);

    memcpy(words, invitation, sizeof(words));
    atomic_store_explicit(&status->invites, before + 1, memory_order_relaxed);
    /* Pairs with the fence in status_invited(): who sees a new word also sees the odd number. */
    atomic_thread_fence(memory_order_release);
    for (int i = 0; i < STATUS_INVITATION; i++)
        atomic_store_explicit(&status->invitation[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&status->invites, before + 2, memory_order_release);
}

bool status_invited(const struct status *status, const unsigned char tag[16],
                    struct invitation *ret_invitation)
{
    uint32_t number = atomic_load_explicit(&status->invites, memory_order_acquire);
    uint64_t words[STATUS_INVITATION];

    if (!number || number % 2)
        return false;
    for (int i = 0; i < STATUS_INVITATION; i++)
        words[i] = atomic_load_explicit(&status->invitation[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&status->invites, memory_order_relaxed) != number)
        return false;
    memcpy(ret_invitation, words, sizeof(words));
    ret_invitation->address[sizeof(ret_invitation->address) - 1] = '\0';
    return memcmp(ret_invitation->tag, tag, sizeof(ret_invitation->tag)) == 0;
}

static const unsigned char magic[8] = {'r', 'o', 'n', 'd', 'o', ' ', 'a', 't'};

struct invitation_note status_invitation_note(const struct invitation *invitation)
{
    struct invitation_note note = {.invitation = *invitation};

    memcpy(note.magic, magic, sizeof(magic));
    return note;
}

bool status_hear_invitation(struct status *mirror, const void *note, size_t bytes)
{
    struct invitation_note heard;

    if (bytes != sizeof(heard) || memcmp(note, magic, sizeof(magic)) != 0)
        return false;
    memcpy(&heard, note, sizeof(heard));
    status_invite(mirror, &heard.invitation);
    return true;
}
