/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * waits.c - before a job is ended: what its ranks wait for.
 *
 * Ranks write their waits into files (comm/recorder/recorder.h), so no rank has to answer, and the
 * signals stay the program's. A rank is known by its process group, so what it has started counts.
 */
#include "cli/run/job.h"

#include "comm/recorder/gather.h"
#include "comm/recorder/wait_line.h"

#include <stdio.h>
#include <unistd.h>

static bool is_of_job(const struct run_job *job, const struct sighting *sighting)
{
    pid_t group =
        sighting->process.life == SIGHTING_ALIVE ? getpgid(sighting->record.identity.pid) : -1;

    for (int rank = 0; group > 0 && rank < job->size; rank++)
        if (job->ranks[rank].pid == group)
            return true;
    return false;
}

void run_tell_waits(const struct run_job *job)
{
    enum { LINES = 64 };
    struct sightings sightings = {0};
    struct wait_line line;
    char text[1200];
    int more = 0, told = 0;

    if (job->hosts || !gather_here(0, &sightings))
        return;
    for (int i = 0; i < sightings.count; i++) {
        if (!is_of_job(job, sightings.at[i]) || sighting_waited(sightings.at[i]) < RECORD_WAITS)
            continue;
        if (told == LINES) {
            more++;
        } else if (wait_line_read(&sightings, i, &line)) {
            wait_line_write(&line, text, sizeof(text));
            fprintf(stderr, "rondo run: %s%s\n", text, line.step);
            told++;
        }
    }
    if (more)
        fprintf(stderr, "rondo run: %d more ranks wait\n", more);
    sightings_done(&sightings);
}
