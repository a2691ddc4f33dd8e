/* SPDX-License-Identifier: BSD-3-Clause */
/* test_shards.c - a model in shards learns the same bits as a whole one, with less memory. */
#include "sharded.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

static struct world_report report;
static struct sharded *plain, *job;

static void begin(void)
{
    plain = world_share(sizeof(*plain));
    job = world_share(sizeof(*job));
}

static void end(void)
{
    world_unshare(plain, sizeof(*plain));
    world_unshare(job, sizeof(*job));
}

TestSuite(shards, .init = begin, .fini = end);

static void run(struct sharded *what, int size)
{
    cr_assert_eq(world_run_threads(size, sharded_train, what, &report), 0,
                 "level %d, %d passes: %s", what->level, what->passes, report.summary);
}

static void compare_levels(const struct sharded *settings, int size)
{
    *plain = *settings;
    plain->level = SHARDED_PLAIN;
    run(plain, size);
    for (int level = 1; level <= 3; level++) {
        *job = *settings;
        job->level = level;
        run(job, size);
        cr_assert_arr_eq(job->values, plain->values, sizeof(job->values),
                         "other values at level %d, %d ranks, %d passes", level, size,
                         settings->passes);
        cr_assert_eq(job->norm, plain->norm, "norm %.17g, not %.17g", job->norm, plain->norm);
    }
}

Test(shards, learn_the_same_bits_as_whole_parameters)
{
    struct sharded settings = {.passes = 1, .steps = 4};

    for (int size = 1; size <= 5; size++)
        compare_levels(&settings, size);
}

Test(shards, learn_the_same_bits_as_the_data_parallel_core)
{
    struct sharded settings = {.passes = 1, .steps = 4};

    for (int size = 1; size <= 4; size++) {
        *plain = settings;
        plain->level = SHARDED_DDP;
        run(plain, size);
        *job = settings;
        job->level = 1 + size % 3;
        run(job, size);
        cr_assert_arr_eq(job->values, plain->values, sizeof(job->values), "on %d ranks", size);
    }
}

Test(shards, add_up_passes_as_one_balanced_tree)
{
    struct sharded settings = {.steps = 2, .average = RONDO_DDP_BY_PASSES};

    for (int passes = 2; passes <= 7; passes++) {
        settings.passes = passes;
        compare_levels(&settings, 1 + passes % 3);
    }
}

Test(shards, clip_to_the_same_bits)
{
    struct sharded settings = {.passes = 2, .steps = 3, .limit = 0.5};

    for (int size = 1; size <= 4; size++)
        compare_levels(&settings, size);
    cr_assert(plain->norm > 0.5, "nothing was clipped: the norm is %g", plain->norm);
}

Test(shards, learn_the_same_on_one_two_four_and_eight_ranks)
{
    struct sharded settings = {
        .level = 3, .passes = 8, .steps = 3, .average = RONDO_DDP_BY_PASSES, .limit = 0.5};

    *plain = settings;
    run(plain, 1);
    for (int size = 2; size <= 8; size *= 2)
        for (int level = 1; level <= 3; level += 2) {
            *job = settings;
            job->passes = 8 / size;
            job->level = level;
            run(job, size);
            cr_assert_arr_eq(job->values, plain->values, sizeof(job->values),
                             "other values on %d ranks, level %d", size, level);
        }
}

Test(shards, learn_the_same_in_processes)
{
    struct sharded settings = {.level = 3, .passes = 1, .steps = 3};

    *plain = *job = settings;
    run(plain, 3);
    cr_assert_eq(world_run_processes(3, sharded_train, job, &report), 0, "%s", report.summary);
    cr_assert_arr_eq(job->values, plain->values, sizeof(job->values));
}

Test(shards, go_on_from_what_was_exported)
{
    struct sharded settings = {.passes = 1, .steps = 5};

    for (int level = 1; level <= 3; level++) {
        *plain = *job = settings;
        plain->level = job->level = level;
        job->stop = 3;
        run(plain, 3);
        run(job, 3);
        cr_assert_arr_eq(job->values, plain->values, sizeof(job->values), "level %d", level);
    }
}

Test(shards, take_one_nth_of_the_memory)
{
    struct sharded settings = {.passes = 1, .steps = 1};
    size_t one = SHARDED_TOTAL * sizeof(float), largest = 705 * sizeof(float);
    size_t padding = 4 * SHARDED_UNITS * 4 * 64;

    for (int level = 1; level <= 3; level++) {
        *job = settings;
        job->level = level;
        run(job, 4);
        cr_assert_eq(job->memory.without, 4 * one);
        cr_assert(job->memory.states < 2 * one / 4 + padding, "%zu", job->memory.states);
        cr_assert(job->memory.parameters < (level < 3 ? one : one / 4) + padding);
        cr_assert(job->memory.gradients < (level < 2 ? one : 0) + one / 4 + padding);
        cr_assert(job->memory.passing < 5 * (largest + padding), "%zu", job->memory.passing);
        cr_assert(level > 1 || job->memory.passing == 0);
    }
}

Test(shards, other_shapes_on_one_rank_are_told_to_all)
{
    cr_assert_eq(world_run_threads(3, sharded_mismatch, NULL, &report), 0, "%s", report.summary);
}

Test(shards, a_rank_without_memory_for_a_unit_tells_all_who_could_go_on)
{
    for (int level = 1; level <= 3; level++)
        cr_assert_eq(world_run_threads(3, sharded_no_memory, &level, &report), 0, "%s",
                     report.summary);
}

Test(shards, wrong_arguments_are_refused_before_anything_is_collective)
{
    cr_assert_eq(world_run_threads(2, sharded_nulls, NULL, &report), 0, "%s", report.summary);
}

Test(shards, a_gradient_that_is_no_number_is_named_on_all_ranks)
{
    for (int level = 1; level <= 3; level++)
        cr_assert_eq(world_run_threads(3, sharded_nan, &level, &report), 0, "%s", report.summary);
}

Test(shards, the_death_of_a_rank_is_told_to_the_others)
{
    for (int level = 1; level <= 3; level++) {
        world_run_processes(3, sharded_death, &level, &report);
        cr_assert_eq(report.signals[2], SIGKILL);
        for (int r = 0; r < 2; r++) {
            cr_assert_eq(report.results[r], RONDO_ERROR_PEER, "rank %d, level %d: %s", r, level,
                         rondo_result_string(report.results[r]));
            cr_assert(strstr(report.sentences[r], "2"), "%s", report.sentences[r]);
        }
    }
}

Test(shards, what_makes_no_sense_is_refused)
{
    cr_assert_eq(world_run_threads(2, sharded_misuse, NULL, &report), 0, "%s", report.summary);
}

Test(shards, without_gradients_stay_as_they_are)
{
    for (int level = 1; level <= 3; level++)
        for (int size = 1; size <= 4; size *= 2)
            cr_assert_eq(world_run_threads(size, sharded_partial, &level, &report), 0,
                         "level %d: %s", level, report.summary);
}
