/* SPDX-License-Identifier: BSD-3-Clause */
/* differ.c - calls of the same number that differ between ranks: who called something else is in
 * the minority. */
#include "comm/recorder/find.h"

#include <string.h>

static const struct sighting_call *find_call(const struct sighting *sighting, uint32_t call)
{
    for (int i = 0; i < sighting->record.calls_count; i++)
        if (sighting->record.calls[i].call == call &&
            sighting->record.calls[i].state != RECORDER_EMPTY)
            return &sighting->record.calls[i];
    return NULL;
}

static bool is_alike(const struct sighting_call *a, const struct sighting_call *b)
{
    return a->record.fingerprint == b->record.fingerprint;
}

/* Counts the ranks of the communicator that called that. */
static int count_alike(const struct sightings *sightings, int first,
                       const struct sighting_call *wanted)
{
    int alike = 0;

    for (int i = first; i < sightings_comm_end(sightings, first); i++) {
        const struct sighting_call *call = find_call(sightings->at[i], wanted->call);

        alike += call && is_alike(call, wanted);
    }
    return alike;
}

/* Returns the sighting of the rank with the fewest of its kind in a call; -1: all called the same.
 * `ret_most` is one of the most. */
static int find_odd(const struct sightings *sightings, int first, uint32_t number, int *ret_most)
{
    int most = -1, odd = -1, most_alike = 0, odd_alike = 0;

    for (int i = first; i < sightings_comm_end(sightings, first); i++) {
        const struct sighting_call *call = find_call(sightings->at[i], number);
        int alike = call ? count_alike(sightings, first, call) : 0;

        if (call && (most < 0 || alike > most_alike)) {
            most = i;
            most_alike = alike;
        }
        if (call && (odd < 0 || alike <= odd_alike)) {
            odd = i;
            odd_alike = alike;
        }
    }
    if (odd < 0 ||
        is_alike(find_call(sightings->at[odd], number), find_call(sightings->at[most], number)))
        return -1;
    *ret_most = most;
    return odd;
}

/* Names what differs between two calls, for the sentence. */
static const char *difference(const struct call_record *a, const struct call_record *b)
{
    if (a->collective != b->collective)
        return "another collective";
    if (a->root != b->root)
        return "another root";
    if (a->count != b->count)
        return "another count";
    if (a->type != b->type)
        return "another type";
    return a->op != b->op ? "another operation" : "another algorithm";
}

static void add(const struct sightings *sightings, int first, uint32_t number, int odd, int most,
                struct findings *findings)
{
    const struct call_record *own = &find_call(sightings->at[odd], number)->record;
    const struct call_record *theirs = &find_call(sightings->at[most], number)->record;
    const struct sighting_record *record = &sightings->at[odd]->record;
    struct finding *finding = finding_add(findings);
    char other[120], usual[120];

    if (!finding)
        return;
    call_describe(own, other, sizeof(other));
    call_describe(theirs, usual, sizeof(usual));
    finding->cause = CAUSE_OTHER_CALL;
    finding->comm = first;
    finding->culprit = finding->chain[1] = odd;
    finding->culprit_rank = record->identity.rank;
    finding->chain[0] = most;
    finding->length = 2;
    finding->seconds = sighting_waited(sightings->at[most]);
    finding_say(finding, "rank %d called %s in call %u, rank %d and %d others %s: %s",
                record->identity.rank, other, number - record->internal,
                sightings->at[most]->record.identity.rank,
                count_alike(sightings, first, find_call(sightings->at[most], number)) - 1, usual,
                difference(own, theirs));
}

/* Compares a call with that of the first rank that has one of its number. */
static bool differs_from_first(const struct sightings *sightings, int first, int of,
                               const struct sighting_call *call)
{
    for (int i = first; i < of; i++) {
        const struct sighting_call *other = find_call(sightings->at[i], call->call);

        if (other)
            return !is_alike(other, call);
    }
    return false;
}

void differ_add(const struct sightings *sightings, int first, struct findings *findings)
{
    int end = sightings_comm_end(sightings, first), most = -1;
    bool found = false;
    uint32_t lowest = 0;

    if (!sightings->at[first]->record.comm)
        return;
    /* The first call that differs is the cause of all that come after. */
    for (int i = first; i < end; i++)
        for (int k = 0; k < sightings->at[i]->record.calls_count; k++) {
            const struct sighting_call *call = &sightings->at[i]->record.calls[k];

            if (!call->call || (found && call->call - lowest < UINT32_MAX / 2) ||
                !differs_from_first(sightings, first, i, call))
                continue;
            found = true;
            lowest = call->call;
        }
    if (found) {
        int odd = find_odd(sightings, first, lowest, &most);

        if (odd >= 0)
            add(sightings, first, lowest, odd, most, findings);
    }
}

bool differ_has(const struct findings *findings, const struct sightings *sightings, int of)
{
    int first = sightings_comm_begin(sightings, of);

    for (int i = 0; i < findings->count; i++)
        if (findings->at[i].cause == CAUSE_OTHER_CALL && findings->at[i].comm == first)
            return true;
    return false;
}
