/* SPDX-License-Identifier: BSD-3-Clause */
/* table.h - sightings and findings as text, for people. */
#ifndef RONDO_COMM_RECORDER_TABLE_H
#define RONDO_COMM_RECORDER_TABLE_H

#include "comm/recorder/chain.h"

#include <stdio.h>

struct recorder;

/* Calls `more` (may be NULL) after each finding, for what only the caller knows. */
typedef void (*table_more)(void *context, FILE *to, const struct finding *finding);

void table_write(FILE *to, const struct sightings *sightings, const struct findings *findings,
                 table_more more, void *context);
void table_write_late(FILE *to, const struct sightings *sightings);

/* ---- Tables that the library writes on stderr ------------------------------------------------ */

/* All ranks of this host, because of `why`; with `recorder` not NULL only its communicator's, and
 * other communicators of the same processes, if no other rank of it has just done so. */
void table_tell(struct recorder *recorder, const char *why);

#endif
