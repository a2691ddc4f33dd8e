/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read.h - records of ranks, read from bytes that are not believed.
 *
 * A record is parsed out of a copy of its file (sighting_parse, a function of bytes and their
 * length alone). The file changes while it is copied, and a copy is made in no known order, so
 * marks are copied before and after: what they do not agree on is taken for being written
 * (sighting_settle). With what the kernel knows of the process a record is a *sighting*.
 */
#ifndef RONDO_COMM_RECORDER_READ_H
#define RONDO_COMM_RECORDER_READ_H

#include "comm/recorder/page.h"

#include <stddef.h>

struct sighting_call {
    uint32_t call, number; /* `call` 0: send or receive */
    enum recorder_state state;
    struct call_record record;
    char algorithm[8 * RECORDER_NAME + 1];
};

struct sighting_arrival {
    uint32_t call;
    uint64_t begun;
};

struct sighting_record {
    struct recorder_identity identity; /* texts are printable, and end */
    uint64_t comm;
    enum recorder_stage stage;
    uint32_t internal;
    uint64_t told;
    bool failed, waits[RECORDER_WAITS];
    struct recorder_failure failure;
    struct recorder_waiting waiting[RECORDER_WAITS];
    int calls_count; /* the newest first */
    struct sighting_call calls[RECORDER_CALLS];
    int arrivals_count; /* in no order */
    struct sighting_arrival arrivals[RECORDER_ARRIVALS];
};

/* False: it is no record of this version. */
bool sighting_parse(const void *bytes, size_t length, struct sighting_record *ret_record);
/* Takes out of a copy of a file what has changed between two more copies, one made before it and
 * one after it. False: the wait was being written, so that the rank seems not to wait. */
bool sighting_settle(void *copy, const void *before, const void *after, size_t length);

/* The kernel knows so much of a process whose record was read. These are plain bytes, as they
 * travel between hosts. */
enum sighting_life { SIGHTING_ALIVE, SIGHTING_ENDED, SIGHTING_HIDDEN /* of another namespace */ };
struct sighting_process {
    uint64_t read;       /* when its record was, by the clock of its host */
    uint8_t life;        /* enum sighting_life */
    char state;          /* as in /proc/PID/stat: R, S, D, T, t, ... */
    uint8_t moved;       /* its record has changed between two looks */
    uint8_t busy;        /* it used processor time between them */
    int32_t system_call; /* that the thread is in, -1: none or not known */
    char inside[32];     /* the kernel's function that it sleeps in */
    char file[88];       /* on which it is, if the call has one */
};
/* Fills all but when the record, a file of this name in the folder, was read. */
void sighting_look(int folder, const char *name, const struct recorder_identity *identity,
                   struct sighting_process *ret_process);
/* Processor time of a process so far, in ticks. */
uint64_t sighting_ticks(int pid);

struct sighting {
    struct sighting_record record;
    struct sighting_process process;
    char where[64]; /* the host as the user calls it */
};

struct sightings {
    struct sighting **at; /* by communicator, then rank */
    int count, room;
};
void sightings_done(struct sightings *sightings);
/* Adds a sighting, made of a copy of its file. False: out of memory, or it is no record. */
bool sightings_add(struct sightings *sightings, const void *bytes, size_t length,
                   const struct sighting_process *process, const char *where);
void sightings_sort(struct sightings *sightings);

#endif
