/* SPDX-License-Identifier: BSD-3-Clause */
/* test_seal.c - records: what is opened is what was closed, as the same record, or nothing. */
#include "transport/link/seal.h"

#include "base/proof.h"

#include <criterion/criterion.h>
#include <sodium.h>
#include <string.h>

/* Every mode with every cipher that this processor has. */
static const struct kind {
    enum seal_mode mode;
    bool aes;
} kinds[] = {
    {SEAL_AUTHENTIC, false}, {SEAL_SECRET, false}, {SEAL_AUTHENTIC, true}, {SEAL_SECRET, true}};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static int kinds_here(void)
{
    return seal_has_aes() ? KINDS : KINDS / 2;
}

static struct seal out, in;
static unsigned char key[SEAL_KEY], text[SEAL_RECORD], wire[SEAL_RECORD], tag[SEAL_TAG];

static void fresh(const struct kind *kind)
{
    randombytes_buf(key, sizeof(key));
    seal_begin(&out, kind->mode, kind->aes, key);
    seal_begin(&in, kind->mode, kind->aes, key);
}

static void begin(void)
{
    cr_assert_eq(proof_init(), RONDO_OK);
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (unsigned char)(i * 31 + (i >> 8));
}

TestSuite(seal, .init = begin);

static bool passes(size_t count)
{
    seal_close(&out, text, count, wire, tag);
    return seal_open(&in, wire, count, tag) && memcmp(wire, text, count) == 0;
}

Test(seal, opens_what_was_closed_of_any_length)
{
    static const size_t counts[] = {1, 4, 15, 16, 17, 48, 1000, SEAL_RECORD - 1, SEAL_RECORD};

    for (int kind = 0; kind < kinds_here(); kind++) {
        fresh(&kinds[kind]);
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
            cr_expect(passes(counts[i]), "kind %d, %zu bytes", kind, counts[i]);
    }
}

Test(seal, closes_in_place)
{
    for (int kind = 0; kind < kinds_here(); kind++) {
        fresh(&kinds[kind]);
        memcpy(wire, text, 1000);
        seal_close(&out, wire, 1000, wire, tag);
        cr_expect(seal_open(&in, wire, 1000, tag) && memcmp(wire, text, 1000) == 0);
    }
}

Test(seal, shows_the_bytes_only_if_they_are_no_secret)
{
    for (int kind = 0; kind < kinds_here(); kind++) {
        int same = 0;

        fresh(&kinds[kind]);
        seal_close(&out, text, 4096, wire, tag);
        for (int i = 0; i < 4096; i++)
            same += wire[i] == text[i];
        if (kinds[kind].mode == SEAL_SECRET)
            cr_expect_lt(same, 64, "chance makes 16 of them equal");
        else
            cr_expect_eq(same, 4096);
    }
}

Test(seal, opens_nothing_of_which_a_bit_is_another)
{
    enum { BYTES = 40, BITS = 8 * (BYTES + SEAL_TAG) };

    for (int kind = 0; kind < kinds_here(); kind++)
        for (int bit = 0; bit < BITS; bit++) {
            unsigned char *at = bit < 8 * BYTES ? &wire[bit / 8] : &tag[bit / 8 - BYTES];

            fresh(&kinds[kind]);
            seal_close(&out, text, BYTES, wire, tag);
            *at ^= (unsigned char)(1 << bit % 8);
            cr_expect_not(seal_open(&in, wire, BYTES, tag), "kind %d, bit %d", kind, bit);
        }
}

/* Records 0, 1 and 2 of a direction; the receiver gets one that is not its next. */
Test(seal, opens_nothing_that_is_dropped_repeated_moved_or_cut)
{
    for (int kind = 0; kind < kinds_here(); kind++) {
        unsigned char second[100], second_tag[SEAL_TAG];

        fresh(&kinds[kind]);
        seal_close(&out, text, 100, wire, tag);
        seal_close(&out, text, 100, second, second_tag);
        cr_expect_not(seal_open(&in, second, 100, second_tag), "the first was dropped");

        fresh(&kinds[kind]);
        seal_close(&out, text, 100, wire, tag);
        memcpy(second, wire, sizeof(second));
        cr_expect(seal_open(&in, wire, 100, tag));
        cr_expect_not(seal_open(&in, second, 100, tag), "it is repeated");

        fresh(&kinds[kind]);
        seal_close(&out, text, 100, wire, tag);
        cr_expect_not(seal_open(&in, wire, 99, tag), "it is cut");
    }
}

Test(seal, opens_nothing_of_another_key)
{
    for (int kind = 0; kind < kinds_here(); kind++) {
        unsigned char other[SEAL_KEY];

        fresh(&kinds[kind]);
        memcpy(other, key, sizeof(other));
        other[SEAL_KEY - 1] ^= 1;
        seal_begin(&in, kinds[kind].mode, kinds[kind].aes, other);
        cr_expect_not(passes(100), "kind %d", kind);
    }
}

Test(seal, renews_the_key_on_both_sides_at_the_same_record)
{
    for (int kind = 0; kind < kinds_here(); kind++) {
        fresh(&kinds[kind]);
        out.number = in.number = SEAL_RENEW - 1;
        cr_expect(passes(100));
        cr_expect_eq(memcmp(out.key, key, SEAL_KEY), 0);
        cr_expect(passes(100));
        cr_expect_neq(memcmp(out.key, key, SEAL_KEY), 0, "a new key");
        cr_expect(passes(100));
        out.number = 2 * SEAL_RENEW; /* without the records between: another key again */
        cr_expect_not(passes(100));
    }
}

Test(seal, leaves_nothing_of_a_key_at_the_end)
{
    static const struct seal nothing;

    fresh(&kinds[0]);
    seal_end(&out);
    cr_expect_eq(memcmp(&out, &nothing, sizeof(out)), 0);
}
