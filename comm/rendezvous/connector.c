/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connector.c - one connection of a rank to a meeting point or a relay: connect, prove, hand
 * in, hear.
 *
 * Until the welcome has come, whoever listens there has proved nothing: it may be anybody who has
 * taken the port. So whatever fails before, and whatever is said, is as if nobody were there yet:
 * another attempt is made until the timeout, and the sentence says then what was heard. After the
 * welcome the connection is the membership: if it breaks, the job does not start.
 */
#include "comm/rendezvous/connector.h"

#include "comm/rendezvous/socket.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char unproved[] =
    "the answer of the meeting point %s to rank %d is not proved by our secret: somebody else "
    "listens there, or RONDO_SECRET differs";

/* ---- To the welcome: nobody has proved anything to us ---------------------------------------- */

/* Note what was heard there, which anybody may have said: it is the sentence if it stays at
 * that. */
__attribute__((format(printf, 3, 4))) static void heard(struct connector *me, rondo_result result,
                                                        const char *format, ...)
{
    bool first = !me->rumour;
    va_list arguments;

    me->rumour = result;
    va_start(arguments, format);
    vsnprintf(me->heard, sizeof(me->heard), format, arguments);
    va_end(arguments);
    if (first && !me->relay)
        log_warn("%s; it may be somebody else that listens there, so rank %d tries on", me->heard,
                 me->rank);
}

static void hear_refusal(struct connector *me, const struct wire_header *header, double until)
{
    struct wire_refusal refusal = {.header = *header};
    size_t reason = sizeof(refusal.reason); /* older versions say no more */

    socket_receive(me->fd, &refusal.reason, reason, until);
    if (wire_version(header) != WIRE_VERSION || le32toh(refusal.reason) == WIRE_WRONG_VERSION)
        heard(me, RONDO_ERROR_UNSUPPORTED,
              "the meeting point %s speaks version %u of the bootstrap, rank %d speaks %d: use the "
              "same version of Rondo everywhere",
              me->place->address, wire_version(header), me->rank, WIRE_VERSION);
    else
        heard(me, RONDO_ERROR_AUTH,
              "the meeting point %s refuses rank %d, their secrets differ: give every rank the "
              "same RONDO_SECRET or unique id",
              me->place->address, me->rank);
}

/* Receive a frame's header; false: it is of another kind, which has been noted. A hello comes from
 * ourselves: TCP can connect a port of this host to itself while nobody listens there. */
static bool hear_frame(struct connector *me, enum wire_kind kind, struct wire_header *ret_header,
                       double until)
{
    enum socket_outcome outcome = socket_receive(me->fd, ret_header, sizeof(*ret_header), until);

    me->last = outcome == SOCKET_TIMED_OUT ? "it does not answer" : "it hung up";
    if (outcome != SOCKET_DONE || wire_is(ret_header, WIRE_HELLO))
        return false;
    if (wire_is(ret_header, kind))
        return true;
    if (wire_is_rondo(ret_header) &&
        (wire_is(ret_header, WIRE_REFUSAL) || wire_version(ret_header) != WIRE_VERSION))
        hear_refusal(me, ret_header, until);
    else if (kind == WIRE_CHALLENGE)
        heard(me, RONDO_ERROR_SYSTEM,
              "what listens at %s is no meeting point of Rondo: choose another address",
              me->place->address);
    else
        heard(me, RONDO_ERROR_AUTH, unproved, me->place->address, me->rank);
    return false;
}

/* Hello and challenge: a nonce each way. */
static bool greet(struct connector *me, double until)
{
    struct wire_hello hello, challenge;

    randombytes_buf(me->session.rank_nonce, WIRE_NONCE);
    memcpy(hello.nonce, me->session.rank_nonce, WIRE_NONCE);
    wire_header_set(&hello.header, WIRE_HELLO, 0);
    socket_send(me->fd, &hello, sizeof(hello), until);
    if (!hear_frame(me, WIRE_CHALLENGE, &challenge.header, until) ||
        socket_receive(me->fd, challenge.nonce, WIRE_NONCE, until) != SOCKET_DONE)
        return false;
    memcpy(me->session.server_nonce, challenge.nonce, WIRE_NONCE);
    return true;
}

