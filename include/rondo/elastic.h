/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elastic.h - a job whose ranks may end and come while it goes on (docs/elastic.md).
 *
 *     rondo_elastic_open(NULL, NULL, &job);
 *     for (;;) {
 *         result = a piece of work on rondo_elastic_comm(job), which keeps nothing yet;
 *         if (rondo_elastic_agree(job, result == RONDO_OK, &outcome))
 *             the job is over for this rank;
 *         if (outcome.counts)
 *             keep it: all ranks that are left have done it, and do the same here;
 *         if (outcome.changed)
 *             go over to rondo_elastic_comm(job): rondo_ddp_move();
 *     }
 *     rondo_elastic_close(job);
 *
 * Work     what ranks do between two agreements: a step, an evaluation, the handing out of state.
 *          It counts if every rank that is left has done it; else no rank keeps it.
 * State    what a rank must have to do a piece of work. Ranks that were there have it in memory;
 *          a newcomer gets it in a piece of work of its own, which comes first (`share`).
 * Door     a folder where newcomers knock: they find the job there, and rank 0 finds them.
 * Errors   as in rondo.h; rondo_ddp_last_error() has the sentence. A rank is a process.
 */
#ifndef RONDO_ELASTIC_H
#define RONDO_ELASTIC_H

#include <rondo/ddp.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rondo_elastic rondo_elastic;

typedef struct rondo_elastic_config {
    size_t struct_size;
    int least; /* with fewer ranks the job ends; 0: as RONDO_ELASTIC=MIN:MAX says, else 1 */
    int most;  /* more are not let in; 0: as RONDO_ELASTIC says, else any number */
    const char
        *door;    /* a folder that all ranks reach; NULL: RONDO_DOOR. Without one nobody comes */
    int newcomer; /* 1: this process joins a job that runs; 0: as RONDO_JOIN=1 says */
} rondo_elastic_config;

/*
 * Begin a job with rondo_comm_open(), or, as a newcomer, wait at the door until the others let this
 * process in. Both arguments may be NULL; `comm_config` is for every communicator of the job. A
 * newcomer gets RONDO_ERROR_ABORTED if the job has come to its end before, RONDO_ERROR_PEER if no
 * rank of it is left. `rondo run --elastic` sets the variables.
 */
RONDO_API rondo_result rondo_elastic_open(const rondo_elastic_config *config,
                                          const rondo_config *comm_config, rondo_elastic **ret_job);
/* Local; accepts NULL, closes the communicator. A rank whose last piece of work counted tells
 * newcomers that wait that the job is over, unless it said that it has failed. */
RONDO_API void rondo_elastic_close(rondo_elastic *job);
/* Local; accepts NULL. Before closing: this rank leaves because it could not keep what counted, or
 * not go on, so its end is not that of the job. */
RONDO_API void rondo_elastic_fail(rondo_elastic *job);

/* The communicator of the job at the moment: the job's, until the next agreement changes it. */
RONDO_API rondo_comm *rondo_elastic_comm(const rondo_elastic *job);

/* The outcome of a piece of work, the same on every rank that is left. */
typedef struct rondo_elastic_outcome {
    int counts;  /* 1: all ranks that are left have done it */
    int changed; /* 1: there is another communicator; the old one is closed */
    int share;   /* 1: a rank has no state yet; so until a piece of work counts */
    int lost;    /* ranks that have failed since the last agreement */
    int joined;  /* ranks that are new */
} rondo_elastic_outcome;

/*
 * Collective, after each piece of work: did all of us do it (`well` on every rank), who is not
 * there any more, who knocks? Ranks that failed are left out, newcomers are let in. After well =
 * 0 nobody waits on the communicator any more; others that peers may wait on are to be revoked
 * before (rondo_ddp_revoke()). An error, RONDO_ERROR_PEER mostly: fewer ranks than `least` are
 * left, or the others have gone on without this one, or the same work failed several times in a
 * row though all ranks are there.
 */
RONDO_API rondo_result rondo_elastic_agree(rondo_elastic *job, int well,
                                           rondo_elastic_outcome *ret_outcome);

/*
 * 1: a piece of work has counted since this process came, so it has what the others have. 0: what
 * it has may be half of it: a model is opened, again if it was before, and not moved.
 */
RONDO_API int rondo_elastic_has_state(const rondo_elastic *job);

#ifdef __cplusplus
}
#endif
#endif
