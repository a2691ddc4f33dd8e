/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choose.h - from a call to a plan: which algorithm, compiled once, cut for this count. What was
 * decided is remembered, so that a repeated call does no planning.
 */
#ifndef RONDO_COMM_ENGINE_CHOOSE_H
#define RONDO_COMM_ENGINE_CHOOSE_H

#include "collectives/algorithm.h"
#include "comm/state/choice.h"

/* The decision for a call; *ret_choice is valid until the
 * next call of this function. Needs the turn. */
rondo_result choose(rondo_comm *comm, const struct choice_key *key, struct choice **ret_choice);
/* True if a decision is there, and still that of calls of the key: another one may have taken its
 * place. Needs the turn. */
bool choice_fits(const struct choice *choice, const struct choice_key *key);
/* The name of the algorithm that the call has to take, "auto": any. */
const char *choice_wanted(const rondo_comm *comm, const struct choice_key *key);
/* Returns what a call is, in few words. */
struct call_record choice_record(const struct choice_key *key);
/* Promises that the plan of a call has to keep for the operation, whoever runs it; `wanted`: the
 * algorithm's name, or "auto". */
unsigned choice_needs(const rondo_comm *comm, const struct choice_key *key,
                      const struct operation *operation, const char *wanted);
/* Seconds that the cost model predicts for the call by an algorithm, NULL: by the one that it would
 * take; decides nothing. Any thread, without the turn: it reads what does not change after opening.
 * `counts` is the caller's. */
rondo_result choice_predict(rondo_comm *comm, const struct choice_key *key,
                            const struct algorithm *algorithm, struct counts *counts,
                            double *ret_seconds);
void choices_done(struct choices *choices);

#endif
