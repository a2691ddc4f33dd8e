/* SPDX-License-Identifier: BSD-3-Clause */
/* reads_bodies.h - ranks of which each wants something else of reads across processes (reads.h).
 * stress_comm runs the same under ThreadSanitizer. */
#ifndef RONDO_TESTS_COMM_READS_BODIES_H
#define RONDO_TESTS_COMM_READS_BODIES_H

/*
 * Every collective that reads, with every set of ranks that hide their input, each followed by the
 * next set: results are right, and a rank has read from each peer it had to, or nobody from any.
 * NULL, or what was wrong.
 */
const char *ranks_may_hide_in_any_set(int size);
/* Ranks that count their attempts from different numbers, and measure nothing but noise. */
const char *ranks_may_measure_anything(int size, int calls);

#endif
