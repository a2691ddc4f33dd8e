/* SPDX-License-Identifier: BSD-3-Clause */
/* client.c - the steps of one connection to the meeting point. */
#include "comm/rendezvous/client.h"

#include "comm/rendezvous/socket.h"

#include "base/clock.h"
#include "base/log.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

void client_init(struct client *client, int fd, const unsigned char *secret)
{
    memset(client, 0, sizeof(*client));
    client->fd = fd;
    client->stage = CLIENT_HELLO;
    client->since = clock_seconds();
    client->deadline = client->since + STRANGER_PROVES;
    client->session.secret = secret;
}

bool client_is_stranger(const struct client *client)
{
    return client->stage == CLIENT_HELLO || client->stage == CLIENT_CLAIM ||
           client->stage == CLIENT_LEAVING;
}

bool client_is_passing(const struct client *client)
{
    return client->stage < CLIENT_POSITIONED || client->stage == CLIENT_LEAVING;
}

/* A relay counts a member only when that has taken its position: until then it may go elsewhere. */
static bool is_member(const struct client *client, const struct roster *roster)
{
    enum client_state from = roster->relays ? CLIENT_POSITIONED : CLIENT_BLOB;

    return client->stage >= from && client->stage <= CLIENT_POSITIONED;
}

static void hang_up(struct client *client)
{
    close(client->fd);
    client->fd = -1;
    client->stage = CLIENT_GONE;
}

