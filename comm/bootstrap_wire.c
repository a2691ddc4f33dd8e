/* SPDX-License-Identifier: BSD-3-Clause */
/* bootstrap_wire.c - frames and proofs of the bootstrap; libsodium's BLAKE2b does the hashing. */
#include "comm/bootstrap_wire.h"

#include "base/fail.h"

#include <endian.h>
#include <sodium.h>
#include <string.h>

static const unsigned char magic[4] = {'R', 'N', 'D', 'O'};

rondo_result wire_init(void)
{
    if (sodium_init() < 0)
        return rondo_fail(RONDO_ERROR_SYSTEM, "libsodium finds no source of random numbers");
    return RONDO_OK;
}

void wire_header_set(struct wire_header *header, enum wire_kind kind, uint64_t body_bytes)
{
    memcpy(header->magic, magic, sizeof(magic));
    header->version = htole16(WIRE_VERSION);
    header->kind = htole16((uint16_t)kind);
    header->body_bytes = htole64(body_bytes);
}

bool wire_is_rondo(const struct wire_header *header)
{
    return !memcmp(header->magic, magic, sizeof(magic));
}

unsigned wire_version(const struct wire_header *header)
{
    return le16toh(header->version);
}

bool wire_is(const struct wire_header *header, enum wire_kind kind)
{
    return wire_is_rondo(header) && wire_version(header) == WIRE_VERSION &&
           le16toh(header->kind) == kind;
}

uint64_t wire_body_bytes(const struct wire_header *header)
{
    return le64toh(header->body_bytes);
}

void wire_hash(const void *bytes, size_t count, unsigned char *ret_hash)
{
    crypto_generichash(ret_hash, WIRE_HASH, bytes, count, NULL, 0);
}

/* The label keeps a proof of one direction from being one of the other. */
static void prove(const struct wire_session *session, const char *label, const void *frame,
                  size_t bytes, unsigned char *ret_proof)
{
    crypto_generichash_state state;

    crypto_generichash_init(&state, session->secret, BOOTSTRAP_SECRET, WIRE_HASH);
    crypto_generichash_update(&state, (const unsigned char *)label, strlen(label) + 1);
    crypto_generichash_update(&state, session->rank_nonce, WIRE_NONCE);
    crypto_generichash_update(&state, session->meeting_nonce, WIRE_NONCE);
    crypto_generichash_update(&state, frame, bytes);
    crypto_generichash_final(&state, ret_proof, WIRE_HASH);
}

void wire_claim_prove(const struct wire_session *session, struct wire_claim *claim)
{
    prove(session, "rondo claim", claim, offsetof(struct wire_claim, proof), claim->proof);
}

bool wire_claim_check(const struct wire_session *session, const struct wire_claim *claim)
{
    unsigned char proof[WIRE_HASH];

    prove(session, "rondo claim", claim, offsetof(struct wire_claim, proof), proof);
    return !sodium_memcmp(proof, claim->proof, WIRE_HASH);
}

void wire_reply_prove(const struct wire_session *session, struct wire_reply *reply)
{
    prove(session, "rondo reply", reply, offsetof(struct wire_reply, proof), reply->proof);
}

bool wire_reply_check(const struct wire_session *session, const struct wire_reply *reply)
{
    unsigned char proof[WIRE_HASH];

    prove(session, "rondo reply", reply, offsetof(struct wire_reply, proof), proof);
    return !sodium_memcmp(proof, reply->proof, WIRE_HASH);
}
