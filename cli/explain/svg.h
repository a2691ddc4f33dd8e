/* SPDX-License-Identifier: BSD-3-Clause */
/* svg.h - a plan as a picture that moves by itself, or as one frame of it for print. */
#ifndef RONDO_CLI_EXPLAIN_SVG_H
#define RONDO_CLI_EXPLAIN_SVG_H

#include "cli/explain/subject.h"

/*
 * Draw up to EXPLAIN_FULL ranks, on a circle, and beside them what each has. `round`: the frame
 * after that round, with its messages as arrows; -1: all rounds, animated (SMIL), again and again.
 */
rondo_result subject_write_svg(const struct subject *subject, const struct explain_costs *costs,
                               int round, FILE *to);

#endif
