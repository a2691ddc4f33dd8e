/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - what travels between a rank and the meeting point, and how it is proved.
 *
 *     rank    -> hello      a nonce
 *     server  -> challenge  another nonce
 *     rank    -> claim      rank, size, hash of the blob, proof
 *     server  -> welcome    proof: so this is the meeting point, whatever it says from here on
 *     rank    -> the blob
 *     server  -> position       where to wait for the reply: here, or at a relay; and: be one
 *     rank    -> positioned  there I wait now; others may wait with me at this address
 *     server  -> reply      result, hash of the body, proof; then the body: all blobs, or a
 *                           sentence
 *     server  -> refusal    instead of a welcome, to somebody whose proof is wrong: anybody could
 *                           say that, so it is only remembered; or, proved, instead of a reply
 *     rank    -> news       from a relay: why the job can't start
 *
 * A rank that waits at a relay has the same talk with that; its claim brings no blob there.
 * A reply may come at any time after the claim: it ends the talk.
 *
 * A proof (base/proof.h) is made of both nonces and the frame before it: fresh on every
 * connection, different in each direction, and it covers the bytes that follow through their
 * hash. Frames have fixed sizes; the only length that travels is checked before anything is
 * allocated. Numbers are little endian.
 */
#ifndef RONDO_COMM_RENDEZVOUS_WIRE_H
#define RONDO_COMM_RENDEZVOUS_WIRE_H

#include "base/proof.h"
#include "comm/rendezvous/bootstrap.h"

#include <stdint.h>

enum { WIRE_VERSION = 4, WIRE_NONCE = PROOF_NONCE, WIRE_HASH = PROOF_BYTES, WIRE_HOST = 64 };
enum { WIRE_SENTENCE = 1024 };
/* A rank's blob is a few hundred bytes; the limits are what a member may make the others
 * allocate. */
enum { WIRE_BLOB_MAX = 1 << 20, WIRE_RANKS_MAX = 1 << 20 };
#define WIRE_ALL_BLOBS_MAX ((uint64_t)1 << 31)

enum wire_kind {
    WIRE_HELLO = 1,
    WIRE_CHALLENGE,
    WIRE_CLAIM,
    WIRE_REPLY,
    WIRE_REFUSAL,
    WIRE_POSITION,
    WIRE_POSITIONED,
    WIRE_NEWS,
    WIRE_WELCOME
};
enum wire_reason { WIRE_WRONG_SECRET = 1, WIRE_WRONG_VERSION, WIRE_COMPLETE };

struct wire_header {
    unsigned char magic[4];
    uint16_t version, kind;
    /* Bytes behind the fixed frame: the blob of a claim, the body of a reply */
    uint64_t body_bytes;
};

struct wire_hello { /* also the frame of a challenge */
    struct wire_header header;
    unsigned char nonce[WIRE_NONCE];
};

struct wire_claim {
    struct wire_header header;
    uint32_t rank, size, pid;
    uint32_t rival; /* another process of the host that claims the rank; 0: none */
    char host[WIRE_HOST];
    unsigned char blob_hash[WIRE_HASH];
    unsigned char proof[WIRE_HASH];
};

struct wire_reply {
    struct wire_header header;
    uint32_t result, unused;
    unsigned char body_hash[WIRE_HASH];
    unsigned char proof[WIRE_HASH];
};

struct wire_welcome {
    struct wire_header header;
    unsigned char proof[WIRE_HASH];
};

struct wire_refusal {
    struct wire_header header;
    uint32_t reason, unused;
    unsigned char proof[WIRE_HASH]; /* zeros before the claim is proved */
};

struct wire_position { /* also the frame of WIRE_POSITIONED */
    struct wire_header header;
    uint32_t relay;       /* position: others will have to wait with you, so listen */
    uint32_t rank, pid;   /* position: of the relay to go to; positioned: rank is there */
    uint32_t moved;       /* positioned: this connection is not needed any more */
    char host[WIRE_HOST]; /* position: of the relay */
    /* position: go there, or ""; positioned: I listen there, or "" */
    char address[BOOTSTRAP_SHORT_ADDRESS_MAX];
    unsigned char proof[WIRE_HASH];
};

struct wire_news {
    struct wire_header header;
    uint32_t result, unused;
    char sentence[WIRE_SENTENCE];
    unsigned char proof[WIRE_HASH];
};

_Static_assert(sizeof(struct wire_header) == 16, "wire format");
_Static_assert(sizeof(struct wire_hello) == 48, "wire format");
_Static_assert(sizeof(struct wire_claim) == 160, "wire format");
_Static_assert(sizeof(struct wire_reply) == 88, "wire format");
_Static_assert(sizeof(struct wire_welcome) == 48, "wire format");
_Static_assert(sizeof(struct wire_refusal) == 56, "wire format");
_Static_assert(sizeof(struct wire_position) == 208, "wire format");
_Static_assert(sizeof(struct wire_news) == 1080, "wire format");

/* The two nonces of a connection and the secret: what every proof on it is made from. */
struct wire_session {
    unsigned char rank_nonce[WIRE_NONCE], server_nonce[WIRE_NONCE];
    const unsigned char *secret;
};

/* libsodium is ready, or RONDO_ERROR_SYSTEM. Any thread, any number of times. */
rondo_result wire_init(void);
void wire_header_set(struct wire_header *header, enum wire_kind kind, uint64_t body_bytes);
bool wire_is_rondo(const struct wire_header *header);
unsigned wire_version(const struct wire_header *header);
bool wire_is(const struct wire_header *header, enum wire_kind kind); /* of our version */
uint64_t wire_body_bytes(const struct wire_header *header);

void wire_hash(const void *bytes, size_t count, unsigned char *ret_hash);
/* Fill the proof of a claim, welcome, refusal, reply, position, positioned or news whose other
 * fields are complete. */
void wire_prove(const struct wire_session *session, enum wire_kind kind, void *frame);
/* True if the frame is of that kind, of our version, and proved. */
bool wire_check(const struct wire_session *session, enum wire_kind kind, const void *frame);

#endif
