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
/* 32 bits of what all ranks have to agree on in a call. */
uint32_t choice_fingerprint(const struct choice_key *key);
/* Promises that the plan of a call has to keep for the operation, whoever runs it; `wanted`: the
 * algorithm's name, or "auto". */
unsigned choice_needs(const rondo_comm *comm, const struct choice_key *key,
                      const struct operation *operation, const char *wanted);
void choices_done(struct choices *choices);

#endif
