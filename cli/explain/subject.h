/* SPDX-License-Identifier: BSD-3-Clause */
/* subject.h - what `rondo explain` is asked about, and the ways in which it shows it. */
#ifndef RONDO_CLI_EXPLAIN_SUBJECT_H
#define RONDO_CLI_EXPLAIN_SUBJECT_H

#include "collectives/algorithm.h"
#include "collectives/levels/grouping.h"
#include "plan/explain/times.h"

#include <stdio.h>

enum { ELEMENT_BYTES = 4, STEPS_ALL = -1, STEPS_NONE = -2 };

/* A collective by an algorithm, with the plans of all ranks. */
struct subject {
    const struct algorithm *algorithm;
    bool automatic; /* nobody named the algorithm */
    rondo_collective collective;
    int ranks, root;
    double count;            /* float32 elements */
    const char *group_text;  /* as asked for; NULL: grouping_square() where it matters */
    struct grouping *groups; /* NULL: the algorithm looks at none */
    struct plan **plans;
    int plan_count;
};

/* Make groups and plans; the other members are set. To be closed in any case. */
rondo_result subject_open(struct subject *subject);
void subject_close(struct subject *subject);

/* True if plans of the algorithm look at groups that are given. */
bool subject_sees_groups(const struct subject *subject);

struct link_costs;
/* The page on stdout. Returns the exit status. */
int subject_print(const struct subject *subject, const struct link_costs *costs);
/* The numbered steps of a rank, or of all with STEPS_ALL. Returns the exit status. */
int subject_print_steps(const struct subject *subject, int rank);
/* "5.33 MB" */
void subject_bytes(double bytes, char *text, size_t size);

/* The costs, with the subject's groups where links between them differ. */
struct explain_costs subject_costs(const struct subject *subject,
                                   const struct explain_costs *costs);

/* Plans as data (plan/file/file.h), with the words of each step and its times. */
rondo_result subject_write_json(const struct subject *subject, const struct explain_costs *costs,
                                FILE *to);

#endif
