/* SPDX-License-Identifier: BSD-3-Clause */
/* blame.c - looks at waits that last, by host and stream, and what follows from them. */
#include "comm/failure/blame.h"

#include "comm/failure/health.h"
#include "comm/failure/long_wait.h"
#include "comm/failure/network.h"

#include "base/caller/times.h"
#include "base/collective.h"

#include <math.h>
#include <stdio.h>

double blame_patience(const rondo_comm *comm)
{
    double timeout = comm_timeout(comm);

    return timeout > 0 ? fmin(timeout / 4, PATIENCE_BLAME) : PATIENCE_BLAME;
}

/* ---- Whom for -------------------------------------------------------------------------------- */

static struct blame_peer *find(struct blame *blame, int rank)
{
    for (int i = 0; i < blame->count; i++)
        if (blame->peers[i].rank == rank)
            return &blame->peers[i];
    return NULL;
}

/* Keep those that were waited for at the last look. */
static void drop_others(struct blame *blame)
{
    int kept = 0;

    for (int i = 0; i < blame->count; i++)
        if (blame->peers[i].looked == blame->looked)
            blame->peers[kept++] = blame->peers[i];
    blame->count = kept;
}

/* A wait that is not the one of the last look begins with nothing known. */
static void begin(struct blame *blame, double began, double now)
{
    if (blame->began != began)
        *blame = (struct blame){.began = began};
    drop_others(blame);
    blame->looked = now;
    blame->known = blame->circular = false;
}

/* Note whether the rank has beaten since it was last looked at. The first look tells nothing, as
 * what it finds may be old. */
static void observe(const rondo_comm *comm, struct blame *blame, int rank, double now)
{
    const struct status *status = health_status(comm, rank);
    struct blame_peer *peer = find(blame, rank);
    uint32_t heartbeats = 0;

    if (status)
        /* Acquire, pairs with the release in status_heartbeat(): its blame is as new as its
         * heartbeat. */
        heartbeats = atomic_load_explicit(&status->heartbeats, memory_order_acquire);
    if (!peer && blame->count < BLAME_PEERS) {
        peer = &blame->peers[blame->count++];
        *peer = (struct blame_peer){.rank = rank, .heartbeats = heartbeats, .since = now};
    }
    if (!peer)
        return;
    peer->looked = now;
    if (peer->heartbeats != heartbeats) {
        peer->heartbeats = heartbeats;
        peer->heartbeat = true;
        peer->since = now;
    }
}

/* Programs of one rank wait for each other as well. */
static void observe_all(const rondo_comm *comm, struct blame *blame, const struct execution *x,
                        double now)
{
    for (int i = 0; i < x->plan->programs; i++)
        if (!x->programs[i].done && x->programs[i].blamed != comm->rank)
            observe(comm, blame, x->programs[i].blamed, now);
}

/* ---- What follows ---------------------------------------------------------------------------- */

/* Read which rank a peer blames, and its distance; comm->size or more: none, or nonsense. */
static uint32_t read_blame(const rondo_comm *comm, int rank, int *ret_culprit)
{
    const uint32_t far = (uint32_t)comm->size;
    const struct status *status = health_status(comm, rank);
    uint64_t blames = status ? atomic_load_explicit(&status->blames, memory_order_relaxed) : 0;
    uint32_t distance = (uint32_t)(blames >> 32), culprit = (uint32_t)blames;

    if (!distance || culprit >= far || culprit == (uint32_t)comm->rank)
        return far;
    *ret_culprit = (int)culprit;
    return distance;
}

/* The nearest rank that any peer leads to, for all to see. */
static void conclude(rondo_comm *comm, struct blame *blame, double now)
{
    const uint32_t far = (uint32_t)comm->size;
    uint32_t nearest = far;

    for (int i = 0; i < blame->count; i++) {
        const struct blame_peer *peer = &blame->peers[i];
        bool silent = now - peer->since > blame_patience(comm);
        int culprit = peer->rank;
        uint32_t distance = 0;

        if (peer->looked != now || (!silent && !peer->heartbeat))
            continue;
        if (!silent)
            distance = read_blame(comm, peer->rank, &culprit);
        blame->circular |= !silent;
        if (distance < nearest) {
            nearest = distance;
            blame->culprit = culprit;
            blame->by = peer->rank;
        }
    }
    blame->known = nearest < far;
    blame->circular &= !blame->known;
    status_heartbeat(comm->status_pages[comm->rank],
                     blame->known ? (uint64_t)(nearest + 1) << 32 | (uint32_t)blame->culprit : 0);
}

/* ---- For `rondo ps` -------------------------------------------------------------------------- */

/* The step at which the first program of the call waits. */
static void write_step(const struct execution *x, struct recorder_waiting *waiting)
{
    const struct plan *plan = x->plan;

    for (int i = 0; i < plan->programs; i++) {
        const struct exec_program *program = &x->programs[i];

        if (program->done || program->at >= program->end)
            continue;
        waiting->step = program->at - program->begin + 1;
        waiting->steps = program->end - program->begin;
        plan_describe_step(plan, &plan->steps[program->at], waiting->what, sizeof(waiting->what));
        return;
    }
}

/* `task` NULL: the call is done, but for messages that are still to be taken. */
static void write_down(const rondo_comm *comm, int which, const struct blame *blame,
                       const struct task *task)
{
    struct recorder_waiting waiting = {
        .call = task && collective_is_pair(task->key.collective) ? 0 : comm->calls,
        .since = (uint64_t)(1e9 * blame->began),
        .looked = clock_nanoseconds(),
        .culprit = blame->known ? blame->culprit : -1};

    if (!comm->recorder)
        return;
    for (int i = 0; i < blame->count && waiting.peers_count < RECORDER_PEERS; i++)
        if (blame->peers[i].looked == blame->looked)
            waiting.peers[waiting.peers_count++] = blame->peers[i].rank;
    if (task)
        write_step(&task->execution, &waiting);
    else
        snprintf(waiting.what, sizeof(waiting.what), "its last messages are not taken yet");
    recorder_wait(comm->recorder, which, &waiting);
}

void blame_look(struct batch *batch, double now)
{
    rondo_comm *comm = batch->comm;
    struct blame *blame = &comm->blame;
    const struct task *first = NULL;
    int peer = comm->rank;

    begin(blame, batch->still_since, now);
    for (int i = 0; i < batch->count; i++)
        if (batch->tasks[i].state == TASK_RUNNING) {
            observe_all(comm, blame, &batch->tasks[i].execution, now);
            first = first ? first : &batch->tasks[i];
        }
    if (!batch->left && !networks_flushed(comm, &peer) && peer != comm->rank)
        observe(comm, blame, peer, now);
    conclude(comm, blame, now);
    if (first || !batch->left) {
        write_down(comm, 0, blame, first);
        long_wait_tell(comm, blame, first, now);
    }
}

void blame_look_at_stream(rondo_comm *comm, const struct task *task, double began, double now)
{
    begin(&comm->stream_blame, began, now);
    observe_all(comm, &comm->stream_blame, &task->execution, now);
    conclude(comm, &comm->stream_blame, now);
    write_down(comm, 1, &comm->stream_blame, task);
    long_wait_tell(comm, &comm->stream_blame, task, now);
}
