/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meeting.c - a meeting point, and connections to it that say anything: strangers bytes, members
 * frames with a right proof and any content (comm/rendezvous/{client,roster,relay_tree}.c).
 */
#include "tests/fuzz/fuzz.h"

#include "comm/rendezvous/client.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 4, BLOB = 64 };

static const struct bootstrap_place place = {.address = "unix:fuzz", .secret = "known to members"};
static struct roster roster;
static struct client clients[CLIENTS];
static int ends[CLIENTS]; /* the other end of each connection, -1: none */

static void say(int who, const void *bytes, size_t count)
{
    if (send(ends[who], bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* it is full, or hung up */
}

static void say_garbage(int who, struct fuzz_input *input)
{
    unsigned char bytes[256];
    size_t count = fuzz_byte(input);

    fuzz_bytes(input, bytes, count);
    say(who, bytes, count);
}

static void say_hello(int who, struct fuzz_input *input)
{
    struct wire_hello hello;

    fuzz_bytes(input, &hello.nonce, 1);
    memset(hello.nonce + 1, 7, sizeof(hello.nonce) - 1);
    wire_header_set(&hello.header, WIRE_HELLO, 0);
    say(who, &hello, sizeof(hello));
}

static void say_claim(int who, struct fuzz_input *input)
{
    struct wire_claim claim = {.rank = htole32((uint32_t)fuzz_number(input, 1)),
                               .size = htole32((uint32_t)fuzz_number(input, 1))};
    unsigned char blob[BLOB];
    uint64_t bytes = fuzz_byte(input);

    if (bytes == 0xff) /* numbers of any length */
        bytes = fuzz_number(input, 8);
    if (claim.size == htole32(0xff))
        claim.size = htole32((uint32_t)fuzz_number(input, 4));
    fuzz_bytes(input, claim.host, 8);
    memset(blob, 'b', sizeof(blob));
    wire_header_set(&claim.header, WIRE_CLAIM, bytes);
    wire_hash(blob, bytes < BLOB ? bytes : BLOB, claim.blob_hash);
    wire_prove(&clients[who].session, WIRE_CLAIM, &claim);
    say(who, &claim, sizeof(claim));
}

static void say_blob(int who)
{
    unsigned char blob[BLOB];

    memset(blob, 'b', sizeof(blob));
    say(who, blob, roster.blob_bytes < BLOB ? roster.blob_bytes : BLOB);
}

static void say_positioned(int who, struct fuzz_input *input)
{
    struct wire_position positioned = {.moved = htole32(fuzz_byte(input) & 1)};

    fuzz_bytes(input, positioned.address, fuzz_byte(input) % sizeof(positioned.address));
    wire_header_set(&positioned.header, WIRE_POSITIONED, 0);
    wire_prove(&clients[who].session, WIRE_POSITIONED, &positioned);
    say(who, &positioned, sizeof(positioned));
}

static void say_news(int who, struct fuzz_input *input)
{
    struct wire_news news = {.result = htole32((uint32_t)fuzz_number(input, 2))};

    fuzz_bytes(input, news.sentence, fuzz_byte(input));
    if (fuzz_byte(input) & 1)
        memset(news.sentence, '%', sizeof(news.sentence)); /* without an end */
    wire_header_set(&news.header, WIRE_NEWS, 0);
    wire_prove(&clients[who].session, WIRE_NEWS, &news);
    say(who, &news, sizeof(news));
}

static void connect_one(int who)
{
    int both[2];

    if (ends[who] >= 0)
        close(ends[who]);
    if (clients[who].fd >= 0 && clients[who].stage != CLIENT_GONE)
        client_drop(&clients[who], &roster, "another one comes");
    fuzz_sockets(both);
    client_init(&clients[who], both[0], place.secret);
    ends[who] = both[1];
}

static void act(int who, unsigned what, struct fuzz_input *input)
{
    void (*const says[])(int, struct fuzz_input *) = {say_garbage, say_hello, say_claim,
                                                      say_positioned, say_news};

    if (what < sizeof(says) / sizeof(says[0]))
        says[what](who, input);
    else if (what == 5)
        say_blob(who);
    else if (what == 6)
        connect_one(who);
    else
        shutdown(ends[who], SHUT_WR);
}

/* Tells all members when the rendezvous is decided, as server.c does. */
static void answer_all(void)
{
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].stage >= CLIENT_BLOB && clients[i].stage <= CLIENT_POSITIONED)
            client_answer(&clients[i], &roster);
}

static void serve(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (clients[i].stage != CLIENT_GONE)
            client_serve(&clients[i], &roster);
        if (!roster.decided && clients[i].stage == CLIENT_WAITING)
            client_position(&clients[i], &roster, false);
        fuzz_drain(ends[i]);
    }
    if (roster.decided)
        answer_all();
    fuzz_expect(roster.present <= roster.size && roster.positioned <= roster.size,
                "no more ranks have come than there are");
    fuzz_expect(!roster.decided || !roster.result ||
                    memchr(roster.sentence, '\0', sizeof(roster.sentence)),
                "a sentence has an end");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct fuzz_input input = {bytes, bytes + count};
    unsigned options;
    char own[BLOB] = "own";
    struct server_task task = {.place = &place};

    fuzz_seed_nonces();
    options = fuzz_byte(&input);
    task.size = options & 7;
    task.blob_bytes = options >> 3 & 7;
    task.blob = task.size && options & 0x40 ? own : NULL;
    task.relays = options >> 7;
    if (roster_init(&roster, &task))
        return 0;
    for (int i = 0; i < CLIENTS; i++) {
        ends[i] = clients[i].fd = -1;
        clients[i].stage = CLIENT_GONE;
        connect_one(i);
    }
    while (fuzz_has_more(&input)) {
        unsigned byte = fuzz_byte(&input);

        act((int)(byte & 3), byte >> 2 & 7, &input);
        if (!(byte & 0x80)) /* or several at once */
            serve();
    }
    serve();
    for (int i = 0; i < CLIENTS; i++) {
        if (clients[i].stage != CLIENT_GONE)
            client_drop(&clients[i], &roster, "it is over");
        close(ends[i]);
    }
    roster_done(&roster);
    return 0;
}
