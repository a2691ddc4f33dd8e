/* SPDX-License-Identifier: BSD-3-Clause */
/* ps.h - inside `rondo ps`: the command (ps.c), records of other hosts (hosts.c), the program's
 * stack of a rank (stack.c), JSON (json.c). */
#ifndef RONDO_CLI_PS_PS_H
#define RONDO_CLI_PS_PS_H

#include "base/caller/times.h"
#include "comm/recorder/chain.h"

#include <stdio.h>

/* ---- Other hosts ----------------------------------------------------------------------------- */

/* Writes all records of this host to stdout, as bytes that ps_read() takes. 0, or an exit status
 * after a message, here and below. */
int ps_write_raw(void);
/* Adds what such bytes hold; `where`: the host as the user calls it. False: they hold something
 * else, or end too early; what came before is added. */
bool ps_read(const void *bytes, size_t length, const char *where, struct sightings *sightings);
/* Asks all hosts of a list with commas, at once; `ssh` NULL: by ssh. A host that does not answer
 * within so many seconds is left out with a message; 1 if none does. */
int ps_ask_hosts(const char *list, const char *ssh, double seconds, struct sightings *sightings);

/* Runs a program and reads its output until its end, at most `seconds` long; it is ended then. The
 * caller frees; NULL: it could not be started. */
struct ps_output {
    char *text;
    size_t length, room;
    int from, pid; /* -1: closed */
};
bool ps_start(char *const argv[], struct ps_output *ret_output);
/* Reads all of them to their ends; those that last longer are cut short. */
void ps_collect(struct ps_output *outputs, int count, double seconds);

/* ---- Telling --------------------------------------------------------------------------------- */

/* Writes where a rank of this host stands in its program, or why the system does not let us look.
 */
void ps_write_stack(FILE *to, const struct sighting *sighting);
int ps_write_json(const struct sightings *sightings, const struct findings *findings);

#endif
