/* SPDX-License-Identifier: BSD-3-Clause */
/* start.c - opening: rank 0's values for all, and models that differ. */
#include "bodies.h"

#include <string.h>

static rondo_result check_values(struct toy *toy)
{
    for (int p = 0; p < TOY_PARAMETERS; p++) {
        const rondo_ddp_tensor *t = &toy->parameters[p];

        for (size_t i = 0; i < t->count; i++)
            if (world_load(t->type, (char *)t->data + i * rondo_type_size(t->type)) !=
                toy_value(0, p, i))
                return world_say(toy->sentence, RONDO_ERROR_INTERNAL,
                                 "'%s' is not rank 0's at element %zu", t->name, i);
    }
    for (int b = 0; b < TOY_BUFFERS; b++)
        for (int i = 0; i < 20; i++)
            if (toy->buffer[b][i] != b * 100 + i)
                return world_say(toy->sentence, RONDO_ERROR_INTERNAL, "buffer %d is not rank 0's",
                                 b);
    return RONDO_OK;
}

rondo_result start_gives_all_the_values_of_rank_0(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, true, sentence);
    rondo_result result = toy_open(toy, NULL);

    if (!result)
        result = check_values(toy);
    toy_free(toy);
    return result;
}

/* ---- Models that differ ---------------------------------------------------------------------- */

static void change_name(struct toy *toy, rondo_ddp_config *config)
{
    toy->parameters[3].name = "another.bias";
}

static void change_count(struct toy *toy, rondo_ddp_config *config)
{
    toy->parameters[1].count--;
}

static void change_type(struct toy *toy, rondo_ddp_config *config)
{
    toy->parameters[0].type = RONDO_FLOAT16;
}

static void change_frozen(struct toy *toy, rondo_ddp_config *config)
{
    toy->parameters[5].frozen = 1;
}

static void change_order(struct toy *toy, rondo_ddp_config *config)
{
    rondo_ddp_tensor first = toy->parameters[0];

    toy->parameters[0] = toy->parameters[6];
    toy->parameters[6] = first;
}

static void drop_last(struct toy *toy, rondo_ddp_config *config)
{
    toy->model.parameter_count--;
    toy->model.buffer_count = 0;
}

static void drop_buffer(struct toy *toy, rondo_ddp_config *config)
{
    toy->model.buffer_count--;
}

static void change_setting(struct toy *toy, rondo_ddp_config *config)
{
    config->find_unused = 1;
}

static const struct {
    void (*change)(struct toy *toy, rondo_ddp_config *config);
    const char *word; /* of the sentence that all ranks get */
} changes[] = {
    {change_name, "'another.bias'"}, {change_count, "'up.weight' of 99"},
    {change_type, "float16"},        {change_frozen, "'norm' of 1 float32, frozen"},
    {change_order, "'head.weight'"}, {drop_last, "'head.weight' of 64"},
    {drop_buffer, "no more"},        {change_setting, "find_unused 1"},
};

/* The last rank is different; all get its sentence, and the communicator stays usable. */
rondo_result start_refuses_other_models(rondo_comm *comm, void *unused, char *sentence)
{
    int size = rondo_comm_size(comm);
    char culprit[32] = "Rank 0";
    rondo_result result = RONDO_OK;

    culprit[5] = (char)('0' + size - 1);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]) && !result; i++) {
        struct toy *toy = toy_new(comm, false, sentence);
        rondo_ddp_config config = toy_config();

        if (toy->rank == size - 1)
            changes[i].change(toy, &config);
        result = toy_expect(toy, rondo_ddp_open(comm, &toy->model, &config, &toy->ddp),
                            RONDO_ERROR_MISMATCH, culprit, changes[i].word);
        toy_free(toy);
    }
    return result;
}

static void no_data(struct toy *toy, rondo_ddp_config *config)
{
    toy->parameters[1].data = NULL;
}

static void integer_parameter(struct toy *toy, rondo_ddp_config *config)
{
    toy->parameters[1].type = RONDO_INT32;
}

static void buffer_with_gradient(struct toy *toy, rondo_ddp_config *config)
{
    toy->buffers[1].gradient = toy->own[1];
}

static void unknown_average(struct toy *toy, rondo_ddp_config *config)
{
    config->average = (rondo_ddp_average)17;
}

static void no_struct_size(struct toy *toy, rondo_ddp_config *config)
{
    config->struct_size = 0;
}

