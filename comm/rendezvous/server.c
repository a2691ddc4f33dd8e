/* SPDX-License-Identifier: BSD-3-Clause */
/* server.c - the event loop of the meeting point:
 * poll, accept, serve, decide, answer. */
#include "comm/rendezvous/server.h"

#include "comm/rendezvous/socket.h"
#include "comm/rendezvous/visitor.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seconds: without descriptors to accept, or full; for a stranger to say hello then, and to
 * prove itself; for the refused to hang up when the others are done; for ranks that are still on
 * their way to hear why the job failed. */
static const double full_pause = 0.02, full_patience = 0.1, stranger_patience = 2,
                    short_leave = 0.2, linger_time = 0.5;

static const double look_time = 0.05; /* seconds from one look of the watch to the next */

/* Connections that are no seats. More wait in the system's queue, so that a thousand ranks that
 * come at once need no thousand descriptors. */
enum { PASSING_MAX = 256 };

/* ---- Connections ---------------------------------------------------------------------------- */

/* One that has been here for `age` seconds. */
static bool drop_oldest(struct server *server, bool (*candidate)(const struct visitor *),
                        double age)
{
    double before = clock_seconds() - age;

    for (size_t i = 0; i < server->count; i++) {
        if (candidate(server->visitors[i]) && server->visitors[i]->since <= before) {
            visitor_drop(server->visitors[i], &server->meeting, "others need its place");
            return true;
        }
    }
    return false;
}

/* A member would have spoken, and if not, it only has to come again. */
static bool is_silent(const struct visitor *visitor)
{
    return visitor->stage == VISITOR_HELLO || visitor->stage == VISITOR_LEAVING;
}

static bool is_full(struct server *server)
{
    size_t passing = 0;

    for (size_t i = 0; i < server->count; i++)
        passing += visitor_is_passing(server->visitors[i]);
    if (passing < PASSING_MAX || drop_oldest(server, is_silent, full_patience) ||
        drop_oldest(server, visitor_is_stranger, stranger_patience))
        return false;
    server->accept_after = clock_seconds() + full_pause;
    return true;
}

static bool make_room(struct server *server)
{
    size_t room = server->room ? 2 * server->room : 16;
    struct visitor **visitors;
    struct pollfd *polls;

    if (server->count < server->room)
        return true;
    visitors = realloc(server->visitors, room * sizeof(struct visitor *));
    if (visitors)
        server->visitors = visitors;
    polls = realloc(server->polls, (room + 2) * sizeof(*polls));
    if (polls)
        server->polls = polls;
    if (!visitors || !polls)
        return false;
    server->room = room;
    return true;
}

static void welcome(struct server *server, int fd)
{
    struct visitor *visitor = make_room(server) ? malloc(sizeof(*visitor)) : NULL;

    if (!visitor) {
        server->refused++;
        close(fd);
        return;
    }
    visitor_init(visitor, fd, server->task->place->secret);
    server->visitors[server->count++] = visitor;
}

/* Descriptors are used up: a stranger has to go, but not one that
 * may be a member who has just come, else two members would push
 * each other out for ever. Those who knock wait in the backlog. */
static void accept_no_more(struct server *server)
{
    if (drop_oldest(server, visitor_is_stranger, full_patience))
        return;
    if (!server->refused++)
        log_warn("the meeting point cannot accept more connections: %s", strerror(errno));
    server->accept_after = clock_seconds() + full_pause;
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
        if (server->visitors[i]->stage == VISITOR_GONE)
            free(server->visitors[i]);
        else
            server->visitors[kept++] = server->visitors[i];
    }
    server->count = kept;
}

static void forget_late(struct server *server)
{
    double now = clock_seconds();

    for (size_t i = 0; i < server->count; i++) {
        struct visitor *visitor = server->visitors[i];

        if (visitor->stage == VISITOR_GONE || now < visitor->deadline)
            continue;
        if (visitor->stage == VISITOR_WAITING)
            visitor_seat(visitor, &server->meeting, false);
        else
            visitor_drop(visitor, &server->meeting, "it was silent for too long");
    }
}

static void seat_waiting(struct server *server)
{
    for (size_t i = 0; i < server->count && !server->meeting.decided; i++)
        if (server->visitors[i]->stage == VISITOR_WAITING)
            visitor_seat(server->visitors[i], &server->meeting, true);
}

/* ---- The loop ------------------------------------------------------------------------------- */

