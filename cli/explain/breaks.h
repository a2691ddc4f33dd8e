/* SPDX-License-Identifier: BSD-3-Clause */
/* breaks.h - what the verifier says of a plan in which one step is broken, for a page. */
#ifndef RONDO_CLI_EXPLAIN_BREAKS_H
#define RONDO_CLI_EXPLAIN_BREAKS_H

#include "cli/explain/subject.h"

/*
 * Write "breaks":[...], with a list [step, said without it, said of it with another chunk] for each
 * step of the first rank's plan. It is empty over more than EXPLAIN_FULL ranks, where proofs would
 * take too long.
 */
rondo_result subject_write_breaks(const struct subject *subject, FILE *to);

#endif
