/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * saved.c - checkpoints: everything that the rest of a training depends on.
 *
 * Nothing in the file depends on how many ranks there are, so ranks may come or go between two runs
 * as long as a step has the same micro-batches.
 */
#include "train/trainer.h"

#include "train/common/say.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* With --elastic there is a stream of samples instead of a place. */
enum { STREAM = 4 };
enum { FACTS = 8, MICRO_BATCHES = 6, NAME = PARAMETER_NAME + 16 };

static const char *const facts_names[FACTS] = {
    "kinds of tokens", "tokens per sequence",    "--width", "--heads", "--layers",
    "--batch",         "micro-batches per step", "--seed"};

/* Fills in the facts that must be the same when a training goes on. */
static void facts_of(const struct trainer *trainer, int64_t *ret_facts)
{
    const struct model_shape *shape = &trainer->model->shape;
    const struct train_options *options = trainer->options;
    const int64_t facts[FACTS] = {shape->vocabulary,      shape->length,         shape->width,
                                  shape->heads,           shape->layers,         options->batch,
                                  trainer->micro_batches, (int64_t)options->seed};

    memcpy(ret_facts, facts, sizeof(facts));
}

static void name_of(const struct parameter *parameter, int state, char *ret_name)
{
    static const char *const states[] = {"", ".first", ".second"};

    snprintf(ret_name, NAME, "%s%s", parameter->name, states[state + 1]);
}

static rondo_result write_array(struct trainer *trainer, rondo_checkpoint *file, int parameter,
                                int state)
{
    const struct parameter *at = &trainer->model->parameters[parameter];
    float *values = malloc(at->count * sizeof(*values));
    rondo_result result;
    char name[NAME];

    if (!values)
        return say_memory();
    name_of(at, state, name);
    result = trainer->engine->ops->export(trainer->engine, parameter, state, values);
    if (!result)
        result = say_ddp(rondo_checkpoint_write(file, name, RONDO_FLOAT32, at->count, values));
    free(values);
    return result;
}

static rondo_result write_all(struct trainer *trainer, rondo_checkpoint *file)
{
    const rondo_sampler_position position = loader_tell(trainer->loader);
    const uint64_t place[2] = {position.epoch, position.taken};
    const uint64_t stream[STREAM] = {trainer->planned, trainer->taken, trainer->ledger.count,
                                     trainer->ledger.sum};
    int64_t facts[FACTS];
    rondo_result result;

    facts_of(trainer, facts);
    result = say_ddp(rondo_checkpoint_write(file, "facts", RONDO_INT64, FACTS, facts));
    if (!result)
        result = say_ddp(
            rondo_checkpoint_write(file, "alphabet", RONDO_UINT8, 256, trainer->corpus->bytes));
    if (!result)
        result = say_ddp(rondo_checkpoint_write(file, "step", RONDO_UINT64, 1, &trainer->step));
    if (!result && trainer->options->elastic.most)
        result = say_ddp(rondo_checkpoint_write(file, "stream", RONDO_UINT64, STREAM, stream));
    else if (!result)
        result = say_ddp(rondo_checkpoint_write(file, "place", RONDO_UINT64, 2, place));
    for (int i = 0; !result && i < trainer->model->parameter_count; i++)
        for (int state = ENGINE_VALUE; !result && state < ENGINE_STATES; state++)
            result = write_array(trainer, file, i, state);
    return result;
}

rondo_result saved_try(struct trainer *trainer)
{
    rondo_checkpoint *file = NULL;
    rondo_result result = RONDO_OK;

    if (trainer->options->checkpoint)
        result =
            say_ddp(rondo_checkpoint_create(trainer->options->checkpoint, trainer->comm, &file));
    rondo_checkpoint_close(file);
    return result;
}

rondo_result saved_write(struct trainer *trainer)
{
    rondo_checkpoint *file = NULL;
    rondo_result result =
        say_ddp(rondo_checkpoint_create(trainer->options->checkpoint, trainer->comm, &file));

    if (!result)
        result = write_all(trainer, file);
    if (!result)
        result = say_ddp(rondo_checkpoint_commit(file));
    rondo_checkpoint_close(file);
    return result;
}

