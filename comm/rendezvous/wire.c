/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.c - frames and proofs of the bootstrap. */
#include "comm/rendezvous/wire.h"

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
                                  .second_nonce = session->server_nonce};
}

/* A proof covers all bytes of the frame that stand before it. The label keeps kinds and directions
 * apart. */
static const struct {
    const char *label;
    size_t bytes;
} covers[] = {
    [WIRE_CLAIM] = {"rondo claim", offsetof(struct wire_claim, proof)},
    [WIRE_REPLY] = {"rondo reply", offsetof(struct wire_reply, proof)},
    [WIRE_POSITION] = {"rondo seat", offsetof(struct wire_position, proof)},
    [WIRE_POSITIONED] = {"rondo seated", offsetof(struct wire_position, proof)},
    [WIRE_WELCOME] = {"rondo welcome", offsetof(struct wire_welcome, proof)},
    [WIRE_REFUSAL] = {"rondo refusal", offsetof(struct wire_refusal, proof)},
    [WIRE_NEWS] = {"rondo news", offsetof(struct wire_news, proof)},
};

void wire_prove(const struct wire_session *session, enum wire_kind kind, void *frame)
{
    struct proof_session from = proof_of(session);

    proof_make(&from, covers[kind].label, frame, covers[kind].bytes,
               (unsigned char *)frame + covers[kind].bytes);
}

bool wire_check(const struct wire_session *session, enum wire_kind kind, const void *frame)
{
    struct proof_session from = proof_of(session);

    return wire_is(frame, kind) && proof_check(&from, covers[kind].label, frame, covers[kind].bytes,
                                               (const unsigned char *)frame + covers[kind].bytes);
}
