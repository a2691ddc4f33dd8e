/* SPDX-License-Identifier: BSD-3-Clause */
/* auto.h - what the library would take by itself, and what the cost model says of the others. */
#ifndef RONDO_CLI_EXPLAIN_AUTO_H
#define RONDO_CLI_EXPLAIN_AUTO_H

#include "cli/explain/subject.h"
#include "collectives/select/select.h"

/* Finds the algorithm that `auto` takes among those without the `forbid` promises. */
rondo_result auto_choose(const struct subject *subject, const struct link_costs *costs,
                         unsigned forbid, const struct algorithm **ret_algorithm);
/* Predicts the seconds of the subject's algorithm. */
rondo_result auto_predict(const struct subject *subject, const struct link_costs *costs,
                          double *ret_seconds);
/* "auto takes direct in 8.1 us; ..." on stdout. */
void auto_print(const struct subject *subject, const struct link_costs *costs);

#endif
