/* SPDX-License-Identifier: BSD-3-Clause */
/* circle.c - ranks that wait for each other, and communicators that have failed. */
#include "comm/recorder/find.h"

#include "base/collective.h"

#include <stdio.h>
#include <string.h>

/* ---- Circles --------------------------------------------------------------------------------- */

/* The first peer that a sighting waits for and that waits itself, or where its process waits in
 * another communicator; -1: none. */
static int next_of(const struct sightings *sightings, const int *from, int at)
{
    const struct recorder_waiting *waiting = sighting_wait(sightings->at[at]);
    int first = sightings_comm_begin(sightings, at), end = sightings_comm_end(sightings, first);

    /* Who is reached in a search waits for somebody. */
    for (int i = 0; waiting && i < waiting->peers_count; i++)
        for (int peer = first; peer < end; peer++)
            if (sightings->at[peer]->record.identity.rank == waiting->peers[i] && from[peer] != -2)
                return peer;
    return waiting ? -1 : sightings_elsewhere(sightings, at);
}

struct circle {
    int members[CHAIN_MAX], kept, length; /* the first ones, how many they are, and of how many */
    bool several_comms, several_hosts;
    bool any_pair, all_pairs; /* calls in it are sends and receives */
    int link[2], change[2]; /* neighbours that are on different hosts, in different communicators */
    double seconds;         /* that the longest wait lasts */
};

static void note_member(const struct sightings *sightings, int at, int next, struct circle *circle)
{
    const struct sighting *sighting = sightings->at[at];
    const struct sighting_call *call = sighting_call(sighting);
    double waited = sighting_waited(sighting);

    circle->length++;
    if (circle->kept < CHAIN_MAX)
        circle->members[circle->kept++] = at;
    if (waited > circle->seconds)
        circle->seconds = waited;
    circle->any_pair |= call && !call->call;
    circle->all_pairs &= call && collective_is_pair(call->record.collective);
    if (sighting->record.comm != sightings->at[next]->record.comm) {
        circle->several_comms = true;
        circle->change[0] = at;
        circle->change[1] = next;
    }
    if (!sightings_share_memory(sighting, sightings->at[next])) {
        circle->several_hosts = true;
        circle->link[0] = at;
        circle->link[1] = next;
    }
}

/* Walks from `start` into the circle and once around it. False: it is none, or was before. */
static bool walk(const struct sightings *sightings, const int *from, int start, bool *in_circle,
                 struct circle *circle)
{
    int at = start;

    /* After as many steps as there are sightings the way is in the circle. */
    for (int i = 0; i < sightings->count && next_of(sightings, from, at) >= 0; i++)
        at = next_of(sightings, from, at);
    start = at;
    do {
        int next = next_of(sightings, from, at);

        if (next < 0 || in_circle[at])
            return false;
        in_circle[at] = true;
        note_member(sightings, at, next, circle);
        at = next;
    } while (at != start);
    return circle->length > 1;
}

/* Says who waits for each other: "rank 0 is in send of 8 float32 to rank 1, ...", of many the first
 * ones, and what helps. */
static void say_pairs(const struct sightings *sightings, const struct circle *circle,
                      struct finding *finding)
{
    enum { NAMED = 3 };
    int others = circle->length - NAMED;
    char who[400] = "", call[100];

    for (int i = 0; i < circle->kept && i < NAMED; i++) {
        const struct sighting *sighting = sightings->at[finding->chain[i]];
        size_t used = strlen(who);

        sighting_describe_call(sighting, call, sizeof(call));
        snprintf(who + used, sizeof(who) - used, "%srank %d is in %s", i ? ", " : "",
                 sighting->record.identity.rank, call);
    }
    if (others > 0)
        snprintf(who + strlen(who), sizeof(who) - strlen(who), ", %d more likewise", others);
    finding_say(finding, "%s: they wait for each other. %s", who,
                circle->all_pairs ? "A call group (rondo_group_start()) makes such calls at once"
                                  : "All ranks have to make such calls in the same order");
}

static void say_circle(const struct sightings *sightings, const struct circle *circle,
                       struct finding *finding)
{
    const struct sighting *first = sightings->at[finding->chain[0]];
    const struct sighting *here = sightings->at[circle->link[0]],
                          *there = sightings->at[circle->link[1]];
    char call[120] = "a call", one[160], other[160];

    if (sighting_call(first))
        call_describe(&sighting_call(first)->record, call, sizeof(call));
    if (circle->several_comms) {
        finding->cause = CAUSE_DEADLOCK;
        memcpy(finding->between, circle->change, sizeof(finding->between));
        sightings_describe_comm(sightings, circle->change[0], one, sizeof(one));
        sightings_describe_comm(sightings, circle->change[1], other, sizeof(other));
        finding_say(finding,
                    "calls of %s and of %s were made in different orders, and wait for each other: "
                    "every rank has to make the calls of all its communicators in the same order",
                    one, other);
    } else if (circle->any_pair) {
        finding->cause = CAUSE_DEADLOCK;
        say_pairs(sightings, circle, finding);
    } else if (circle->several_hosts) {
        finding->cause = CAUSE_LINK;
        finding->culprit_rank = there->record.identity.rank;
        memcpy(finding->between, circle->link, sizeof(finding->between));
        finding_say(finding,
                    "rank %d on %s and rank %d on %s wait for each other in the same call, %s: "
                    "what they sent does not arrive, so the link between these hosts is cut",
                    here->record.identity.rank, here->where, there->record.identity.rank,
                    there->where, call);
    } else {
        finding->cause = CAUSE_UNKNOWN;
        finding_say(finding, "%d ranks of one host wait for each other in %s", circle->length,
                    call);
    }
}

