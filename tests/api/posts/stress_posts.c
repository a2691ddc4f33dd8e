/* SPDX-License-Identifier: BSD-3-Clause */
/* stress_posts.c - posted calls of ranks that are threads, without Criterion: for ThreadSanitizer.
 * Says what failed and ends with 1. */
#include "tests/api/posts/posts.h"

#include <stdio.h>

static int run(const char *what, int size, world_body body)
{
    static struct world_report report;
    int failed = world_run_threads(size, body, NULL, &report);

    printf("%s %s on %d threads%s%s\n", failed ? "FAILED" : "passed", what, size,
           failed ? ": " : "", failed ? report.summary : "");
    return failed != 0;
}

int main(void)
{
    int failed = 0;

    for (int size = 2; size <= 5; size += 3) {
        failed += run("posted calls", size, posts_give_what_calls_give);
        failed += run("several threads", size, posts_are_waited_for_by_several_threads);
    }
    return failed != 0;
}
