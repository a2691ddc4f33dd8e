/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late.h - who comes late to calls, how late, and how often.
 *
 * All ranks time the same calls (recorder.h). Ranks of one host read one clock, so their beginnings
 * can be compared: the last one holds up all others, for as long as it came after the last but one.
 */
#ifndef RONDO_COMM_RECORDER_LATE_H
#define RONDO_COMM_RECORDER_LATE_H

#include "comm/recorder/read.h"

/* Bins of how late a rank came after the first: below 10 us, 100 us, ... 1 s, and above. */
enum { LATE_BINS = 7 };

struct lateness {
    int sighting;
    int calls;         /* that all ranks of its host have timed */
    int last;          /* of these, in how many it was the last */
    double mean, most; /* seconds after the first */
    double held_up;    /* seconds in sum that all others waited for it alone */
    int bins[LATE_BINS];
};

/* Compares the ranks of the communicator whose first sighting is `first`; those that hold up most
 * come first. Returns how many; the caller frees. 0 with NULL: nothing can be compared. */
int late_make(const struct sightings *sightings, int first, struct lateness **ret_late);
/* The upper end of a bin in words: "10 us". */
const char *late_bin_name(int bin);

#endif
