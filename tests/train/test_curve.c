/* SPDX-License-Identifier: BSD-3-Clause */
/* test_curve.c - the CSV: what is kept when a training goes on. */
#include "train/curve.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct curve_point point_of(uint64_t step)
{
    return (struct curve_point){.step = step,
                                .loss = 1.0 / (double)step,
                                .rate = 0.001,
                                .norm = 2,
                                .held_loss = -1,
                                .held_accuracy = step % 2 ? -1 : 0.5,
                                .seconds = 0.1,
                                .computing = 1,
                                .hidden = -1};
}

/* Steps 1 to 6, then half a line, as if the job had been killed while writing it. */
static void write_curve(char *path)
{
    struct curve *curve;
    FILE *file;

    close(mkstemp(path));
    cr_assert(eq(int, curve_open(path, 0, &curve), RONDO_OK));
    for (uint64_t step = 1; step <= 6; step++) {
        const struct curve_point point = point_of(step);

        cr_assert(eq(int, curve_add(curve, &point), RONDO_OK));
    }
    curve_close(curve);
    file = fopen(path, "ae");
    fputs("7,0.1428", file);
    fclose(file);
}

static int lines_of(const char *path)
{
    FILE *file = fopen(path, "re");
    int lines = 0;

    for (int byte; (byte = fgetc(file)) != EOF;)
        lines += byte == '\n';
    fclose(file);
    return lines;
}

Test(curve, that_goes_on_keeps_the_steps_before)
{
    char path[] = "/tmp/rondo-test-curve-XXXXXX";
    struct curve *curve;

    write_curve(path);
    cr_assert(eq(int, curve_open(path, 4, &curve), RONDO_OK));
    cr_assert(eq(sz, curve_count(curve), 4));
    for (uint64_t step = 1; step <= 4; step++) {
        const struct curve_point *kept = curve_at(curve, (size_t)step - 1);
        const struct curve_point wanted = point_of(step);

        cr_assert(eq(u64, kept->step, step));
        cr_assert(epsilon_eq(dbl, kept->loss, wanted.loss, 1e-9));
        cr_assert(eq(dbl, kept->held_accuracy, wanted.held_accuracy));
        cr_assert(eq(dbl, kept->hidden, -1));
    }
    curve_close(curve);
    cr_assert(eq(int, lines_of(path), 5));
    unlink(path);
}

Test(curve, does_not_keep_half_a_line)
{
    char path[] = "/tmp/rondo-test-curve-XXXXXX";
    struct curve *curve;

    write_curve(path);
    cr_assert(eq(int, curve_open(path, 100, &curve), RONDO_OK));
    cr_assert(eq(sz, curve_count(curve), 6));
    curve_close(curve);
    unlink(path);
}

Test(curve, that_begins_anew_keeps_nothing)
{
    char path[] = "/tmp/rondo-test-curve-XXXXXX";
    struct curve *curve;

    write_curve(path);
    cr_assert(eq(int, curve_open(path, 0, &curve), RONDO_OK));
    curve_close(curve);
    cr_assert(eq(int, lines_of(path), 1));
    unlink(path);
}

Test(curve, that_cannot_be_written_is_an_error)
{
    struct curve *curve;

    cr_assert(eq(int, curve_open("/nowhere/curve.csv", 0, &curve), RONDO_ERROR_SYSTEM));
    cr_assert(eq(int, curve_open("/dev/full", 0, &curve), RONDO_ERROR_SYSTEM));
}
