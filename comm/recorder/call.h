/* SPDX-License-Identifier: BSD-3-Clause */
/* call.h - a call in few words, as ranks show it to each other and to `rondo ps`. */
#ifndef RONDO_COMM_RECORDER_CALL_H
#define RONDO_COMM_RECORDER_CALL_H

#include <stddef.h>
#include <stdint.h>

/* A call in few words; what has to agree between ranks. The first word is what the user names, but
 * for the count. */
struct call_record {
    uint8_t collective, type;
    int16_t op;
    int32_t root;
    uint64_t count;
    uint32_t fingerprint;
    uint32_t unused;
};
/* In `op` of a call, what an operation of the user's own is. */
enum call_op { CALL_OP_COMMUTES = 64, CALL_OP_ORDERED, CALL_OP_SCALED };

enum { CALL_RECORD_WORDS = sizeof(struct call_record) / sizeof(uint64_t) };

/* Writes a call in words: "all_reduce of 17 float32, sum". Any bytes will do. */
void call_describe(const struct call_record *record, char *text, size_t size);
/* Does as call_describe(), for a record whose count nobody knows any more. */
void call_describe_past(const struct call_record *record, char *text, size_t size);

#endif
