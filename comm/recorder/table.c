/* SPDX-License-Identifier: BSD-3-Clause */
/* table.c - see table.h. */
#include "comm/recorder/table.h"

#include "comm/recorder/late.h"

#include <stdlib.h>
#include <string.h>

static void write_seconds(char *text, size_t size, double seconds)
{
    if (seconds <= 0)
        snprintf(text, size, "-");
    else if (seconds < 1)
        snprintf(text, size, "%.0f ms", 1e3 * seconds);
    else
        snprintf(text, size, "%.1f s", seconds);
}

/* "124 all_reduce of 17 float32, sum", with the number that the user counts. */
static void write_call(char *text, size_t size, const struct sighting *sighting)
{
    const struct sighting_call *call = sighting_call(sighting);
    char words[128];

    if (!call) {
        snprintf(text, size, "-");
        return;
    }
    call_describe(&call->record, words, sizeof(words));
    if (call->call > sighting->record.internal)
        snprintf(text, size, "%u %s%s", call->call - sighting->record.internal, words,
                 call->state == RECORDER_BEGUN ? "" : " (done)");
    else
        snprintf(text, size, "%s%s", words, call->state == RECORDER_BEGUN ? "" : " (done)");
}

static void write_waits(char *text, size_t size, const struct sighting *sighting)
{
    const struct recorder_waiting *waiting = sighting_wait(sighting);
    int used = 0;

    *text = '\0';
    for (int i = 0; waiting && i < waiting->peers_count && (size_t)used < size; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%d", i ? ", " : "rank ",
                         waiting->peers[i]);
    if (waiting && waiting->steps && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, " at step %u of %u: %s", waiting->step,
                 waiting->steps, waiting->what);
    else if (waiting && *waiting->what && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, ": %s", waiting->what);
}

static void write_rank(FILE *to, const struct sighting *sighting)
{
    const struct recorder_identity *identity = &sighting->record.identity;
    const struct sighting_call *call = sighting_call(sighting);
    const char *state = rank_state_name(sighting_state(sighting));
    char text[200], waits[240], seconds[24];

    if (sighting->process.life == SIGHTING_ALIVE &&
        (sighting->process.state == 'T' || sighting->process.state == 't'))
        state = "stopped";
    write_seconds(seconds, sizeof(seconds), sighting_waited(sighting));
    write_call(text, sizeof(text), sighting);
    write_waits(waits, sizeof(waits), sighting);
    fprintf(to, "%6d %9d  %-14.14s %-9s %9s  %s%s%s%s%s\n", identity->rank, identity->pid,
            sighting->where, state, seconds, text, call && *call->algorithm ? " by " : "",
            call ? call->algorithm : "", *waits ? ", waits for " : "", waits);
}

static void write_comm(FILE *to, const struct sightings *sightings, int first)
{
    const struct sighting_record *record = &sightings->at[first]->record;
    int end = sightings_comm_end(sightings, first);

    if (record->comm)
        fprintf(to, "communicator %llx of %d ranks (%s), %d of them read\n",
                (unsigned long long)record->comm, record->identity.size, record->identity.program,
                end - first);
    else
        fprintf(to, "communicators that open, %d ranks\n", end - first);
    fprintf(to, "  rank   process  host           state         since  call\n");
    for (int i = first; i < end; i++)
        write_rank(to, sightings->at[i]);
}

static void write_chain(FILE *to, const struct sightings *sightings, const struct finding *finding)
{
    for (int i = 0; i < finding->length; i++) {
        const struct sighting *sighting = sightings->at[finding->chain[i]];
        const struct sighting *before = i ? sightings->at[finding->chain[i - 1]] : NULL;

        if (before && before->record.comm != sighting->record.comm)
            fprintf(to, ", which is in a call of communicator %llx as rank %d",
                    (unsigned long long)sighting->record.comm, sighting->record.identity.rank);
        else
            fprintf(to, "%s%d", i ? " -> rank " : "    rank ", sighting->record.identity.rank);
    }
    if (finding->cause == CAUSE_UNKNOWN && finding->culprit < 0 && finding->culprit_rank >= 0)
        fprintf(to, " -> rank %d", finding->culprit_rank);
    if (finding->cause == CAUSE_DEADLOCK || finding->cause == CAUSE_LINK)
        fprintf(to, " -> and so on, in a circle");
    fprintf(to, "\n");
}

void table_write(FILE *to, const struct sightings *sightings, const struct findings *findings,
                 table_more more, void *context)
{
    for (int i = 0; i < sightings->count; i = sightings_comm_end(sightings, i)) {
        write_comm(to, sightings, i);
        for (int k = 0; k < findings->count; k++) {
            const struct finding *finding = &findings->at[k];
            char seconds[24];

            if (finding->comm != i)
                continue;
            write_seconds(seconds, sizeof(seconds), finding->seconds);
            fprintf(to, "  cause: %s, for %s: %s\n", cause_name(finding->cause), seconds,
                    finding->sentence);
            write_chain(to, sightings, finding);
            if (more)
                more(context, to, finding);
        }
        fprintf(to, "\n");
    }
}

/* ---- Who comes late -------------------------------------------------------------------------- */

static void write_lateness(FILE *to, const struct sightings *sightings, const struct lateness *late)
{
    const struct sighting *sighting = sightings->at[late->sighting];

    fprintf(to, "%6d  %-14.14s %6d %6.1f%% %10.3f %10.3f %12.3f ", sighting->record.identity.rank,
            sighting->where, late->calls, 100.0 * late->last / late->calls, 1e3 * late->mean,
            1e3 * late->most, 1e3 * late->held_up);
    for (int bin = 0; bin < LATE_BINS; bin++)
        fprintf(to, " %6d", late->bins[bin]);
    fprintf(to, "\n");
}

void table_write_late(FILE *to, const struct sightings *sightings)
{
    for (int i = 0; i < sightings->count; i = sightings_comm_end(sightings, i)) {
        struct lateness *late;
        int count = late_make(sightings, i, &late);

        fprintf(to, "communicator %llx of %d ranks (%s)\n",
                (unsigned long long)sightings->at[i]->record.comm,
                sightings->at[i]->record.identity.size, sightings->at[i]->record.identity.program);
        if (!count) {
            fprintf(to, "  no call has been timed by all ranks of a host yet\n\n");
            continue;
        }
        fprintf(to, "  rank  host            calls    last    mean ms    most ms   held up ms ");
        for (int bin = 0; bin < LATE_BINS; bin++)
            fprintf(to, " %6s", late_bin_name(bin));
        fprintf(to, "\n");
        for (int k = 0; k < count; k++)
            write_lateness(to, sightings, &late[k]);
        fprintf(to, "\n");
        free(late);
    }
}
