/* SPDX-License-Identifier: BSD-3-Clause */
/* loader.c - see loader.h. */
#include "train/loader.h"

#include "train/common/say.h"

#include <stdlib.h>

struct loader {
    const struct corpus *corpus;
    int batch, passes;
    rondo_sampler **samplers; /* one per micro-batch of this rank */
    size_t *records;
    int *tokens, *targets;
};

static rondo_result open_samplers(struct loader *loader, const struct train_options *options,
                                  rondo_comm *comm)
{
    rondo_sampler_config config = {.struct_size = sizeof(config),
                                   .samples = loader->corpus->trained,
                                   .size = comm ? rondo_comm_size(comm) * loader->passes : 1,
                                   .shuffle = 1,
                                   .seed = options->seed};
    rondo_result result = RONDO_OK;

    if (options->elastic.most) /* the stream of all epochs, which nobody has a fixed part of */
        config.size = 1;
    for (int i = 0; !result && i < loader->passes; i++) {
        config.rank = options->elastic.most ? 0 : rondo_comm_rank(comm) * loader->passes + i;
        result = say_ddp(rondo_sampler_open(&config, &loader->samplers[i]));
    }
    return result;
}

rondo_result loader_open(const struct train_options *options, const struct corpus *corpus,
                         rondo_comm *comm, struct loader **ret_loader)
{
    struct loader *loader = calloc(1, sizeof(*loader));
    size_t batch = (size_t)options->batch;
    size_t tokens = batch * (size_t)corpus->length;
    rondo_result result = RONDO_ERROR_MEMORY;

    if (!loader)
        return say_memory();
    loader->corpus = corpus;
    loader->batch = options->batch;
    loader->passes = options->elastic.most ? 1 : options->accumulate;
    loader->samplers = calloc((size_t)loader->passes, sizeof(*loader->samplers));
    loader->records = malloc(batch * sizeof(*loader->records));
    loader->tokens = malloc(tokens * sizeof(*loader->tokens));
    loader->targets = malloc(tokens * sizeof(*loader->targets));
    if (loader->samplers && loader->records && loader->tokens && loader->targets)
        result = open_samplers(loader, options, comm);
    else
        say_memory();
    if (result)
        loader_close(loader);
    else
        *ret_loader = loader;
    return result;
}

void loader_close(struct loader *loader)
{
    if (!loader)
        return;
    for (int i = 0; loader->samplers && i < loader->passes; i++)
        rondo_sampler_close(loader->samplers[i]);
    free(loader->samplers);
    free(loader->records);
    free(loader->tokens);
    free(loader->targets);
    free(loader);
}

static void put(struct loader *loader, bool held_out, size_t record, size_t place)
{
    size_t at = place * (size_t)loader->corpus->length;

    loader->corpus->ops->record(loader->corpus, held_out, record, loader->tokens + at,
                                loader->targets + at);
}

void loader_next(struct loader *loader, int pass, struct model_batch *ret_batch)
{
    rondo_sampler *sampler = loader->samplers[pass];
    size_t wanted = (size_t)loader->batch;

    for (size_t have = 0; have < wanted;) {
        have += rondo_sampler_next(sampler, wanted - have, loader->records + have);
        if (have < wanted) /* the epoch is over */
            rondo_sampler_set_epoch(sampler, rondo_sampler_tell(sampler).epoch + 1);
    }
    for (size_t i = 0; i < wanted; i++)
        put(loader, false, loader->records[i], i);
    *ret_batch = (struct model_batch){loader->batch, loader->tokens, loader->targets};
}

void loader_at(struct loader *loader, uint64_t first, struct model_batch *ret_batch,
               struct ledger *ledger)
{
    const uint64_t samples = loader->corpus->trained;

    rondo_sampler_seek(loader->samplers[0],
                       (rondo_sampler_position){first / samples, first % samples, 0});
    loader_next(loader, 0, ret_batch);
    if (ledger)
        ledger_add(ledger, loader->records, (size_t)loader->batch, first, samples);
}

void loader_held_out(struct loader *loader, size_t first, int count, struct model_batch *ret_batch)
{
    for (int i = 0; i < count; i++)
        put(loader, true, first + (size_t)i, (size_t)i);
    *ret_batch = (struct model_batch){count, loader->tokens, loader->targets};
}

rondo_sampler_position loader_tell(const struct loader *loader)
{
    return rondo_sampler_tell(loader->samplers[0]);
}

rondo_result loader_seek(struct loader *loader, rondo_sampler_position position)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; !result && i < loader->passes; i++)
        result = say_ddp(rondo_sampler_seek(loader->samplers[i], position));
    return result;
}
