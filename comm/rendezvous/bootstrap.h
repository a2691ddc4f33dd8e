/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bootstrap.h - how ranks find each other: one authenticated all-gather of small blobs, through a
 * star.
 *
 * Rank 0 (or whoever made the unique id) listens at the meeting point; every rank connects, proves
 * that it knows the job's secret (challenge and response, keyed hash; the secret itself never
 * travels), names its rank and size, hands in its blob and gets everybody's. On one host the
 * meeting point is an abstract Unix socket whose peers must have our uid; across hosts it is TCP.
 * Wrong secret, rank out of range, a rank claimed twice, different sizes or versions, garbage,
 * half-open and silent connections: strangers are dropped without harm to the job, members get a
 * sentence.
 */
#ifndef RONDO_COMM_RENDEZVOUS_BOOTSTRAP_H
#define RONDO_COMM_RENDEZVOUS_BOOTSTRAP_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stddef.h>

/* An address has room for the longest name of DNS, 253 characters, and a port. Shorter is that of a
 * unique id, and one that a rank makes up, without a name. */
enum { BOOTSTRAP_SECRET = 32, BOOTSTRAP_ADDRESS_MAX = 260, BOOTSTRAP_SHORT_ADDRESS_MAX = 80 };

struct bootstrap_place {
    char address[BOOTSTRAP_ADDRESS_MAX];    /* "unix:NAME" (abstract) or "HOST:PORT", "[V6]:PORT" */
    unsigned char secret[BOOTSTRAP_SECRET]; /* key of the proof */
    bool listen_everywhere; /* who serves it listens on all addresses of its host, at that port */
};

/* A caller that knows more of the ranks it waits for than that they have not come. */
struct bootstrap_watch {
    /* Called ten times a second or more often, by who has not reached the meeting point yet, and by
     * who serves it, there also before it says that all have come: anything but RONDO_OK ends the
     * rendezvous, for all who are there with that sentence. NULL: there is nothing to look at. */
    rondo_result (*look)(void *context);
    bool everybody; /* all ranks look for themselves: who has not come yet sees that one is gone */
    double settle;  /* seconds for which who serves looks on when all have come */
    /* In the rank that serves: it listens now, at this address. NULL: nobody wants to know. */
    void (*opened)(void *context, const char *address);
    /* In other ranks, when they have reached the meeting point: a process of this host that claims
     * the same rank, 0: there is none. NULL: nobody knows. */
    unsigned (*rival)(void *context);
    void *context;
};

/* The job as the launcher told this process of it. */
struct launch {
    /* "rondo run", "torchrun", "Open MPI", "MPICH", "Slurm", "PMIx", "none" */
    const char *launcher;
    int rank, size, local_rank, local_size; /* local ones -1 if unknown */
    struct bootstrap_place place;           /* meeting point; unused when size is 1 */
    bool served;                            /* by a thread, so rank 0 need not */
    unsigned open; /* how many opens of this process have met, or were meeting, before */
    /* One word for the job, the same at each open; "": each open has a place of its own. */
    char job[33];
    bool unnamed;                 /* other jobs may have the same word */
    struct bootstrap_watch watch; /* launch_claim() fills it; without a context: nothing to watch */
};

/* Read the environment. RONDO_ERROR_INVALID with a sentence for half-set or contradictory
 * variables. */
rondo_result launch_read(struct launch *ret_launch);
/* This process is the rank from now on until it ends. RONDO_ERROR_INVALID: another one of this host
 * is, and has been told. */
rondo_result launch_claim(struct launch *launch);
/* The ranks have met: who claims the rank from now on is too late to do any harm. */
void launch_met(const struct launch *launch);
/* They have not: the next open of this process goes to the same place, unless one is going to the
 * place after it. */
void launch_missed(const struct launch *launch);

/* Unique ids: a place on this host with a fresh secret, and a thread of this process that
 * serves it once. */
rondo_result bootstrap_id_create(rondo_unique_id *ret_id);
/* Creates an id like bootstrap_id_create(), at "HOST:PORT" of this host (port 0: any), or (NULL) at
 * an address that ranks of other hosts reach. Its thread serves for `timeout` seconds, 0: for ever,
 * negative: the setting. */
rondo_result bootstrap_id_create_at(const char *address, double timeout, rondo_unique_id *ret_id);
/* Creates an id like bootstrap_id_create(), at an address that ranks of other hosts reach; see
 * RONDO_INTERFACE. */
rondo_result bootstrap_id_create_for_hosts(rondo_unique_id *ret_id);
/* Add RONDO_SECRET, where it is set, to the key of a place that comes from an id, as others may
 * have read the id. */
void bootstrap_place_add_secret(struct bootstrap_place *place);
rondo_result bootstrap_id_read(const rondo_unique_id *id, struct bootstrap_place *ret_place);

/* While an id of this process is served at `place`, its thread looks by `watch` (without
 * `opened`), until another call says NULL: then no look is under way any more. Does nothing if the
 * place is served elsewhere. One watch at a time. */
void bootstrap_id_watch(const struct bootstrap_place *place, const struct bootstrap_watch *watch);
/* The rendezvous at an id's place, if this process serves it, ends with RONDO_ERROR_PEER and the
 * sentence of this thread's last error, for all who are there or come soon. */
void bootstrap_id_refuse(const struct bootstrap_place *place);

/* Nobody has got the id: its server, if this process has it, ends. */
void bootstrap_id_drop(const struct bootstrap_place *place);

/* A rank's part in a rendezvous. */
struct bootstrap_part {
    const struct bootstrap_place *place; /* who watches may change the address while it looks */
    int rank, size;
    bool serve;
    double timeout;
    const struct bootstrap_watch *watch; /* NULL: none */
    /* Not 0: the process that has the rank already, about which the meeting point is told at once
     * or not at all. */
    unsigned holder;
    bool *ret_nobody; /* true: nobody has proved to be the meeting point; NULL: of no use */
};

/*
 * Collective. ret_blobs has room for size * blob_bytes, in rank order. `serve`: this process also
 * runs the meeting point if it is rank 0 (false for unique ids, whose server is already running).
 * `timeout` in seconds, 0: for ever. On error every rank that reached the server gets the same
 * sentence.
 */
rondo_result bootstrap_all_gather(const struct bootstrap_place *place, int rank, int size,
                                  bool serve, double timeout, const void *blob, size_t blob_bytes,
                                  void *ret_blobs);
rondo_result bootstrap_take_part(const struct bootstrap_part *part, const void *blob,
                                 size_t blob_bytes, void *ret_blobs);

#endif