/* A server that refuses hangs up while we may still be sending: the reason is there to be read. */
static void claim(const struct connector *me, double until)
{
    bool looks = me->watch && me->watch->rival;
    unsigned rival = looks ? me->watch->rival(me->watch->context) : me->holder;
    struct wire_claim frame = {.rank = htole32((uint32_t)me->rank),
                               .size = htole32((uint32_t)me->size),
                               .pid = htole32((uint32_t)getpid()),
                               .rival = htole32(rival)};

    gethostname(frame.host, sizeof(frame.host) - 1);
    wire_header_set(&frame.header, WIRE_CLAIM, me->blob_bytes);
    wire_hash(me->blob, me->blob_bytes, frame.blob_hash);
    wire_prove(&me->session, WIRE_CLAIM, &frame);
    socket_send(me->fd, &frame, sizeof(frame), until);
}

bool connector_enter(struct connector *me)
{
    double until = fmin(me->deadline, clock_seconds() + PATIENCE_WELCOME);
    struct wire_welcome welcome;

    if (!greet(me, until))
        return false;
    claim(me, until);
    if (!hear_frame(me, WIRE_WELCOME, &welcome.header, until) ||
        socket_receive(me->fd, welcome.proof, sizeof(welcome.proof), until) != SOCKET_DONE)
        return false;
    if (wire_check(&me->session, WIRE_WELCOME, &welcome))
        return true;
    heard(me, RONDO_ERROR_AUTH, unproved, me->place->address, me->rank);
    return false;
}

static void nap(const struct connector *me, int attempt)
{
    double pause = attempt < 10 ? DOZE_NEWS * (1 + attempt) : DOZE_KNOCK;

    doze_for(fmin(me->rumour ? DOZE_RUMOUR : pause, me->deadline - clock_seconds()));
}

static rondo_result not_found(const struct connector *me, double waited)
{
    if (me->rumour)
        return rondo_fail(me->rumour, "%s (rank %d of %d tried for %g s)", me->heard, me->rank,
                          me->size, waited);
    return rondo_fail(
        RONDO_ERROR_TIMEOUT,
        "rank %d of %d found no meeting point at %s for %g s (%s): is rank 0 running, "
        "and can its host be reached from here?",
        me->rank, me->size, me->place->address, waited, me->last);
}

/* True if it is time to log that the rank still waits. *ret_waited: for how long. */
static bool is_late(struct connector *me, double *ret_waited)
{
    double now = clock_seconds();

    *ret_waited = clock_tenths(now - me->began);
    if (now < clock_reminder(me->began, me->late, me->reminders))
        return false;
    me->reminders++;
    return true;
}

double connector_remind(struct connector *me)
{
    double waited;

    if (is_late(me, &waited))
        log_warn("rank %d of %d has waited %g s for others to come to %s: who listens there says "
                 "for whom",
                 me->rank, me->size, waited, me->place->address);
    return clock_reminder(me->began, me->late, me->reminders);
}

/* True if nobody listens at the place of a unique id, where somebody did before it existed. On the
 * way to a port of another host somebody else may refuse for a moment. */
static bool is_over(struct connector *me)
{
    double now = clock_seconds();
    bool watches = me->watch && me->watch->look; /* then that one knows what has happened */

    if (!me->served || watches || me->relay || me->fd >= 0 || errno != ECONNREFUSED) {
        me->refused = 0;
        return false;
    }
    if (me->refused == 0)
        me->refused = now;
    return socket_address_is_unix(me->place->address) || now - me->refused > PATIENCE_REFUSED;
}

/* One attempt to connect; an error that the watch ends the wait with is `ret_end`. A name that is
 * not known may be misspelt, or may be known later: the log says so at once. */
