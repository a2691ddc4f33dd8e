/* SPDX-License-Identifier: BSD-3-Clause */
/* stress_shards.c - training in shards as threads, without Criterion: for ThreadSanitizer. */
#include "sharded.h"

#include <stdio.h>

int main(void)
{
    static struct world_report report;
    int failed = 0;

    for (int level = 0; level <= 3; level++)
        for (int size = 1; size <= 3; size++) {
            struct sharded job = {.level = level, .passes = 3, .steps = 2, .stop = 1, .limit = 0.5};
            int wrong = world_run_threads(size, sharded_train, &job, &report);

            printf("%s level %d on %d threads%s%s\n", wrong ? "FAILED" : "passed", level, size,
                   wrong ? ": " : "", wrong ? report.summary : "");
            failed += wrong;
        }
    return failed != 0;
}
