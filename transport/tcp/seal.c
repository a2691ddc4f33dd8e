/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seal.c - frames and payloads as records (seal.h): keys, and what lines do with them.
 *
 *     frame, tag | first part of the payload, tag | ... | rest of the payload, tag | frame, tag
 *
 * A frame is a record of its own, and says how long the payload is: so where records end is known
 * from what has been verified. The control line is always sealed, data lines if RONDO_SECURITY asks
 * for it. What is to be sent is sealed into a stage, from where the system takes it.
 *
 * Keys: every rank puts a fresh X25519 key on its endpoint. With a peer it makes
 *
 *     secret  = hash, keyed with the communicator's key, of what both X25519 keys make and of what
 *               kind of records there will be
 *     key     = hash, keyed with that, of the direction, both nonces and the hello
 *
 * The communicator's key is made of the job's secret and all endpoints, so a man in the middle who
 * changes an endpoint, or wants less security than it says there, finds no keys that fit. The
 * X25519 keys are forgotten with the communicator: who learns the job's secret later cannot read
 * what was sent.
 */
#include "transport/tcp/engine.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STAGE = 2 * (SEAL_RECORD + SEAL_TAG) + 4096,    /* of a data line */
    CONTROL_STAGE = 2 * (FAIL_SENTENCE_MAX + 1024), /* of a control line: any frame fits */
    FRAME = sizeof(struct tcp_frame) + SEAL_TAG,
};
static const char *const by_dialer = "rondo tcp dialer's records",
                         *const by_acceptor = "rondo tcp acceptor's records";

/* ---- Keys ------------------------------------------------------------------------------------ */

void tcp_seal_make_keys(struct tcp_network *network)
{
    _Static_assert(crypto_box_PUBLICKEYBYTES == (int)TCP_PUBLIC_KEY &&
                       crypto_box_SECRETKEYBYTES == (int)SEAL_KEY,
                   "X25519");
    crypto_box_keypair(network->endpoint.public_key, network->private_key);
    network->endpoint.has_aes = seal_has_aes();
}

static bool uses_aes(const struct tcp_peer *peer)
{
    return peer->network->endpoint.has_aes && peer->endpoint.has_aes;
}

/* Once for a peer, as it takes longer than all else of a handshake. */
static bool make_secret(struct tcp_peer *peer)
{
    const struct tcp_network *network = peer->network;
    struct {
        unsigned char shared[crypto_scalarmult_BYTES];
        unsigned char security, aes;
    } from = {.security = (unsigned char)network->security, .aes = uses_aes(peer)};

    if (peer->has_secret)
        return true;
    if (crypto_scalarmult(from.shared, network->private_key, peer->endpoint.public_key))
        return false;
    proof_derive(network->key, &from, sizeof(from), peer->secret);
    sodium_memzero(&from, sizeof(from));
    return peer->has_secret = true;
}

static void begin(struct seal *seal, struct tcp_line *line, const struct tcp_peer *peer,
                  const char *direction)
{
    const struct proof_session session = {.key = peer->secret,
                                          .first_nonce = line->hello.nonce,
                                          .second_nonce = line->challenge.nonce};
    enum seal_mode mode = line->network->security;
    unsigned char key[PROOF_BYTES];

    _Static_assert((int)PROOF_BYTES == (int)SEAL_KEY, "a proof is a key");
    proof_make(&session, direction, &line->hello, sizeof(line->hello), key);
    seal_begin(seal, mode == SEAL_NONE ? SEAL_AUTHENTIC : mode, uses_aes(peer), key);
    sodium_memzero(key, sizeof(key));
}

bool tcp_seal_begin(struct tcp_line *line, struct tcp_peer *peer)
{
    bool control = line->hello.line == 0;

    if (!make_secret(peer))
        return false;
    line->sealed = control || line->network->security != SEAL_NONE;
    line->stage_room = control ? CONTROL_STAGE : STAGE;
    if (line->sealed && !line->stage)
        line->stage = malloc(line->stage_room);
    if (line->sealed && !line->stage)
        return false;
    begin(&line->out, line, peer, line->dialed ? by_dialer : by_acceptor);
    begin(&line->in, line, peer, line->dialed ? by_acceptor : by_dialer);
    return true;
}

