/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bootstrap_seeker.c - one connection of a rank to a meeting point or a relay: connect, prove, hand
 * in, hear.
 *
 * Until the challenge has come nothing has happened that the server remembers, so whatever fails
 * before is tried again until the timeout: rank 0 may not have started yet. After the claim the
 * connection is the membership: if it breaks, the job does not start.
 */
#include "comm/bootstrap_seeker.h"

#include "comm/bootstrap_socket.h"

#include "base/clock.h"
#include "base/fail.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seconds for the challenge, which a meeting point sends at once. */
static const double challenge_time = 10;

/* ---- To the challenge ----------------------------------------------------------------------- */

static rondo_result refused(const struct seeker *me, const struct wire_header *header, double until)
{
    struct wire_refusal refusal = {.header = *header};

    socket_receive(me->fd, (char *)&refusal + sizeof(*header), sizeof(refusal) - sizeof(*header),
                   until);
    if (wire_version(header) != WIRE_VERSION || le32toh(refusal.reason) == WIRE_WRONG_VERSION)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "the meeting point %s speaks version %u of the bootstrap, rank %d speaks "
                          "%d: use the same version of Rondo everywhere",
                          me->place->address, wire_version(header), me->rank, WIRE_VERSION);
    if (le32toh(refusal.reason) == WIRE_COMPLETE)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "all ranks have come to %s already: does another process claim rank %d?",
                          me->place->address, me->rank);
    return rondo_fail(RONDO_ERROR_AUTH,
                      "the meeting point %s refuses rank %d, their secrets differ: give every rank "
                      "the same RONDO_SECRET or unique id",
                      me->place->address, me->rank);
}

/* On a fresh connection. ret_again: it broke or stayed silent, another attempt may do better. */
static rondo_result greet(struct seeker *me, bool *ret_again)
{
    double until = fmin(me->deadline, clock_seconds() + challenge_time);
    struct wire_hello hello, challenge;
    enum socket_outcome outcome;

    *ret_again = false;
    randombytes_buf(me->session.rank_nonce, WIRE_NONCE);
    memcpy(hello.nonce, me->session.rank_nonce, WIRE_NONCE);
    wire_header_set(&hello.header, WIRE_HELLO, 0);
    outcome = socket_send(me->fd, &hello, sizeof(hello), until);
    if (outcome == SOCKET_DONE)
        outcome = socket_receive(me->fd, &challenge.header, sizeof(challenge.header), until);
    if (outcome == SOCKET_DONE && wire_is_rondo(&challenge.header) &&
        (wire_is(&challenge.header, WIRE_REFUSAL) ||
         wire_version(&challenge.header) != WIRE_VERSION))
        return refused(me, &challenge.header, until);
    /* A hello comes from ourselves: TCP can connect a port of this host to itself while nobody
     * listens there. */
    if (outcome == SOCKET_DONE && !wire_is(&challenge.header, WIRE_HELLO)) {
        if (!wire_is(&challenge.header, WIRE_CHALLENGE))
            return rondo_fail(RONDO_ERROR_SYSTEM,
                              "what listens at %s is no meeting point of Rondo: choose another "
                              "address",
                              me->place->address);
        outcome = socket_receive(me->fd, challenge.nonce, WIRE_NONCE, until);
        memcpy(me->session.meeting_nonce, challenge.nonce, WIRE_NONCE);
        *ret_again = outcome != SOCKET_DONE;
    } else {
        *ret_again = true;
    }
    me->last = outcome == SOCKET_TIMED_OUT ? "it does not answer" : "it hung up";
    return RONDO_OK;
}

static void nap(const struct seeker *me, int attempt)
{
    int pause = attempt < 10 ? 1 + attempt : 20; /* milliseconds */

    poll(NULL, 0, (int)fmin(pause, socket_poll_time(me->deadline) & INT32_MAX));
}

