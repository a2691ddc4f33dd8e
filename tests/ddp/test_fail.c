/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fail.c - sentences of errors of the data-parallel layer. */
#include <rondo/train.h>

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

Test(ddp_fail, there_is_no_sentence_before_the_first_error)
{
    cr_assert_str_eq(rondo_ddp_last_error(), "");
}

/* ---- In an open group, or without a handle --------------------------------------------------- */

static rondo_comm *comm;

static void expect_refused(rondo_result result, const char *function)
{
    cr_expect(result == RONDO_ERROR_INVALID, "%s returned %s", function,
              rondo_result_string(result));
    cr_expect(strstr(rondo_ddp_last_error(), function), "%s: %s", function, rondo_ddp_last_error());
}
#define EXPECT_REFUSED(function, ...) expect_refused(function(__VA_ARGS__), #function)

static void open_one(void)
{
    cr_assert(rondo_comm_open_all(1, NULL, &comm) == RONDO_OK, "%s", rondo_last_error(NULL));
}

static void close_one(void)
{
    rondo_comm_close(comm);
}

TestSuite(ddp_group, .init = open_one, .fini = close_one);

static void sgd(void *context, const rondo_update *update)
{
}

Test(ddp_group, functions_without_a_handle_are_refused)
{
    float value = 1;
    const rondo_span span = {&value, 1};
    const char *name;
    const float *values;
    rondo_shards_memory memory;
    rondo_type type;
    size_t count;
    float *gradients;
    double norm;

    EXPECT_REFUSED(rondo_norm, NULL, 1, NULL, &norm);
    EXPECT_REFUSED(rondo_norm, &span, 1, comm, NULL);
    EXPECT_REFUSED(rondo_clip, &span, 1, 1, comm, NULL);
    EXPECT_REFUSED(rondo_checkpoint_create, "x", comm, NULL);
    EXPECT_REFUSED(rondo_checkpoint_open, NULL, comm, &(rondo_checkpoint *){NULL});
    EXPECT_REFUSED(rondo_checkpoint_write, NULL, "x", RONDO_FLOAT32, 1, &value);
    EXPECT_REFUSED(rondo_checkpoint_commit, NULL);
    EXPECT_REFUSED(rondo_checkpoint_read, NULL, "x", RONDO_FLOAT32, 1, &value);
    EXPECT_REFUSED(rondo_checkpoint_at, NULL, 0, &name, &type, &count);
    cr_expect(rondo_checkpoint_count(NULL) == 0);
    EXPECT_REFUSED(rondo_shards_add_unit, NULL, NULL, 0);
    EXPECT_REFUSED(rondo_shards_prefetch, NULL, 0);
    EXPECT_REFUSED(rondo_shards_gather, NULL, 0);
    EXPECT_REFUSED(rondo_shards_parameter, NULL, 0, 0, &values);
    EXPECT_REFUSED(rondo_shards_release, NULL, 0);
    EXPECT_REFUSED(rondo_shards_gradient, NULL, 0, 0, &gradients);
    EXPECT_REFUSED(rondo_shards_reduce, NULL, 0);
    EXPECT_REFUSED(rondo_shards_clip, NULL, 1, &norm);
    EXPECT_REFUSED(rondo_shards_step, NULL, sgd, NULL);
    EXPECT_REFUSED(rondo_shards_export, NULL, 0, 0, -1, &value);
    EXPECT_REFUSED(rondo_shards_import, NULL, 0, 0, -1, &value);
    EXPECT_REFUSED(rondo_shards_memory_used, NULL, &memory);
    EXPECT_REFUSED(rondo_sampler_seek, NULL, (rondo_sampler_position){0});
    EXPECT_REFUSED(rondo_sampler_divide, NULL, 0, 1, 0, 0);
    cr_expect(rondo_sampler_count(NULL) == 0 && rondo_sampler_next(NULL, 1, &count) == 0);
    EXPECT_REFUSED(rondo_ddp_begin, NULL, 1);
    EXPECT_REFUSED(rondo_ddp_join, NULL, NULL, NULL);
    EXPECT_REFUSED(rondo_ddp_lateness_get, NULL, NULL);
}

/* Handles of a model of one parameter. */
struct handles {
    rondo_ddp *ddp;
    rondo_shards *shards;
    rondo_checkpoint *checkpoint;
    rondo_batch_norm *norm;
};

