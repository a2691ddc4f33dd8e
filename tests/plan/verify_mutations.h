/* SPDX-License-Identifier: BSD-3-Clause */
/* verify_mutations.h - ways to break one step of a plan. */
#ifndef RONDO_TESTS_PLAN_VERIFY_MUTATIONS_H
#define RONDO_TESTS_PLAN_VERIFY_MUTATIONS_H

#include "plan/plan.h"

/*
 * Change the plan at `step`; `variant` picks among several places. False: there is no such place to
 * change.
 */
typedef bool mutation(struct plan *plan, uint32_t step, int variant);

mutation mutate_drop;             /* take the step out */
mutation mutate_repeat;           /* do it twice, unless twice is the same as once */
mutation mutate_shorten;          /* one atom less */
mutation mutate_atom;             /* an operand one atom further */
mutation mutate_block;            /* an operand one block further */
mutation mutate_peer;             /* another rank */
mutation mutate_channel;          /* another channel */
mutation mutate_event;            /* data for credit and the other way round */
mutation mutate_finish;           /* lose PLAN_FINISH, or finish where it is not complete */
mutation mutate_addresses;        /* lose PLAN_ADDRESSES, or claim it */
mutation mutate_settled;          /* lose PLAN_SETTLED, or claim it */
mutation mutate_lose_source;      /* a share is missing */
mutation mutate_lose_destination; /* a place is not written */
mutation mutate_input;            /* read output or scratch where the input is meant */
mutation mutate_swap_sources;     /* no refusal: the order of ranks changes */
mutation mutate_association;      /* no refusal: PLAN_BALANCED of four and more sources changes */

/*
 * A further program of `whole` writes to the place of the second of two receives that follow each
 * other, the first of which begins at `wait`, and tells `sender`, which hears of it before it sends
 * one of the two messages. In order without a network, as the copy out of the slot comes later. New
 * plans of the two ranks; false: there is no such place.
 */
bool mutate_writer(const struct plan *whole, uint32_t wait, const struct plan *sender,
                   struct plan **ret_whole, struct plan **ret_sender);
/* The senders of the two messages, -1: `wait` begins no such receives. */
void receives_at(const struct plan *plan, uint32_t wait, int ret_senders[2]);

#endif
