/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels.h - `rondo bench kernels`: how fast one core reduces, for each type and CPU level,
 * beside memcpy() in as much memory in the same run.
 */
#ifndef RONDO_CLI_BENCH_KERNELS_H
#define RONDO_CLI_BENCH_KERNELS_H

#include "cli/bench/record.h"

enum { KERNELS_SOURCES = 3 }; /* 2, 4 and 8 */

extern const int kernels_sources[KERNELS_SOURCES];

struct kernels_options {
    struct bench_options bench; /* of its call the type (RONDO_TYPES: all) and the operation */
    const char *level;          /* NULL: all that the machine has */
};

/*
 * A line of the table has a record for each number of sources: bytes of one of them, read and
 * written per second.
 */
struct kernels_result {
    const struct kernels_options *options;
    struct bench_record (*lines)[KERNELS_SOURCES];
    int count;
    bool complete;
};

/* ---- time.c ---------------------------------------------------------------------------------- */

/* Room for eight sources and a result of `bytes` each; NULL if there is none. free() it. */
void *kernels_arena(size_t bytes);
/* Sources and a result of `bytes` each, at the CPU level that is in use. */
struct bench_record kernels_time(const struct kernels_options *options, void *arena,
                                 rondo_type type, size_t bytes, int sources);

/* ---- kernels.c ------------------------------------------------------------------------------- */
/* The files that the options name. 0, or -1 with sentences on stderr. */
int kernels_write(const struct kernels_result *result);

#endif
