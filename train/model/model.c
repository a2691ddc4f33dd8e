/* SPDX-License-Identifier: BSD-3-Clause */
/* model.c - the forward and the backward pass: which layer comes after which. */
#include "train/model/model_parts.h"

static rondo_result begin_unit(const struct model_hooks *hooks, int unit, bool backward)
{
    return hooks && hooks->before_unit ? hooks->before_unit(hooks->context, unit, backward)
                                       : RONDO_OK;
}

static rondo_result end_unit(const struct model_hooks *hooks, int unit, bool backward)
{
    return hooks && hooks->after_unit ? hooks->after_unit(hooks->context, unit, backward)
                                      : RONDO_OK;
}

/* Tells the hooks that `first` and the `count` - 1 parameters after it are ready, the last one
 * first. */
static rondo_result tell(const struct model *model, const struct model_hooks *hooks,
                         const struct parameter *first, int count)
{
    rondo_result result = RONDO_OK;

    for (int i = count - 1; !result && hooks && hooks->gradient_ready && i >= 0; i--)
        result = hooks->gradient_ready(hooks->context, (int)(first - model->parameters) + i);
    return result;
}

static void block_forward(const struct model *model, const struct block *block, int sequences,
                          real *y)
{
    const struct arithmetic *with = model->with;
    int rows = sequences * model->shape.length;
    size_t wide = (size_t)rows * (size_t)block->widen.out;

    with->norm_forward(&block->norm1, rows, block->x, block->normed1, block->statistics1);
    with->linear_forward(&block->query, rows, block->normed1, NULL, block->qkv);
    with->attention_forward(&block->attention, sequences, block->qkv, block->weights,
                            block->attended);
    with->linear_forward(&block->project, rows, block->attended, block->x, block->middle);
    with->norm_forward(&block->norm2, rows, block->middle, block->normed2, block->statistics2);
    with->linear_forward(&block->widen, rows, block->normed2, NULL, block->wide);
    with->gelu_forward(wide, block->wide, block->active);
    with->linear_forward(&block->narrow, rows, block->active, block->middle, y);
}

/* The batch is the caller's, and layers may work on other memory. */
static void take_batch(struct model *model, const struct model_batch *batch)
{
    size_t bytes = (size_t)batch->sequences * (size_t)model->shape.length * sizeof(*batch->tokens);

    model->with->write(model->parts->tokens, batch->tokens, bytes);
    if (batch->targets)
        model->with->write(model->parts->targets, batch->targets, bytes);
}

rondo_result model_forward(struct model *model, const struct model_batch *batch,
                           const struct model_hooks *hooks)
{
    const struct arithmetic *with = model->with;
    struct model_parts *parts = model->parts;
    int rows = batch->sequences * model->shape.length;
    int layers = model->shape.layers;
    rondo_result result = begin_unit(hooks, 0, false);

    if (!result) {
        take_batch(model, batch);
        with->embedding_forward(&parts->embedding, rows, parts->tokens,
                                layers ? parts->blocks[0].x : parts->x);
        result = end_unit(hooks, 0, false);
    }
    for (int i = 0; !result && i < layers; i++) {
        result = begin_unit(hooks, i + 1, false);
        if (result)
            break;
        block_forward(model, &parts->blocks[i], batch->sequences,
                      i + 1 < layers ? parts->blocks[i + 1].x : parts->x);
        result = end_unit(hooks, i + 1, false);
    }
    if (!result)
        result = begin_unit(hooks, layers + 1, false);
    if (result)
        return result;
    with->norm_forward(&parts->norm, rows, parts->x, parts->normed, parts->statistics);
    with->linear_forward(&parts->head, rows, parts->normed, NULL, model->logits);
    return end_unit(hooks, layers + 1, false);
}

void model_loss(struct model *model, const struct model_batch *batch, real weight,
                struct loss *ret_loss)
{
    int rows = batch->sequences * model->shape.length;
    long counted = 0;

    for (int row = 0; row < rows; row++)
        counted += batch->targets[row] != LOSS_IGNORED;
    model->with->loss_of(model->shape.vocabulary, model->shape.length, rows, model->parts->targets,
                         counted ? weight / (real)counted : 0, model->logits, ret_loss);
}

