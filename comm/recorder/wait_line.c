/* SPDX-License-Identifier: BSD-3-Clause */
/* wait_line.c - see wait_line.h. */
#include "comm/recorder/find.h"
#include "comm/recorder/wait_line.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The last rank of the chain that is in the communicator of the one that waits. */
static int last_of_comm(const struct sightings *sightings, int of, const struct finding *finding)
{
    int last = sighting_wait(sightings->at[of])->peers[0];

    for (int i = 1; i < finding->length; i++) {
        if (sightings->at[finding->chain[i]]->record.comm != sightings->at[of]->record.comm)
            break;
        last = sightings->at[finding->chain[i]]->record.identity.rank;
    }
    return last;
}

/* The rank to name as the one that is waited for. */
static int choose_peer(const struct sightings *sightings, int of, const struct finding *finding)
{
    if (finding->cause == CAUSE_OTHER_CALL)
        return finding->culprit_rank;
    if (finding->cause == CAUSE_DEADLOCK || finding->cause == CAUSE_LINK || finding->culprit < 0)
        return sighting_wait(sightings->at[of])->peers[0];
    return last_of_comm(sightings, of, finding);
}

/* Writes in which call of another communicator a rank is. */
static void write_elsewhere(const struct sightings *sightings, int rank, int there, char *text,
                            size_t size)
{
    char call[120], comm[160];

    sighting_describe_call(sightings->at[there], call, sizeof(call));
    sightings_describe_comm(sightings, there, comm, sizeof(comm));
    snprintf(text, size, " Rank %d is in a call of another communicator, %s of %s.", rank, call,
             comm);
}

/* Writes what the rank does that is waited for first, if it waits itself. Of a long chain only the
 * end is kept. */
static void write_way(const struct sightings *sightings, int of, const struct finding *finding,
                      char *text, size_t size)
{
    const struct sighting *own = sightings->at[of], *via, *next;
    char call[120];

    if (finding->culprit < 0 || finding->cause == CAUSE_OTHER_CALL || finding->length < 3 ||
        finding->chain[0] != of)
        return;
    via = sightings->at[finding->chain[1]];
    next = sightings->at[finding->chain[2]];
    if (next->record.comm != via->record.comm) {
        write_elsewhere(sightings, via->record.identity.rank, finding->chain[2], text, size);
        return;
    }
    sighting_describe_call(via, call, sizeof(call));
    if (sighting_call(own) && sighting_call(via) &&
        sighting_call(own)->call == sighting_call(via)->call && sighting_call(own)->call)
        snprintf(call, sizeof(call), "the same call");
    snprintf(text, size, " Rank %d is in %s and waits for rank %d.", via->record.identity.rank,
             call, next->record.identity.rank);
}

/* Writes where the peer is instead, in a circle over several communicators. */
static void write_circle(const struct sightings *sightings, int of, const struct finding *finding,
                         int peer, char *text, size_t size)
{
    for (int i = 0; i < finding->length && finding->cause == CAUSE_DEADLOCK; i++) {
        const struct sighting_record *record = &sightings->at[finding->chain[i]]->record;
        int there = sightings_elsewhere(sightings, finding->chain[i]);

        if (record->comm == sightings->at[of]->record.comm && record->identity.rank == peer &&
            sighting_wait(sightings->at[finding->chain[i]]) == NULL && there >= 0)
            write_elsewhere(sightings, peer, there, text, size);
    }
}

bool wait_line_explain(const struct sightings *sightings, int of, struct wait_line *line)
{
    const struct recorder_waiting *waiting = sighting_wait(sightings->at[of]);
    struct finding finding;
    size_t used;

    if (!waiting || !waiting->peers_count || !finding_make(sightings, of, &finding) ||
        (finding.cause == CAUSE_UNKNOWN && finding.culprit_rank >= 0))
        return false;
    line->peer = choose_peer(sightings, of, &finding);
    snprintf(line->why, sizeof(line->why), "%s.", finding.sentence);
    line->why[0] = (char)toupper((unsigned char)line->why[0]);
    used = strlen(line->why);
    write_way(sightings, of, &finding, line->why + used, sizeof(line->why) - used);
    write_circle(sightings, of, &finding, line->peer, line->why + used, sizeof(line->why) - used);
    return true;
}

bool wait_line_read(const struct sightings *sightings, int of, struct wait_line *ret_line)
{
    const struct sighting *sighting = sightings->at[of];
    const struct recorder_waiting *waiting = sighting_wait(sighting);
    const struct sighting_call *call = sighting_call(sighting);
    char words[120], comm[160], number[32] = "";
    struct wait_line line = {.rank = sighting->record.identity.rank,
                             .seconds = sighting_waited(sighting)};

    if (sighting_state(sighting) != RANK_WAITS || !waiting->peers_count)
        return false;
    line.on_stream = waiting == &sighting->record.waiting[1];
    if (!wait_line_explain(sightings, of, &line)) {
        line.peer = waiting->culprit >= 0 ? waiting->culprit : waiting->peers[0];
        snprintf(line.why, sizeof(line.why),
                 "Records of this host don't tell what rank %d does: `rondo ps --hosts` does.",
                 line.peer);
    }
    sighting_describe_call(sighting, words, sizeof(words));
    sightings_describe_comm(sightings, of, comm, sizeof(comm));
    if (call && call->call > sighting->record.internal)
        snprintf(number, sizeof(number), "call %u of ", call->call - sighting->record.internal);
    snprintf(line.call, sizeof(line.call), "%s, %s%s", line.on_stream ? "a call" : words,
             line.on_stream ? "" : number, comm);
    if (waiting->steps)
        snprintf(line.step, sizeof(line.step), " Rank %d is at step %u of %u: %s.", line.rank,
                 waiting->step, waiting->steps, waiting->what);
    *ret_line = line;
    return true;
}

void wait_line_write(const struct wait_line *line, char *text, size_t size)
{
    snprintf(text, size, "%s %d has waited %.1f s for rank %d in %s. %s",
             line->on_stream ? "On a stream, rank" : "Rank", line->rank, line->seconds, line->peer,
             line->call, line->why);
}
