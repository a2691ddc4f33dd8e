/* SPDX-License-Identifier: BSD-3-Clause */
/* mapped.h - sums over device memory of a rank, and whether its peers have mapped that memory. */
#ifndef RONDO_TESTS_GPU_MAPPED_H
#define RONDO_TESTS_GPU_MAPPED_H

#include "bodies.h"

#include <stdint.h>

enum { COUNT = 1000, BYTES = COUNT * (int)sizeof(int32_t) }; /* of one sum */

/* How many different files of device memory are mapped in this process. */
int mapped_files(void);
/* The rank's last error, in its sentence. */
rondo_result mapped_fail(struct gpu_rank *rank, const char *what);
/* Add up `value` + i + rank in place, and see whether that came out. */
rondo_result mapped_sum(struct gpu_rank *rank, int32_t *memory, int value);
/* The file that begins at `memory` of every rank is mapped by so many others; all ranks call it. */
rondo_result mapped_expect(struct gpu_rank *rank, const void *memory, int wanted, const char *what);
/*
 * All peers have mapped the memory of the sums just made. They get a second for that; on a machine
 * that is too busy the reserve stands in, and a later sum finds it mapped. So another one is made
 * only where some rank's sum took that second.
 */
rondo_result mapped_expect_all(struct gpu_rank *rank, int32_t *memory, const char *what);

#endif
