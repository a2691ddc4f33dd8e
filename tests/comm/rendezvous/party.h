/* SPDX-License-Identifier: BSD-3-Clause */
/* party.h - threads that play the ranks of a bootstrap, for
 * Criterion tests and for stress programs. */
#ifndef RONDO_TESTS_COMM_RENDEZVOUS_PARTY_H
#define RONDO_TESTS_COMM_RENDEZVOUS_PARTY_H

#include "comm/rendezvous/bootstrap.h"

#include "base/fail.h"

#include <pthread.h>

enum { PARTY_BLOB = 200 };

struct party_rank {
    struct bootstrap_place place;
    int rank, size;
    bool serve;
    double timeout;
    size_t blob_bytes; /* at most PARTY_BLOB */
    rondo_result result;
    bool right; /* every blob is that of its rank */
    char sentence[FAIL_SENTENCE_MAX];
    pthread_t thread;
};

/* A fresh place: a Unix socket, or (`tcp`) a free port of the loopback. */
void party_place(struct bootstrap_place *ret_place, bool tcp);
/* `size` ranks of one job. Change what should be wrong, then start. Freed by party_free(). */
struct party_rank *party_new(const struct bootstrap_place *place, int size, double timeout);
/* Makes the ranks of a job at a fresh place. */
struct party_rank *party_at(bool tcp, int size, double timeout);
void party_start(struct party_rank *ranks, int count);
void party_join(struct party_rank *ranks, int count);
/* Both. How many of the ranks have succeeded with the right blobs. */
int party_run(struct party_rank *ranks, int count);
void party_free(struct party_rank *ranks);
/* Run one rank in this thread. */
void party_take_part(struct party_rank *rank);
/* Open file descriptors of this process. */
int party_files(void);

#endif
