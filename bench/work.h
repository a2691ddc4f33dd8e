/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * work.h - computing that stands for a program's own, and what a rank's memory is.
 *
 * The amount is fixed, not the time: whoever takes the processor away while it goes on makes it
 * longer, which is what a measurement of overlap has to see.
 */
#ifndef RONDO_BENCH_WORK_H
#define RONDO_BENCH_WORK_H

/* Measures the speed in 10 milliseconds, if it is 0. */
void work_learn(double *speed);
/* Does as much arithmetic as takes so many seconds when nothing disturbs it. `speed` is learnt if
 * it is 0, and grows when the arithmetic took less time than that. */
void work_do(double *speed, double seconds);

/* Seconds of a clock that only goes forward. */
double work_clock(void);

/* Memory of this process, bytes: what it shares counts in parts (the kernel's Pss). -1: unknown. */
double work_memory(void);

#endif
