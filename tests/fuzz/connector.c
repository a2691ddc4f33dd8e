/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connector.c - a rank, and what listens at the meeting point says anything: before the welcome
 * bytes, after it frames with a right proof and any content (comm/rendezvous/connector.c).
 */
#include "tests/fuzz/fuzz.h"

#include "base/clock.h"
#include "base/fail.h"
#include "comm/rendezvous/connector.h"

#include <endian.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RANKS = 3, EACH = 20 };

static const struct bootstrap_place place = {.address = "unix:fuzz", .secret = "known to members"};
static int end;

static void say(const void *bytes, size_t count)
{
    if (send(end, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return;
}

static void say_garbage(const struct wire_session *session, struct fuzz_input *input)
{
    unsigned char bytes[256];
    size_t count = fuzz_byte(input);

    (void)session;
    fuzz_bytes(input, bytes, count);
    say(bytes, count);
}

static void say_challenge(const struct wire_session *session, struct fuzz_input *input)
{
    struct wire_hello challenge;

    (void)input;
    wire_header_set(&challenge.header, WIRE_CHALLENGE, 0);
    memcpy(challenge.nonce, session->server_nonce, WIRE_NONCE);
    say(&challenge, sizeof(challenge));
}

static void say_welcome(const struct wire_session *session, struct fuzz_input *input)
{
    struct wire_welcome welcome;

    (void)input;
    wire_header_set(&welcome.header, WIRE_WELCOME, 0);
    wire_prove(session, WIRE_WELCOME, &welcome);
    say(&welcome, sizeof(welcome));
}

static void say_reply(const struct wire_session *session, struct fuzz_input *input)
{
    struct wire_reply reply = {.result = htole32((uint32_t)fuzz_number(input, 1))};
    unsigned char body[256];
    uint64_t bytes = fuzz_byte(input);

    if (bytes == 0xff)
        bytes = fuzz_number(input, 8);
    memset(body, (int)fuzz_byte(input), sizeof(body));
    wire_header_set(&reply.header, WIRE_REPLY, bytes);
    wire_hash(body, bytes < sizeof(body) ? bytes : sizeof(body), reply.body_hash);
    wire_prove(session, WIRE_REPLY, &reply);
    say(&reply, sizeof(reply));
    say(body, bytes < sizeof(body) ? bytes : sizeof(body));
}

static void say_position(const struct wire_session *session, struct fuzz_input *input)
{
    struct wire_position position = {.relay = htole32(fuzz_byte(input))};

    fuzz_bytes(input, position.address, fuzz_byte(input) % (sizeof(position.address) + 1));
    fuzz_bytes(input, position.host, fuzz_byte(input) % (sizeof(position.host) + 1));
    wire_header_set(&position.header, WIRE_POSITION, 0);
    wire_prove(session, WIRE_POSITION, &position);
    say(&position, sizeof(position));
}

static void say_refusal(const struct wire_session *session, struct fuzz_input *input)
{
    struct wire_refusal refusal = {.reason = htole32(fuzz_byte(input))};

    wire_header_set(&refusal.header, WIRE_REFUSAL, 0);
    wire_prove(session, WIRE_REFUSAL, &refusal);
    say(&refusal, sizeof(refusal));
}

/* Hear until the answer has come, or there is nothing more to hear. */
static void hear(struct connector *me)
{
    unsigned char blobs[RANKS * EACH];
    struct wire_position position;
    rondo_result result = RONDO_OK;

    for (int turns = 0; turns < 8 && !result && !me->told; turns++) {
        position.header.kind = 0;
        result = connector_hear(me, turns ? NULL : &position, blobs);
        if (!result && !turns && position.header.kind) {
            fuzz_expect(memchr(position.address, '\0', sizeof(position.address)),
                        "an address of a relay has an end");
            (void)!socket_address_check(position.address);
            connector_take_position(me, position.address, true);
        }
    }
    fuzz_expect(!result || strlen(fail_sentence()) > 0, "an error has a sentence");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    void (*const says[])(const struct wire_session *, struct fuzz_input *) = {
        say_garbage,  say_challenge, say_welcome, say_reply,
        say_position, say_refusal,   say_reply,   say_garbage};
    struct fuzz_input input = {bytes, bytes + count};
    struct wire_session theirs = {.server_nonce = "theirs", .secret = place.secret};
    char blob[EACH] = "blob";
    struct connector me = {.place = &place,
                           .rank = 1,
                           .size = RANKS,
                           .timeout = 1,
                           .deadline = clock_seconds() + 1,
                           .blob = blob,
                           .blob_bytes = sizeof(blob),
                           .each = EACH};
    bool welcomed = fuzz_byte(&input) & 1;
    int both[2];

    fuzz_seed_nonces();
    randombytes_buf(theirs.rank_nonce, WIRE_NONCE); /* which the rank is going to draw */
    fuzz_seed_nonces();
    fuzz_sockets(both);
    me.fd = both[0];
    end = both[1];
    me.session = theirs;
    while (fuzz_has_more(&input))
        says[fuzz_byte(&input) & 7](&theirs, &input);
    shutdown(end, SHUT_WR);
    if (welcomed || connector_enter(&me)) {
        connector_hand_in(&me);
        hear(&me);
    }
    connector_close(&me);
    close(end);
    return 0;
}
