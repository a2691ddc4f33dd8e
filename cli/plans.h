/* SPDX-License-Identifier: BSD-3-Clause */
/* plans.h - the plans of all ranks, for the commands that show or prove them. */
#ifndef RONDO_CLI_PLANS_H
#define RONDO_CLI_PLANS_H

#include "collectives/algorithm.h"

/* -1 if there is none of that name. */
int plans_find_collective(const char *name);

/*
 * A plan by rank; the request's own rank does not matter. For send only the first rank, which
 * sends, and the last one have a plan; these are two, also of a single rank. NULL: failed.
 */
struct plan **plans_open(const struct algorithm *algorithm, struct plan_request request,
                         int *ret_count);
void plans_close(struct plan **plans, int count); /* accepts NULL */

#endif
