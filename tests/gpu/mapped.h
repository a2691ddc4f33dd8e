/* SPDX-License-Identifier: BSD-3-Clause */
/* mapped.h - sums over device memory of a rank, and whether its peers have mapped that memory. */
#ifndef RONDO_TESTS_GPU_MAPPED_H
#define RONDO_TESTS_GPU_MAPPED_H

#include "bodies.h"

#include <stdint.h>

enum { COUNT = 1000, BYTES = COUNT * (int)sizeof(int32_t) }; /* of one sum */

/* Counts the different files of device memory that are mapped in this process. */
int mapped_files(void);
/* The rank's last error, in its sentence. */
rondo_result mapped_fail(struct gpu_rank *rank, const char *what);
/* Add up `value` + i + rank in place, and see whether that came out. */
rondo_result mapped_sum(struct gpu_rank *rank, int32_t *memory, int value);
/* The file that begins at `memory` of every rank is mapped by so many others; all ranks call it. */
rondo_result mapped_expect(struct gpu_rank *rank, const void *memory, int wanted, const char *what);
/*
 * All peers map the memory of the sums just made, soon: on a machine that is too busy, or while
 * they still have to unmap what was freed before, the reserve stands in for a while. So more sums
 * are made until all have mapped it, more than those for which a rank goes without after a refusal.
 */
rondo_result mapped_expect_all(struct gpu_rank *rank, int32_t *memory, const char *what);

#endif
