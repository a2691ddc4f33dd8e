/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_impostor.c - somebody else listens where the ranks of a job meet.
 *
 * Who does not know the secret can say what it likes and is not believed; who knows it and errs is
 * told so.
 */
#include "tests/comm/rendezvous/party.h"

#include "comm/rendezvous/socket.h"
#include "comm/rendezvous/wire.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <endian.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static double soon(void)
{
    return clock_seconds() + 10;
}

enum manner {
    RUDE,        /* another service */
    NEWER,       /* the next version of the protocol */
    POLITE,      /* speaks the protocol, without the secret */
    DENYING,     /* refuses everybody in a frame, as the meeting point refuses wrong secrets */
    FLEEING,     /* takes the claim and hangs up, without the secret */
    FORGETFUL,   /* knows the secret, and hangs up after the claim */
    VERBOSE,     /* knows the secret, and answers with too many bytes */
    TALKATIVE,   /* knows the secret, and announces a sentence without end */
    CORRUPTED,   /* knows the secret, but the blobs change on the way */
    MISQUOTED,   /* knows the secret, but the sentence changes on the way */
    INTERRUPTED, /* knows the secret, and hangs up in the blobs */
};

struct impostor {
    int listener;
    enum manner manner;
    struct bootstrap_place place;
    pthread_t thread;
};

static void answer_falsely(const struct impostor *me, int fd, const struct wire_session *session)
{
    static const char bytes[2 * PARTY_BLOB] = "all is well";
    struct wire_reply reply = {.result = 0};
    uint64_t announced = sizeof(bytes);

    if (me->manner == VERBOSE)
        announced = (uint64_t)1 << 40;
    if (me->manner == TALKATIVE || me->manner == MISQUOTED)
        reply.result = htole32(RONDO_ERROR_PEER);
    if (me->manner == TALKATIVE)
        announced = (uint64_t)1 << 62;
    if (me->manner == MISQUOTED)
        announced = 11;
    wire_header_set(&reply.header, WIRE_REPLY, announced);
    if (me->manner != POLITE)
        wire_prove(session, WIRE_REPLY, &reply);
    socket_send(fd, &reply, sizeof(reply), soon());
    if (me->manner == CORRUPTED || me->manner == MISQUOTED)
        socket_send(fd, bytes, announced, soon());
}

static void *pose(void *argument)
{
    struct impostor *me = argument;
    struct pollfd wait = {.fd = me->listener, .events = POLLIN};
    struct wire_session session = {.secret = me->place.secret};
    struct wire_hello hello;
    struct wire_claim frame;
    struct wire_welcome welcome;
    struct wire_refusal refusal = {.reason = htole32(WIRE_WRONG_SECRET)};
    char blob[PARTY_BLOB];
    int fd;

    poll(&wait, 1, 10000);
    fd = socket_accept(me->listener);
    socket_receive(fd, &hello, sizeof(hello), soon());
    memcpy(session.rank_nonce, hello.nonce, WIRE_NONCE);
    memcpy(session.server_nonce, hello.nonce, WIRE_NONCE);
    wire_header_set(&hello.header, WIRE_CHALLENGE, 0);
    if (me->manner == NEWER)
        hello.header.version = htole16(WIRE_VERSION + 1);
    if (me->manner == RUDE)
        memcpy(&hello, "220 mail.example.org ready, nice to meet you", 44);
    socket_send(fd, &hello, sizeof(hello), soon());
    if (me->manner != RUDE && me->manner != NEWER) {
        socket_receive(fd, &frame, sizeof(frame), soon());
        if (me->manner > FLEEING) {
            wire_header_set(&welcome.header, WIRE_WELCOME, 0);
            wire_prove(&session, WIRE_WELCOME, &welcome);
            socket_send(fd, &welcome, sizeof(welcome), soon());
            socket_receive(fd, blob, sizeof(blob), soon());
        }
        if (me->manner == DENYING) {
            wire_header_set(&refusal.header, WIRE_REFUSAL, 0);
            socket_send(fd, &refusal, sizeof(refusal), soon());
        } else if (me->manner != FORGETFUL && me->manner != FLEEING)
            answer_falsely(me, fd, &session);
    }
    if (me->manner != FORGETFUL && me->manner != INTERRUPTED && me->manner != FLEEING)
        socket_receive(fd, blob, 1, soon()); /* until the victim hangs up */
    close(fd);
    return NULL;
}

