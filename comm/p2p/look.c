/* SPDX-License-Identifier: BSD-3-Clause */
/* look.c - whether what transfers of a rondo_p2p wait for will ever come. */
#include "comm/p2p/p2p.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"
#include "transport/memory/process.h"

#include <stdio.h>

/* True if no other rank can send anything any more. */
static bool is_alone(const rondo_p2p *p2p)
{
    for (int peer = 0; peer < p2p->comm->size; peer++)
        if (peer != p2p->comm->rank && !health_has_closed(p2p->comm, peer))
            return false;
    return p2p->comm->size > 1;
}

static rondo_transfer *find_first(const struct transfers *list, int peer)
{
    rondo_transfer *at = list->first;

    while (at && at->envelope.source != peer)
        at = at->next;
    return at;
}

/* The first receive, or else probe, that names this source. */
static const rondo_transfer *find_wanted(const rondo_p2p *p2p, int source)
{
    const rondo_transfer *receive = find_first(&p2p->receives, source);

    return receive ? receive : find_first(&p2p->probes, source);
}

/* True if a transfer or a probe waits for just this peer. */
static bool is_awaited(const rondo_p2p *p2p, int peer)
{
    return p2p->routes[peer].behind_in || find_wanted(p2p, peer) ||
           find_first(&p2p->accepted, peer) || find_first(&p2p->offered, peer);
}

/* End one alone, with the thread's last sentence. */
static void end_alone(struct transfers *list, rondo_transfer *transfer, rondo_result result)
{
    transfers_remove(list, transfer);
    transfer_end(transfer, result);
}

enum { WAIT_TEXT = 128 };

/* Writes what a receive or a probe waits for. */
static void describe_wanted(const rondo_transfer *at, char text[WAIT_TEXT])
{
    char tag[24] = "any tag", source[24] = "any rank";

    if (at->envelope.tag != RONDO_ANY_TAG)
        snprintf(tag, sizeof(tag), "tag %d", at->envelope.tag);
    if (at->envelope.source == at->p2p->comm->rank)
        snprintf(source, sizeof(source), "itself");
    else if (at->envelope.source != RONDO_ANY_SOURCE)
        snprintf(source, sizeof(source), "rank %d", at->envelope.source);
    snprintf(text, WAIT_TEXT, "for a message with %s from %s", tag, source);
}

/* Writes what this rank waits for at a peer. */
static void describe_wait(const rondo_p2p *p2p, int peer, char text[WAIT_TEXT])
{
    const rondo_transfer *send = find_first(&p2p->offered, peer);
    const rondo_transfer *receive = find_wanted(p2p, peer);

    if (!receive)
        receive = find_first(&p2p->accepted, peer);
    if (!receive && !send && !p2p->routes[peer].first && !p2p->routes[peer].behind_in)
        receive = find_wanted(p2p, RONDO_ANY_SOURCE);
    if (receive)
        describe_wanted(receive, text);
    else if (send)
        snprintf(text, WAIT_TEXT, "until rank %d asks for a message of %zu bytes with tag %d", peer,
                 send->room, send->envelope.tag);
    else
        snprintf(text, WAIT_TEXT, "for rank %d to send or to take the rest of a message", peer);
}

static rondo_result waited_in_vain(const rondo_p2p *p2p, const char *text, double waited)
{
    return rondo_fail(RONDO_ERROR_TIMEOUT,
                      "Rank %d waited %.1f s %s. RONDO_TIMEOUT sets how long to wait.",
                      p2p->comm->rank, waited, text);
}

/* Those of a list that wait for any source end after the timeout, and when nobody is left who could
 * send; those that wait for this rank itself, which is nobody's silence, after the timeout. */
static void end_in_vain(rondo_p2p *p2p, struct transfers *list, bool alone, double now)
{
    double timeout = comm_timeout(p2p->comm), late = p2p->comm->settings.late;
    rondo_transfer *at, *next;

    for (at = list->first; at; at = next) {
        bool any = at->envelope.source == RONDO_ANY_SOURCE;
        char text[WAIT_TEXT];
        double waited;

        next = at->next;
        if (!any && at->envelope.source != p2p->comm->rank)
            continue;
        if (at->began == 0) {
            at->began = now;
            at->reminders = 0;
        }
        waited = now - at->began;
        describe_wanted(at, text);
        if (any && alone)
            end_alone(list, at,
                      rondo_fail(RONDO_ERROR_PEER,
                                 "Rank %d waits %s, but all others have closed their ends.",
                                 p2p->comm->rank, text));
        else if (timeout > 0 && waited > timeout)
            end_alone(list, at, waited_in_vain(p2p, text, waited));
        else if (now >= clock_reminder(at->began, late, at->reminders)) {
            at->reminders++;
            waited_in_vain(p2p, text, waited);
            log_warn("%s", fail_sentence());
        }
    }
}

/* Ends the wait for a known peer when it has lasted for the timeout, and logs it before that. */
static rondo_result judge_silence(rondo_p2p *p2p, int peer, double now)
{
    struct route *route = &p2p->routes[peer];
    double timeout = comm_timeout(p2p->comm), waited = now - route->moved;
    bool reminds = now >= clock_reminder(route->moved, p2p->comm->settings.late, route->reminders);
    char text[WAIT_TEXT];

    if (!reminds && !(timeout > 0 && waited > timeout))
        return RONDO_OK;
    describe_wait(p2p, peer, text);
    waited_in_vain(p2p, text, waited);
    if (timeout > 0 && waited > timeout)
        return comm_break(p2p->comm, RONDO_ERROR_TIMEOUT, peer);
    route->reminders++;
    log_warn("%s", fail_sentence());
    return RONDO_OK;
}

