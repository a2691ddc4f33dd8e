/* SPDX-License-Identifier: BSD-3-Clause */
/* break.h - a step taken out of one rank's plan, to see how the verifier refuses what is left. */
#ifndef RONDO_CLI_VERIFY_BREAK_H
#define RONDO_CLI_VERIFY_BREAK_H

#include "cli/common/argument.h"
#include "cli/verify/outcome.h"

enum { BREAK_NOTHING = -1, BREAK_RANDOM = -2 };

struct break_wish {
    long step; /* numbered as `rondo explain --steps` prints them; or one of the above */
    int rank;
    int seed; /* of a random step */
};

/* Reads "7" or "random". */
void break_take_step(const struct argp_state *state, const char *text, struct break_wish *wish);
/* Takes the step out, if one is wished; *outcome has it in words. Returns false, with the sentence
 * on stderr, if there is no such rank or step. */
bool break_plan(const struct break_wish *wish, struct plan *const *plans, int count,
                struct outcome *outcome);

#endif
