/* SPDX-License-Identifier: BSD-3-Clause */
/* html.h - plans that move, in a page of their own. */
#ifndef RONDO_CLI_EXPLAIN_HTML_H
#define RONDO_CLI_EXPLAIN_HTML_H

#include "cli/explain/subject.h"

/* Lines of page.html, which the build makes of it; NULL ends them. */
extern const char *const explain_html_page[];

/* One page, with a panel for each of the subjects. They are of one collective and as many ranks. */
rondo_result subject_write_html(const struct subject *subjects, int count,
                                const struct explain_costs *costs, FILE *to);

#endif
