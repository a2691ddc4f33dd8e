/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * votes.c - an agreement of three ranks, of which two say anything: notes from other hosts go to
 * their mirrors, and this rank makes a decision of what is there (comm/state/vote.c,
 * comm/recovery/agreement.c).
 */
#include "tests/fuzz/fuzz.h"

#include "comm/recovery/agreement.h"

#include <stdlib.h>
#include <string.h>

static const int sizes[] = {3, 2, 64, 65, 384, 385, VOTE_RANKS, 130};

/* No bits of ranks that there are not: they would be failed ranks in the lists of applications. */
static void expect_ranks(const uint64_t set[VOTE_SET], int size)
{
    for (int rank = size; rank < VOTE_RANKS; rank++)
        fuzz_expect(!set_has(set, rank), "sets have no ranks beyond the last");
}

/* A note as a rank would make it of a vote, with any numbers, or bytes. */
static void hear(struct vote_page *mirror, int size, struct fuzz_input *input)
{
    unsigned what = fuzz_byte(input);
    struct vote vote = {0};
    struct vote_note note;
    unsigned char bytes[sizeof(note) + 8];
    size_t count = sizeof(note);

    fuzz_bytes(input, &vote, what & 1 ? sizeof(vote) : 6 * sizeof(uint64_t));
    note = vote_note(&vote, size, (int)fuzz_byte(input) % vote_notes(size));
    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, &note, sizeof(note));
    if (what & 2) /* behind the magic */
        fuzz_bytes(input, bytes + 8, count - 8);
    if (what & 4)
        fuzz_bytes(input, bytes, count);
    if (what & 8)
        count = fuzz_number(input, 2) % sizeof(bytes);
    vote_hear(mirror, size, bytes, count);
}

static void look(struct agreement *agreement, const struct vote_page *mirrors, uint64_t *seen)
{
    for (int i = 0; i < 2 && i < agreement->size; i++) {
        int rank = (agreement->rank + 1 + i) % agreement->size;

        if (vote_read(&mirrors[i], &seen[i], &agreement->others[rank])) {
            expect_ranks(agreement->others[rank].suspects, agreement->size);
            expect_ranks(agreement->others[rank].proposal.failed, agreement->size);
            expect_ranks(agreement->others[rank].verdict.failed, agreement->size);
        }
    }
}

static void step(struct agreement *agreement)
{
    if (agreement_step(agreement) == AGREEMENT_DECIDED) {
        expect_ranks(agreement->own.verdict.failed, agreement->size);
        agreement_begin(agreement, 2, 7);
    }
    (void)agreement_lowest(agreement);
    for (int rank = 0; rank < agreement->size; rank++)
        (void)(agreement_awaits(agreement, rank) || agreement_has_come(agreement, rank));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct vote_page mirrors[2];
    struct fuzz_input input = {bytes, bytes + count};
    unsigned options = fuzz_byte(&input);
    struct agreement agreement = {.size = sizes[options & 7]};
    uint64_t seen[2] = {0, 0};

    memset(mirrors, 0, sizeof(mirrors));
    agreement.rank = (int)(options >> 3 & 3) % agreement.size;
    agreement.others = calloc((size_t)agreement.size, sizeof(*agreement.others));
    fuzz_expect(agreement.others, "there is memory for votes");
    agreement_begin(&agreement, 1, 5);
    while (fuzz_has_more(&input)) {
        unsigned what = fuzz_byte(&input);

        if (what & 1)
            hear(&mirrors[what >> 1 & 1], agreement.size, &input);
        if (what & 4)
            agreement_suspect(&agreement, (int)fuzz_byte(&input) % agreement.size);
        look(&agreement, mirrors, seen);
        if (what & 8)
            step(&agreement);
    }
    step(&agreement);
    free(agreement.others);
    return 0;
}
