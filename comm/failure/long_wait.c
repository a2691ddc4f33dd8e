/* SPDX-License-Identifier: BSD-3-Clause */
/* long_wait.c - see long_wait.h. */
#include "comm/failure/long_wait.h"

#include "base/clock.h"
#include "base/collective.h"
#include "base/fail.h"
#include "base/log.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"
#include "comm/failure/network.h"
#include "comm/recorder/gather.h"
#include "comm/recorder/recorder.h"
#include "comm/recorder/wait_line.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- What a rank has shown to us ------------------------------------------------------------- */

/* Returns how many calls a rank is behind this one. What is on the mirror of a rank that was not
 * asked may be of any call before. */
static uint32_t calls_behind(const rondo_comm *comm, int rank)
{
    const struct status *status = health_status(comm, rank);
    uint32_t behind = 0; /* differences, as numbers wrap */

    if (status && !networks_mirror(comm, rank))
        behind = comm->calls -
                 (atomic_load_explicit(&status->call.sequence, memory_order_relaxed) + 1) / 2;
    behind &= UINT32_MAX / 2; /* numbers of calls on status pages have 31 bits */
    return behind < UINT32_MAX / 4 ? behind : 0;
}

/* The rank of this host that has made fewest calls: a guess where nobody is known to be silent. */
static int find_straggler(const rondo_comm *comm, int suspect)
{
    uint32_t most_behind = 0;
    int last = suspect;

    for (int rank = 0; rank < comm->size; rank++) {
        uint32_t behind = calls_behind(comm, rank);

        if (behind > most_behind) {
            most_behind = behind;
            last = rank;
        }
    }
    return last;
}

/* The peer that the first waiting program waits for. Programs that wait for another program of this
 * rank don't count. */
static int waited_for(const struct execution *x)
{
    for (int i = 0; i < x->plan->programs; i++)
        if (!x->programs[i].done && x->programs[i].blamed != x->plan->rank)
            return x->programs[i].blamed;
    return x->blamed;
}

static int find_peer(rondo_comm *comm, const struct blame *blame, const struct task *task)
{
    int peer = comm->rank;

    if (blame->known)
        return blame->culprit;
    if (!task) {
        (void)networks_flushed(comm, &peer);
        return peer;
    }
    peer = waited_for(&task->execution);
    if (collective_is_pair(task->key.collective) || blame == &comm->stream_blame)
        return peer;
    return find_straggler(comm, peer);
}

/* Describes in words what a rank that is waited for has shown of its calls. */
static const char *describe_calls(const rondo_comm *comm, const struct blame *blame,
                                  const struct task *task, int peer)
{
    struct call_record record;

    if (!task)
        return "does not take the last messages of the call";
    if (collective_is_pair(task->key.collective))
        return blame->known && blame->by != peer ? "is silent" : "has made no matching call";
    if (blame == &comm->stream_blame)
        return "has not done its part";
    if (calls_behind(comm, peer))
        return "has not made this call";
    if (networks_mirror(comm, peer) && !status_read(&comm->mirrors[peer], comm->calls, &record))
        return "has sent nothing in this call";
    return "is in the same call";
}

static void explain(rondo_comm *comm, const struct blame *blame, const struct task *task,
                    struct wait_line *line)
{
    bool silent = blame->known && blame->by == blame->culprit;
    bool pair = task && collective_is_pair(task->key.collective);
    char way[80] = "";
    size_t used;

    line->peer = find_peer(comm, blame, task);
    if (blame->known && !silent)
        snprintf(way, sizeof(way), ", and rank %d waits for it as well", blame->by);
    snprintf(line->why, sizeof(line->why), "Rank %d %s%s.", line->peer,
             describe_calls(comm, blame, task, line->peer), way);
    used = strlen(line->why);
    if (silent)
        snprintf(line->why + used, sizeof(line->why) - used,
                 " It does not wait in this communicator: it computes outside of Rondo, is in "
                 "another call, stopped or gone.%s",
                 networks_mirror(comm, line->peer) ? " `rondo ps` on its host shows which." : "");
    else if (blame->circular)
        snprintf(
            line->why + used, sizeof(line->why) - used, " Ranks wait for each other in a circle%s.",
            pair ? ": a call group (rondo_group_start()) makes sends and receives at once" : "");
}

