/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drawing.h - what happened in a symbolic run, and when by the cost model: what html.c and svg.c
 * draw. Items are those of plan/explain/record.h, times are seconds since the call began.
 */
#ifndef RONDO_CLI_EXPLAIN_DRAWING_H
#define RONDO_CLI_EXPLAIN_DRAWING_H

#include "cli/explain/subject.h"
#include "plan/explain/page.h"

struct drawing {
    const struct subject *subject;
    struct explain_record record;
    struct explain_times times;
    struct explain_page page; /* for the names of items */
};

/* When the sender begins to fill a message, when it is there, when the receiver is through. */
struct drawing_flight {
    double filled, arrived, used;
};

/* To be closed in any case. */
rondo_result drawing_open(struct drawing *drawing, const struct subject *subject,
                          const struct explain_costs *costs);
void drawing_close(struct drawing *drawing);

/* Items are numbered from 0; some of them may be nobody's. */
uint32_t drawing_items(const struct drawing *drawing);
bool drawing_exists(const struct drawing *drawing, uint32_t item);
/* True if `rank` has this item at the start; if the collective gives it to `rank`. */
bool drawing_owns(const struct drawing *drawing, int rank, uint32_t item);
bool drawing_gets(const struct drawing *drawing, int rank, uint32_t item);

struct drawing_flight drawing_message(const struct drawing *drawing,
                                      const struct explain_message *message);
/* Returns when a value has come to its place. */
double drawing_hold(const struct drawing *drawing, const struct explain_hold *hold);

#endif
