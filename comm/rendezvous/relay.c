/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay.c - sitting down in the tree of those who wait, and passing on the answer.
 *
 *     meeting point ---- relay ---- client
 *            answer ---> answer --> answer
 *              news <--- "rank 7 went away"
 *
 * A client goes to its relay while its connection to the meeting point still stands, and says there
 * that it has moved only when it waits: at every moment somebody would notice its death. If it
 * can't get there, it stays. Clients of a relay that dies hear the end of their connection, and
 * know whose it was.
 */
#include "comm/rendezvous/relay.h"

#include "comm/rendezvous/server.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- To one's position ----------------------------------------------------------------------- */

/* Wait at the relay: `up` is the connection to it then. `place` is to last as long as `up`. */
static bool move(const struct connector *me, const struct wire_position *position,
                 struct bootstrap_place *place, struct connector *up)
{
    struct wire_position there = {.address = ""};
    rondo_result result;

    strcpy(place->address, position->address); /* the frame has been checked */
    socket_add_scope(me->fd, place->address);
    memcpy(place->secret, me->place->secret, sizeof(place->secret));
    *up = *me;
    up->place = place;
    up->relay = position;
    up->blob_bytes = 0;
    up->fd = -1;
    up->session.secret = place->secret;
    up->deadline = fmin(me->deadline, clock_seconds() + PATIENCE_MOVE);
    result = socket_address_check(place->address);
    if (!result)
        result = connector_reach(up);
    if (!result)
        result = connector_hand_in(up);
    if (!result)
        result = connector_hear(up, &there, NULL);
    if (!result && !up->told)
        result = connector_take_position(up, "", false);
    up->deadline = me->deadline;
    if (!result && !up->told)
        return true;
    log_info("rank %d does not get to rank %u: %s", me->rank, (unsigned)le32toh(position->rank),
             fail_sentence());
    connector_close(up);
    return false;
}

/* Opens a socket at which others can wait with us; returns -1 if there is none. */
static int open_place(const struct connector *me, struct bootstrap_place *ret_place)
{
    char *address = ret_place->address;
    int listener, port;

    memcpy(ret_place->secret, me->place->secret, sizeof(ret_place->secret));
    if (!socket_own_place(me->fd, address) || socket_listen(address, false, &listener, &port)) {
        log_info("rank %d cannot listen for others: %s", me->rank, fail_sentence());
        *address = '\0';
        return -1;
    }
    if (port)
        sprintf(strrchr(address, ':'), ":%d", port);
    return listener;
}

/* ---- Passing on ------------------------------------------------------------------------------ */

/* We know first that the job can't start. What comes back is what all are told. */
static rondo_result tell(struct connector *me, const struct roster *roster, void *ret_blobs)
{
    struct wire_news news = {.result = htole32((uint32_t)roster->result)};

    me->deadline = clock_seconds() + PATIENCE_NEWS;
    memcpy(news.sentence, roster->sentence, sizeof(news.sentence));
    wire_header_set(&news.header, WIRE_NEWS, 0);
    wire_prove(&me->session, WIRE_NEWS, &news);
    socket_send(me->fd, &news, sizeof(news), me->deadline);
    return connector_hear(me, NULL, ret_blobs);
}

/* Until there is an answer, from above or, a failure, from below. */
static void gather(struct server *server, struct connector *me, void *ret_blobs)
{
    enum server_end end = server_gather(server);
    rondo_result result;

    if (end == SERVER_DECIDED)
        result = tell(me, &server->roster, ret_blobs);
    else if (end == SERVER_STOPPED)
        result = connector_hear(me, NULL, ret_blobs);
    else
        result = connector_broken(me, SOCKET_TIMED_OUT);
    if (end != SERVER_DECIDED || me->told)
        roster_told(&server->roster, result, ret_blobs, (size_t)me->size * me->each);
}

static rondo_result relay(struct connector *me, const struct bootstrap_place *place, int listener,
                          void *ret_blobs)
{
    struct server_task task = {.place = place,
                               .listener = listener,
                               .stop = me->fd,
                               .size = me->size,
                               .relays = true,
                               .above = me};
    struct server server;
    rondo_result result = server_open(&server, &task);

    if (isfinite(me->deadline))
        task.timeout = fmax(me->deadline - clock_seconds(), PATIENCE_MOMENT);
    if (!result) {
        gather(&server, me, ret_blobs);
        server_answer(&server, false);
        result = server.roster.result;
        if (result)
            rondo_fail(result, "%s", server.roster.sentence);
    }
    server_close(&server);
    return result;
}

rondo_result relay_take_position(struct connector *me, const struct wire_position *position,
                                 void *ret_blobs)
{
    struct bootstrap_place above, own = {.address = ""};
    struct connector up;
    int listener = position->relay ? open_place(me, &own) : -1;
    bool moved = *position->address && move(me, position, &above, &up);
    rondo_result result;

    socket_drop_scope(own.address);
    result = connector_take_position(me, own.address, moved);
    if (moved) {
        connector_close(me);
    } else {
        up = *me;
        me->fd = -1;
    }
    if (!result && listener >= 0)
        result = relay(&up, &own, listener, ret_blobs);
    else if (!result)
        result = connector_hear(&up, NULL, ret_blobs);
    else if (listener >= 0)
        socket_unlisten(listener);
    connector_close(&up);
    return result;
}
