/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * zcopy.h - long messages over a network without slots of the writer's, and some without the
 * reader's.
 *
 * The system copies what is sent anyway, so a slot filled for it is one copy too many. Where a step
 * stores into a slot what this rank has in a buffer of the call too - its input, or the output that
 * the same step computes - the transport sends from that memory instead (zero-copy). And where a
 * rank waits for a message that is only copied to its output, the transport may put it there.
 *
 * Invariant: a plan is written as if slots were copies. So memory of zero-copy sends is reclaimed
 * before anything is written over it (connection.h). Memory where a message is expected may be
 * written as soon as that was sent, before the wait for it ends; this is safe where a plan orders
 * what else uses it either before that wait in the same program, or before the sending through
 * messages. Several are expected at once only where the program does nothing in between but take
 * them to other places. The verifier proves that plans are of this kind: plan/verify/posted.c.
 */
#ifndef RONDO_PLAN_ZCOPY_H
#define RONDO_PLAN_ZCOPY_H

#include "plan/exec.h"

enum { ZCOPY_FROM = 4096 /* bytes of a message */ };

/*
 * The two find which messages a program may expect while it is at a wait, as far as the plan says
 * it: the copy that takes the message of `wait`, NULL: something else is done with it; and the step
 * at which the program is then, which is the next wait or ends the expecting. `end` is that of the
 * program.
 */
const struct plan_step *zcopy_copy(const struct plan *plan, uint32_t end,
                                   const struct plan_step *wait);
const struct plan_step *zcopy_behind(const struct plan *plan, uint32_t end,
                                     const struct plan_step *copy);
/* Finds where in the rank's own output the message is expected: a destination of `copy`; NULL:
 * nowhere. */
const struct plan_operand *zcopy_place(const struct plan *plan, const struct plan_step *copy);

/* If the program waits for messages that may go right to the output, say so. */
void zcopy_post(struct execution *x, const struct exec_program *program);
/* The piece `at` of a message that has come: there, or where it was expected. */
const char *zcopy_delivered(const struct execution *x, const struct plan_operand *slot,
                            const char *at);
/*
 * The step is about to store so many bytes into world->destinations. Those which a transport takes
 * from elsewhere leave the list; returns how many are left. `copies`: it is a copy.
 */
int zcopy_destinations(struct execution *x, const struct plan_step *step, size_t bytes,
                       bool copies);

#endif
