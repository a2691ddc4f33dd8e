/* SPDX-License-Identifier: BSD-3-Clause */
/* stress_ddp.c - the bodies of these tests as threads, without Criterion: for ThreadSanitizer. */
#include "bodies.h"
#include "trees.h"

#include <stdio.h>

static struct world_report report;

static int run(const char *what, int size, world_body body, void *argument)
{
    int failed = world_run_threads(size, body, argument, &report);

    printf("%s %s on %d threads%s%s\n", failed ? "FAILED" : "passed", what, size,
           failed ? ": " : "", failed ? report.summary : "");
    fflush(stdout);
    return failed != 0;
}

int main(void)
{
    static const struct {
        const char *what;
        world_body body;
    } bodies[] = {
        {"models that differ", start_refuses_other_models},
        {"sums and rebuilding", steps_sum_and_rebuild},
        {"accumulation", steps_accumulate},
        {"statistics", steps_are_counted_and_described},
        {"unused parameters", unused_here_counts_as_zero},
        {"parameters that nobody uses", unused_everywhere_is_kept},
        {"missing gradients", mistakes_missing_gradient},
        {"gradients with NaN", mistakes_nan},
        {"a rank that leaves", mistakes_leaving},
        {"a join", joins_by_remaining},
        {"a join with steps", joins_step_everywhere},
        {"a hook", hooks_replace_the_all_reduce},
        {"compression", hooks_compress},
        {"random models", random_models_and_orders},
        {"a linear model", linear_learns_like_one_process},
        {"batch normalisation", norms_like_one_process},
    };
    static struct trees trees = {.micro_batches = 8, .own = true};
    int failed = 0;

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        for (int size = 2; size <= 3; size++)
            failed += run(bodies[i].what, size, bodies[i].body, NULL);
    failed += run("a tree of micro-batches", 4, trees_of_micro_batches, &trees);
    return failed != 0;
}