void tcp_seal_end(struct tcp_line *line)
{
    seal_end(&line->out);
    seal_end(&line->in);
    free(line->stage);
    line->stage = NULL;
}

/* ---- Sending --------------------------------------------------------------------------------- */

static bool fits(const struct tcp_line *line, size_t bytes)
{
    return line->stage_end + bytes <= line->stage_room;
}

static void put(struct tcp_line *line, const void *bytes, size_t count)
{
    char *to = line->stage + line->stage_end;

    seal_close(&line->out, bytes, count, to, (unsigned char *)to + count);
    line->stage_end += count + SEAL_TAG;
}

/* The first message of the batch is on the stage. */
static void stage_is_message(struct tcp_line *line)
{
    line->staged++;
    line->stage_holds_data |= line->batch[0].frame.kind == TCP_DATA;
    line->batched--;
    memmove(line->batch, line->batch + 1, (size_t)line->batched * sizeof(line->batch[0]));
    line->sent = 0;
}

void tcp_seal_batch(struct tcp_line *line)
{
    while (line->batched) {
        const struct tcp_message *message = &line->batch[0];
        size_t at = line->sent ? line->sent - sizeof(message->frame) : 0;
        size_t part = message->frame.bytes - at;

        if (part > SEAL_RECORD)
            part = SEAL_RECORD;
        if (!fits(line, (line->sent ? 0 : FRAME) + part + SEAL_TAG))
            return;
        if (!line->sent)
            put(line, &message->frame, sizeof(message->frame));
        if (part)
            put(line, message->payload + at, part);
        line->sent = sizeof(message->frame) + at + part;
        if (at + part == message->frame.bytes)
            stage_is_message(line);
    }
}

void tcp_seal_control(struct tcp_line *line)
{
    struct tcp_peer *peer = line->peer;
    size_t at = 0;

    while (at < peer->control_bytes) {
        struct tcp_frame frame;

        memcpy(&frame, peer->control + at, sizeof(frame));
        if (!fits(line, FRAME + frame.bytes + SEAL_TAG))
            break;
        put(line, &frame, sizeof(frame));
        at += sizeof(frame);
        if (frame.bytes)
            put(line, peer->control + at, frame.bytes);
        at += frame.bytes;
    }
    line->staged += at;
    peer->control_bytes -= at;
    if (at)
        memmove(peer->control, peer->control + at, peer->control_bytes);
}

void tcp_seal_sent(struct tcp_line *line, size_t bytes)
{
    line->stage_begin += bytes;
    if (line->stage_begin < line->stage_end)
        return;
    line->stage_begin = line->stage_end = 0;
    tcp_count_unsent(line->network, -line->staged);
    line->staged = 0;
    line->stage_holds_data = false;
}

/* ---- Receiving ------------------------------------------------------------------------------- */

/* The communicator has to fail, whoever waits for what: progress() says so. Nothing more is read,
 * but the peer can still be told. */
static bool spoil(struct tcp_line *line)
{
    struct tcp_peer *peer = line->peer;
    struct tcp_network *network = line->network;

    line->spoiled = peer->tampered = true;
    snprintf(peer->why, sizeof(peer->why), "record %llu of %s %d",
             (unsigned long long)line->in.number - 1, line->index ? "data line" : "control line",
             line->index);
    tcp_line_watch(line, line->blocked);
    network->moved = true;
    if (!network->failed || !network->failed->tampered)
        network->failed = peer;
    return false;
}

bool tcp_seal_open_frame(struct tcp_line *line, const char *bytes)
{
    memcpy(&line->frame, bytes, sizeof(line->frame));
    return !line->sealed ||
           seal_open(&line->in, &line->frame, sizeof(line->frame),
                     (const unsigned char *)bytes + sizeof(line->frame)) ||
           spoil(line);
}

bool tcp_seal_open_part(struct tcp_line *line, const char *tag)
{
    return seal_open(&line->in, line->to - line->record, line->record,
                     (const unsigned char *)tag) ||
           spoil(line);
}

void tcp_seal_next_part(struct tcp_line *line)
{
    line->part = line->left;
    if (line->sealed && line->part > SEAL_RECORD)
        line->part = SEAL_RECORD;
    line->record = line->part;
    line->due = false;
}
