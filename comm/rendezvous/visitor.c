/* SPDX-License-Identifier: BSD-3-Clause */
/* visitor.c - the steps of one connection to the meeting point. */
#include "comm/rendezvous/visitor.h"

#include "comm/rendezvous/socket.h"

#include "base/clock.h"
#include "base/log.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Seconds: to prove a claim and hand in the blob; to wait for a seat at a relay; to take the
 * answer; to hang up after a refusal. */
static const double prove_time = 10, seat_time = 2, answer_time = 10, leave_time = 2;

void visitor_init(struct visitor *visitor, int fd, const unsigned char *secret)
{
    memset(visitor, 0, sizeof(*visitor));
    visitor->fd = fd;
    visitor->stage = VISITOR_HELLO;
    visitor->since = clock_seconds();
    visitor->deadline = visitor->since + prove_time;
    visitor->session.secret = secret;
}

bool visitor_is_stranger(const struct visitor *visitor)
{
    return visitor->stage == VISITOR_HELLO || visitor->stage == VISITOR_CLAIM ||
           visitor->stage == VISITOR_LEAVING;
}

bool visitor_is_passing(const struct visitor *visitor)
{
    return visitor->stage < VISITOR_SEATED || visitor->stage == VISITOR_LEAVING;
}

/* A relay counts a member only when that has sat down: until then it may go elsewhere. */
static bool is_member(const struct visitor *visitor, const struct meeting *meeting)
{
    enum visitor_stage from = meeting->relays ? VISITOR_SEATED : VISITOR_BLOB;

    return visitor->stage >= from && visitor->stage <= VISITOR_SEATED;
}

static void hang_up(struct visitor *visitor)
{
    close(visitor->fd);
    visitor->fd = -1;
    visitor->stage = VISITOR_GONE;
}

void visitor_drop(struct visitor *visitor, struct meeting *meeting, const char *why)
{
    if (is_member(visitor, meeting))
        meeting_leave(meeting, visitor->rank);
    if (visitor->stage != VISITOR_LEAVING)
        log_info("a connection to the meeting point was dropped: %s", why);
    hang_up(visitor);
}

/* ---- Answers -------------------------------------------------------------------------------- */

static void refuse(struct visitor *visitor, const struct meeting *meeting, enum wire_reason reason,
                   const char *why)
{
    struct wire_refusal refusal = {.reason = htole32((uint32_t)reason)};

    log_warn("a connection to the meeting point %s was refused: %s", meeting->address, why);
    wire_header_set(&refusal.header, WIRE_REFUSAL, 0);
    if (reason == WIRE_COMPLETE)
        wire_prove(&visitor->session, WIRE_REFUSAL, &refusal);
    /* A fresh connection has room for so few bytes; if it has not, it gets no explanation. */
    if (send(visitor->fd, &refusal, sizeof(refusal), MSG_NOSIGNAL) != sizeof(refusal) ||
        shutdown(visitor->fd, SHUT_WR)) {
        hang_up(visitor);
        return;
    }
    visitor->stage = VISITOR_LEAVING;
    visitor->deadline = clock_seconds() + leave_time;
}

void visitor_answer(struct visitor *visitor, const struct meeting *meeting)
{
    struct wire_reply *reply = &visitor->reply;

    memset(reply, 0, sizeof(*reply));
    wire_header_set(&reply->header, WIRE_REPLY, meeting->answer_bytes);
    reply->result = htole32((uint32_t)meeting->result);
    memcpy(reply->body_hash, meeting->answer_hash, WIRE_HASH);
    wire_prove(&visitor->session, WIRE_REPLY, reply);
    visitor->unread = visitor->stage != VISITOR_WAITING && visitor->stage != VISITOR_SEATED;
    visitor->stage = VISITOR_REPLY;
    visitor->sent = 0;
    visitor->deadline = clock_seconds() + answer_time;
}

