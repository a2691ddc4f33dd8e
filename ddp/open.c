/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * open.c - copies model and settings, opens, closes.
 *
 * A mistake in one rank's arguments is a problem like those of a step: all ranks hear of it, none
 * is left waiting.
 */
#include "ddp/core.h"

#include "rondo/cuda.h"

#include <stdlib.h>
#include <string.h>

static rondo_result check_tensor(const rondo_ddp *ddp, const rondo_ddp_tensor *t, const char *kind,
                                 int index)
{
    bool is_parameter = kind[0] == 'p';
    const char *wrong = NULL;

    if (!t->name)
        wrong = "has no name";
    else if (t->count && !t->data)
        wrong = "has no data";
    else if (!rondo_type_size(t->type))
        wrong = "has a type that does not exist";
    else if (!is_parameter && t->gradient)
        wrong = "is a buffer and has a gradient";
    else if (is_parameter && t->type != RONDO_FLOAT32 && t->type != RONDO_FLOAT64 &&
             t->type != RONDO_FLOAT16 && t->type != RONDO_BFLOAT16)
        wrong = "is none of float32, float64, float16, bfloat16";
    else if (is_parameter && ddp->config.accumulation == RONDO_DDP_TREE &&
             rondo_type_size(t->type) < 4)
        wrong = "has 16 bits, which RONDO_DDP_TREE cannot add";
    if (!wrong)
        return RONDO_OK;
    return ddp_fail(RONDO_ERROR_INVALID, "rondo_ddp_open: %s %d ('%s') of rank %d %s.", kind, index,
                    t->name ? t->name : "", ddp->rank, wrong);
}

static rondo_result copy_tensors(rondo_ddp *ddp, const rondo_ddp_tensor *from, int count,
                                 const char *kind, struct ddp_tensor **ret_tensors)
{
    struct ddp_tensor *to = calloc((size_t)count + 1, sizeof(*to));
    rondo_result result = RONDO_OK;

    *ret_tensors = to; /* with its count it is closed by rondo_ddp_close() */
    if (!to)
        return ddp_fail(RONDO_ERROR_MEMORY, "Out of memory for %d tensors.", count);
    for (int i = 0; i < count && !result; i++) {
        result = check_tensor(ddp, &from[i], kind, i);
        if (result)
            break;
        to[i].name = strdup(from[i].name);
        to[i].data = from[i].data;
        to[i].own_gradient = from[i].gradient;
        to[i].count = from[i].count;
        to[i].type = from[i].type;
        to[i].frozen = from[i].frozen;
        if (!to[i].name)
            result = ddp_fail(RONDO_ERROR_MEMORY, "Out of memory for a name.");
    }
    return result;
}

static rondo_result check_config(const rondo_ddp *ddp)
{
    const rondo_ddp_config *config = &ddp->config;
    const char *wrong = NULL;

    if ((unsigned)config->average > RONDO_DDP_SUM)
        wrong = "there is no such average";
    else if ((unsigned)config->accumulation > RONDO_DDP_TREE)
        wrong = "there is no such accumulation";
    else if ((unsigned)config->join > RONDO_DDP_JOIN_BY_REMAINING)
        wrong = "there is no such join mode";
    else if ((unsigned)config->compression > RONDO_DDP_BFLOAT16)
        wrong = "there is no such compression";
    else if (config->compression && config->hook.start)
        wrong = "it has a hook and a compression; a hook compresses by itself";
    else if (config->hook.finish && !config->hook.start)
        wrong = "its hook has finish(), but no start()";
    else
        wrong = ddp_device_refuses(config);
    if (wrong)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_ddp_open: the settings of rank %d: %s.",
                        ddp->rank, wrong);
    return RONDO_OK;
}