static size_t prepare(struct server *server, double until, double *ret_wake)
{
    double now = clock_seconds();
    bool open = server->listener >= 0 && now >= server->accept_after;

    *ret_wake = until;
    if (server->listener >= 0 && !open)
        *ret_wake = fmin(until, server->accept_after);
    server->polls[0] = (struct pollfd){.fd = open ? server->listener : -1, .events = POLLIN};
    server->polls[1].fd = server->meeting.decided ? -1 : server->task->stop;
    server->polls[1].events = POLLIN;
    server->polls[1].revents = 0;
    for (size_t i = 0; i < server->count; i++) {
        const struct visitor *visitor = server->visitors[i];

        server->polls[i + 2].fd = visitor->fd;
        server->polls[i + 2].events = visitor->stage == VISITOR_REPLY ? POLLOUT : POLLIN;
        *ret_wake = fmin(*ret_wake, visitor->deadline);
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
        if (server->polls[i].revents && server->visitors[i - 2]->stage != VISITOR_GONE)
            visitor_serve(server->visitors[i - 2], &server->meeting);
    if (server->polls[0].revents)
        accept_all(server);
    seat_waiting(server);
    forget_late(server);
    forget_gone(server);
    return server->polls[1].revents != 0;
}

/* Look whether the ranks that are expected still live; if not, all get a sentence. */
static void look(struct server *server)
{
    const struct bootstrap_watch *watch = server->task->watch;
    char sentence[WIRE_SENTENCE] = "";
    rondo_result result = watch ? watch->look(watch->context) : RONDO_OK;

    if (!result)
        return;
    strncpy(sentence, fail_sentence(), sizeof(sentence) - 1);
    meeting_news(&server->meeting, result, sentence);
}

enum server_end server_gather(struct server *server)
{
    double timeout = server->task->timeout;
    double until = timeout > 0 ? clock_seconds() + timeout : INFINITY;

    while (!server->meeting.decided) {
        bool watches = server->task->watch != NULL;
        bool stop = turn(server, watches ? fmin(until, clock_seconds() + look_time) : until);

        if (stop && !server->meeting.decided)
            return SERVER_STOPPED;
        if (!server->meeting.decided && clock_seconds() >= until)
            return SERVER_TIMED_OUT;
        if (!server->meeting.decided)
            look(server);
    }
    return SERVER_DECIDED;
}

static void answer_members(struct server *server)
{
    for (size_t i = 0; i < server->count; i++) {
        struct visitor *visitor = server->visitors[i];

        if (visitor->stage >= VISITOR_BLOB && visitor->stage <= VISITOR_SEATED) {
            visitor_answer(visitor, &server->meeting);
            visitor_serve(visitor, &server->meeting);
        }
    }
}

/* Nobody else comes in; those who prove nothing now never will. */
static void shut(struct server *server)
{
    double soon = clock_seconds() + short_leave;

    socket_unlisten(server->listener);
    server->listener = -1;
    for (size_t i = 0; i < server->count; i++) {
        struct visitor *visitor = server->visitors[i];

        if (visitor->stage == VISITOR_HELLO || visitor->stage == VISITOR_CLAIM)
            visitor_drop(visitor, &server->meeting, "the meeting is over");
        if (visitor->stage == VISITOR_LEAVING)
            visitor->deadline = fmin(visitor->deadline, soon);
    }
    forget_gone(server);
}

void server_answer(struct server *server, bool linger)
{
    double until = clock_seconds() + linger_time;

    if (!linger)
        shut(server); /* before the first answer: its rank may open its next communicator at once */
    answer_members(server);
    /* On failure: as many as there are ranks hear of it, if they come soon. */
    while (server->listener >= 0 && clock_seconds() < until &&
           server->meeting.claims < server->meeting.size)
        turn(server, until);
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
    result = meeting_init(&server->meeting, task);
    if (!result && !make_room(server))
        result = rondo_fail(RONDO_ERROR_MEMORY, "no memory for the meeting point");
    return result;
}

void server_close(struct server *server)
{
    if (server->listener >= 0)
        socket_unlisten(server->listener);
    meeting_done(&server->meeting);
    free(server->visitors);
    free(server->polls);
}

rondo_result server_run(const struct server_task *task, void *ret_blobs)
{
    struct server server;
    const struct meeting *meeting = &server.meeting;
    rondo_result result = server_open(&server, task);
    enum server_end end;

    if (!result) {
        end = server_gather(&server);
        if (end == SERVER_STOPPED)
            meeting_stop(&server.meeting);
        else if (end == SERVER_TIMED_OUT)
            meeting_time_out(&server.meeting, task->timeout, server.refused);
        server_answer(&server, meeting->result && end != SERVER_STOPPED);
        result = meeting->result;
        if (result)
            rondo_fail(result, "%s", meeting->sentence);
        else if (ret_blobs)
            memcpy(ret_blobs, meeting->answer, meeting->answer_bytes);
    }
    server_close(&server);
    return result;
}
