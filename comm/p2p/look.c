/* SPDX-License-Identifier: BSD-3-Clause */
/* look.c - whether what transfers of a rondo_p2p wait for will ever come. */
#include "comm/p2p/p2p.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"

/* True if no other rank can send anything any more. */
static bool is_alone(const rondo_p2p *p2p)
{
    for (int peer = 0; peer < p2p->comm->size; peer++)
        if (peer != p2p->comm->rank && !health_has_closed(p2p->comm, peer))
            return false;
    return p2p->comm->size > 1;
}

static const rondo_transfer *find_first(const struct transfers *list, int peer)
{
    const rondo_transfer *at = list->first;

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

/* End what waits for any source, which is nobody's fault, with the thread's last sentence. */
static void end_alone(struct transfers *list, rondo_transfer *transfer, rondo_result result)
{
    transfers_remove(list, transfer);
    transfer_end(transfer, result);
}

static rondo_result waited_for_any(const rondo_p2p *p2p, const rondo_transfer *at, double waited)
{
    return rondo_fail(RONDO_ERROR_TIMEOUT,
                      "Rank %d waited %.1f s for a message with tag %d from any rank. "
                      "RONDO_TIMEOUT sets how long to wait.",
                      p2p->comm->rank, waited, at->envelope.tag);
}

/* Those of a list that wait for any source end after the timeout, and when nobody is left who could
 * send. */
static void end_in_vain(rondo_p2p *p2p, struct transfers *list, bool alone, double now)
{
    double timeout = comm_timeout(p2p->comm), late = p2p->comm->settings.late;
    rondo_transfer *at, *next;

    for (at = list->first; at; at = next) {
        double waited;

        next = at->next;
        if (at->envelope.source != RONDO_ANY_SOURCE)
            continue;
        if (at->began == 0) {
            at->began = now;
            at->reminders = 0;
        }
        waited = now - at->began;
        if (alone)
            end_alone(list, at,
                      rondo_fail(RONDO_ERROR_PEER,
                                 "Rank %d waits for a message with tag %d from any rank, but all "
                                 "others have closed their ends.",
                                 p2p->comm->rank, at->envelope.tag));
        else if (timeout > 0 && waited > timeout)
            end_alone(list, at, waited_for_any(p2p, at, waited));
        else if (now >= clock_reminder(at->began, late, at->reminders)) {
            at->reminders++;
            waited_for_any(p2p, at, waited);
            log_warn("%s", fail_sentence());
        }
    }
}

static rondo_result waited_for(const rondo_p2p *p2p, int peer, double waited)
{
    const rondo_transfer *send = find_first(&p2p->offered, peer);
    const rondo_transfer *receive = find_wanted(p2p, peer);
    const rondo_comm *comm = p2p->comm;

    if (receive)
        rondo_fail(RONDO_ERROR_TIMEOUT,
                   "Rank %d waited %.1f s for a message with tag %d from rank %d. RONDO_TIMEOUT "
                   "sets how long to wait.",
                   comm->rank, waited, receive->envelope.tag, peer);
    else if (send)
        rondo_fail(RONDO_ERROR_TIMEOUT,
                   "Rank %d waited %.1f s until rank %d asks for a message of %zu bytes with tag "
                   "%d. RONDO_TIMEOUT sets how long to wait.",
                   comm->rank, waited, peer, send->room, send->envelope.tag);
    else
        rondo_fail(RONDO_ERROR_TIMEOUT,
                   "Rank %d waited %.1f s for rank %d, which neither sends nor takes the rest of a "
                   "message. RONDO_TIMEOUT sets how long to wait.",
                   comm->rank, waited, peer);
    return RONDO_ERROR_TIMEOUT;
}

/* Ends the wait for a known peer when it has lasted for the timeout, and logs it before that. */
static rondo_result judge_silence(rondo_p2p *p2p, int peer, double now)
{
    struct route *route = &p2p->routes[peer];
    double timeout = comm_timeout(p2p->comm), waited = now - route->moved;

    if (timeout > 0 && waited > timeout)
        return comm_break(p2p->comm, waited_for(p2p, peer, waited), peer);
    if (now >= clock_reminder(route->moved, p2p->comm->settings.late, route->reminders)) {
        route->reminders++;
        waited_for(p2p, peer, waited);
        log_warn("%s", fail_sentence());
    }
    return RONDO_OK;
}

/* Looks whether a peer will ever do what transfers wait for. One that has closed its end sends no
 * more, but may have taken all before that. */
static rondo_result look_at(rondo_p2p *p2p, int peer, bool any, double now)
{
    struct route *route = &p2p->routes[peer];
    bool awaited = is_awaited(p2p, peer), asked = p2p->asked && p2p->asked_for == peer;
    rondo_result result = RONDO_OK;

    if (!(awaited || route->first) || route->moved == 0) {
        route->moved = now;
        route->reminders = 0;
    }
    if ((awaited || asked || any) && p2p_task_from(p2p, peer)->state == TASK_RUNNING)
        result = health_check(p2p->comm, p2p_task_from(p2p, peer), 0);
    if (!result && route->first && p2p_task_to(p2p, peer)->state == TASK_RUNNING)
        result = health_check(p2p->comm, p2p_task_to(p2p, peer), 0);
    return result ? result : judge_silence(p2p, peer, now);
}

/* Receives from any source wait for every rank that has not closed its end. Of a rank of another
 * host only who waits for just that one may ask: the answer of one that has closed is an error. */
static bool may_send(const rondo_p2p *p2p, int peer)
{
    return !p2p_is_distant(p2p, peer) && !health_has_closed(p2p->comm, peer);
}

void p2p_restart_waits(rondo_p2p *p2p)
{
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

    p2p->looks++;
    /* It is believed at the second look, when all that peers wrote before has been looked at. */
    p2p->alone = any && is_alone(p2p);
    end_in_vain(p2p, &p2p->receives, p2p->alone && before, now);
    end_in_vain(p2p, &p2p->probes, p2p->alone && before, now);
    for (int peer = 0; peer < comm->size && !p2p->batch.result; peer++)
        if (peer != comm->rank)
            p2p->batch.result = look_at(p2p, peer, any && may_send(p2p, peer), now);
}
