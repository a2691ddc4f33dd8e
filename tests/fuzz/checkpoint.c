/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoint.c - a file that says it is a checkpoint; digests of the table are put right where the
 * input asks for that, as they keep strangers' bytes away from what comes behind
 * (ddp/checkpoint_read.c).
 */
#include "tests/fuzz/fuzz.h"

#include "ddp/checkpoint.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20 };

static void read_all(rondo_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->count; i++) {
        const struct checkpoint_array *array = &checkpoint->arrays[i];
        size_t bytes = array->entry.count * rondo_type_size((rondo_type)array->entry.type);
        void *room = malloc(bytes ? bytes : 1);

        fuzz_expect(room, "an array is not longer than the file");
        (void)!rondo_checkpoint_read(checkpoint, array->name, (rondo_type)array->entry.type,
                                     array->entry.count, room);
        free(room);
    }
}

/* The digest of head, table and the numbers of the tail, as ddp/checkpoint.c makes it of a file
 * that it writes. */
static void put_right(uint8_t *file, size_t count)
{
    struct checkpoint_tail tail;
    crypto_generichash_state state;

    if (count < sizeof(struct checkpoint_head) + sizeof(tail))
        return;
    memcpy(&tail, file + count - sizeof(tail), sizeof(tail));
    if (tail.table_offset > count - sizeof(tail))
        return;
    crypto_generichash_init(&state, NULL, 0, CHECKPOINT_DIGEST);
    crypto_generichash_update(&state, file, sizeof(struct checkpoint_head));
    crypto_generichash_update(&state, file + tail.table_offset,
                              count - sizeof(tail) - tail.table_offset);
    crypto_generichash_update(&state, (const unsigned char *)&tail.table_offset, 8);
    crypto_generichash_update(&state, (const unsigned char *)&tail.entries, 8);
    crypto_generichash_final(&state, tail.digest, CHECKPOINT_DIGEST);
    memcpy(file + count - sizeof(tail), &tail, sizeof(tail));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    rondo_checkpoint *checkpoint;
    bool right = count && bytes[0] & 1;
    uint8_t *file;

    if (!count || count > MOST)
        return 0;
    file = malloc(count);
    fuzz_expect(file && sodium_init() >= 0, "there is memory for a file");
    memcpy(file, bytes + 1, count - 1);
    if (right)
        put_right(file, count - 1);
    if (!rondo_checkpoint_open(fuzz_file(file, count - 1), NULL, &checkpoint)) {
        read_all(checkpoint);
        rondo_checkpoint_close(checkpoint);
    } else {
        fuzz_expect(*rondo_ddp_last_error(), "an error has a sentence");
    }
    free(file);
    return 0;
}