static rondo_result compare_facts(struct trainer *trainer, rondo_checkpoint *file)
{
    const char *path = trainer->options->checkpoint;
    unsigned char alphabet[256];
    int64_t saved[FACTS], ours[FACTS];
    rondo_result result = say_ddp(rondo_checkpoint_read(file, "facts", RONDO_INT64, FACTS, saved));

    if (!result)
        result = say_ddp(rondo_checkpoint_read(file, "alphabet", RONDO_UINT8, 256, alphabet));
    if (result)
        return result;
    /* Ranks that are others now go on with the steps that there were. */
    if (trainer->options->elastic.most && saved[MICRO_BATCHES] > 0 &&
        saved[MICRO_BATCHES] <= INT32_MAX)
        trainer->micro_batches = (int)saved[MICRO_BATCHES];
    facts_of(trainer, ours);
    for (int i = 0; i < FACTS; i++)
        if (saved[i] != ours[i])
            return say(RONDO_ERROR_INVALID,
                       "%s was written with %s = %" PRId64 ", this training has %" PRId64
                       ": give the same options, or another --checkpoint",
                       path, facts_names[i], saved[i], ours[i]);
    if (memcmp(alphabet, trainer->corpus->bytes, sizeof(alphabet)))
        return say(RONDO_ERROR_INVALID,
                   "%s was written while learning a text of other bytes: give the same --data",
                   path);
    return RONDO_OK;
}

static rondo_result read_array(struct trainer *trainer, rondo_checkpoint *file, int parameter,
                               int state)
{
    const struct parameter *at = &trainer->model->parameters[parameter];
    float *values = malloc(at->count * sizeof(*values));
    rondo_result result;
    char name[NAME];

    if (!values)
        return say_memory();
    name_of(at, state, name);
    result = say_ddp(rondo_checkpoint_read(file, name, RONDO_FLOAT32, at->count, values));
    if (!result)
        result = trainer->engine->ops->import(trainer->engine, parameter, state, values);
    free(values);
    return result;
}

static rondo_result read_all(struct trainer *trainer, rondo_checkpoint *file)
{
    bool elastic = trainer->options->elastic.most > 0;
    uint64_t place[2] = {0}, stream[STREAM] = {0};
    uint64_t step;
    rondo_result result = compare_facts(trainer, file);

    if (!result)
        result = say_ddp(rondo_checkpoint_read(file, "step", RONDO_UINT64, 1, &step));
    if (!result)
        result = elastic
                     ? say_ddp(rondo_checkpoint_read(file, "stream", RONDO_UINT64, STREAM, stream))
                     : say_ddp(rondo_checkpoint_read(file, "place", RONDO_UINT64, 2, place));
    for (int i = 0; !result && i < trainer->model->parameter_count; i++)
        for (int state = ENGINE_VALUE; !result && state < ENGINE_STATES; state++)
            result = read_array(trainer, file, i, state);
    if (!result && !elastic)
        result = loader_seek(trainer->loader, (rondo_sampler_position){place[0], place[1], 0});
    if (result)
        return result;
    trainer->step = step;
    if (elastic) {
        trainer->planned = stream[0];
        trainer->taken = stream[1];
        trainer->ledger = (struct ledger){stream[2], stream[3]};
    }
    return result;
}

/* Rank 0 looks, so that all ranks do the same. */
static rondo_result look(const struct trainer *trainer, rondo_comm *comm, bool *ret_there)
{
    unsigned char there = access(trainer->options->checkpoint, F_OK) == 0;
    rondo_result result =
        comm ? rondo_broadcast(&there, &there, 1, RONDO_UINT8, 0, comm, NULL) : RONDO_OK;

    *ret_there = there;
    return say_comm(result, comm);
}

rondo_result saved_read(struct trainer *trainer, rondo_comm *comm, bool *ret_found)
{
    rondo_checkpoint *file = NULL;
    bool there = false;
    rondo_result result = look(trainer, comm, &there);

    if (!result && there)
        result = say_ddp(rondo_checkpoint_open(trainer->options->checkpoint, comm, &file));
    if (!result && there)
        result = read_all(trainer, file);
    rondo_checkpoint_close(file);
    if (!result)
        *ret_found = there;
    return result;
}