void client_drop(struct client *client, struct roster *roster, const char *why)
{
    if (is_member(client, roster))
        roster_leave(roster, client->rank);
    if (client->stage != CLIENT_LEAVING)
        log_info("a connection to the meeting point was dropped: %s", why);
    hang_up(client);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void refuse(struct client *client, const struct roster *roster, enum wire_reason reason,
                   const char *why)
{
    struct wire_refusal refusal = {.reason = htole32((uint32_t)reason)};

    log_warn("a connection to the meeting point %s was refused: %s", roster->address, why);
    wire_header_set(&refusal.header, WIRE_REFUSAL, 0);
    if (reason == WIRE_COMPLETE)
        wire_prove(&client->session, WIRE_REFUSAL, &refusal);
    /* A fresh connection has room for so few bytes; if it has not, it gets no explanation. */
    if (!socket_say(client->fd, &refusal, sizeof(refusal)) || shutdown(client->fd, SHUT_WR)) {
        hang_up(client);
        return;
    }
    client->stage = CLIENT_LEAVING;
    client->deadline = clock_seconds() + PATIENCE_HANG_UP;
}

void client_answer(struct client *client, const struct roster *roster)
{
    struct wire_reply *reply = &client->reply;

    memset(reply, 0, sizeof(*reply));
    wire_header_set(&reply->header, WIRE_REPLY, roster->answer_bytes);
    reply->result = htole32((uint32_t)roster->result);
    memcpy(reply->body_hash, roster->answer_hash, WIRE_HASH);
    wire_prove(&client->session, WIRE_REPLY, reply);
    client->unread = client->stage != CLIENT_WAITING && client->stage != CLIENT_POSITIONED;
    client->stage = CLIENT_REPLY;
    client->sent = 0;
    client->deadline = clock_seconds() + PATIENCE_ANSWER;
}

static void answer_more(struct client *client, struct roster *roster)
{
    size_t head = sizeof(client->reply), bytes = roster->answer_bytes;
    const char *body = roster->answer;

    while (client->sent < head + bytes) {
        bool in_head = client->sent < head;
        const char *next =
            in_head ? (const char *)&client->reply + client->sent : body + (client->sent - head);
        size_t left = in_head ? head - client->sent : head + bytes - client->sent;
        ssize_t done = send(client->fd, next, left, MSG_NOSIGNAL | (in_head ? MSG_MORE : 0));

        if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (done < 0 && errno != EINTR) {
            client_drop(client, roster, "a rank hung up before its answer");
            return;
        }
        client->sent += done > 0 ? (size_t)done : 0;
    }
    if (!client->unread || shutdown(client->fd, SHUT_WR)) {
        hang_up(client); /* all that it sent has been read: nothing can overtake the answer */
        return;
    }
    client->stage = CLIENT_LEAVING;
    client->deadline = clock_seconds() + PATIENCE_HANG_UP;
}

/* ---- What comes in --------------------------------------------------------------------------- */

/* Read up to `bytes` of `to`, which has client->filled already. True when it is full. */
static bool fill(struct client *client, struct roster *roster, void *to, size_t bytes)
{
    enum socket_outcome outcome = socket_fill(client->fd, to, bytes, &client->filled);

    if (outcome == SOCKET_CLOSED)
        client_drop(client, roster, "it hung up");
    return outcome == SOCKET_DONE;
}

static void take_hello(struct client *client, struct roster *roster)
{
    struct wire_hello challenge;

    if (wire_is_rondo(&client->in.hello.header) &&
        wire_version(&client->in.hello.header) != WIRE_VERSION) {
        refuse(client, roster, WIRE_WRONG_VERSION, "it speaks another version");
        return;
    }
    if (!wire_is(&client->in.hello.header, WIRE_HELLO)) {
        client_drop(client, roster, "it does not speak our protocol");
        return;
    }
    memcpy(client->session.rank_nonce, client->in.hello.nonce, WIRE_NONCE);
    randombytes_buf(client->session.server_nonce, WIRE_NONCE);
    wire_header_set(&challenge.header, WIRE_CHALLENGE, 0);
    memcpy(challenge.nonce, client->session.server_nonce, WIRE_NONCE);
    if (!socket_say(client->fd, &challenge, sizeof(challenge)))
        client_drop(client, roster, "it does not take the challenge");
    else
        client->stage = CLIENT_CLAIM;
}

/* The claim is proved: prove that this is the meeting point, before anything else is said. */
static bool welcome(const struct client *client)
{
    struct wire_welcome frame;

    wire_header_set(&frame.header, WIRE_WELCOME, 0);
    wire_prove(&client->session, WIRE_WELCOME, &frame);
    return socket_say(client->fd, &frame, sizeof(frame));
}

static void take_claim(struct client *client, struct roster *roster)
{
    const struct wire_claim *claim = &client->in.claim;
    uint64_t bytes = wire_body_bytes(&claim->header);

    if (!wire_is(&claim->header, WIRE_CLAIM) || bytes > WIRE_BLOB_MAX) {
        client_drop(client, roster, "its claim is garbage");
        return;
    }
    if (!wire_check(&client->session, WIRE_CLAIM, claim)) {
        refuse(client, roster, WIRE_WRONG_SECRET, "it does not know the secret");
        return;
    }
    if (!welcome(client)) {
        client_drop(client, roster, "it does not take the welcome");
        return;
    }
    if (roster->decided && !roster->result) {
        refuse(client, roster, WIRE_COMPLETE, "all ranks have come already");
        return;
    }
    client->stage = CLIENT_BLOB;
    client->rank = (int)le32toh(claim->rank);
    if (!roster_claim(roster, claim, (size_t)bytes))
        client_answer(client, roster); /* the decision is about this one */
}

static void take_blob(struct client *client, struct roster *roster)
{
    unsigned char hash[WIRE_HASH];
    unsigned char *blob = roster_blob(roster, client->rank);

    if (!fill(client, roster, blob, roster->blob_bytes))
        return;
    wire_hash(blob, roster->blob_bytes, hash);
    if (sodium_memcmp(hash, client->in.claim.blob_hash, WIRE_HASH)) {
        client_drop(client, roster, "its bytes changed on the way");
        return;
    }
    client->stage = CLIENT_WAITING;
    client->deadline = clock_seconds() + PATIENCE_POSITION;
    client->who = (struct relay){.rank = (uint32_t)client->rank,
                                 .pid = le32toh(client->in.claim.pid),
                                 .local = socket_peer_is_here(client->fd)};
    memcpy(client->who.host, client->in.claim.host, WIRE_HOST);
    roster_arrive(roster, client->rank);
    client_position(client, roster, true);
}

/* ---- Members --------------------------------------------------------------------------------- */

void client_position(struct client *client, struct roster *roster, bool patient)
{
    struct wire_position *position = &client->position;

    if (relay_tree_give(&roster->tree, client->who.local, patient, position) == POSITION_LATER)
        return;
    wire_prove(&client->session, WIRE_POSITION, position);
    client->stage = CLIENT_POSITIONING;
    client->deadline = INFINITY;
    if (!socket_say(client->fd, position, sizeof(*position)))
        client_drop(client, roster, "it does not take its position");
}

/* A member that waits for its position has nothing to say. */
static void watch_waiting(struct client *client, struct roster *roster)
{
    char byte;

    if (fill(client, roster, &byte, 1))
        client_drop(client, roster, "it spoke out of turn");
}

static void take_positioned(struct client *client, struct roster *roster)
{
    const struct wire_position *positioned = &client->in.positioned;

    if (!wire_check(&client->session, WIRE_POSITIONED, positioned)) {
        client_drop(client, roster, "it does not say where it waits");
        return;
    }
    relay_tree_taken(&roster->tree, &client->position, positioned, &client->who);
    client->stage = CLIENT_POSITIONED;
    roster_position(roster, client->rank);
    if (positioned->moved)
        hang_up(client); /* its relay looks after it now */
}

/* All that a positioned member may have to say is what it heard as a relay. */
static void take_news(struct client *client, struct roster *roster)
{
    const struct wire_news *news = &client->in.news;
    uint32_t result = le32toh(news->result);

    if (!wire_check(&client->session, WIRE_NEWS, news) || !result || result >= RONDO_RESULTS)
        client_drop(client, roster, "what it says is no news");
    else
        roster_news(roster, (rondo_result)result, news->sentence);
}

static void throw_away(struct client *client)
{
    char waste[4096];
    ssize_t done = recv(client->fd, waste, sizeof(waste), 0);

    if (done == 0 || (done < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
        hang_up(client);
}

void client_serve(struct client *client, struct roster *roster)
{
    if (client->stage == CLIENT_HELLO &&
        fill(client, roster, &client->in.hello, sizeof(client->in.hello)))
        take_hello(client, roster);
    if (client->stage == CLIENT_CLAIM &&
        fill(client, roster, &client->in.claim, sizeof(client->in.claim)))
        take_claim(client, roster);
    if (client->stage == CLIENT_BLOB)
        take_blob(client, roster);
    else if (client->stage == CLIENT_WAITING)
        watch_waiting(client, roster);
    else if (client->stage == CLIENT_POSITIONING &&
             fill(client, roster, &client->in.positioned, sizeof(client->in.positioned)))
        take_positioned(client, roster);
    else if (client->stage == CLIENT_POSITIONED &&
             fill(client, roster, &client->in.news, sizeof(client->in.news)))
        take_news(client, roster);
    else if (client->stage == CLIENT_REPLY)
        answer_more(client, roster);
    else if (client->stage == CLIENT_LEAVING)
        throw_away(client);
}
