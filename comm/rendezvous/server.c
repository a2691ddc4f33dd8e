/* SPDX-License-Identifier: BSD-3-Clause */
/* server.c - the event loop of the meeting point:
 * poll, accept, serve, decide, answer. */
#include "comm/rendezvous/server.h"

#include "comm/rendezvous/socket.h"
#include "comm/rendezvous/client.h"
#include "comm/rendezvous/connector.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Connections that are no positions. More wait in the system's queue, so that a thousand ranks that
 * come at once need no thousand descriptors. */
enum { PASSING_MAX = 256 };

/* ---- Connections ----------------------------------------------------------------------------- */

/* One that has been here for `age` seconds. */
static bool drop_oldest(struct server *server, bool (*candidate)(const struct client *), double age)
{
    double before = clock_seconds() - age;

    for (size_t i = 0; i < server->count; i++) {
        if (candidate(server->clients[i]) && server->clients[i]->since <= before) {
            client_drop(server->clients[i], &server->roster, "others need its place");
            return true;
        }
    }
    return false;
}

/* A member would have spoken, and if not, it only has to come again. */
static bool is_silent(const struct client *client)
{
    return client->stage == CLIENT_HELLO || client->stage == CLIENT_LEAVING;
}

static bool is_full(struct server *server)
{
    size_t passing = 0;

    for (size_t i = 0; i < server->count; i++)
        passing += client_is_passing(server->clients[i]);
    if (passing < PASSING_MAX || drop_oldest(server, is_silent, STRANGER_SILENT) ||
        drop_oldest(server, client_is_stranger, STRANGER_DOUBTED))
        return false;
    server->accept_after = clock_seconds() + STRANGER_SHUT_OUT;
    return true;
}

static bool make_room(struct server *server)
{
    size_t room = server->room ? 2 * server->room : 16;
    struct client **clients;
    struct pollfd *polls;

    if (server->count < server->room)
        return true;
    clients = realloc(server->clients, room * sizeof(struct client *));
    if (clients)
        server->clients = clients;
    polls = realloc(server->polls, (room + 2) * sizeof(*polls));
    if (polls)
        server->polls = polls;
    if (!clients || !polls)
        return false;
    server->room = room;
    return true;
}

static void welcome(struct server *server, int fd)
{
    struct client *client = make_room(server) ? malloc(sizeof(*client)) : NULL;

    if (!client) {
        server->refused++;
        close(fd);
        return;
    }
    client_init(client, fd, server->task->place->secret);
    server->clients[server->count++] = client;
}

/* Descriptors are used up: a stranger has to go, but not one that
 * may be a member who has just come, else two members would push
 * each other out for ever. Those who knock wait in the backlog. */
static void accept_no_more(struct server *server)
{
    if (drop_oldest(server, client_is_stranger, STRANGER_SILENT))
        return;
    if (!server->refused++)
        log_warn("the meeting point cannot accept more connections: %s", strerror(errno));
    server->accept_after = clock_seconds() + STRANGER_SHUT_OUT;
}

static void accept_all(struct server *server)
{
    /* Bounded, so that a flood at the door does not starve those inside. */
    for (int i = 0; i < PASSING_MAX && !is_full(server); i++) {
        int fd = socket_accept(server->listener);

        if (fd >= 0)
            welcome(server, fd);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            accept_no_more(server);
            return;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return;
    }
}

static void forget_gone(struct server *server)
{
    size_t kept = 0;

    for (size_t i = 0; i < server->count; i++) {
        if (server->clients[i]->stage == CLIENT_GONE)
            free(server->clients[i]);
        else
            server->clients[kept++] = server->clients[i];
    }
    server->count = kept;
}

static void forget_late(struct server *server)
{
    double now = clock_seconds();

    for (size_t i = 0; i < server->count; i++) {
        struct client *client = server->clients[i];

        if (client->stage == CLIENT_GONE || now < client->deadline)
            continue;
        if (client->stage == CLIENT_WAITING)
            client_position(client, &server->roster, false);
        else
            client_drop(client, &server->roster, "it was silent for too long");
    }
}

static void position_waiting(struct server *server)
{
    for (size_t i = 0; i < server->count && !server->roster.decided; i++)
        if (server->clients[i]->stage == CLIENT_WAITING)
            client_position(server->clients[i], &server->roster, true);
}

/* ---- The loop -------------------------------------------------------------------------------- */

static size_t prepare(struct server *server, double until, double *ret_wake)
{
    double now = clock_seconds();
    bool open = server->listener >= 0 && now >= server->accept_after;

    *ret_wake = until;
    if (server->listener >= 0 && !open)
        *ret_wake = fmin(until, server->accept_after);
    server->polls[0] = (struct pollfd){.fd = open ? server->listener : -1, .events = POLLIN};
    server->polls[1].fd = server->roster.decided ? -1 : server->task->stop;
    server->polls[1].events = POLLIN;
    server->polls[1].revents = 0;
    for (size_t i = 0; i < server->count; i++) {
        const struct client *client = server->clients[i];

        server->polls[i + 2].fd = client->fd;
        server->polls[i + 2].events = client->stage == CLIENT_REPLY ? POLLOUT : POLLIN;
        *ret_wake = fmin(*ret_wake, client->deadline);
    }
    return server->count + 2;
}

/* One round: wait, serve what is ready. Returns whether it was told to stop. */
static bool turn(struct server *server, double until)
{
    double wake;
    size_t polled = prepare(server, until, &wake);

    if (poll(server->polls, polled, socket_poll_time(wake)) < 0)
        return false; /* interrupted, or short of memory: another round */
    for (size_t i = 2; i < polled; i++)
        if (server->polls[i].revents && server->clients[i - 2]->stage != CLIENT_GONE)
            client_serve(server->clients[i - 2], &server->roster);
    if (server->polls[0].revents)
        accept_all(server);
    position_waiting(server);
    forget_late(server);
    forget_gone(server);
    return server->polls[1].revents != 0;
}