static void no_model(struct toy *toy, rondo_ddp_config *config)
{
    toy->model.parameters = NULL;
}

static void no_name(struct toy *toy, rondo_ddp_config *config)
{
    toy->parameters[2].name = NULL;
}

static void no_such_type(struct toy *toy, rondo_ddp_config *config)
{
    toy->buffers[0].type = RONDO_TYPES;
}

static void tree_of_16_bits(struct toy *toy, rondo_ddp_config *config)
{
    toy->parameters[1].type = RONDO_BFLOAT16;
    config->accumulation = RONDO_DDP_TREE;
}

static void unknown_accumulation(struct toy *toy, rondo_ddp_config *config)
{
    config->accumulation = (rondo_ddp_accumulation)2;
}

static void unknown_join(struct toy *toy, rondo_ddp_config *config)
{
    config->join = (rondo_ddp_join_mode)-1;
}

static void unknown_compression(struct toy *toy, rondo_ddp_config *config)
{
    config->compression = (rondo_ddp_compression)3;
}

static rondo_result some_hook(void *context, const rondo_ddp_bucket *bucket)
{
    return RONDO_OK;
}

static void hook_and_compression(struct toy *toy, rondo_ddp_config *config)
{
    config->hook.start = some_hook;
    config->compression = RONDO_DDP_FLOAT16;
}

static void half_a_hook(struct toy *toy, rondo_ddp_config *config)
{
    config->hook.finish = some_hook;
}

static void device_without_functions(struct toy *toy, rondo_ddp_config *config)
{
    config->device.stream = toy;
}

static rondo_result some_copy(void *context, void *to, const void *from, size_t bytes)
{
    return RONDO_OK;
}

static rondo_result some_mark(void *context, int mark, int of_exchange)
{
    return RONDO_OK;
}

static rondo_result some_following(void *context, int mark)
{
    return RONDO_OK;
}

static rondo_result some_time(void *context, int from, int to, double *ret_seconds)
{
    return RONDO_OK;
}

static void device_and_check(struct toy *toy, rondo_ddp_config *config)
{
    config->device = (rondo_ddp_device){.stream = toy,
                                        .copy = some_copy,
                                        .mark = some_mark,
                                        .follow = some_following,
                                        .between = some_time};
    config->check_nan = 1;
}

static void device_and_compression(struct toy *toy, rondo_ddp_config *config)
{
    device_and_check(toy, config);
    config->compression = RONDO_DDP_FLOAT16;
}

static void device_and_tree(struct toy *toy, rondo_ddp_config *config)
{
    device_and_check(toy, config);
    config->accumulation = RONDO_DDP_TREE;
}

static void device_and_passes(struct toy *toy, rondo_ddp_config *config)
{
    device_and_check(toy, config);
    config->average = RONDO_DDP_BY_PASSES;
}

static const struct {
    void (*change)(struct toy *toy, rondo_ddp_config *config);
    const char *word;
} faults[] = {
    {no_name, "parameter 2"},
    {no_such_type, "buffer 0"},
    {tree_of_16_bits, "TREE"},
    {unknown_accumulation, "accumulation"},
    {unknown_join, "join mode"},
    {unknown_compression, "compression"},
    {hook_and_compression, "a hook compresses by itself"},
    {half_a_hook, "start()"},
    {device_without_functions, "all four functions"},
    {device_and_compression, "cannot be compressed"},
    {device_and_tree, "need RONDO_DDP_ADD"},
    {device_and_passes, "RONDO_DDP_BY_RANKS"},
    {device_and_check, "go without join"},
    {no_data, "'up.weight'"},
    {integer_parameter, "none of float32"},
    {buffer_with_gradient, "buffer 1"},
    {unknown_average, "average"},
    {no_struct_size, "CONFIG_INIT"},
    {no_model, "no model"},
};

/* Rank 0 made the mistake; nobody waits for it. */
rondo_result start_refuses_bad_arguments(rondo_comm *comm, void *unused, char *sentence)
{
    rondo_result result = RONDO_OK;

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]) && !result; i++) {
        struct toy *toy = toy_new(comm, false, sentence);
        rondo_ddp_config config = toy_config();

        if (toy->rank == 0)
            faults[i].change(toy, &config);
        result = toy_expect(toy, rondo_ddp_open(comm, &toy->model, &config, &toy->ddp),
                            RONDO_ERROR_INVALID, "ank 0", faults[i].word);
        toy_free(toy);
    }
    return result;
}
