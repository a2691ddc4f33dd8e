/* SPDX-License-Identifier: BSD-3-Clause */
/* trial.h - one call of kernel_reduce() on awkward memory, compared with the reference. */
#ifndef RONDO_TESTS_KERNELS_TRIAL_H
#define RONDO_TESTS_KERNELS_TRIAL_H

#include "kernels/kernels.h"

enum { TRIAL_COUNT_MAX = 68 };

struct trial {
    struct kernel_op op;
    int source_count, destination_count;
    enum kernel_order order;
    int scaled;
    bool finish, small; /* small: only small whole numbers */
    uint64_t random;
};

/*
 * On every level, for counts 0 .. TRIAL_COUNT_MAX - 1 in steps of `step`: buffers at odd offsets,
 * every third time a destination is a source. Checks every element, the bytes around destinations,
 * and that other sources stay as they were; then with buffers that end where a page does, so that
 * an access beyond an end is a crash. Returns how many calls were wrong and writes the first one to
 * `complaint`.
 */
int trial_run(const struct trial *trial, size_t step, char *complaint, size_t size);
/* Runs a trial on one level with one count of any size. */
int trial_run_long(const struct trial *trial, const char *level, size_t count, char *complaint,
                   size_t size);

#endif
