/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sample.c - the model goes on where held-out records stop.
 *
 * Every rank computes the same, since a forward pass can be collective; rank 0 prints.
 */
#include "train/trainer.h"

#include "train/common/say.h"

#include <stdlib.h>

/* From 0 to 1, the same in every run. */
static double random_part(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

static int most_probable(int width, const real *logits)
{
    int best = 0;

    for (int i = 1; i < width; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

static int choose(const struct corpus *corpus, const real *logits, uint64_t *state)
{
    int width = corpus->vocabulary;
    real most = logits[most_probable(width, logits)];
    double sum = 0;
    double at;

    if (corpus->temperature == 0)
        return most_probable(width, logits);
    for (int i = 0; i < width; i++)
        sum += exp((double)(logits[i] - most) / corpus->temperature);
    at = random_part(state) * sum;
    for (int i = 0; i < width; i++) {
        at -= exp((double)(logits[i] - most) / corpus->temperature);
        if (at <= 0)
            return i;
    }
    return width - 1;
}

/* Records of `text` are one token longer than those of a batch. */
static rondo_result extend(struct trainer *trainer, int count, int place, int *text, int *tokens,
                           uint64_t *random)
{
    const struct corpus *corpus = trainer->corpus;
    const struct model_batch batch = {.sequences = count, .tokens = tokens};
    size_t length = (size_t)corpus->length;
    real *logits = malloc((size_t)corpus->vocabulary * sizeof(*logits));
    rondo_result result = logits ? RONDO_OK : say_memory();

    for (size_t i = 0; i < (size_t)count; i++)
        for (size_t j = 0; j < length; j++)
            tokens[i * length + j] = (int)j < place ? text[i * (length + 1) + j] : 0;
    if (!result)
        result = trainer->engine->ops->forward(trainer->engine, &batch);
    for (size_t i = 0; !result && i < (size_t)count; i++) {
        size_t row = i * length + (size_t)place - 1;

        result = trainer->model->with->read(
            logits, trainer->model->logits + row * (size_t)corpus->vocabulary,
            (size_t)corpus->vocabulary * sizeof(*logits));
        text[i * (length + 1) + (size_t)place] = result ? 0 : choose(corpus, logits, random);
    }
    free(logits);
    return result;
}

rondo_result sample(struct trainer *trainer, FILE *to)
{
    const struct corpus *corpus = trainer->corpus;
    size_t length = (size_t)corpus->length;
    int count = trainer->options->samples;
    uint64_t random = trainer->options->seed;
    rondo_result result = RONDO_OK;
    int *text, *tokens;

    if (count > trainer->options->batch)
        count = trainer->options->batch;
    if ((size_t)count > corpus->held_out)
        count = (int)corpus->held_out;
    text = calloc((size_t)count * (length + 1) + 1, sizeof(*text));
    tokens = calloc(2 * (size_t)count * length + 1, sizeof(*tokens)); /* and targets */
    for (size_t i = 0; text && tokens && i < (size_t)count; i++)
        corpus->ops->record(corpus, true, i, text + i * (length + 1),
                            tokens + (size_t)count * length);
    for (int i = corpus->prompt; !result && text && tokens && count && i <= corpus->length; i++)
        result = extend(trainer, count, i, text, tokens, &random);
    for (size_t i = 0; !result && text && tokens && trainer->rank == 0 && i < (size_t)count; i++)
        corpus->ops->show(corpus, text + i * (length + 1), to);
    free(text);
    free(tokens);
    return result;
}
