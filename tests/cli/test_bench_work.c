/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bench_work.c - computing that stands for a program's own. */
#include "bench/work.h"

#include <criterion/criterion.h>

static double took(double *speed, double seconds)
{
    double start = work_clock();

    work_do(speed, seconds);
    return work_clock() - start;
}

Test(bench_work, a_speed_that_was_learnt_too_low_is_learnt_again)
{
    const double seconds = 1e-3;
    double speed = 1, before;

    /* What is disturbed takes as long as it should with too few loops, so this may go on. */
    do {
        before = speed;
        took(&speed, seconds);
    } while (speed <= before || speed < 1000);
    /* By now the loops are about as many as they have to be, and no work is shorter than half. */
    for (int i = 0; i < 100; i++)
        took(&speed, seconds);
    for (int i = 0; i < 100; i++)
        cr_expect_geq(took(&speed, seconds), seconds / 2);
}

Test(bench_work, no_time_is_no_work_and_learns_nothing)
{
    double speed = 5, unknown = 0;

    work_do(&speed, 0);
    work_do(&unknown, 0);
    cr_expect_eq(speed, 5);
    cr_expect_eq(unknown, 0, "learning takes longer than many a call");
}