/* Look whether the ranks that are expected still live; if not, all get a sentence. */
static void look(struct server *server)
{
    const struct bootstrap_watch *watch = server->task->watch;
    char sentence[WIRE_SENTENCE] = "";
    rondo_result result = watch && watch->look ? watch->look(watch->context) : RONDO_OK;

    if (!result)
        return;
    strncpy(sentence, fail_sentence(), sizeof(sentence) - 1);
    roster_news(&server->roster, result, sentence);
}

/* All ranks have come: that is the end of it when nobody has said anything else for as long as the
 * watch wants to look on. */
static void settle(struct server *server)
{
    const struct bootstrap_watch *watch = server->task->watch;
    double now = clock_seconds();

    if (!roster_is_complete(&server->roster))
        return;
    if (server->settled == 0)
        server->settled = now + (watch ? watch->settle : 0);
    if (now >= server->settled)
        roster_complete(&server->roster);
}

/* Log that ranks are missing, when it is time for that; returns when it will be. */
static double remind(struct server *server)
{
    const struct server_task *task = server->task;
    double now = clock_seconds();

    if (task->above)
        return connector_remind(task->above);
    if (!server->roster.size || roster_is_complete(&server->roster))
        return INFINITY;
    if (server->began == 0)
        server->began = now;
    if (now >= clock_reminder(server->began, task->late, server->reminders)) {
        struct roster late = server->roster; /* becomes what all hear when time is over */

        server->reminders++;
        roster_time_out(&late, clock_tenths(now - server->began), server->refused);
        log_warn("the meeting point has %s", late.sentence);
    }
    return clock_reminder(server->began, task->late, server->reminders);
}

enum server_end server_gather(struct server *server)
{
    double timeout = server->task->timeout;
    double until = timeout > 0 ? clock_seconds() + timeout : INFINITY;

    while (!server->roster.decided) {
        bool watches = server->task->watch != NULL;
        double wake = fmin(until, remind(server));
        bool stop = turn(server, watches ? fmin(wake, clock_seconds() + LOOK_MEETING) : wake);

        if (!server->roster.decided)
            look(server);
        settle(server);
        if (stop && !server->roster.decided)
            return SERVER_STOPPED;
        if (!server->roster.decided && clock_seconds() >= until &&
            !roster_is_complete(&server->roster))
            return SERVER_TIMED_OUT;
    }
    return SERVER_DECIDED;
}

static void answer_members(struct server *server)
{
    for (size_t i = 0; i < server->count; i++) {
        struct client *client = server->clients[i];

        if (client->stage >= CLIENT_BLOB && client->stage <= CLIENT_POSITIONED) {
            client_answer(client, &server->roster);
            client_serve(client, &server->roster);
        }
    }
}

/* Nobody else comes in; those who prove nothing now never will. */
static void shut(struct server *server)
{
    double soon = clock_seconds() + PATIENCE_HANG_UP_END;

    socket_unlisten(server->listener);
    server->listener = -1;
    for (size_t i = 0; i < server->count; i++) {
        struct client *client = server->clients[i];

        if (client->stage == CLIENT_HELLO || client->stage == CLIENT_CLAIM)
            client_drop(client, &server->roster, "the rendezvous is over");
        if (client->stage == CLIENT_LEAVING)
            client->deadline = fmin(client->deadline, soon);
    }
    forget_gone(server);
}

/* True if a rank may come that does not know yet how it ended. */
static bool awaits_others(const struct server *server)
{
    const struct bootstrap_watch *watch = server->task->watch;

    int size = server->roster.size; /* 0: nobody has come who knows */

    return (!size || server->roster.claims < size) &&
           !(watch && watch->everybody && watch->look(watch->context));
}

void server_answer(struct server *server, bool linger)
{
    double until = clock_seconds() + PATIENCE_LINGER;

    if (!linger)
        shut(server); /* before the first answer: its rank may open its next communicator at once */
    answer_members(server);
    /* On failure: as many as there are ranks hear of it, if they come soon. */
    while (server->listener >= 0 && clock_seconds() < until && awaits_others(server))
        turn(server, fmin(until, clock_seconds() + LOOK_MEETING));
    if (server->listener >= 0)
        shut(server);
    forget_gone(server);
    while (server->count > 0)
        turn(server, INFINITY);
}

rondo_result server_open(struct server *server, const struct server_task *task)
{
    rondo_result result;

    *server = (struct server){.task = task, .listener = task->listener};
    result = roster_init(&server->roster, task);
    if (!result && !make_room(server))
        result = rondo_fail(RONDO_ERROR_MEMORY, "no memory for the meeting point");
    return result;
}

void server_close(struct server *server)
{
    if (server->listener >= 0)
        socket_unlisten(server->listener);
    roster_done(&server->roster);
    free(server->clients);
    free(server->polls);
}

rondo_result server_run(struct server *server, const struct server_task *task, void *ret_blobs)
{
    const struct roster *roster = &server->roster;
    rondo_result result = server_open(server, task);
    enum server_end end;

    if (!result) {
        end = server_gather(server);
        if (end == SERVER_STOPPED)
            roster_stop(&server->roster);
        else if (end == SERVER_TIMED_OUT)
            roster_time_out(&server->roster, task->timeout, server->refused);
        server_answer(server, roster->result && end != SERVER_STOPPED);
        result = roster->result;
        if (result)
            rondo_fail(result, "%s", roster->sentence);
        else if (ret_blobs)
            memcpy(ret_blobs, roster->answer, roster->answer_bytes);
    }
    server_close(server);
    return result;
}
