/* SPDX-License-Identifier: BSD-3-Clause */
/* predict.h - the times of all algorithms of a collective over its size, by the cost model. */
#ifndef RONDO_CLI_EXPLAIN_PREDICT_H
#define RONDO_CLI_EXPLAIN_PREDICT_H

#include "cli/explain/subject.h"
#include "collectives/select/select.h"

enum { PREDICT_ALGORITHMS = 24, PREDICT_SIZES = 64 };

/* A point is what was measured of an algorithm. */
struct predict_point {
    const struct algorithm *algorithm;
    double bytes, microseconds;
};

/* The algorithms of a collective, and what is asked of the model. Sizes are of the full vector, as
 * `rondo bench` has them. */
struct prediction {
    const struct subject *subject;
    const struct link_costs *costs;
    struct selection selection;
    struct grouping *groups;
    const struct algorithm *algorithms[PREDICT_ALGORITHMS];
    int count;
    double sizes[PREDICT_SIZES];
    int size_count;
    struct predict_point *points;
    int point_count;
    const char *measured; /* a file; NULL: nothing was measured */
};

/* Seconds of algorithm `i`; negative: out of memory. */
double predict_seconds(struct prediction *prediction, int i, double bytes);

/* Prints the table and what is fastest where; draws to `plot` unless NULL, beside what the JSON of
 * `rondo bench` in `measured` says, unless NULL. Returns the exit status. */
int subject_predict(const struct subject *subject, const struct link_costs *costs, const char *plot,
                    const char *measured);

/* Reads the points; false, with the sentence on stderr, if the file has none of them. */
bool measured_read(struct prediction *prediction, const char *path);
/* Draws; false, with the sentence on stderr, if that failed. */
bool prediction_plot(struct prediction *prediction, const char *path);

#endif
