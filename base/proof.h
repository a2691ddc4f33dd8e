/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proof.h - who knows the job's secret, without sending it: a hash, keyed with the secret, over two
 * fresh random numbers, one of each side, and the frame that is proved. The label keeps a proof of
 * one direction from being one of the other.
 */
#ifndef RONDO_BASE_PROOF_H
#define RONDO_BASE_PROOF_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stddef.h>

enum { PROOF_BYTES = 32, PROOF_NONCE = 32, PROOF_KEY = 32 };

struct proof_session {
    const unsigned char *key, *first_nonce, *second_nonce;
};

/* libsodium is ready, or RONDO_ERROR_SYSTEM. Any thread, any number of times. */
rondo_result proof_init(void);
void proof_nonce(unsigned char ret_nonce[PROOF_NONCE]);
void proof_make(const struct proof_session *session, const char *label, const void *frame,
                size_t bytes, unsigned char ret_proof[PROOF_BYTES]);
/* In constant time. */
bool proof_check(const struct proof_session *session, const char *label, const void *frame,
                 size_t bytes, const unsigned char proof[PROOF_BYTES]);
/* Another key out of a key and public bytes. */
void proof_derive(const unsigned char key[PROOF_KEY], const void *bytes, size_t count,
                  unsigned char ret_key[PROOF_KEY]);

#endif
