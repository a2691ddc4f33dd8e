/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seal.h - records that cannot be changed on the way: one direction of one connection.
 *
 *     sender                                 receiver
 *     seal_close(record 0) -> bytes, tag ->  seal_open(record 0)
 *     seal_close(record 1) -> bytes, tag ->  seal_open(record 1)
 *
 * The tag of a record depends on the key, the record's number and its bytes. Nobody sends the
 * number, both sides count: a record that was changed, dropped, repeated, moved, cut or sent back
 * to where it came from is not the next one, and seal_open() says no. After that the direction is
 * of no use any more. Where records end has to follow from records before.
 *
 * An AEAD cipher makes the tags: AES-256-GCM where both processors have instructions for it, else
 * ChaCha20-Poly1305. If only authentic, the bytes are its associated data, and are sent as they
 * are.
 */
#ifndef RONDO_TRANSPORT_LINK_SEAL_H
#define RONDO_TRANSPORT_LINK_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum seal_mode { SEAL_NONE, SEAL_AUTHENTIC, SEAL_SECRET, SEAL_MODES };

enum {
    SEAL_TAG = 16,
    SEAL_KEY = 32,
    SEAL_RECORD = 32 << 10, /* bytes at most: a receiver verifies while more is coming */
    SEAL_RENEW = 1 << 22,   /* records under one key: far below what the ciphers stand */
    SEAL_SCHEDULE = 512,    /* bytes of an expanded key of AES */
};

struct seal {
    _Alignas(16) unsigned char schedule[SEAL_SCHEDULE];
    unsigned char key[SEAL_KEY];
    uint64_t number; /* of the next record */
    enum seal_mode mode;
    bool aes;
};

/* "none", "authentic" or "secret"; "?" for other numbers. */
const char *seal_mode_name(unsigned mode);
/* True if this processor has the instructions for AES-256-GCM. libsodium is ready. */
bool seal_has_aes(void);

/* `aes`: both sides have it. The mode is not SEAL_NONE; the key is for this direction alone. */
void seal_begin(struct seal *seal, enum seal_mode mode, bool aes,
                const unsigned char key[SEAL_KEY]);
/* Encrypt the next record, of 1 to SEAL_RECORD bytes: ret_bytes is what travels, and may be
 * `bytes`. */
void seal_close(struct seal *seal, const void *bytes, size_t count, void *ret_bytes,
                unsigned char ret_tag[SEAL_TAG]);
/* Decrypt a record where it lies. False: it is not what the other side sealed as its next record,
 * and means nothing. */
bool seal_open(struct seal *seal, void *bytes, size_t count, const unsigned char tag[SEAL_TAG]);
/* Wipe the key. */
void seal_end(struct seal *seal);

#endif