static rondo_result mlp_backward(struct model *model, const struct block *block, int rows,
                                 const struct model_hooks *hooks)
{
    const struct arithmetic *with = model->with;
    struct model_parts *parts = model->parts;
    size_t wide = (size_t)rows * (size_t)block->widen.out;
    struct norm_saved saved = {block->middle, block->statistics2};
    rondo_result result;

    with->linear_backward(&block->narrow, rows, block->active, parts->d_x, parts->d_wide);
    result = tell(model, hooks, block->narrow.weight, 2);
    if (result)
        return result;
    with->gelu_backward(wide, block->wide, parts->d_wide, parts->d_wide);
    with->linear_backward(&block->widen, rows, block->normed2, parts->d_wide, parts->d_normed);
    result = tell(model, hooks, block->widen.weight, 2);
    if (result)
        return result;
    with->norm_backward(&block->norm2, rows, saved, parts->d_normed, parts->d_x);
    return tell(model, hooks, block->norm2.gain, 2);
}

static rondo_result attending_backward(struct model *model, const struct block *block,
                                       int sequences, const struct model_hooks *hooks)
{
    const struct arithmetic *with = model->with;
    struct model_parts *parts = model->parts;
    int rows = sequences * model->shape.length;
    struct attention_saved kept = {block->qkv, block->weights, parts->d_weights};
    struct norm_saved saved = {block->x, block->statistics1};
    rondo_result result;

    with->linear_backward(&block->project, rows, block->attended, parts->d_x, parts->d_normed);
    result = tell(model, hooks, block->project.weight, 2);
    if (result)
        return result;
    with->attention_backward(&block->attention, sequences, kept, parts->d_normed, parts->d_qkv);
    with->linear_backward(&block->query, rows, block->normed1, parts->d_qkv, parts->d_normed);
    result = tell(model, hooks, block->query.weight, 2);
    if (result)
        return result;
    with->norm_backward(&block->norm1, rows, saved, parts->d_normed, parts->d_x);
    return tell(model, hooks, block->norm1.gain, 2);
}

static rondo_result head_backward(struct model *model, int rows, const struct model_hooks *hooks)
{
    const struct arithmetic *with = model->with;
    struct model_parts *parts = model->parts;
    struct norm_saved saved = {parts->x, parts->statistics};
    rondo_result result;

    with->linear_backward(&parts->head, rows, parts->normed, model->logits, parts->d_normed);
    result = tell(model, hooks, parts->head.weight, 2);
    if (result)
        return result;
    with->clear(parts->d_x, (size_t)rows * (size_t)model->shape.width * sizeof(*parts->d_x));
    with->norm_backward(&parts->norm, rows, saved, parts->d_normed, parts->d_x);
    return tell(model, hooks, parts->norm.gain, 2);
}

static rondo_result unit_backward(struct model *model, const struct model_batch *batch, int unit,
                                  const struct model_hooks *hooks)
{
    const struct arithmetic *with = model->with;
    struct model_parts *parts = model->parts;
    int rows = batch->sequences * model->shape.length;
    const struct block *block;
    rondo_result result;

    if (unit == model->unit_count - 1)
        return head_backward(model, rows, hooks);
    if (unit == 0) {
        with->embedding_backward(&parts->embedding, rows, parts->tokens, parts->d_x);
        return tell(model, hooks, parts->embedding.token, 2);
    }
    block = &parts->blocks[unit - 1];
    result = mlp_backward(model, block, rows, hooks);
    return result ? result : attending_backward(model, block, batch->sequences, hooks);
}

rondo_result model_backward(struct model *model, const struct model_batch *batch,
                            const struct model_hooks *hooks)
{
    rondo_result result = RONDO_OK;

    for (int unit = model->unit_count - 1; !result && unit >= 0; unit--) {
        result = begin_unit(hooks, unit, true);
        if (!result)
            result = unit_backward(model, batch, unit, hooks);
        if (!result)
            result = end_unit(hooks, unit, true);
    }
    return result;
}
