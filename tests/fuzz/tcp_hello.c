/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_hello.c - the handshake of a TCP line, as acceptor and as dialer, with somebody who says
 * bytes, or frames with a right proof and any content (transport/tcp/hello.c).
 */
#include "tests/fuzz/tcp_lines.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct tcp_line *line;
static int end;

static void say(const void *bytes, size_t count)
{
    if (send(end, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return;
}

static void hear(void)
{
    if (line->state != TCP_OPEN && line->state != TCP_CLOSED)
        tcp_hello_receive(line);
    fuzz_drain(end);
}

static void say_hello(struct fuzz_input *input)
{
    struct tcp_hello hello = {.to = 0, .size = LINES_RANKS, .comm = 4711};

    memcpy(hello.magic, "RondoTC2", sizeof(hello.magic));
    hello.from = (int32_t)fuzz_byte(input);
    if (hello.from == 0xff)
        hello.from = (int32_t)fuzz_number(input, 4);
    hello.line = fuzz_byte(input);
    if (hello.line == 0xff)
        hello.line = (uint32_t)fuzz_number(input, 4);
    say(&hello, sizeof(hello));
}

/* The proof of who dials, or of who accepts; both know the job's key. */
static void say_proof(bool challenges)
{
    struct tcp_challenge challenge = {.nonce = "theirs"};
    struct proof_session session = {.key = line->network->key,
                                    .first_nonce = line->hello.nonce,
                                    .second_nonce =
                                        challenges ? challenge.nonce : line->challenge.nonce};

    proof_make(&session, challenges ? "rondo tcp accept" : "rondo tcp dial", &line->hello,
               sizeof(line->hello), challenge.proof);
    if (challenges)
        say(&challenge, sizeof(challenge));
    else
        say(challenge.proof, sizeof(challenge.proof));
}

/* Rank 1 has the keys of the line when it knows hello and challenge. */
static void say_verdict(struct fuzz_input *input)
{
    static const uint32_t verdicts[] = {TCP_WELCOME, TCP_BUSY};
    unsigned which = fuzz_byte(input);
    uint32_t verdict = which < 2 ? verdicts[which] : (uint32_t)fuzz_number(input, 4);
    struct tcp_line shadow = {.network = lines_network(1), .hello = line->hello};
    struct tcp_answer answer;

    shadow.challenge = line->challenge;
    if (!tcp_seal_begin(&shadow, lines_peer(1)))
        return;
    seal_close(&shadow.out, &verdict, sizeof(verdict), &answer.verdict, answer.tag);
    tcp_seal_end(&shadow);
    say(&answer, sizeof(answer));
}

static void act(struct fuzz_input *input, bool dials)
{
    unsigned char bytes[256];
    unsigned what = fuzz_byte(input);
    size_t count;

    switch (what & 3) {
    case 0:
        count = fuzz_byte(input);
        fuzz_bytes(input, bytes, count);
        say(bytes, count);
        break;
    case 1:
        if (!dials)
            say_hello(input);
        else
            say_verdict(input);
        break;
    case 2:
        say_proof(dials);
        break;
    default:
        shutdown(end, SHUT_WR);
    }
    if (what & 4)
        hear();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct fuzz_input input = {bytes, bytes + count};
    unsigned options = fuzz_byte(&input);
    bool dials = options & 1;

    fuzz_environment(NULL);
    fuzz_seed_nonces();
    lines_open((enum seal_mode)(options >> 1 & 1 ? SEAL_SECRET : SEAL_NONE));
    line = dials ? lines_dial(&end) : lines_accept(&end, 0, false);
    while (fuzz_has_more(&input) && line->state != TCP_OPEN && line->state != TCP_CLOSED)
        act(&input, dials);
    hear();
    fuzz_expect(line->state != TCP_OPEN || line->peer, "an open line has a peer");
    close(end);
    lines_close();
    return 0;
}
