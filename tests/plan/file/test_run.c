/* SPDX-License-Identifier: BSD-3-Clause */
/* test_run.c - RONDO_ALGORITHM=file:F: calls that run plans out of a file. */
#include "tests/plan/verify_forms.h"
#include "tests/world.h"

#include "collectives/file/file.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t counts[] = {0, 1, 2, 3, 7, 1000, 100003};

static rondo_result reduce_once(rondo_comm *comm, size_t count, rondo_op op, bool in_place,
                                char *sentence)
{
    struct world_data data = {RONDO_INT32, op, rondo_comm_size(comm), count + 1};
    int32_t *input = malloc(4 * count + 4), *output = malloc(4 * count + 4);
    rondo_result result;

    world_fill(&data, rondo_comm_rank(comm), count, input);
    if (in_place)
        memcpy(output, input, 4 * count);
    result =
        rondo_all_reduce(in_place ? output : input, output, count, RONDO_INT32, op, comm, NULL);
    if (result)
        world_say(sentence, result, "%s", rondo_last_error(comm));
    else if (!world_check_reduced(&data, 0, count, output, sentence))
        result = RONDO_ERROR_INTERNAL;
    free(input);
    free(output);
    return result;
}

static rondo_result reduce_body(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_result result = RONDO_OK;

    (void)argument;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && !result; i++)
        for (int in_place = 0; in_place < 2 && !result; in_place++) {
            result = reduce_once(comm, counts[i], RONDO_SUM, in_place, sentence);
            if (!result)
                result = reduce_once(comm, counts[i], RONDO_MAX, in_place, sentence);
        }
    if (!result) /* the file has no barrier: some other algorithm has */
        result = rondo_barrier(comm, NULL);
    return result;
}

static void run(const char *path, int size, bool processes)
{
    char name[256];
    rondo_config config = RONDO_CONFIG_INIT;
    struct world world = {.size = size, .processes = processes, .config = &config};
    static struct world_report report;

    snprintf(name, sizeof(name), "file:%s", path);
    config.algorithm = name;
    cr_assert_eq(world_run(&world, reduce_body, NULL, &report), 0, "%s: %s", path, report.summary);
}

/* A file with the text, to unlink() and free(). */
static char *file_with(const char *text)
{
    char *path = strdup("/tmp/rondo-plan-XXXXXX");
    int file = mkstemp(path);

    cr_assert(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    return path;
}

static char *file_of(const char *algorithm, int size)
{
    struct forms forms;
    char *path, *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);

    cr_assert(forms_make(algorithm, RONDO_ALL_REDUCE, size, 0, &forms));
    plan_file_write(forms.plans, forms.size, NULL, to);
    cr_assert_eq(fclose(to), 0);
    path = file_with(text);
    free(text);
    forms_close(&forms);
    return path;
}

Test(plan_run, a_plan_written_by_hand_runs_in_processes)
{
    run(PAIRS, 4, true);
}

Test(plan_run, a_plan_written_by_hand_runs_in_threads)
{
    run(PAIRS, 4, false);
}

Test(plan_run, plans_of_every_algorithm_run_out_of_a_file)
{
    static const char *const names[] = {"ring", "tree", "direct", "halving", "zero_copy"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *path = file_of(names[i], 3);

        run(path, 3, false);
        unlink(path);
        free(path);
    }
}

static void expect_refusal(const char *path, int size, const char *says)
{
    char name[256];
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_comm *comms[8] = {NULL};

    snprintf(name, sizeof(name), "file:%s", path);
    config.algorithm = name;
    cr_assert_eq(rondo_comm_open_all(size, &config, comms), RONDO_ERROR_INVALID);
    cr_assert(strstr(rondo_last_error(NULL), says), "'%s' should say '%s'", rondo_last_error(NULL),
              says);
}

Test(plan_run, a_plan_for_other_ranks_is_refused)
{
    expect_refusal(PAIRS, 3, "is for 4 ranks, the communicator has 3");
}

Test(plan_run, a_wrong_plan_never_runs)
{
    char *path = file_with(
        "{\"format\": \"rondo plan 1\", \"collective\": \"all_reduce\",\n"
        "\"algorithm\": \"greedy\", "
        "\"ranks\": 1, \"message_atoms\": 0, \"plans\": [{\"rank\": 0, \"programs\": [[\n"
        "{\"do\": \"copy\", \"from\": [{\"input\": 60000}], \"to\": [{\"output\": 0}], \"finish\": "
        "true}]]}]}\n");

    expect_refusal(path, 1, "rank 0, step 0");
    expect_refusal(path, 1, "line 3");
    unlink(path);
    free(path);
}

/* Halves of the communicator have no plan in the file. */
static rondo_result split_body(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_comm *half = NULL;
    rondo_result result =
        rondo_comm_split(comm, rondo_comm_rank(comm) % 2, rondo_comm_rank(comm), NULL, &half);

    (void)argument;
    if (result)
        return world_say(sentence, result, "%s", rondo_last_error(comm));
    result = reduce_once(half, 1000, RONDO_SUM, false, sentence);
    rondo_comm_close(half);
    return result ? result : reduce_once(comm, 1000, RONDO_SUM, false, sentence);
}

Test(plan_run, a_split_of_fewer_ranks_takes_another_algorithm)
{
    rondo_config config = RONDO_CONFIG_INIT;
    struct world world = {.size = 4, .config = &config};
    static struct world_report report;

    config.algorithm = "file:" PAIRS;
    cr_assert_eq(world_run(&world, split_body, NULL, &report), 0, "%s", report.summary);
}

static rondo_result estimate_body(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_call call = {.struct_size = sizeof(call)};
    double microseconds = 0;
    rondo_result result;

    (void)argument;
    call.comm = comm;
    call.collective = RONDO_ALL_REDUCE;
    call.count = 1000;
    call.type = RONDO_FLOAT32;
    call.op = RONDO_SUM;
    result = rondo_estimate(&call, &microseconds);
    if (result)
        return world_say(sentence, result, "%s", rondo_last_error(comm));
    return microseconds > 0 ? RONDO_OK
                            : world_say(sentence, RONDO_ERROR_INTERNAL, "it costs nothing");
}

Test(plan_run, the_cost_model_counts_a_file_like_any_other_plan)
{
    rondo_config config = RONDO_CONFIG_INIT;
    struct world world = {.size = 4, .config = &config};
    static struct world_report report;

    config.algorithm = "file:" PAIRS;
    cr_assert_eq(world_run(&world, estimate_body, NULL, &report), 0, "%s", report.summary);
}