/* The peer has closed its end: what waits for it ends, each transfer alone. */
static void end_closed(rondo_p2p *p2p, int peer)
{
    struct transfers *lists[] = {&p2p->receives, &p2p->probes, &p2p->accepted};
    rondo_transfer *at;
    char text[WAIT_TEXT];

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        while ((at = find_first(lists[i], peer))) {
            describe_wanted(at, text);
            end_alone(lists[i], at,
                      rondo_fail(RONDO_ERROR_PEER,
                                 "Rank %d waits %s, but rank %d %s and sends no more.",
                                 p2p->comm->rank, text, peer, p2p_how_closed(p2p, peer)));
        }
    while ((at = find_first(&p2p->offered, peer))) {
        transfers_remove(&p2p->offered, at);
        match_end_lost(at);
    }
    progress_end_lost(p2p, peer);
}

/* Ends waits for a peer that has closed its end, which sends and takes no more; breaks the
 * communicator where its process has ended, unless another has said before what broke it. It may
 * have done its part before that: so it is believed at the second look, when all that it wrote
 * before has been looked at. */
static rondo_result judge_absence(rondo_p2p *p2p, int peer)
{
    rondo_comm *comm = p2p->comm;
    const struct process *process = comm->processes[peer];
    bool closed = health_has_closed(comm, peer), before = p2p->routes[peer].gone;
    rondo_result result;
    char text[WAIT_TEXT];

    p2p->routes[peer].gone = closed || (process && !process_alive(process));
    if (!before || !p2p->routes[peer].gone)
        return RONDO_OK; /* health_check() hears what others say */
    result = health_adopt(comm);
    if (result)
        return result;
    if (closed) {
        if (!p2p->routes[peer].behind_in)
            end_closed(p2p, peer);
        return RONDO_OK;
    }
    describe_wait(p2p, peer, text);
    rondo_fail(RONDO_ERROR_PEER,
               "Rank %d (process %d) has ended while rank %d waited %s; look at its output for the "
               "reason.",
               peer, process_id(process), comm->rank, text);
    return comm_break(comm, RONDO_ERROR_PEER, peer);
}

/* Looks whether a peer will ever do what transfers wait for. */
static rondo_result look_at(rondo_p2p *p2p, int peer, bool any, double now)
{
    struct route *route = &p2p->routes[peer];
    bool awaited = is_awaited(p2p, peer), receives = awaited || any, sends = route->first;
    rondo_result result = RONDO_OK;

    if (route->moves || !(awaited || sends) || route->moved == 0) {
        route->moved = now;
        route->reminders = 0;
    }
    if (route->moves) { /* whatever became of the peer, there may be more of what it wrote */
        route->moves = false;
        return RONDO_OK;
    }
    if (receives || sends)
        result = judge_absence(p2p, peer);
    if (!result && !route->behind_in && health_has_closed(p2p->comm, peer))
        return RONDO_OK;
    if (!result && receives && p2p_task_from(p2p, peer)->state == TASK_RUNNING)
        result = health_check(p2p->comm, p2p_task_from(p2p, peer), 0);
    if (!result && sends && p2p_task_to(p2p, peer)->state == TASK_RUNNING)
        result = health_check(p2p->comm, p2p_task_to(p2p, peer), 0);
    return result ? result : judge_silence(p2p, peer, now);
}

/* Receives from any source wait for every rank that has not closed its end. Ranks of other hosts,
 * which may be many, are not asked for that: but what is known of their end counts. */
static bool may_send(const rondo_p2p *p2p, int peer)
{
    return (!networks_mirror(p2p->comm, peer) || health_is_lost(p2p->comm, peer)) &&
           !health_has_closed(p2p->comm, peer);
}

void p2p_restart_waits(rondo_p2p *p2p)
{
    p2p->restarts = false;
    p2p->still_since = 0;
    for (int peer = 0; peer < p2p->comm->size; peer++)
        p2p->routes[peer].moved = 0;
    for (rondo_transfer *at = p2p->receives.first; at; at = at->next)
        at->began = 0;
    for (rondo_transfer *at = p2p->probes.first; at; at = at->next)
        at->began = 0;
}

void p2p_look_after(rondo_p2p *p2p, double now)
{
    rondo_comm *comm = p2p->comm;
    bool any = find_wanted(p2p, RONDO_ANY_SOURCE), before = p2p->alone;
    bool moved = p2p->still_since == 0;

    if (p2p->restarts)
        p2p_restart_waits(p2p);
    p2p->looks++;
    if (p2p->still_since == 0)
        p2p->still_since = now;
    /* It is believed at the second look, when all that peers wrote before has been looked at. */
    p2p->alone = any && !moved && is_alone(p2p);
    end_in_vain(p2p, &p2p->receives, p2p->alone && before, now);
    end_in_vain(p2p, &p2p->probes, p2p->alone && before, now);
    for (int peer = 0; peer < comm->size && !p2p->batch.result; peer++)
        if (peer != comm->rank)
            p2p->batch.result = look_at(p2p, peer, any && may_send(p2p, peer), now);
    if (!p2p->batch.result && !p2p->pending) /* what was sent is yet to be delivered */
        p2p->batch.result = health_flush(comm, now - p2p->still_since);
}