/* Rank 1 of 2 meets it. */
static void check_victim(enum manner manner, rondo_result result, const char *part)
{
    struct impostor impostor = {.manner = manner};
    struct party_rank *ranks;

    party_place(&impostor.place, true);
    cr_assert_eq(socket_listen(impostor.place.address, false, &impostor.listener, NULL), RONDO_OK);
    pthread_create(&impostor.thread, NULL, pose, &impostor);
    ranks = party_new(&impostor.place, 2, 3);
    party_take_part(&ranks[1]);
    pthread_join(impostor.thread, NULL);
    close(impostor.listener);
    cr_assert_eq(ranks[1].result, result, "%d: '%s'", manner, ranks[1].sentence);
    cr_assert(strstr(ranks[1].sentence, part), "'%s'", ranks[1].sentence);
    party_free(ranks);
}

Test(strangers, a_server_without_the_secret_is_found_out)
{
    check_victim(POLITE, RONDO_ERROR_AUTH, "not proved by our secret");
}

Test(strangers, another_service_on_the_port_is_found_out)
{
    check_victim(RUDE, RONDO_ERROR_SYSTEM, "is no meeting point of Rondo");
}

Test(strangers, a_server_of_another_version_is_found_out)
{
    check_victim(NEWER, RONDO_ERROR_UNSUPPORTED, "speaks version 5 of the bootstrap");
}

Test(strangers, a_refusal_is_told_when_nothing_else_was_heard)
{
    check_victim(DENYING, RONDO_ERROR_AUTH, "their secrets differ");
}

/* A stranger who has taken the port can say what it likes: the job begins when its meeting point is
 * there. */
Test(strangers, that_were_at_the_port_first_do_no_harm)
{
    static const enum manner manners[] = {RUDE, NEWER, POLITE, DENYING, FLEEING};

    for (int i = 0; i < 5; i++) {
        struct impostor impostor = {.manner = manners[i]};
        struct party_rank *ranks;

        party_place(&impostor.place, true);
        cr_assert_eq(socket_listen(impostor.place.address, false, &impostor.listener, NULL),
                     RONDO_OK);
        pthread_create(&impostor.thread, NULL, pose, &impostor);
        ranks = party_new(&impostor.place, 2, 20);
        party_start(ranks + 1, 1);
        pthread_join(impostor.thread, NULL); /* it has been met */
        close(impostor.listener);
        party_start(ranks, 1);
        party_join(ranks, 2);
        cr_expect(ranks[0].right && ranks[1].right, "%d: '%s', '%s'", manners[i], ranks[0].sentence,
                  ranks[1].sentence);
        party_free(ranks);
    }
}

Test(strangers, an_answer_that_breaks_off_is_an_error)
{
    check_victim(FORGETFUL, RONDO_ERROR_PEER, "hung up on rank 1 of 2");
    check_victim(INTERRUPTED, RONDO_ERROR_PEER, "hung up on rank 1 of 2");
}

Test(strangers, lengths_in_an_answer_are_checked_before_use)
{
    check_victim(VERBOSE, RONDO_ERROR_INTERNAL, "1099511627776 bytes");
    check_victim(TALKATIVE, RONDO_ERROR_INTERNAL, "bytes: that is not ours");
}

Test(strangers, an_answer_that_changed_on_the_way_is_refused)
{
    check_victim(CORRUPTED, RONDO_ERROR_AUTH, "not proved by our secret");
    check_victim(MISQUOTED, RONDO_ERROR_AUTH, "not proved by our secret");
}
