/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait_line.h - one line about a wait that lasts: for whom, for how long, in which call of which
 * communicator, what that rank's process does instead, and what helps. Channels and slots come
 * last.
 *
 * The log has it when a wait has lasted for a while, the error of a wait that was given up is the
 * same text, and `rondo run` writes it for each rank that waits when it ends a job.
 */
#ifndef RONDO_COMM_RECORDER_WAIT_LINE_H
#define RONDO_COMM_RECORDER_WAIT_LINE_H

#include "comm/recorder/chain.h"

struct wait_line {
    int rank; /* that waits */
    bool on_stream;
    double seconds;
    int peer;       /* the rank of its communicator that is to blame for the wait */
    char call[320]; /* with the communicator */
    char why[800];  /* sentences */
    char step[440]; /* a sentence as well, to be said last; "": not known */
};

/* Fills `peer` and `why` by what all records say. False: they don't tell, as the peer has none. */
bool wait_line_explain(const struct sightings *sightings, int of, struct wait_line *line);
/* Fills all of the line by records alone. False: the rank does not wait, or nothing is known. */
bool wait_line_read(const struct sightings *sightings, int of, struct wait_line *ret_line);
/* Writes all but the step. */
void wait_line_write(const struct wait_line *line, char *text, size_t size);

#endif
