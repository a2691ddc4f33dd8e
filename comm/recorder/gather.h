/* SPDX-License-Identifier: BSD-3-Clause */
/* gather.h - all records of this host. */
#ifndef RONDO_COMM_RECORDER_GATHER_H
#define RONDO_COMM_RECORDER_GATHER_H

#include "comm/recorder/read.h"

/* One record as bytes: what `rondo ps` of another host gets. */
struct gathered {
    struct sighting_process process;
    uint64_t ticks;
    size_t length;
    unsigned char bytes[sizeof(struct recorder_page)];
};
/* Reads all records, and again `pause` seconds later to see what moves; 0: once. Calls `take` for
 * each; it returns false to stop. False, with a sentence: there is no folder. */
bool gather_each(double pause, bool (*take)(void *context, const struct gathered *one),
                 void *context);
/* Adds all records of this host, sorted. */
bool gather_here(double pause, struct sightings *sightings);

#endif
