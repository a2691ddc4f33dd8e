/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain.h - who waits for whom, down to the rank that waits for nobody.
 *
 * Sightings are the nodes of a graph. A rank that waits in a call has an edge to each peer that it
 * waits for. A rank that does not wait in its communicator, but whose process waits in a call of
 * another one, has an edge to itself there. From each rank that waits the nearest is looked for
 * that has no edge: it is the culprit, and what its process does is the cause. Where there is none,
 * the way comes back to where it was:
 *
 *     in one call, between hosts   messages were lost: the link is cut. Plans have no such circle,
 *                                  as the verifier has proved.
 *     over several communicators   their calls were made in different orders
 *     of send and receive          each waits for the other
 *
 * A call that differs between ranks goes before all of this, and so does a rank that has ended.
 */
#ifndef RONDO_COMM_RECORDER_CHAIN_H
#define RONDO_COMM_RECORDER_CHAIN_H

#include "comm/recorder/read.h"

enum rank_state {
    RANK_OUTSIDE, /* in no call */
    RANK_INSIDE,  /* in a call, and not waiting */
    RANK_WAITS,
    RANK_BROKEN, /* its communicator has failed */
    RANK_OPENING,
    RANK_ENDED,
};

enum cause {
    CAUSE_NONE,
    CAUSE_NEVER_CALLED,
    CAUSE_DEAD,
    CAUSE_STOPPED,
    CAUSE_SLOW, /* it works, or waits for a disk */
    CAUSE_OTHER_CALL,
    CAUSE_DEADLOCK,
    CAUSE_LINK,
    CAUSE_LOCK,    /* it sleeps on a lock of its program */
    CAUSE_FAILED,  /* an error that says itself what it is */
    CAUSE_UNKNOWN, /* the rank has no record among those that were read */
    CAUSES
};

enum { CHAIN_MAX = 24 };

struct finding {
    enum cause cause;
    int comm;         /* the first sighting of the communicator where somebody waits */
    int culprit_rank; /* in the communicator of the last sighting of the chain; -1: none alone */
    int culprit;      /* its sighting, -1: it has none */
    int between[2];   /* sightings at the ends of a link, or of communicators that cross */
    int chain[CHAIN_MAX], length; /* sightings, from one that waits to the culprit */
    double seconds;               /* that the longest wait lasts */
    char sentence[512];
};

struct findings {
    struct finding *at;
    int count, room;
};

/* `sightings` is sorted. */
void findings_make(const struct sightings *sightings, struct findings *ret_findings);
/* Finds why sighting `of` waits. False: it does not wait, or no reason is known. */
bool finding_make(const struct sightings *sightings, int of, struct finding *ret_finding);
void findings_done(struct findings *findings);

/* How a rank is, by its record and process alone. */
enum rank_state sighting_state(const struct sighting *sighting);
/* The wait that counts, or NULL: it does not wait. */
const struct recorder_waiting *sighting_wait(const struct sighting *sighting);
/* The call that it is in or made last; NULL: none. */
const struct sighting_call *sighting_call(const struct sighting *sighting);
double sighting_waited(const struct sighting *sighting); /* seconds, 0: it does not wait */
/* One after the last sighting of the communicator of sighting number `first`. */
int sightings_comm_end(const struct sightings *sightings, int first);

/* Writes the call that it is in or made last: "send of 8 float32 to rank 1"; "no call": none. */
void sighting_describe_call(const struct sighting *sighting, char *text, size_t size);
/* Writes the communicator of sighting number `of`, with the ranks that are among the sightings:
 * "communicator 3f9d of 4 ranks (world ranks 0-3)". */
void sightings_describe_comm(const struct sightings *sightings, int of, char *text, size_t size);

const char *cause_name(enum cause cause);
const char *rank_state_name(enum rank_state state);
/* Writes in words what a process does: "sleeps outside of Rondo in read of /data/x". */
void sighting_describe_process(const struct sighting *sighting, char *text, size_t size);

#endif