rondo_result seeker_reach(struct seeker *me)
{
    for (int attempt = 0; attempt == 0 || clock_seconds() < me->deadline; attempt++) {
        bool again = true;
        rondo_result result = socket_connect(me->place->address, me->deadline, &me->fd);

        if (result)
            return result;
        if (me->fd < 0 && (errno == EMFILE || errno == ENFILE || errno == EACCES))
            return rondo_fail_errno(RONDO_ERROR_SYSTEM, "rank %d cannot connect to %s", me->rank,
                                    me->place->address);
        if (me->fd < 0)
            me->last = strerrordesc_np(errno);
        else
            result = greet(me, &again);
        if (result || !again)
            return result;
        if (me->fd >= 0)
            close(me->fd);
        me->fd = -1;
        if (me->relay)
            break; /* it listens, or it never will */
        nap(me, attempt);
    }
    return rondo_fail(
        RONDO_ERROR_TIMEOUT,
        "rank %d of %d found no meeting point at %s for %g s (%s): is rank 0 running, "
        "and can its host be reached from here?",
        me->rank, me->size, me->place->address, me->timeout, me->last);
}

/* ---- From the claim to the reply ------------------------------------------------------------ */

rondo_result seeker_broken(const struct seeker *me, enum socket_outcome outcome)
{
    if (outcome == SOCKET_TIMED_OUT)
        return rondo_fail(RONDO_ERROR_TIMEOUT,
                          "the meeting point %s did not answer rank %d of %d in %g s",
                          me->place->address, me->rank, me->size, me->timeout);
    if (me->relay)
        return rondo_fail(RONDO_ERROR_PEER,
                          "rank %u (pid %u on %.*s) went away while the job was starting: look at "
                          "what it said last",
                          (unsigned)le32toh(me->relay->rank), (unsigned)le32toh(me->relay->pid),
                          WIRE_HOST - 1, me->relay->host);
    return rondo_fail(RONDO_ERROR_PEER,
                      "the meeting point %s hung up on rank %d of %d: rank 0 has ended, or all "
                      "ranks had come and another process claims number %d, too",
                      me->place->address, me->rank, me->size, me->rank);
}

static enum socket_outcome claim(const struct seeker *me)
{
    struct wire_claim frame = {.rank = htole32((uint32_t)me->rank),
                               .size = htole32((uint32_t)me->size),
                               .pid = htole32((uint32_t)getpid())};
    enum socket_outcome outcome;

    gethostname(frame.host, sizeof(frame.host) - 1);
    wire_header_set(&frame.header, WIRE_CLAIM, me->blob_bytes);
    wire_hash(me->blob, me->blob_bytes, frame.blob_hash);
    wire_prove(&me->session, WIRE_CLAIM, &frame);
    outcome = socket_send(me->fd, &frame, sizeof(frame), me->deadline);
    if (outcome == SOCKET_DONE)
        outcome = socket_send(me->fd, me->blob, me->blob_bytes, me->deadline);
    return outcome;
}

static rondo_result wrong_proof(const struct seeker *me)
{
    return rondo_fail(RONDO_ERROR_AUTH,
                      "the answer of the meeting point %s to rank %d is not proved by our secret: "
                      "somebody else listens there, or RONDO_SECRET differs",
                      me->place->address, me->rank);
}

/* A sentence instead of blobs; its length has been checked. */
static rondo_result take_sentence(const struct seeker *me, const struct wire_reply *reply)
{
    char sentence[FAIL_SENTENCE_MAX] = "";
    unsigned char hash[WIRE_HASH];
    size_t bytes = (size_t)wire_body_bytes(&reply->header);
    uint32_t result = le32toh(reply->result);
    enum socket_outcome outcome = socket_receive(me->fd, sentence, bytes, me->deadline);

    if (outcome != SOCKET_DONE)
        return seeker_broken(me, outcome);
    wire_hash(sentence, bytes, hash);
    if (sodium_memcmp(hash, reply->body_hash, WIRE_HASH))
        return wrong_proof(me);
    return rondo_fail(result < RONDO_RESULTS ? (rondo_result)result : RONDO_ERROR_INTERNAL, "%s",
                      sentence);
}