static uint64_t comm_of(const struct sightings *sightings, const struct finding *finding, int end)
{
    return sightings->at[finding->between[end]]->record.comm;
}

/* True if both circles were found to go over the link between the same two hosts. */
static bool share_link(const struct sightings *sightings, const struct finding *one,
                       const struct finding *other)
{
    const struct sighting *here = sightings->at[one->between[0]],
                          *there = sightings->at[one->between[1]];
    const struct sighting *a = sightings->at[other->between[0]],
                          *b = sightings->at[other->between[1]];

    return (sightings_share_memory(here, a) && sightings_share_memory(there, b)) ||
           (sightings_share_memory(here, b) && sightings_share_memory(there, a));
}

/* True if both findings have one cause: a link that is cut, over which several pairs of ranks wait
 * for each other; or calls of the same two communicators, which, made in different orders on
 * several hosts, make a circle on each. */
static bool is_same_cause(const struct sightings *sightings, const struct finding *known,
                          const struct finding *last)
{
    uint64_t one = comm_of(sightings, last, 0), other = comm_of(sightings, last, 1);

    if (last->cause == CAUSE_LINK)
        return known->cause == CAUSE_LINK && comm_of(sightings, known, 0) == one &&
               share_link(sightings, known, last);
    return known->cause == CAUSE_DEADLOCK && one != other &&
           ((comm_of(sightings, known, 0) == one && comm_of(sightings, known, 1) == other) ||
            (comm_of(sightings, known, 0) == other && comm_of(sightings, known, 1) == one));
}

/* Returns the finding that has the cause of the last one; NULL: there is none. */
static struct finding *find_known(const struct sightings *sightings, struct findings *findings)
{
    const struct finding *last = &findings->at[findings->count - 1];

    for (struct finding *known = findings->at; known < last; known++)
        if (is_same_cause(sightings, known, last))
            return known;
    return NULL;
}

void circle_add(const struct sightings *sightings, const int *from, int start, bool *in_circle,
                struct findings *findings)
{
    struct circle circle = {.all_pairs = true};
    struct finding *finding, *known;

    if (!walk(sightings, from, start, in_circle, &circle))
        return;
    finding = finding_add(findings);
    if (!finding)
        return;
    finding->comm = sightings_comm_begin(sightings, start);
    memcpy(finding->chain, circle.members, sizeof(finding->chain));
    finding->length = circle.kept;
    finding->seconds = circle.seconds;
    say_circle(sightings, &circle, finding);
    known = find_known(sightings, findings);
    if (!known)
        return;
    findings->count--;
    if (finding->seconds > known->seconds)
        known->seconds = finding->seconds;
}

/* ---- Failures -------------------------------------------------------------------------------- */

static bool has_finding(const struct findings *findings, int first)
{
    for (int i = 0; i < findings->count; i++)
        if (findings->at[i].comm == first)
            return true;
    return false;
}

/* The first rank that failed. */
static int first_to_fail(const struct sightings *sightings, int first)
{
    int found = -1;

    for (int i = first; i < sightings_comm_end(sightings, first); i++)
        if (sightings->at[i]->record.failed && sightings->at[i]->process.life != SIGHTING_ENDED &&
            (found < 0 ||
             sightings->at[i]->record.failure.when < sightings->at[found]->record.failure.when))
            found = i;
    return found;
}

/* A rank that has ended, and whose record stayed: it did not close the communicator. */
static int first_dead(const struct sightings *sightings, int first)
{
    for (int i = first; i < sightings_comm_end(sightings, first); i++)
        if (sightings->at[i]->process.life == SIGHTING_ENDED)
            return i;
    return -1;
}

void failure_add(const struct sightings *sightings, int first, struct findings *findings)
{
    int failed = first_to_fail(sightings, first), dead = first_dead(sightings, first);
    const struct recorder_failure *failure;
    struct finding *finding;

    if (failed < 0 || has_finding(findings, first))
        return;
    finding = finding_add(findings);
    if (!finding)
        return;
    failure = &sightings->at[failed]->record.failure;
    finding->comm = first;
    finding->cause = dead >= 0 ? CAUSE_DEAD : CAUSE_FAILED;
    finding->culprit_rank = failure->culprit;
    for (int i = first; i < sightings_comm_end(sightings, first); i++)
        if (sightings->at[i]->record.identity.rank == failure->culprit)
            finding->culprit = i;
    if (dead >= 0) {
        finding->culprit = dead;
        finding->culprit_rank = sightings->at[dead]->record.identity.rank;
    }
    finding->chain[finding->length++] = failed;
    if (finding->culprit >= 0 && finding->culprit != failed)
        finding->chain[finding->length++] = finding->culprit;
    finding->seconds = sightings->at[failed]->process.read > failure->when
                           ? 1e-9 * (double)(sightings->at[failed]->process.read - failure->when)
                           : 0;
    finding_say(finding, "the communicator has failed: %s", failure->sentence);
}
