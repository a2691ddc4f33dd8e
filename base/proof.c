/* SPDX-License-Identifier: BSD-3-Clause */
/* proof.c - libsodium's BLAKE2b does the hashing. */
#include "base/proof.h"

#include "base/fail.h"

#include <sodium.h>
#include <string.h>

rondo_result proof_init(void)
{
    if (sodium_init() < 0)
        return rondo_fail(RONDO_ERROR_SYSTEM, "libsodium finds no source of random numbers");
    return RONDO_OK;
}

void proof_nonce(unsigned char ret_nonce[PROOF_NONCE])
{
    randombytes_buf(ret_nonce, PROOF_NONCE);
}

void proof_make(const struct proof_session *session, const char *label, const void *frame,
                size_t bytes, unsigned char ret_proof[PROOF_BYTES])
{
    crypto_generichash_state state;

    crypto_generichash_init(&state, session->key, PROOF_KEY, PROOF_BYTES);
    crypto_generichash_update(&state, (const unsigned char *)label, strlen(label) + 1);
    crypto_generichash_update(&state, session->first_nonce, PROOF_NONCE);
    crypto_generichash_update(&state, session->second_nonce, PROOF_NONCE);
    crypto_generichash_update(&state, frame, bytes);
    crypto_generichash_final(&state, ret_proof, PROOF_BYTES);
}

bool proof_check(const struct proof_session *session, const char *label, const void *frame,
                 size_t bytes, const unsigned char proof[PROOF_BYTES])
{
    unsigned char right[PROOF_BYTES];

    proof_make(session, label, frame, bytes, right);
    return !sodium_memcmp(right, proof, PROOF_BYTES);
}

void proof_derive(const unsigned char key[PROOF_KEY], const void *bytes, size_t count,
                  unsigned char ret_key[PROOF_KEY])
{
    unsigned char made[PROOF_KEY];

    crypto_generichash(made, PROOF_KEY, bytes, count, key, PROOF_KEY);
    memcpy(ret_key, made, PROOF_KEY); /* it may be the key's own place */
    sodium_memzero(made, sizeof(made));
}