static rondo_result take_blobs(const struct seeker *me, const struct wire_reply *reply,
                               void *ret_blobs)
{
    size_t bytes = (size_t)me->size * me->each;
    unsigned char hash[WIRE_HASH];
    unsigned char *all = malloc(bytes ? bytes : 1);
    enum socket_outcome outcome;
    rondo_result result = RONDO_OK;

    if (!all)
        return rondo_fail(RONDO_ERROR_MEMORY, "no memory for the blobs of %d ranks", me->size);
    outcome = socket_receive(me->fd, all, bytes, me->deadline);
    wire_hash(all, outcome == SOCKET_DONE ? bytes : 0, hash);
    if (outcome != SOCKET_DONE)
        result = seeker_broken(me, outcome);
    else if (sodium_memcmp(hash, reply->body_hash, WIRE_HASH))
        result = wrong_proof(me);
    else if (bytes && ret_blobs)
        memcpy(ret_blobs, all, bytes);
    free(all);
    return result;
}

/* Its header has come. */
static rondo_result take_reply(struct seeker *me, const struct wire_header *header, void *ret_blobs)
{
    struct wire_reply reply = {.header = *header};
    enum socket_outcome outcome = socket_receive(me->fd, (char *)&reply + sizeof(*header),
                                                 sizeof(reply) - sizeof(*header), me->deadline);
    uint64_t bytes = wire_body_bytes(header);

    if (outcome != SOCKET_DONE)
        return seeker_broken(me, outcome);
    if (!wire_check(&me->session, WIRE_REPLY, &reply))
        return wrong_proof(me);
    me->told = true;
    if (reply.result && bytes < FAIL_SENTENCE_MAX)
        return take_sentence(me, &reply);
    if (reply.result || bytes != (uint64_t)me->size * me->each)
        return rondo_fail(RONDO_ERROR_INTERNAL,
                          "the meeting point %s answers rank %d with %llu bytes: that is not ours",
                          me->place->address, me->rank, (unsigned long long)bytes);
    return take_blobs(me, &reply, ret_blobs);
}

static rondo_result take_seat(struct seeker *me, const struct wire_header *header,
                              struct wire_seat *ret_seat)
{
    struct wire_seat seat = {.header = *header};
    enum socket_outcome outcome = socket_receive(me->fd, (char *)&seat + sizeof(*header),
                                                 sizeof(seat) - sizeof(*header), me->deadline);

    if (outcome != SOCKET_DONE)
        return seeker_broken(me, outcome);
    if (!wire_check(&me->session, WIRE_SEAT, &seat) ||
        !memchr(seat.address, '\0', sizeof(seat.address)))
        return wrong_proof(me);
    *ret_seat = seat;
    return RONDO_OK;
}

rondo_result seeker_claim(struct seeker *me)
{
    enum socket_outcome outcome = claim(me);

    /* A server that refuses hangs up while we may still be sending: the reason is there to be
     * read. */
    return outcome == SOCKET_DONE || outcome == SOCKET_CLOSED ? RONDO_OK
                                                              : seeker_broken(me, outcome);
}

rondo_result seeker_hear(struct seeker *me, struct wire_seat *ret_seat, void *ret_blobs)
{
    struct wire_header header;
    enum socket_outcome outcome = socket_receive(me->fd, &header, sizeof(header), me->deadline);

    if (outcome != SOCKET_DONE)
        return seeker_broken(me, outcome);
    if (wire_is(&header, WIRE_REFUSAL))
        return refused(me, &header, me->deadline);
    if (wire_is(&header, WIRE_SEAT) && ret_seat)
        return take_seat(me, &header, ret_seat);
    return take_reply(me, &header, ret_blobs);
}

rondo_result seeker_sit(struct seeker *me, const char *address, bool moved)
{
    struct wire_seat seated = {.moved = htole32(moved)};
    enum socket_outcome outcome;

    strncpy(seated.address, address, sizeof(seated.address) - 1);
    wire_header_set(&seated.header, WIRE_SEATED, 0);
    wire_prove(&me->session, WIRE_SEATED, &seated);
    outcome = socket_send(me->fd, &seated, sizeof(seated), me->deadline);
    return outcome == SOCKET_DONE || outcome == SOCKET_CLOSED ? RONDO_OK
                                                              : seeker_broken(me, outcome);
}

void seeker_close(struct seeker *me)
{
    if (me->fd >= 0)
        close(me->fd);
    me->fd = -1;
}
