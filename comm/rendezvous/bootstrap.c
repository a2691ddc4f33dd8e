/* SPDX-License-Identifier: BSD-3-Clause */
/* bootstrap.c - the all-gather as a rank sees it: go there, be positioned, get all. */
#include "comm/rendezvous/bootstrap.h"

#include "comm/rendezvous/relay.h"
#include "comm/rendezvous/connector.h"
#include "comm/rendezvous/server.h"
#include "comm/rendezvous/socket.h"
#include "comm/rendezvous/wire.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/setting.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static rondo_result seek(struct connector *me, bool *ret_nobody, void *ret_blobs)
{
    struct wire_position position = {.address = ""};
    rondo_result result = connector_reach(me);

    if (ret_nobody)
        *ret_nobody = me->nobody;
    if (!result) {
        if (me->timeout > 0)
            me->deadline = clock_seconds() + me->timeout +
                           fmin(PATIENCE_GRACE_MOST, fmax(PATIENCE_GRACE, me->timeout / 4));
        result = connector_hand_in(me);
    }
    if (!result)
        result = connector_hear(me, &position, ret_blobs);
    if (!result && !me->told)
        result = relay_take_position(me, &position, ret_blobs);
    connector_close(me);
    return result;
}

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

/* With the port that the system picked for port 0. */
static void tell_address(const struct connector *me, int port)
{
    const char *address = me->place->address;
    const char *colon = strrchr(address, ':');
    char text[BOOTSTRAP_ADDRESS_MAX + 8];

    snprintf(text, sizeof(text), "%s", address);
    if (port && colon)
        snprintf(text, sizeof(text), "%.*s:%d", (int)(colon - address), address, port);
    log_debug("rank 0 of %d listens at %s%s", me->size, text,
              me->place->listen_everywhere ? ", on all addresses of its host" : "");
    if (me->watch && me->watch->opened)
        me->watch->opened(me->watch->context, text);
}

static rondo_result serve_and_take_part(const struct connector *me, void *ret_blobs)
{
    struct server_task task = {
        .place = me->place, .stop = -1, .size = me->size, .watch = me->watch};
    struct server server;
    int port = 0;
    rondo_result result =
        socket_listen(me->place->address, me->place->listen_everywhere, &task.listener, &port);

    if (result)
        return result;
    tell_address(me, port);
    task.blob = me->blob_bytes ? me->blob : "";
    task.blob_bytes = me->blob_bytes;
    task.timeout = me->timeout;
    task.late = me->late;
    return server_run(&server, &task, ret_blobs);
}

rondo_result bootstrap_take_part(const struct bootstrap_part *part, const void *blob,
                                 size_t blob_bytes, void *ret_blobs)
{
    double now = clock_seconds();
    struct connector me = {.place = part->place,
                           .watch = part->watch,
                           .holder = part->holder,
                           .rank = part->rank,
                           .size = part->size,
                           .timeout = part->timeout,
                           .deadline = part->timeout > 0 ? now + part->timeout : INFINITY,
                           .began = now,
                           .blob = blob,
                           .blob_bytes = blob_bytes,
                           .each = blob_bytes,
                           .fd = -1,
                           .last = "no answer"};
    rondo_result result = check(part->place, part->rank, part->size, blob_bytes);

    if (!result)
        result = setting_read_seconds(SETTING_LATE, &me.late);
    if (!result)
        result = wire_init();
    if (result)
        return result;
    me.session.secret = part->place->secret;
    me.served = !part->serve && !part->holder;
    if (part->size == 1 && part->serve) {
        if (blob_bytes)
            memcpy(ret_blobs, blob, blob_bytes);
        return RONDO_OK;
    }
    if (part->serve && part->rank == 0)
        return serve_and_take_part(&me, ret_blobs);
    return seek(&me, part->ret_nobody, ret_blobs);
}

rondo_result bootstrap_all_gather(const struct bootstrap_place *place, int rank, int size,
                                  bool serve, double timeout, const void *blob, size_t blob_bytes,
                                  void *ret_blobs)
{
    const struct bootstrap_part part = {
        .place = place, .rank = rank, .size = size, .serve = serve, .timeout = timeout};

    return bootstrap_take_part(&part, blob, blob_bytes, ret_blobs);
}
