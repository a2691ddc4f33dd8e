/* SPDX-License-Identifier: BSD-3-Clause */
/* test_board.c - what a rank shows: records that are never mixed, garbage that stays printable. */
#include "comm/state/board.h"
#include "comm_bodies.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(board, a_record_is_never_mixed_from_two_calls)
{
    const char *wrong = boards_are_never_torn(200000);

    cr_expect(!wrong, "%s", wrong);
}

Test(board, a_failure_is_seen_whole_and_the_first_one_stays)
{
    const char *wrong = failures_are_whole(100);

    cr_expect(!wrong, "%s", wrong);
}

Test(board, only_the_call_that_is_asked_for_is_read)
{
    struct board *board = calloc(1, sizeof(*board));
    struct call_record record = {.fingerprint = 5, .count = 9}, got = {0};

    board_begin(board, 3, &record);
    cr_expect(board_read(board, 3, &got) && got.fingerprint == 5 && got.count == 9);
    cr_expect(!board_read(board, 2, &got) && !board_read(board, 4, &got));
    atomic_store_explicit(&board->sequence, 5, memory_order_release); /* call 3 is being written */
    cr_expect(!board_read(board, 3, &got));
    free(board);
}

Test(board, an_invitation_is_read_by_those_whom_it_is_for)
{
    struct board *board = calloc(1, sizeof(*board));
    struct invitation given = {.tag = "these ranks", .address = "unix:here"}, got = {.tag = ""};

    cr_expect(!board_invited(board, given.tag, &got), "there is none yet");
    board_invite(board, &given);
    cr_expect(board_invited(board, given.tag, &got));
    cr_expect_str_eq(got.address, "unix:here");
    cr_expect(!board_invited(board, (const unsigned char *)"others, not here", &got));
    memset(given.address, 'x', sizeof(given.address)); /* whoever wrote it, it ends */
    board_invite(board, &given);
    cr_expect(board_invited(board, given.tag, &got));
    cr_expect(strlen(got.address) == sizeof(got.address) - 1);
    atomic_fetch_add_explicit(&board->invites, 1, memory_order_release); /* it is being written */
    cr_expect(!board_invited(board, given.tag, &got));
    free(board);
}

Test(board, garbage_is_an_internal_error_with_a_printable_sentence)
{
    struct board *board = calloc(1, sizeof(*board));
    char sentence[FAIL_SENTENCE_MAX];
    int culprit = 0;

    cr_expect(board_failure(board, &culprit, sentence) == RONDO_OK);
    for (uint32_t failed = 1; failed; failed = failed * 16 + 15) {
        memset((void *)board, 0xff, sizeof(*board));
        for (int i = 0; i < FAIL_SENTENCE_MAX; i++)
            atomic_store_explicit(&board->sentence[i], (char)(i % 255 + 1), memory_order_release);
        atomic_store_explicit(&board->failed, failed, memory_order_release);
        cr_expect(board_failure(board, &culprit, sentence) >= RONDO_ERROR_INVALID);
        cr_expect(strlen(sentence) == FAIL_SENTENCE_MAX - 1);
        for (const char *at = sentence; *at; at++)
            cr_assert(*at >= ' ' && *at <= '~');
        cr_expect(culprit == -1);
        if (failed > UINT32_MAX / 16)
            break;
    }
    free(board);
}

Test(board, a_sentence_that_is_too_long_is_cut)
{
    struct board *board = calloc(1, sizeof(*board));
    char longer[2 * FAIL_SENTENCE_MAX], sentence[FAIL_SENTENCE_MAX];
    int culprit = 0;

    memset(longer, 'l', sizeof(longer));
    longer[sizeof(longer) - 1] = 0;
    board_fail(board, RONDO_ERROR_MEMORY, -1, longer);
    cr_expect(board_failure(board, &culprit, sentence) == RONDO_ERROR_MEMORY && culprit == -1);
    cr_expect(strlen(sentence) == FAIL_SENTENCE_MAX - 1);
    free(board);
}

Test(board, calls_are_described_by_what_matters_for_them)
{
    struct call_record record = {
        .collective = RONDO_REDUCE, .type = RONDO_FLOAT32, .op = RONDO_MAX, .root = 3, .count = 17};
    char text[128], little[10];

    board_describe(&record, text, sizeof(text));
    cr_expect_str_eq(text, "reduce of 17 float32, max, root 3");
    board_describe(&record, little, sizeof(little));
    cr_expect_str_eq(little, "reduce of");
    record.collective = RONDO_BARRIER;
    board_describe(&record, text, sizeof(text));
    cr_expect_str_eq(text, "barrier");
    memset(&record, 0xff, sizeof(record));
    board_describe(&record, text, sizeof(text));
    cr_expect(strstr(text, "unknown collective"), "%s", text);
}
