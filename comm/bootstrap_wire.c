/* SPDX-License-Identifier: BSD-3-Clause */
/* bootstrap_wire.c - frames and proofs of the bootstrap. */
#include "comm/bootstrap_wire.h"

#include "base/proof.h"

#include <endian.h>
#include <sodium.h>
#include <string.h>

static const unsigned char magic[4] = {'R', 'N', 'D', 'O'};

rondo_result wire_init(void)
{
    return proof_init();
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

static struct proof_session proof_of(const struct wire_session *session)
{
    return (struct proof_session){.key = session->secret,
                                  .first_nonce = session->rank_nonce,
                                  .second_nonce = session->meeting_nonce};
}

void wire_claim_prove(const struct wire_session *session, struct wire_claim *claim)
{
    struct proof_session from = proof_of(session);

    proof_make(&from, "rondo claim", claim, offsetof(struct wire_claim, proof), claim->proof);
}

bool wire_claim_check(const struct wire_session *session, const struct wire_claim *claim)
{
    struct proof_session from = proof_of(session);

    return proof_check(&from, "rondo claim", claim, offsetof(struct wire_claim, proof),
                       claim->proof);
}

void wire_reply_prove(const struct wire_session *session, struct wire_reply *reply)
{
    struct proof_session from = proof_of(session);

    proof_make(&from, "rondo reply", reply, offsetof(struct wire_reply, proof), reply->proof);
}

bool wire_reply_check(const struct wire_session *session, const struct wire_reply *reply)
{
    struct proof_session from = proof_of(session);

    return proof_check(&from, "rondo reply", reply, offsetof(struct wire_reply, proof),
                       reply->proof);
}