static void answer_more(struct visitor *visitor, struct meeting *meeting)
{
    size_t head = sizeof(visitor->reply), bytes = meeting->answer_bytes;
    const char *body = meeting->answer;

    while (visitor->sent < head + bytes) {
        bool in_head = visitor->sent < head;
        const char *next =
            in_head ? (const char *)&visitor->reply + visitor->sent : body + (visitor->sent - head);
        size_t left = in_head ? head - visitor->sent : head + bytes - visitor->sent;
        ssize_t done = send(visitor->fd, next, left, MSG_NOSIGNAL | (in_head ? MSG_MORE : 0));

        if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (done < 0 && errno != EINTR) {
            visitor_drop(visitor, meeting, "a rank hung up before its answer");
            return;
        }
        visitor->sent += done > 0 ? (size_t)done : 0;
    }
    if (!visitor->unread || shutdown(visitor->fd, SHUT_WR)) {
        hang_up(visitor); /* all that it sent has been read: nothing can overtake the answer */
        return;
    }
    visitor->stage = VISITOR_LEAVING;
    visitor->deadline = clock_seconds() + leave_time;
}

/* ---- What comes in -------------------------------------------------------------------------- */

/* Read up to `bytes` of `to`, which has visitor->filled already. True when it is full. */
static bool fill(struct visitor *visitor, struct meeting *meeting, void *to, size_t bytes)
{
    while (visitor->filled < bytes) {
        ssize_t done = recv(visitor->fd, (char *)to + visitor->filled, bytes - visitor->filled, 0);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return false;
        if (done <= 0) {
            visitor_drop(visitor, meeting, "it hung up");
            return false;
        }
        visitor->filled += (size_t)done;
    }
    visitor->filled = 0;
    return true;
}

static void take_hello(struct visitor *visitor, struct meeting *meeting)
{
    struct wire_hello challenge;

    if (wire_is_rondo(&visitor->in.hello.header) &&
        wire_version(&visitor->in.hello.header) != WIRE_VERSION) {
        refuse(visitor, meeting, WIRE_WRONG_VERSION, "it speaks another version");
        return;
    }
    if (!wire_is(&visitor->in.hello.header, WIRE_HELLO)) {
        visitor_drop(visitor, meeting, "it does not speak our protocol");
        return;
    }
    memcpy(visitor->session.rank_nonce, visitor->in.hello.nonce, WIRE_NONCE);
    randombytes_buf(visitor->session.meeting_nonce, WIRE_NONCE);
    wire_header_set(&challenge.header, WIRE_CHALLENGE, 0);
    memcpy(challenge.nonce, visitor->session.meeting_nonce, WIRE_NONCE);
    if (send(visitor->fd, &challenge, sizeof(challenge), MSG_NOSIGNAL) != sizeof(challenge))
        visitor_drop(visitor, meeting, "it does not take the challenge");
    else
        visitor->stage = VISITOR_CLAIM;
}

/* The claim is proved: prove that this is the meeting point, before anything else is said. */
static bool welcome(const struct visitor *visitor)
{
    struct wire_welcome frame;

    wire_header_set(&frame.header, WIRE_WELCOME, 0);
    wire_prove(&visitor->session, WIRE_WELCOME, &frame);
    return send(visitor->fd, &frame, sizeof(frame), MSG_NOSIGNAL) == sizeof(frame);
}

static void take_claim(struct visitor *visitor, struct meeting *meeting)
{
    const struct wire_claim *claim = &visitor->in.claim;
    uint64_t bytes = wire_body_bytes(&claim->header);

    if (!wire_is(&claim->header, WIRE_CLAIM) || bytes > WIRE_BLOB_MAX) {
        visitor_drop(visitor, meeting, "its claim is garbage");
        return;
    }
    if (!wire_check(&visitor->session, WIRE_CLAIM, claim)) {
        refuse(visitor, meeting, WIRE_WRONG_SECRET, "it does not know the secret");
        return;
    }
    if (!welcome(visitor)) {
        visitor_drop(visitor, meeting, "it does not take the welcome");
        return;
    }
    if (meeting->decided && !meeting->result) {
        refuse(visitor, meeting, WIRE_COMPLETE, "all ranks have come already");
        return;
    }
    visitor->stage = VISITOR_BLOB;
    visitor->rank = (int)le32toh(claim->rank);
    if (!meeting_claim(meeting, claim, (size_t)bytes))
        visitor_answer(visitor, meeting); /* the decision is about this one */
}