static rondo_result copy_model(rondo_ddp *ddp, const rondo_ddp_model *model,
                               const rondo_ddp_config *config)
{
    rondo_result result = RONDO_OK;

    if (config && (config->struct_size < sizeof(size_t) || config->struct_size > sizeof(*config)))
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_ddp_open: rank %d: begin settings with RONDO_DDP_CONFIG_INIT.",
                        ddp->rank);
    if (!model || model->parameter_count < 0 || model->buffer_count < 0 ||
        (model->parameter_count && !model->parameters) || (model->buffer_count && !model->buffers))
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_ddp_open: rank %d gave no model.", ddp->rank);
    if (config)
        memcpy(&ddp->config, config, config->struct_size);
    result = check_config(ddp);
    if (!result)
        result = copy_tensors(ddp, model->parameters, model->parameter_count, "parameter",
                              &ddp->parameters);
    if (ddp->parameters)
        ddp->parameter_count = model->parameter_count;
    if (!result)
        result = copy_tensors(ddp, model->buffers, model->buffer_count, "buffer", &ddp->buffers);
    if (ddp->buffers)
        ddp->buffer_count = model->buffer_count;
    return result;
}

/* Buckets from the last parameter to the first. */
static rondo_result open_buckets(rondo_ddp *ddp)
{
    rondo_result result;

    ddp->trained = 0;
    for (int i = ddp->parameter_count - 1; i >= 0; i--)
        if (!ddp->parameters[i].frozen)
            ddp->arrival[ddp->trained++] = i;
    result = ddp_layout_open(ddp, ddp->arrival);
    if (result)
        ddp_problem(ddp, result, "Rank %d: %s", ddp->rank, rondo_ddp_last_error());
    return ddp_agree(ddp, DDP_VOTE_PROBLEM + 1);
}

static rondo_result open_streams(rondo_ddp *ddp)
{
    rondo_result result = rondo_comm_dup(ddp->comm, &ddp->exchange_comm);

    if (!result)
        result = ddp->config.device.stream
                     ? rondo_stream_open_cuda(ddp->config.device.stream, &ddp->stream)
                     : rondo_stream_open(&ddp->stream);
    return result ? ddp_fail_call(result, ddp->comm, "rondo_ddp_open") : RONDO_OK;
}

/* All ranks get rank 0's values, so rank 0 has to be one that was there before. */
static rondo_result meet(rondo_ddp *ddp, bool was_there, bool *ret_newcomers)
{
    int32_t *votes = ddp->votes;
    rondo_result result;

    votes[DDP_VOTE_WAS_THERE] = was_there;
    votes[DDP_VOTE_NEWCOMER] = !was_there;
    result = ddp_agree(ddp, DDP_VOTES);
    if (result)
        return result;
    if (votes[DDP_VOTE_WAS_THERE] && !was_there && ddp->rank == 0)
        ddp_problem(ddp, RONDO_ERROR_INVALID,
                    "rondo_ddp_open: rank 0 is new, and other ranks move to this communicator with "
                    "what they have: rank 0 has to be one of those.");
    *ret_newcomers = votes[DDP_VOTE_NEWCOMER];
    return RONDO_OK;
}

rondo_result ddp_enter(rondo_ddp *ddp, bool was_there)
{
    bool newcomers = false;
    rondo_result result = meet(ddp, was_there, &newcomers);

    if (!result && newcomers)
        result = ddp_agree_on_model(ddp);
    if (result || (result = open_streams(ddp)) || (result = open_buckets(ddp)) || !newcomers)
        return result;
    result = ddp_broadcast(ddp, ddp->parameters, ddp->parameter_count, 0);
    return result ? result : ddp_broadcast(ddp, ddp->buffers, ddp->buffer_count, 0);
}

static rondo_result open_all(rondo_ddp *ddp, const rondo_ddp_model *model,
                             const rondo_ddp_config *config)
{
    rondo_result result = copy_model(ddp, model, config);
    size_t count = (size_t)ddp->parameter_count;

    ddp->votes = calloc(DDP_VOTES + count, sizeof(*ddp->votes));
    ddp->arrival = calloc(count + 1, sizeof(*ddp->arrival));
    ddp->states = calloc((size_t)ddp->size, sizeof(*ddp->states));
    if (!ddp->votes || !ddp->arrival || !ddp->states)
        return ddp_fail(RONDO_ERROR_MEMORY, "Out of memory for a model of %zu parameters.", count);
    if (result)
        ddp_problem(ddp, result, "%s", rondo_ddp_last_error());
    return ddp_enter(ddp, false);
}

