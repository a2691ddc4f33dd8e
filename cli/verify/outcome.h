/* SPDX-License-Identifier: BSD-3-Clause */
/* outcome.h - what `rondo verify` has found out about one algorithm and collective. */
#ifndef RONDO_CLI_VERIFY_OUTCOME_H
#define RONDO_CLI_VERIFY_OUTCOME_H

#include "collectives/algorithm.h"
#include "plan/verify/verify.h"

#include <jansson.h>

/* One algorithm and collective over all that was asked for. */
struct outcome {
    unsigned long plans, steps, messages;
    unsigned proved; /* enum promise, by every run */
    bool touches_peers;
    bool failed;
    bool unbroken;       /* --break named no step of it */
    int ranks, root;     /* of the failure */
    char groups[80];     /* of the failure; "": none */
    char taken_out[240]; /* by --break, in words */
    char failure[1100];
};

/* The first failure counts. */
void outcome_blame(struct outcome *outcome, int ranks, int root, const char *sentence);
/* Hold the promises against what this run has proved. */
void outcome_judge(struct outcome *outcome, unsigned promises, int ranks, int root,
                   const struct verify_report *report);
/* One line on stdout. */
void outcome_print(const struct algorithm *algorithm, rondo_collective collective,
                   const struct outcome *outcome);
json_t *outcome_json(const struct algorithm *algorithm, rondo_collective collective,
                     const struct outcome *outcome);

/* The plans of a file (verify/file.c); what they are is told on stdout, or what is wrong on stderr.
 * Returns the exit status. */
int verify_file(const char *path, int slots);

#endif
