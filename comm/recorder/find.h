/* SPDX-License-Identifier: BSD-3-Clause */
/* find.h - inside the search for culprits (chain.c): what one file of it has for the others. */
#ifndef RONDO_COMM_RECORDER_FIND_H
#define RONDO_COMM_RECORDER_FIND_H

#include "comm/recorder/chain.h"

/* NULL: out of memory. It lasts until the next is added. */
struct finding *finding_add(struct findings *findings);
void finding_say(struct finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int sightings_comm_begin(const struct sightings *sightings, int of);
bool sightings_share_memory(const struct sighting *a, const struct sighting *b);
/* Returns where the process of a sighting waits in a call of another communicator, -1: nowhere. */
int sightings_elsewhere(const struct sightings *sightings, int of);
enum cause sighting_cause(const struct sighting *sighting);

/* Calls of one communicator, whose first sighting is `first`, that differ between ranks. */
void differ_add(const struct sightings *sightings, int first, struct findings *findings);
/* True if a call that differs was found in the communicator of that sighting. */
bool differ_has(const struct findings *findings, const struct sightings *sightings, int of);

/* From `start` everybody who is waited for waits as well: names the circle, once. `from` is how the
 * search went, `in_circle` what was named before. */
void circle_add(const struct sightings *sightings, const int *from, int start, bool *in_circle,
                struct findings *findings);

/* A communicator that has failed, and where nothing else was found. */
void failure_add(const struct sightings *sightings, int first, struct findings *findings);

#endif
