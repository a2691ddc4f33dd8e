/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls.c - what a rank of another host says beside its messages: call headers, invitations, and
 * why it failed. It goes to its mirror, and into sentences (transport/link/call_header.h,
 * comm/state/status.c).
 */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "comm/recorder/call.h"
#include "comm/state/status.h"

#include <string.h>

static void describe(const struct status *mirror, uint32_t call)
{
    struct call_record record;
    char text[128];

    if (status_read(mirror, call, &record)) {
        call_describe(&record, text, sizeof(text));
        fuzz_expect(memchr(text, '\0', sizeof(text)), "a call in words has an end");
    }
    if (status_past(mirror, call, &record)) {
        call_describe_past(&record, text, sizeof(text));
        fuzz_expect(memchr(text, '\0', sizeof(text)), "a call in words has an end");
    }
}

static void hear_header(struct status *mirror, struct fuzz_input *input)
{
    struct call_header header;

    header.call = (uint32_t)fuzz_number(input, 2);
    if (header.call & 0x8000)
        header.call = (uint32_t)fuzz_number(input, 4);
    fuzz_bytes(input, header.words, sizeof(header.words));
    call_header_hear(&mirror->call, &header);
    for (uint32_t back = 0; back < 4; back++)
        describe(mirror, header.call - back);
}

static void hear_invitation(struct status *mirror, struct fuzz_input *input)
{
    struct invitation invitation;
    struct invitation_note note;
    unsigned char tag[16];
    unsigned less = fuzz_byte(input);

    fuzz_bytes(input, &invitation, sizeof(invitation));
    note = status_invitation_note(&invitation);
    memcpy(tag, invitation.tag, sizeof(tag));
    fuzz_expect(status_hear_invitation(mirror, &note, sizeof(note) - less) == !less,
                "an invitation is as long as it is");
    if (status_invited(mirror, tag, &invitation))
        fuzz_expect(memchr(invitation.address, '\0', sizeof(invitation.address)),
                    "an address has an end");
}

static void hear_failure(struct status *mirror, struct fuzz_input *input)
{
    char sentence[FAIL_SENTENCE_MAX] = "", told[FAIL_SENTENCE_MAX];
    rondo_result result = (rondo_result)(fuzz_byte(input) % RONDO_RESULTS);
    int culprit = (int)fuzz_number(input, 4);

    fuzz_bytes(input, sentence, fuzz_byte(input));
    status_fail(mirror, result, culprit, sentence);
    if (status_failure(mirror, &culprit, told))
        fuzz_expect(memchr(told, '\0', sizeof(told)), "a sentence has an end");
    status_spoils(mirror, (uint32_t)fuzz_byte(input));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct status mirror;
    struct fuzz_input input = {bytes, bytes + count};

    memset(&mirror, 0, sizeof(mirror));
    while (fuzz_has_more(&input)) {
        void (*const hears[])(struct status *, struct fuzz_input *) = {hear_header, hear_invitation,
                                                                       hear_failure};

        hears[fuzz_byte(&input) % 3](&mirror, &input);
    }
    return 0;
}