static struct handles handles_open(float *value, float *gradient, const char *path)
{
    const rondo_ddp_tensor tensor = {
        .name = "w", .type = RONDO_FLOAT32, .count = 1, .data = value, .gradient = gradient};
    const rondo_ddp_model model = {.parameters = &tensor, .parameter_count = 1};
    const rondo_parameter_spec spec = {.name = "w", .count = 1, .values = value};
    const rondo_shards_config config = {.struct_size = sizeof(config),
                                        .level = RONDO_SHARD_PARAMETERS};
    rondo_batch_norm_layer layer = {.channels = 1, .epsilon = 1e-5f};
    struct handles handles = {0};

    cr_assert(rondo_ddp_open(comm, &model, NULL, &handles.ddp) == RONDO_OK, "%s",
              rondo_ddp_last_error());
    cr_assert(rondo_ddp_begin(handles.ddp, 1) == RONDO_OK);
    cr_assert(rondo_shards_open(&config, comm, &handles.shards) == RONDO_OK, "%s",
              rondo_ddp_last_error());
    cr_assert(rondo_shards_add_unit(handles.shards, &spec, 1) == RONDO_OK, "%s",
              rondo_ddp_last_error());
    cr_assert(rondo_checkpoint_create(path, comm, &handles.checkpoint) == RONDO_OK, "%s",
              rondo_ddp_last_error());
    cr_assert(rondo_batch_norm_open(comm, &layer, &handles.norm) == RONDO_OK, "%s",
              rondo_ddp_last_error());
    return handles;
}

Test(ddp_group, functions_that_need_results_at_once_are_refused_in_an_open_group)
{
    float value = 3, gradient = 0, x = 1;
    const rondo_span span = {&value, 1};
    char path[64];
    struct handles h;
    double norm = -1;

    snprintf(path, sizeof(path), "/tmp/rondo-group-%d", (int)getpid());
    h = handles_open(&value, &gradient, path);
    cr_assert(rondo_group_start() == RONDO_OK);
    EXPECT_REFUSED(rondo_norm, &span, 1, comm, &norm);
    EXPECT_REFUSED(rondo_clip, &span, 1, 1, comm, &norm);
    EXPECT_REFUSED(rondo_checkpoint_create, path, comm, &(rondo_checkpoint *){NULL});
    EXPECT_REFUSED(rondo_checkpoint_open, path, comm, &(rondo_checkpoint *){NULL});
    EXPECT_REFUSED(rondo_checkpoint_commit, h.checkpoint);
    EXPECT_REFUSED(rondo_batch_norm_forward, h.norm, &x, &x, 1, 1);
    EXPECT_REFUSED(rondo_shards_open,
                   &(rondo_shards_config){.struct_size = sizeof(rondo_shards_config), .level = 1},
                   comm, &(rondo_shards *){NULL});
    EXPECT_REFUSED(rondo_shards_gather, h.shards, 0);
    EXPECT_REFUSED(rondo_shards_reduce, h.shards, 0);
    EXPECT_REFUSED(rondo_shards_clip, h.shards, 1, &norm);
    EXPECT_REFUSED(rondo_shards_step, h.shards, sgd, NULL);
    EXPECT_REFUSED(rondo_ddp_open, comm, NULL, NULL, &(rondo_ddp *){NULL});
    EXPECT_REFUSED(rondo_ddp_gradient_ready, h.ddp, 0);
    EXPECT_REFUSED(rondo_ddp_wait, h.ddp);
    EXPECT_REFUSED(rondo_ddp_share, h.ddp, NULL, 0);
    EXPECT_REFUSED(rondo_ddp_move, h.ddp, comm);
    cr_expect(rondo_norm(&span, 1, NULL, &norm) == RONDO_OK && norm == 3, "alone it needs no call");
    cr_expect(rondo_group_end() == RONDO_OK, "nothing was collected");
    cr_expect(rondo_ddp_gradient_ready(h.ddp, 0) == RONDO_OK && rondo_ddp_wait(h.ddp) == RONDO_OK,
              "%s", rondo_ddp_last_error());
    rondo_checkpoint_close(h.checkpoint);
    rondo_batch_norm_close(h.norm);
    rondo_shards_close(h.shards);
    rondo_ddp_close(h.ddp);
}
