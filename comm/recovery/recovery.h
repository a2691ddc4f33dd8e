/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recovery.h - going on after a failure: agreements among the ranks of a communicator, which may be
 * broken. docs/recovery.md says what is promised.
 */
#ifndef RONDO_COMM_RECOVERY_RECOVERY_H
#define RONDO_COMM_RECOVERY_RECOVERY_H

#include "comm/state/comm.h"

/* An agreement has a purpose, in which all ranks have to agree, as it says what they called. */
enum recovery_purpose {
    PURPOSE_AGREE = 1,
    PURPOSE_SHRINK = 2,
    PURPOSE_GROW = 4,
    PURPOSE_CALL = 8,   /* the result of a collective, uniform.c */
    PURPOSE_BROKE = 16, /* added to it: the call has broken the communicator */
    PURPOSE_OPEN = 32,  /* all have the communicator that they open */
    PURPOSE_RESULT = 64 /* added to PURPOSE_CALL: times two to the power of the rondo_result */
};

/*
 * Take part in the next agreement: blocks until every rank has come, or has ended, closed the
 * communicator or been silent for the timeout. RONDO_OK: the verdict is the same on every rank that
 * it does not name. RONDO_ERROR_MISMATCH on all: ranks called different functions.
 * RONDO_ERROR_PEER: the others have gone on without this rank.
 */
rondo_result recovery_agree(rondo_comm *comm, enum recovery_purpose purpose, uint64_t flags,
                            struct verdict *ret_verdict);
/* Does what recovery_agree() does, for the holder of the turn, with more than one bit of purpose,
 * and whatever the others called: RONDO_OK, or why there is no verdict. */
rondo_result recovery_decide(rondo_comm *comm, uint64_t purpose, uint64_t flags,
                             struct verdict *ret_verdict);
/* From now on collectives return this result, and there is no agreement about them any more. */
void recovery_part(rondo_comm *comm, rondo_result result);
/* The result of recovery_part(); RONDO_OK: collectives are still agreed on. */
rondo_result recovery_parted(const rondo_comm *comm);
/* The result of a collective by the votes of all; RONDO_OK: it went well. */
rondo_result uniform_result(uint64_t purposes);
/* rondo_comm.settle of a communicator with the setting RONDO_UNIFORM. */
rondo_result uniform_settle(rondo_comm *comm, rondo_result result);
/* Frees what agreements need; accepts a communicator that had none. */
void recovery_close(rondo_comm *comm);
/* True if the rank has ended or closed the communicator, as far as can be seen without waiting.
 * With `networks`, which the holder of the turn may look at, it judges those of other hosts too. */
bool recovery_has_ended(const rondo_comm *comm, int rank, bool networks);
/* RONDO_ERROR_INVALID with a sentence if the function cannot be called here. */
rondo_result recovery_check(rondo_comm *comm, const char *function);
/* Adds the failed ranks to a set: those of the last verdict, whatever can be seen of them now, and
 * those that have ended since. Does not wait; from any thread. */
void recovery_find_failed(rondo_comm *comm, uint64_t set[VOTE_SET]);
/* The settings of a communicator, for another one that takes its place. */
rondo_config recovery_config(const rondo_comm *comm);
/* The ranks of a set, ascending, to ret_ranks, which may be NULL; returns how many there are. */
int recovery_list(const uint64_t set[VOTE_SET], int size, int *ret_ranks);

#endif
