/* SPDX-License-Identifier: BSD-3-Clause */
/* test_status.c - what a rank shows: records that are never mixed, garbage that stays printable. */
#include "comm/state/status.h"
#include "comm_bodies.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(status, a_record_is_never_mixed_from_two_calls)
{
    const char *wrong = status_pages_are_never_torn(200000);

    cr_expect(!wrong, "%s", wrong);
}

Test(status, a_failure_is_seen_whole_and_the_first_one_stays)
{
    const char *wrong = failures_are_whole(100);

    cr_expect(!wrong, "%s", wrong);
}

Test(status, only_the_call_that_is_asked_for_is_read)
{
    struct status *status = calloc(1, sizeof(*status));
    struct call_record record = {.fingerprint = 5, .count = 9}, got = {0};

    call_header_begin(&status->call, 3, &record, false);
    cr_expect(status_read(status, 3, &got) && got.fingerprint == 5 && got.count == 9);
    cr_expect(!status_read(status, 2, &got) && !status_read(status, 4, &got));
    atomic_store_explicit(&status->call.sequence, 5,
                          memory_order_release); /* call 3 is being written */
    cr_expect(!status_read(status, 3, &got));
    free(status);
}

Test(status, a_call_that_is_shown_already_is_read_by_its_new_number)
{
    struct status *status = calloc(1, sizeof(*status));
    struct call_record record = {.collective = RONDO_REDUCE, .fingerprint = 5, .count = 9}, got;

    call_header_begin(&status->call, 3, &record, false);
    call_header_begin(&status->call, 4, &record, true);
    cr_expect(status_read(status, 4, &got) && got.fingerprint == 5 && got.count == 9);
    cr_expect(!status_read(status, 3, &got));
    for (uint32_t call = 3; call <= 4; call++)
        cr_expect(status_past(status, call, &got) && got.collective == RONDO_REDUCE &&
                  got.fingerprint == 5);
    free(status);
}

/* A faster connection brings the header of a later call before that of an earlier one. */
static void expect_heard(const uint32_t calls[3], const uint32_t shown[3])
{
    struct status *own = calloc(1, sizeof(*own)), *mirror = calloc(1, sizeof(*mirror));
    struct call_header header;
    struct call_record got;

    for (int i = 0; i < 3; i++) {
        struct call_record record = {.fingerprint = calls[i]};

        call_header_begin(&own->call, calls[i], &record, false);
        call_header_say(&own->call, &header);
        call_header_hear(&mirror->call, &header);
        cr_expect(status_read(mirror, shown[i], &got) && got.fingerprint == shown[i],
                  "call %u is shown after the header of call %u", shown[i], calls[i]);
        cr_expect(status_past(mirror, shown[0], &got) && got.fingerprint == shown[0]);
    }
    free(own);
    free(mirror);
}

Test(status, an_older_header_takes_nothing_back)
{
    const uint32_t last = UINT32_MAX / 2; /* numbers of calls have 31 bits, and wrap */

    expect_heard((const uint32_t[]){5, 7, 6}, (const uint32_t[]){5, 7, 7});
    expect_heard((const uint32_t[]){1, 2, 1}, (const uint32_t[]){1, 2, 2});
    expect_heard((const uint32_t[]){1, 1, 3}, (const uint32_t[]){1, 1, 3});
    expect_heard((const uint32_t[]){last - 3, last, 1}, (const uint32_t[]){last - 3, last, 1});
}

Test(status, an_invitation_is_read_by_those_whom_it_is_for)
{
    struct status *status = calloc(1, sizeof(*status));
    struct invitation given = {.tag = "these ranks", .address = "unix:here"}, got = {.tag = ""};

    cr_expect(!status_invited(status, given.tag, &got), "there is none yet");
    status_invite(status, &given);
    cr_expect(status_invited(status, given.tag, &got));
    cr_expect_str_eq(got.address, "unix:here");
    cr_expect(!status_invited(status, (const unsigned char *)"others, not here", &got));
    memset(given.address, 'x', sizeof(given.address)); /* whoever wrote it, it ends */
    status_invite(status, &given);
    cr_expect(status_invited(status, given.tag, &got));
    cr_expect(strlen(got.address) == sizeof(got.address) - 1);
    atomic_fetch_add_explicit(&status->invites, 1, memory_order_release); /* it is being written */
    cr_expect(!status_invited(status, given.tag, &got));
    free(status);
}

Test(status, garbage_is_an_internal_error_with_a_printable_sentence)
{
    struct status *status = calloc(1, sizeof(*status));
    char sentence[FAIL_SENTENCE_MAX];
    int culprit = 0;

    cr_expect(status_failure(status, &culprit, sentence) == RONDO_OK);
    for (uint32_t failed = 1; failed; failed = failed * 16 + 15) {
        memset((void *)status, 0xff, sizeof(*status));
        for (int i = 0; i < FAIL_SENTENCE_MAX; i++)
            atomic_store_explicit(&status->sentence[i], (char)(i % 255 + 1), memory_order_release);
        atomic_store_explicit(&status->failed, failed, memory_order_release);
        cr_expect(status_failure(status, &culprit, sentence) >= RONDO_ERROR_INVALID);
        cr_expect(strlen(sentence) == FAIL_SENTENCE_MAX - 1);
        for (const char *at = sentence; *at; at++)
            cr_assert(*at >= ' ' && *at <= '~');
        cr_expect(culprit == -1);
        if (failed > UINT32_MAX / 16)
            break;
    }
    free(status);
}

Test(status, a_sentence_that_is_too_long_is_cut)
{
    struct status *status = calloc(1, sizeof(*status));
    char longer[2 * FAIL_SENTENCE_MAX], sentence[FAIL_SENTENCE_MAX];
    int culprit = 0;

    memset(longer, 'l', sizeof(longer));
    longer[sizeof(longer) - 1] = 0;
    status_fail(status, RONDO_ERROR_MEMORY, -1, longer);
    cr_expect(status_failure(status, &culprit, sentence) == RONDO_ERROR_MEMORY && culprit == -1);
    cr_expect(strlen(sentence) == FAIL_SENTENCE_MAX - 1);
    free(status);
}

Test(status, calls_are_described_by_what_matters_for_them)
{
    struct call_record record = {
        .collective = RONDO_REDUCE, .type = RONDO_FLOAT32, .op = RONDO_MAX, .root = 3, .count = 17};
    char text[128], little[10];

    call_describe(&record, text, sizeof(text));
    cr_expect_str_eq(text, "reduce of 17 float32, max, root 3");
    call_describe(&record, little, sizeof(little));
    cr_expect_str_eq(little, "reduce of");
    record.collective = RONDO_BARRIER;
    call_describe(&record, text, sizeof(text));
    cr_expect_str_eq(text, "barrier");
    memset(&record, 0xff, sizeof(record));
    call_describe(&record, text, sizeof(text));
    cr_expect(strstr(text, "unknown collective"), "%s", text);
}
