/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_config.c - configurations of NCCL's, by headers older and newer than ours: nothing is read
 * beyond the length that they say they have (compat/config.c).
 */
#include "tests/fuzz/fuzz.h"

#include "compat/compat.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void set_text(char *config, size_t size, size_t at, const char *text)
{
    if (size >= at + sizeof(text))
        memcpy(config + at, &text, sizeof(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct fuzz_input input = {bytes, bytes + count};
    struct wishes wishes, inherited = {.blocking = 1, .min_blocks = 2};
    size_t size = offsetof(ncclConfig_t, blocking) + fuzz_byte(&input);
    bool inherits = fuzz_byte(&input) & 1;
    char *network = fuzz_text(&input, '\n'), *name = fuzz_text(&input, '\n');
    char *config = malloc(size); /* and not a byte more */

    fuzz_expect(config, "there is memory for a configuration");
    memset(config, 0x80, size); /* NCCL_CONFIG_UNDEF_INT is INT_MIN */
    fuzz_bytes(&input, config, size);
    ((ncclConfig_t *)(void *)config)->size = size;
    if (fuzz_byte(&input) & 1)
        ((ncclConfig_t *)(void *)config)->magic = NCCL_ABI_CONFIG_MAGIC;
    set_text(config, size, offsetof(ncclConfig_t, netName), network);
    set_text(config, size, offsetof(ncclConfig_t, commName), name);
    if (!compat_config_read((ncclConfig_t *)(void *)config, inherits ? &inherited : NULL,
                            &wishes)) {
        fuzz_expect(memchr(wishes.name, '\0', sizeof(wishes.name)), "a name has an end");
        fuzz_expect(!wishes.max_blocks || wishes.min_blocks <= wishes.max_blocks,
                    "the least is not more than the most");
    }
    free(config);
    free(network);
    free(name);
    return 0;
}
