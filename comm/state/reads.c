/* SPDX-License-Identifier: BSD-3-Clause */
/* reads.c - trials of reading across processes, see reads.h. */
#include "comm/state/reads.h"

#include <math.h>

/* Both ways are tried in several calls each, as the first call finds pages that nobody has
 * touched. */
enum { TRIAL_CALLS = 3, ATTEMPTS_BETWEEN_TRIALS = 64 };

static unsigned place_in_round(const struct reads *reads)
{
    return reads->attempts % ATTEMPTS_BETWEEN_TRIALS;
}

bool reads_hide(const struct reads *reads)
{
    unsigned place = place_in_round(reads);

    if (place < 2 * TRIAL_CALLS)
        return place >= TRIAL_CALLS;
    return reads->staged < reads->across;
}

bool reads_trying(const struct reads *reads)
{
    return place_in_round(reads) < 2 * TRIAL_CALLS;
}

void reads_note(struct reads *reads, bool across, double seconds)
{
    unsigned place = place_in_round(reads);

    if (place == 0)
        reads->across = reads->staged = INFINITY;
    if (place < 2 * TRIAL_CALLS) {
        double *least = across ? &reads->across : &reads->staged;

        *least = fmin(*least, seconds);
    }
    reads->attempts++;
}
