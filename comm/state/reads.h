/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reads.h - is plain memory better read across processes, or staged in slots? Found out by trying,
 * for each kind of call: a read costs a system call and a look at every page, and which of the two
 * wins changes with the size, the machine and the caches (docs/performance.md).
 *
 * A rank that finds slots quicker hides its plain input, and then no rank reads across in that
 * call. So ranks need not find the same: one that hides decides for all. All make the same attempts
 * in the same calls, so they also try at the same time. Who has no input does not decide: nobody
 * would notice.
 */
#ifndef RONDO_COMM_STATE_READS_H
#define RONDO_COMM_STATE_READS_H

#include <stdbool.h>

struct reads {
    unsigned attempts;     /* calls in which buffers could have been shown */
    double across, staged; /* seconds of the quickest call of each sort in the last trial */
};

/* Should this rank hide its plain input in the next attempt? */
bool reads_hide(const struct reads *reads);
/* Will it matter how long the next attempt takes? */
bool reads_trying(const struct reads *reads);
/* The attempt is over: was it read across, and how long did the call take? */
void reads_note(struct reads *reads, bool across, double seconds);

#endif
