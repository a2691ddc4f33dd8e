/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bootstrap.c - the all-gather as a rank sees it: connect, prove, hand in, get all.
 *
 * Until the challenge has come nothing has happened that the server remembers, so whatever fails
 * before is tried again until the timeout: rank 0 may not have started yet. After the claim the
 * connection is the membership: if it breaks, the job does not start.
 */
#include "comm/bootstrap.h"

#include "comm/bootstrap_server.h"
#include "comm/bootstrap_socket.h"
#include "comm/bootstrap_wire.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seconds: for the challenge, which a meeting point sends at once; to hear the server's own
 * timeout before ours. */
static const double challenge_time = 10, server_grace = 15;

struct seeker {
    const struct bootstrap_place *place;
    int rank, size;
    double timeout, deadline;
    const void *blob;
    size_t blob_bytes;
    int fd;
    struct wire_session session;
    const char *last; /* why the last attempt to connect failed */
};

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

/* Connect and get a challenge; tries until the deadline. */
static rondo_result reach(struct seeker *me)
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
        nap(me, attempt);
    }
    return rondo_fail(
        RONDO_ERROR_TIMEOUT,
        "rank %d of %d found no meeting point at %s for %g s (%s): is rank 0 running, "
        "and can its host be reached from here?",
        me->rank, me->size, me->place->address, me->timeout, me->last);
}

/* ---- From the claim to the reply ------------------------------------------------------------ */

static rondo_result broken(const struct seeker *me, enum socket_outcome outcome)
{
    if (outcome == SOCKET_TIMED_OUT)
        return rondo_fail(RONDO_ERROR_TIMEOUT,
                          "the meeting point %s did not answer rank %d of %d in %g s",
                          me->place->address, me->rank, me->size, me->timeout);
    return rondo_fail(RONDO_ERROR_PEER,
                      "the meeting point %s hung up on rank %d of %d: rank 0 has ended, or all "
                      "ranks had come and another process claims number %d, too",
                      me->place->address, me->rank, me->size, me->rank);
}

static enum socket_outcome claim(struct seeker *me)
{
    struct wire_claim frame = {.rank = htole32((uint32_t)me->rank),
                               .size = htole32((uint32_t)me->size),
                               .pid = htole32((uint32_t)getpid())};
    enum socket_outcome outcome;

    gethostname(frame.host, sizeof(frame.host) - 1);
    wire_header_set(&frame.header, WIRE_CLAIM, me->blob_bytes);
    wire_hash(me->blob, me->blob_bytes, frame.blob_hash);
    wire_claim_prove(&me->session, &frame);
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
        return broken(me, outcome);
    wire_hash(sentence, bytes, hash);
    if (sodium_memcmp(hash, reply->body_hash, WIRE_HASH))
        return wrong_proof(me);
    return rondo_fail(result < RONDO_RESULTS ? (rondo_result)result : RONDO_ERROR_INTERNAL, "%s",
                      sentence);
}

static rondo_result take_blobs(const struct seeker *me, const struct wire_reply *reply,
                               void *ret_blobs)
{
    size_t bytes = (size_t)me->size * me->blob_bytes;
    unsigned char hash[WIRE_HASH];
    unsigned char *all = malloc(bytes ? bytes : 1);
    enum socket_outcome outcome;
    rondo_result result = RONDO_OK;

    if (!all)
        return rondo_fail(RONDO_ERROR_MEMORY, "no memory for the blobs of %d ranks", me->size);
    outcome = socket_receive(me->fd, all, bytes, me->deadline);
    wire_hash(all, outcome == SOCKET_DONE ? bytes : 0, hash);
    if (outcome != SOCKET_DONE)
        result = broken(me, outcome);
    else if (sodium_memcmp(hash, reply->body_hash, WIRE_HASH))
        result = wrong_proof(me);
    else if (bytes)
        memcpy(ret_blobs, all, bytes);
    free(all);
    return result;
}

