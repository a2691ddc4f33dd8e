/* SPDX-License-Identifier: BSD-3-Clause */
/* test_reads.c - reading across processes: what is hidden, and what becomes of ranks that
 * disagree. */
#include "reads_bodies.h"

#include "comm/engine/reach.h"
#include "comm/state/address.h"

#include <criterion/criterion.h>

/* A rank that only receives a broadcast, say, must not: its peers would not notice, and wait for
 * it. */
Test(reads, nothing_is_hidden_but_an_input)
{
    const struct execution receives = {.own = {.output_kind = ADDRESS_PLAIN}};
    const struct execution sends = {.own = {.input_kind = ADDRESS_PLAIN}};

    cr_expect_not(address_shows_plain_input(&receives));
    cr_expect(address_shows_plain_input(&sends));
}

Test(reads, ranks_may_hide_in_any_set)
{
    for (int size = 2; size <= 4; size++) {
        const char *wrong = ranks_may_hide_in_any_set(size);

        cr_expect_null(wrong, "%s", wrong);
    }
}

Test(reads, ranks_may_measure_anything)
{
    for (int size = 2; size <= 4; size++) {
        const char *wrong = ranks_may_measure_anything(size, 600);

        cr_expect_null(wrong, "%s", wrong);
    }
}
