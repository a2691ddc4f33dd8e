/* SPDX-License-Identifier: BSD-3-Clause */
/* limit_sum.h - the arithmetic of library_limit.c, as fast as plain C gets it. */
#ifndef RONDO_BENCH_LIMIT_SUM_H
#define RONDO_BENCH_LIMIT_SUM_H

#include <stddef.h>

/*
 * to[o][i] = from[0][i] + from[1][i] + ..., in every one of `outputs` results. A result may be one
 * of the sources.
 */
void limit_sum(float *const *to, int outputs, const float *const *from, int sources, size_t count);

#endif
