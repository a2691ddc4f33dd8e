/* SPDX-License-Identifier: BSD-3-Clause */
/* tell.c - the table of all ranks of this host on stderr, when a call has waited for too long, or
 * when the user asks for it by a signal. */
#include "comm/recorder/table.h"

#include "base/caller/times.h"
#include "base/cancel.h"
#include "comm/recorder/gather.h"
#include "comm/recorder/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void write_whole(const char *text, size_t length)
{
    CANCEL_LATER(); /* write() is a place to be cancelled at */

    while (length > 0) {
        ssize_t done = write(STDERR_FILENO, text, length);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return; /* nobody to tell */
        text += done;
        length -= (size_t)done;
    }
}

/* True if another rank of the communicator was first. Each notes when before it looks, so one of
 * them is. */
static bool was_told(const struct sightings *sightings, const struct recorder *recorder)
{
    uint64_t comm = 0, told = 0;

    if (recorder) {
        comm = atomic_load_explicit(&recorder->page->comm, memory_order_relaxed);
        told = atomic_load_explicit(&recorder->page->told, memory_order_relaxed);
    }
    for (int i = 0; i < sightings->count; i++) {
        const struct sighting_record *record = &sightings->at[i]->record;

        if (recorder && record->comm == comm && record->told && record->told < told &&
            record->told + (uint64_t)(1e9 * RECORD_TOLD) > told)
            return true;
    }
    return false;
}

/* True if the records are of one process. */
static bool is_same_process(const struct sighting *a, const struct sighting *b)
{
    const struct recorder_identity *one = &a->record.identity, *other = &b->record.identity;

    return one->pid == other->pid && one->started == other->started &&
           one->namespace_id == other->namespace_id;
}

/* True if the record is of this communicator, or of another one of a process that is in it. */
static bool concerns(const struct sightings *sightings, const struct sighting *sighting,
                     uint64_t comm)
{
    for (int i = 0; i < sightings->count; i++)
        if (sightings->at[i]->record.comm == comm && is_same_process(sightings->at[i], sighting))
            return true;
    return false;
}

/* Other jobs of this user, and what crashed ones have left, are none of a communicator's. */
static void keep_those_of(struct sightings *sightings, uint64_t comm)
{
    int kept = 0;
    bool *keep = calloc((size_t)sightings->count + 1, sizeof(*keep));

    for (int i = 0; keep && i < sightings->count; i++)
        keep[i] = concerns(sightings, sightings->at[i], comm);
    for (int i = 0; i < sightings->count; i++)
        if (keep && keep[i])
            sightings->at[kept++] = sightings->at[i];
        else
            free(sightings->at[i]);
    sightings->count = kept;
    free(keep);
}

static void write_table(const struct sightings *sightings, const char *why)
{
    struct findings findings;
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);

    if (!to)
        return;
    findings_make(sightings, &findings);
    fprintf(to, "rondo: %s. Ranks of this host, as `rondo ps` shows them:\n", why);
    table_write(to, sightings, &findings, NULL, NULL);
    findings_done(&findings);
    if (!fclose(to))
        write_whole(text, length);
    free(text);
}

void table_tell(struct recorder *recorder, const char *why)
{
    struct sightings sightings = {0};
    uint64_t comm = 0;

    if (recorder) {
        atomic_store_explicit(&recorder->page->told, clock_nanoseconds(), memory_order_release);
        comm = atomic_load_explicit(&recorder->page->comm, memory_order_relaxed);
        if (!comm)
            return; /* nobody knows yet who is in it */
    }
    if (gather_here(0, &sightings) && !was_told(&sightings, recorder)) {
        if (recorder)
            keep_those_of(&sightings, comm);
        if (sightings.count)
            write_table(&sightings, why);
    }
    sightings_done(&sightings);
}