static void take_blob(struct visitor *visitor, struct meeting *meeting)
{
    unsigned char hash[WIRE_HASH];
    unsigned char *blob = meeting_blob(meeting, visitor->rank);

    if (!fill(visitor, meeting, blob, meeting->blob_bytes))
        return;
    wire_hash(blob, meeting->blob_bytes, hash);
    if (sodium_memcmp(hash, visitor->in.claim.blob_hash, WIRE_HASH)) {
        visitor_drop(visitor, meeting, "its bytes changed on the way");
        return;
    }
    visitor->stage = VISITOR_WAITING;
    visitor->deadline = clock_seconds() + seat_time;
    visitor->who = (struct relay){.rank = (uint32_t)visitor->rank,
                                  .pid = le32toh(visitor->in.claim.pid),
                                  .local = socket_peer_is_here(visitor->fd)};
    memcpy(visitor->who.host, visitor->in.claim.host, WIRE_HOST);
    meeting_arrive(meeting, visitor->rank);
    visitor_seat(visitor, meeting, true);
}

/* ---- Members -------------------------------------------------------------------------------- */

void visitor_seat(struct visitor *visitor, struct meeting *meeting, bool patient)
{
    struct wire_seat *seat = &visitor->seat;

    if (seats_give(&meeting->seats, visitor->who.local, patient, seat) == SEAT_LATER)
        return;
    wire_prove(&visitor->session, WIRE_SEAT, seat);
    visitor->stage = VISITOR_SEATING;
    visitor->deadline = INFINITY;
    if (send(visitor->fd, seat, sizeof(*seat), MSG_NOSIGNAL) != sizeof(*seat))
        visitor_drop(visitor, meeting, "it does not take its seat");
}

/* A member that waits for its seat has nothing to say. */
static void watch_waiting(struct visitor *visitor, struct meeting *meeting)
{
    char byte;

    if (fill(visitor, meeting, &byte, 1))
        visitor_drop(visitor, meeting, "it spoke out of turn");
}

static void take_seated(struct visitor *visitor, struct meeting *meeting)
{
    const struct wire_seat *seated = &visitor->in.seated;

    if (!wire_check(&visitor->session, WIRE_SEATED, seated)) {
        visitor_drop(visitor, meeting, "it does not say where it sits");
        return;
    }
    seats_taken(&meeting->seats, &visitor->seat, seated, &visitor->who);
    visitor->stage = VISITOR_SEATED;
    meeting_seat(meeting, visitor->rank);
    if (seated->moved)
        hang_up(visitor); /* its relay looks after it now */
}

/* All that a seated member may have to say is what it heard as a relay. */
static void take_news(struct visitor *visitor, struct meeting *meeting)
{
    const struct wire_news *news = &visitor->in.news;
    uint32_t result = le32toh(news->result);

    if (!wire_check(&visitor->session, WIRE_NEWS, news) || !result || result >= RONDO_RESULTS)
        visitor_drop(visitor, meeting, "what it says is no news");
    else
        meeting_news(meeting, (rondo_result)result, news->sentence);
}

static void throw_away(struct visitor *visitor)
{
    char waste[4096];
    ssize_t done = recv(visitor->fd, waste, sizeof(waste), 0);

    if (done == 0 || (done < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
        hang_up(visitor);
}

void visitor_serve(struct visitor *visitor, struct meeting *meeting)
{
    if (visitor->stage == VISITOR_HELLO &&
        fill(visitor, meeting, &visitor->in.hello, sizeof(visitor->in.hello)))
        take_hello(visitor, meeting);
    if (visitor->stage == VISITOR_CLAIM &&
        fill(visitor, meeting, &visitor->in.claim, sizeof(visitor->in.claim)))
        take_claim(visitor, meeting);
    if (visitor->stage == VISITOR_BLOB)
        take_blob(visitor, meeting);
    else if (visitor->stage == VISITOR_WAITING)
        watch_waiting(visitor, meeting);
    else if (visitor->stage == VISITOR_SEATING &&
             fill(visitor, meeting, &visitor->in.seated, sizeof(visitor->in.seated)))
        take_seated(visitor, meeting);
    else if (visitor->stage == VISITOR_SEATED &&
             fill(visitor, meeting, &visitor->in.news, sizeof(visitor->in.news)))
        take_news(visitor, meeting);
    else if (visitor->stage == VISITOR_REPLY)
        answer_more(visitor, meeting);
    else if (visitor->stage == VISITOR_LEAVING)
        throw_away(visitor);
}
