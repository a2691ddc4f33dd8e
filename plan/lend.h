/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lend.h - long messages over a network without slots of the writer's, and some without the
 * reader's.
 *
 * The system copies what is sent anyway, so a slot filled for it is one copy too many. Where a
 * step stores into a slot what this rank has in a buffer of the call too - its input, or the output
 * that the same step computes - the transport is lent that memory instead. And where a rank waits
 * for a message that is only copied to its output, the transport may put it there.
 *
 * Invariant: a plan is written as if slots were copies. So lent memory is settled before anything
 * is written over it (connection.h). Memory where a message is expected may be written as soon as
 * that was sent, before the wait for it ends; this is safe where a plan orders what else uses it
 * either before that wait in the same program, or before the sending through messages. Several are
 * expected at once only where the program does nothing in between but take them to other places.
 * That plans are of this kind is argued and tried, not proved: docs/verifier.md, "Limits".
 */
#ifndef RONDO_PLAN_LEND_H
#define RONDO_PLAN_LEND_H

#include "plan/exec.h"

enum { LEND_FROM = 4096 /* bytes of a message */ };

/* If the program waits for messages that may go right to the output, say so. */
void lend_expect(struct execution *x, const struct exec_program *program);
/* The piece `at` of a message that has come: there, or where it was expected. */
const char *lend_placed(const struct execution *x, const struct plan_operand *slot, const char *at);
/*
 * The step is about to store so many bytes into world->destinations. Those which a transport takes
 * from elsewhere leave the list; returns how many are left. `copies`: it is a copy.
 */
int lend_destinations(struct execution *x, const struct plan_step *step, size_t bytes, bool copies);

#endif
