/* SPDX-License-Identifier: BSD-3-Clause */
/* folder.h - the folder of a user's records, and what is swept out of it. */
#ifndef RONDO_COMM_RECORDER_FOLDER_H
#define RONDO_COMM_RECORDER_FOLDER_H

#include "comm/recorder/page.h"

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A descriptor of the folder: RONDO_RECORDER_DIR, else /dev/shm/rondo-UID, else that of the
 * session. `make`: it is made if it is not there. -1 with a sentence: nobody else may be able to
 * write there. */
int folder_open(bool make);
/* Calls `see` for each record; it returns false to stop. */
void folder_each(int folder, bool (*see)(void *context, int folder, const char *name),
                 void *context);
/* Reads at most `room` bytes of a record, which is a plain file of ours; 0: it is none. */
size_t folder_read(int folder, const char *name, void *bytes, size_t room);
/* Removes records of processes that have ended: those found to have ended an hour ago, or `all`.
 * Returns how many. */
int folder_sweep(int folder, bool all);

/* The namespace in which this process has its number. */
uint64_t process_namespace(void);
/* True if the process that wrote the record has ended; one of another namespace counts as alive
 * where that cannot be known. */
bool folder_has_ended(int folder, const char *name, const struct recorder_identity *identity);

#endif