static rondo_result knock(struct connector *me, rondo_result *ret_end)
{
    double until = me->deadline;
    const char *unknown = NULL;
    rondo_result result;

    *ret_end = RONDO_OK;
    if (!me->relay && !me->holder) /* an attempt may last until the deadline */
        until = fmin(until, clock_reminder(me->began, me->late, me->reminders));
    if (me->watch && me->watch->look && !me->relay) {
        *ret_end = me->watch->look(me->watch->context);
        until = fmin(until, clock_seconds() + PATIENCE_BLIND);
    }
    if (*ret_end)
        return RONDO_OK;
    result = socket_connect(me->place->address, me->attempt++, until, &me->fd, &unknown);
    if (unknown && me->last != unknown)
        log_warn("rank %d of %d does not know the host of the meeting point %s (%s), and tries on: "
                 "is its name right?",
                 me->rank, me->size, me->place->address, unknown);
    if (me->fd < 0)
        me->last = unknown ? unknown : strerror(errno);
    return result;
}

rondo_result connector_reach(struct connector *me)
{
    double waited;

    for (int attempt = 0; attempt == 0 || clock_seconds() < me->deadline; attempt++) {
        rondo_result end, result = knock(me, &end);

        if (end)
            return end;
        if (result && result != RONDO_ERROR_AUTH)
            return result;
        if (result)
            heard(me, result, "%s", fail_sentence());
        else if (me->fd < 0 && (errno == EMFILE || errno == ENFILE || errno == EACCES))
            return rondo_fail_errno(RONDO_ERROR_SYSTEM, "rank %d cannot connect to %s", me->rank,
                                    me->place->address);
        else if ((me->nobody = is_over(me)))
            return rondo_fail(RONDO_ERROR_INVALID,
                              "rank %d of %d finds nobody at %s: the unique id is used up, as all "
                              "ranks of a communicator have met by it, or its time was over, or "
                              "the process that made it has ended; make a new one for each "
                              "communicator",
                              me->rank, me->size, me->place->address);
        if (!result && me->fd >= 0 && connector_enter(me))
            return RONDO_OK;
        connector_close(me);
        if (me->relay || me->holder)
            break; /* it listens, or it never will; or the others do without us */
        nap(me, attempt);
        if (is_late(me, &waited)) {
            not_found(me, waited);
            log_warn("%s", fail_sentence());
        }
    }
    me->nobody = true;
    return not_found(me, me->timeout);
}

/* ---- From the welcome to the reply ----------------------------------------------------------- */

rondo_result connector_broken(const struct connector *me, enum socket_outcome outcome)
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

static rondo_result wrong_proof(const struct connector *me)
{
    return rondo_fail(RONDO_ERROR_AUTH, unproved, me->place->address, me->rank);
}

/* Bytes that have to come; an error if they don't. */
static rondo_result hear_bytes(const struct connector *me, void *to, size_t bytes)
{
    enum socket_outcome outcome = socket_receive(me->fd, to, bytes, me->deadline);

    return outcome == SOCKET_DONE ? RONDO_OK : connector_broken(me, outcome);
}

/* The rest of a frame whose header has come, and its proof. */
static rondo_result hear_rest(const struct connector *me, enum wire_kind kind,
                              const struct wire_header *header, void *frame, size_t bytes)
{
    rondo_result result;

    memcpy(frame, header, sizeof(*header));
    result = hear_bytes(me, (char *)frame + sizeof(*header), bytes - sizeof(*header));
    return result || wire_check(&me->session, kind, frame) ? result : wrong_proof(me);
}

/* A frame or bytes, to somebody who may hang up meanwhile because it has decided already: then its
 * answer is there to be heard. */
static rondo_result tell(const struct connector *me, const void *bytes, size_t count)
{
    enum socket_outcome outcome = socket_send(me->fd, bytes, count, me->deadline);

    return outcome == SOCKET_DONE || outcome == SOCKET_CLOSED ? RONDO_OK
                                                              : connector_broken(me, outcome);
}

/* A sentence instead of blobs; its length has been checked. */
static rondo_result take_sentence(const struct connector *me, const struct wire_reply *reply)
{
    char sentence[FAIL_SENTENCE_MAX] = "";
    unsigned char hash[WIRE_HASH];
    size_t bytes = (size_t)wire_body_bytes(&reply->header);
    uint32_t result = le32toh(reply->result);
    rondo_result broken = hear_bytes(me, sentence, bytes);

    if (broken)
        return broken;
    wire_hash(sentence, bytes, hash);
    if (sodium_memcmp(hash, reply->body_hash, WIRE_HASH))
        return wrong_proof(me);
    return rondo_fail(result < RONDO_RESULTS ? (rondo_result)result : RONDO_ERROR_INTERNAL, "%s",
                      *sentence ? sentence : "the meeting point ended the job without a word");
}

