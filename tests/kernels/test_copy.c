/* SPDX-License-Identifier: BSD-3-Clause */
/* test_copy.c - copies of all sizes, also those that go past the cache. */
#include "kernels/kernels.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { HUGE_BYTES = (9 << 20) + 77, GUARD = 128 };

static bool copies_well(unsigned char *to, const unsigned char *from, size_t bytes)
{
    memset(to - GUARD, 0x5a, bytes + (size_t)2 * GUARD);
    kernel_copy(to, from, bytes);
    for (int i = 1; i <= GUARD; i++) {
        if (to[-i] != 0x5a || to[bytes + (size_t)i - 1] != 0x5a)
            return false;
    }
    return bytes == 0 || memcmp(to, from, bytes) == 0;
}

Test(copy, any_size_and_alignment_arrives_and_nothing_else_is_touched)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 1000, 8 << 20, (8 << 20) + 1, HUGE_BYTES};
    unsigned char *from = malloc(HUGE_BYTES + 64), *to = malloc(HUGE_BYTES + 64 + 2 * GUARD);

    for (size_t i = 0; i < HUGE_BYTES + 64; i++)
        from[i] = (unsigned char)(i * 31 + (i >> 8));
    for (const char *const *level = kernel_levels(); *level != NULL; level++) {
        kernel_use_level(*level);
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
            cr_expect(copies_well(to + GUARD + s * 5 % 64, from + s * 3 % 64, sizes[s]),
                      "level %s, %zu bytes", *level, sizes[s]);
    }
    cr_expect(copies_well(to + GUARD, from + 0, 0));
    free(from);
    free(to);
}
