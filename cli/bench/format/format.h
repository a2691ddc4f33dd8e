/* SPDX-License-Identifier: BSD-3-Clause */
/* format.h - the parts of bench_formats (report.h). */
#ifndef RONDO_CLI_BENCH_FORMAT_FORMAT_H
#define RONDO_CLI_BENCH_FORMAT_FORMAT_H

#include "cli/bench/report.h"

/* nccl.c: a sweep in place ends what the one before it began. */
void bench_nccl_begin(const struct bench_sweep *sweep);
void bench_nccl_end(const struct bench_sweep *sweep);

/* osu.c */
bool bench_osu_has(enum bench_collective collective);
void bench_osu_begin(const struct bench_sweep *sweep);
void bench_osu_row(const struct bench_sweep *sweep);

#endif