rondo_result rondo_ddp_open(rondo_comm *comm, const rondo_ddp_model *model,
                            const rondo_ddp_config *config, rondo_ddp **ret_ddp)
{
    static const rondo_ddp_config defaults = RONDO_DDP_CONFIG_INIT;
    rondo_ddp *ddp;
    rondo_result result;

    if (!comm || !ret_ddp)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_ddp_open: no %s.",
                        comm ? "place for the result" : "communicator");
    result = ddp_check_call(comm, "rondo_ddp_open");
    if (result)
        return result;
    ddp = calloc(1, sizeof(*ddp));
    if (!ddp)
        return ddp_fail(RONDO_ERROR_MEMORY, "Out of memory for data-parallel training.");
    ddp->comm = comm;
    ddp->rank = rondo_comm_rank(comm);
    ddp->size = ddp->remaining = rondo_comm_size(comm);
    ddp->config = defaults;
    result = open_all(ddp, model, config);
    if (result) {
        rondo_ddp_close(ddp);
        return result;
    }
    *ret_ddp = ddp;
    return RONDO_OK;
}

static void free_tensors(struct ddp_tensor *tensors, int count)
{
    for (int i = 0; i < count; i++) {
        for (int level = 0; level < DDP_TREE_LEVELS; level++)
            free(tensors[i].partial[level]);
        free(tensors[i].kept);
        free(tensors[i].name);
    }
    free(tensors);
}

void ddp_leave(rondo_ddp *ddp)
{
    if (ddp->exchange_comm && ((ddp->in_pass && ddp->exchange) || ddp->broken))
        rondo_comm_abort(ddp->exchange_comm); /* others may wait for this rank's buckets */
    rondo_stream_close(ddp->stream);
    rondo_comm_close(ddp->exchange_comm);
    ddp_layout_close(&ddp->layout);
    ddp->stream = NULL;
    ddp->exchange_comm = NULL;
}

void rondo_ddp_close(rondo_ddp *ddp)
{
    if (!ddp)
        return;
    ddp_leave(ddp);
    free_tensors(ddp->parameters, ddp->parameter_count);
    free_tensors(ddp->buffers, ddp->buffer_count);
    free(ddp->votes);
    free(ddp->arrival);
    free(ddp->states);
    free(ddp);
}

/* False after rondo_ddp_move() has failed: there are no buckets to have them in. */
static bool has_gradients(const rondo_ddp *ddp)
{
    return ddp->layout.buckets;
}

void *rondo_ddp_gradient(const rondo_ddp *ddp, int parameter)
{
    if (!ddp || parameter < 0 || parameter >= ddp->parameter_count ||
        ddp->parameters[parameter].frozen)
        return NULL;
    return has_gradients(ddp) ? ddp_gradient(ddp, &ddp->parameters[parameter])
                              : ddp->parameters[parameter].own_gradient;
}

rondo_result rondo_ddp_zero_gradients(rondo_ddp *ddp)
{
    if (!ddp || (ddp->in_pass && ddp->announced))
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_ddp_zero_gradients: %s.",
                        ddp ? "not inside of a pass; call rondo_ddp_wait() first"
                            : "there is no rondo_ddp");
    if (!has_gradients(ddp))
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_ddp_zero_gradients: rondo_ddp_move() has failed; move again, or "
                        "close the rondo_ddp.");
    for (int i = 0; i < ddp->parameter_count; i++)
        if (!ddp->parameters[i].frozen)
            ddp_copy(ddp, ddp_gradient(ddp, &ddp->parameters[i]), NULL,
                     ddp_bytes(&ddp->parameters[i]));
    return RONDO_OK;
}