static rondo_result take_blobs(const struct connector *me, const struct wire_reply *reply,
                               void *ret_blobs)
{
    size_t bytes = (size_t)me->size * me->each;
    unsigned char hash[WIRE_HASH];
    unsigned char *all = malloc(bytes ? bytes : 1);
    rondo_result result;

    if (!all)
        return rondo_fail(RONDO_ERROR_MEMORY, "no memory for the blobs of %d ranks", me->size);
    result = hear_bytes(me, all, bytes);
    wire_hash(all, result ? 0 : bytes, hash);
    if (!result && sodium_memcmp(hash, reply->body_hash, WIRE_HASH))
        result = wrong_proof(me);
    if (!result && bytes && ret_blobs)
        memcpy(ret_blobs, all, bytes);
    free(all);
    return result;
}

/* Take a reply, whose header has come. */
static rondo_result take_reply(struct connector *me, const struct wire_header *header,
                               void *ret_blobs)
{
    struct wire_reply reply;
    rondo_result result = hear_rest(me, WIRE_REPLY, header, &reply, sizeof(reply));
    uint64_t bytes = wire_body_bytes(header);

    if (result)
        return result;
    me->told = true;
    if (reply.result && bytes < FAIL_SENTENCE_MAX)
        return take_sentence(me, &reply);
    if (reply.result || bytes != (uint64_t)me->size * me->each)
        return rondo_fail(RONDO_ERROR_INTERNAL,
                          "the meeting point %s answers rank %d with %llu bytes: that is not ours",
                          me->place->address, me->rank, (unsigned long long)bytes);
    return take_blobs(me, &reply, ret_blobs);
}

static rondo_result take_position(struct connector *me, const struct wire_header *header,
                                  struct wire_position *ret_position)
{
    struct wire_position position;
    rondo_result result = hear_rest(me, WIRE_POSITION, header, &position, sizeof(position));

    if (!result && !memchr(position.address, '\0', sizeof(position.address)))
        result = wrong_proof(me);
    if (!result)
        *ret_position = position;
    return result;
}

rondo_result connector_hand_in(struct connector *me)
{
    return tell(me, me->blob, me->blob_bytes);
}

/* Take a refusal, whose header has come. */
static rondo_result take_refusal(const struct connector *me, const struct wire_header *header)
{
    struct wire_refusal refusal;
    rondo_result result = hear_rest(me, WIRE_REFUSAL, header, &refusal, sizeof(refusal));

    if (result)
        return result;
    return rondo_fail(RONDO_ERROR_INVALID,
                      "all ranks have come to %s already: does another process claim rank %d?",
                      me->place->address, me->rank);
}

rondo_result connector_hear(struct connector *me, struct wire_position *ret_position,
                            void *ret_blobs)
{
    struct pollfd comes = {.fd = me->fd, .events = POLLIN};
    struct wire_header header;
    rondo_result result;

    while (poll(&comes, 1, socket_poll_time(fmin(connector_remind(me), me->deadline))) < 1 &&
           clock_seconds() < me->deadline)
        ;
    result = hear_bytes(me, &header, sizeof(header));
    if (result)
        return result;
    if (wire_is(&header, WIRE_REFUSAL))
        return take_refusal(me, &header);
    if (wire_is(&header, WIRE_POSITION) && ret_position)
        return take_position(me, &header, ret_position);
    return take_reply(me, &header, ret_blobs);
}

rondo_result connector_take_position(struct connector *me, const char *address, bool moved)
{
    struct wire_position positioned = {.moved = htole32(moved)};

    strncpy(positioned.address, address, sizeof(positioned.address) - 1);
    wire_header_set(&positioned.header, WIRE_POSITIONED, 0);
    wire_prove(&me->session, WIRE_POSITIONED, &positioned);
    return tell(me, &positioned, sizeof(positioned));
}

void connector_close(struct connector *me)
{
    if (me->fd >= 0)
        close(me->fd);
    me->fd = -1;
}