static rondo_result take_reply(struct seeker *me, void *ret_blobs)
{
    struct wire_reply reply;
    enum socket_outcome outcome =
        socket_receive(me->fd, &reply.header, sizeof(reply.header), me->deadline);
    uint64_t bytes;

    if (outcome == SOCKET_DONE && wire_is(&reply.header, WIRE_REFUSAL))
        return refused(me, &reply.header, me->deadline);
    if (outcome == SOCKET_DONE)
        outcome = socket_receive(me->fd, (char *)&reply + sizeof(reply.header),
                                 sizeof(reply) - sizeof(reply.header), me->deadline);
    if (outcome != SOCKET_DONE)
        return broken(me, outcome);
    if (!wire_is(&reply.header, WIRE_REPLY) || !wire_reply_check(&me->session, &reply))
        return wrong_proof(me);
    bytes = wire_body_bytes(&reply.header);
    if (reply.result && bytes < FAIL_SENTENCE_MAX)
        return take_sentence(me, &reply);
    if (reply.result || bytes != (uint64_t)me->size * me->blob_bytes)
        return rondo_fail(RONDO_ERROR_INTERNAL,
                          "the meeting point %s answers rank %d with %llu bytes: that is not ours",
                          me->place->address, me->rank, (unsigned long long)bytes);
    return take_blobs(me, &reply, ret_blobs);
}

static rondo_result seek(struct seeker *me, void *ret_blobs)
{
    rondo_result result = reach(me);
    enum socket_outcome outcome;

    if (!result) {
        if (me->timeout > 0)
            me->deadline = clock_seconds() + me->timeout + server_grace;
        outcome = claim(me);
        /* A server that refuses hangs up while we may still be sending: the reason is there to
         * be read. */
        if (outcome == SOCKET_DONE || outcome == SOCKET_CLOSED)
            result = take_reply(me, ret_blobs);
        else
            result = broken(me, outcome);
    }
    if (me->fd >= 0)
        close(me->fd);
    return result;
}

/* ---- The call ------------------------------------------------------------------------------- */

static rondo_result check(const struct bootstrap_place *place, int rank, int size,
                          size_t blob_bytes)
{
    if (size < 1 || size > WIRE_RANKS_MAX)
        return rondo_fail(RONDO_ERROR_INVALID, "a job of %d ranks: accepted are 1 to %d", size,
                          WIRE_RANKS_MAX);
    if (rank < 0 || rank >= size)
        return rondo_fail(RONDO_ERROR_INVALID, "rank %d of %d: ranks go from 0 to %d", rank, size,
                          size - 1);
    if (blob_bytes > WIRE_BLOB_MAX || (uint64_t)size * blob_bytes > WIRE_ALL_BLOBS_MAX)
        return rondo_fail(RONDO_ERROR_INVALID, "%zu bytes for each of %d ranks are too many",
                          blob_bytes, size);
    if (size == 1)
        return RONDO_OK;
    return socket_address_check(place->address);
}

static rondo_result serve_and_take_part(const struct seeker *me, void *ret_blobs)
{
    struct server_task task = {.place = me->place, .stop = -1, .size = me->size};
    rondo_result result = socket_listen(me->place->address, &task.listener, NULL);

    if (result)
        return result;
    log_debug("rank 0 of %d listens at %s", me->size, me->place->address);
    task.blob = me->blob_bytes ? me->blob : "";
    task.blob_bytes = me->blob_bytes;
    task.timeout = me->timeout;
    return server_run(&task, ret_blobs);
}

rondo_result bootstrap_all_gather(const struct bootstrap_place *place, int rank, int size,
                                  bool serve, double timeout, const void *blob, size_t blob_bytes,
                                  void *ret_blobs)
{
    struct seeker me = {.place = place,
                        .rank = rank,
                        .size = size,
                        .timeout = timeout,
                        .deadline = timeout > 0 ? clock_seconds() + timeout : INFINITY,
                        .blob = blob,
                        .blob_bytes = blob_bytes,
                        .fd = -1,
                        .last = "no answer"};
    rondo_result result = check(place, rank, size, blob_bytes);

    if (!result)
        result = wire_init();
    if (result)
        return result;
    me.session.secret = place->secret;
    if (size == 1 && serve) {
        if (blob_bytes)
            memcpy(ret_blobs, blob, blob_bytes);
        return RONDO_OK;
    }
    if (serve && rank == 0)
        return serve_and_take_part(&me, ret_blobs);
    return seek(&me, ret_blobs);
}
