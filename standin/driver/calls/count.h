/* SPDX-License-Identifier: BSD-3-Clause */
/* count.h - what programs have asked for so far, for tests: cuStandinKernels(), cuStandinCopies().
 * Work that goes into a graph counts once, when it is captured. */
#pragma once

/* Under the lock: a launch of the kernel with that name, which need not stay. */
void count_kernel(const char *name);
/* Under the lock: a copy that goes into a stream. */
void count_copy(void);