/* ---- What records of this host say ----------------------------------------------------------- */

static int find_own(const rondo_comm *comm, const struct sightings *sightings)
{
    for (int i = 0; i < sightings->count; i++) {
        const struct sighting_record *record = &sightings->at[i]->record;

        if (record->comm == comm->id && record->identity.rank == comm->rank &&
            record->identity.pid == (int32_t)getpid())
            return i;
    }
    return -1;
}

/* Fills what records tell: the communicator in words, and why the wait lasts. False: not why. */
static bool ask_records(const rondo_comm *comm, struct wait_line *line, char *text, size_t size)
{
    struct sightings sightings = {0};
    bool found = false;
    int own = -1;

    if (comm->recorder && gather_here(0, &sightings))
        own = find_own(comm, &sightings);
    if (own >= 0) {
        sightings_describe_comm(&sightings, own, text, size);
        found = wait_line_explain(&sightings, own, line);
    }
    sightings_done(&sightings);
    return found;
}

/* ---- The line -------------------------------------------------------------------------------- */

static void make_line(rondo_comm *comm, const struct blame *blame, const struct task *task,
                      double waited, struct wait_line *line, char text[FAIL_SENTENCE_MAX])
{
    char call[128] = "a call", communicator[160], number[32] = "", step[384];
    bool pair = task && collective_is_pair(task->key.collective);

    *line = (struct wait_line){
        .rank = comm->rank, .on_stream = blame == &comm->stream_blame, .seconds = waited};
    snprintf(communicator, sizeof(communicator), "communicator %llx of %d ranks",
             (unsigned long long)comm->id, comm->size);
    if (!ask_records(comm, line, communicator, sizeof(communicator)))
        explain(comm, blame, task, line);
    if (task)
        health_describe(task, call, sizeof(call));
    if (pair)
        snprintf(call + strlen(call), sizeof(call) - strlen(call), " %s rank %d",
                 task->key.collective == RONDO_SEND ? "to" : "from", task->key.root);
    else if (!line->on_stream && comm->calls > comm->internal)
        snprintf(number, sizeof(number), "call %u of ", health_users_number(comm, comm->calls));
    snprintf(line->call, sizeof(line->call), "%s, %s%s", call, number, communicator);
    if (task) {
        exec_describe(&task->execution, step, sizeof(step));
        snprintf(line->step, sizeof(line->step), " Rank %d is at %s.", comm->rank, step);
    }
    wait_line_write(line, text, FAIL_SENTENCE_MAX);
}

/* Peers see this rank wait while it looks into records, and until they know that it gives up. */
static void hold_wait(const rondo_comm *comm, const struct blame *blame, bool held)
{
    recorder_hold_wait(comm->recorder, blame == &comm->stream_blame, held);
}

void long_wait_tell(rondo_comm *comm, struct blame *blame, const struct task *task, double now)
{
    char text[FAIL_SENTENCE_MAX];
    struct wait_line line;

    if (now < clock_reminder(blame->began, comm->settings.late, blame->told) ||
        !log_wants(LOG_WARN))
        return;
    blame->told++;
    hold_wait(comm, blame, true);
    make_line(comm, blame, task, now - blame->began, &line, text);
    hold_wait(comm, blame, false);
    log_warn("%s%s", text, line.step);
}

rondo_result long_wait_end(rondo_comm *comm, const struct blame *blame, const struct task *task,
                           double waited)
{
    char text[FAIL_SENTENCE_MAX];
    struct wait_line line;
    rondo_result result;

    hold_wait(comm, blame, true);
    make_line(comm, blame, task, waited, &line, text);
    /* That may have taken seconds: a peer that was quicker has said why, and waits no more. */
    result = health_adopt(comm);
    if (!result) {
        rondo_fail(RONDO_ERROR_TIMEOUT, "%s RONDO_TIMEOUT sets how long to wait.%s", text,
                   line.step);
        result = comm_break(comm, RONDO_ERROR_TIMEOUT, line.peer);
    }
    hold_wait(comm, blame, false);
    return result;
}
