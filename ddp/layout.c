/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout.c - which gradient lies where in which bucket.
 *
 * Parameters are taken in the order in which their gradients are expected, and each type has one
 * bucket that is being filled; it is closed when it has reached its size. Buckets are numbered in
 * the order in which they are closed, which is the order in which they will be full. The first one
 * is small: its exchange starts while most of the backward pass is still to come. Of five
 * parameters in the order of registration, with buckets of 4 and, first, 2 units:
 *
 *     a b b b c d e e     backward goes from e to a:     [e e] [d c b b b] [a]
 *
 * The order is from last to first at the start, later that of the first exchange on rank 0.
 */
#include "ddp/core.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 }; /* bytes, of a gradient in its bucket */

size_t ddp_bytes(const struct ddp_tensor *tensor)
{
    return tensor->count * rondo_type_size(tensor->type);
}

void *ddp_in_bucket(const rondo_ddp *ddp, const struct ddp_tensor *parameter)
{
    const struct ddp_bucket *bucket = &ddp->layout.buckets[parameter->bucket];

    return (char *)bucket->view.data + parameter->offset * rondo_type_size(parameter->type);
}

void *ddp_gradient(const rondo_ddp *ddp, const struct ddp_tensor *parameter)
{
    return parameter->own_gradient ? parameter->own_gradient : ddp_in_bucket(ddp, parameter);
}

/* ---- Assigning ------------------------------------------------------------------------------- */

/* A layout that is being made; the tensors keep their old places until it is complete. */
struct draft {
    const rondo_ddp *ddp;
    struct ddp_layout layout;
    struct ddp_bucket open[RONDO_TYPES]; /* by type; without parameters: none */
    int *bucket;                         /* [parameter_count] */
    size_t *offset;                      /* [parameter_count] */
};

static void close_bucket(struct draft *draft, struct ddp_bucket *open)
{
    struct ddp_bucket *closed = &draft->layout.buckets[draft->layout.count];

    *closed = *open;
    closed->view.index = draft->layout.count++;
    for (int i = 0; i < closed->parameter_count; i++)
        draft->bucket[closed->parameters[i]] = closed->view.index;
    memset(open, 0, sizeof(*open));
}

static rondo_result add_parameter(struct draft *draft, int index)
{
    const rondo_ddp *ddp = draft->ddp;
    const struct ddp_tensor *parameter = &ddp->parameters[index];
    struct ddp_bucket *open = &draft->open[parameter->type];
    size_t element = rondo_type_size(parameter->type), per_line = ALIGN / element;
    size_t cap = draft->layout.count ? ddp->config.bucket_bytes : ddp->config.first_bucket_bytes;

    if (!open->parameters) {
        open->parameters = calloc((size_t)ddp->parameter_count, sizeof(*open->parameters));
        if (!open->parameters)
            return ddp_fail(RONDO_ERROR_MEMORY, "Out of memory for the buckets of gradients.");
        open->view.type = parameter->type;
    }
    open->parameters[open->parameter_count++] = index;
    draft->offset[index] = open->view.count;
    open->view.count += (parameter->count + per_line - 1) / per_line * per_line;
    if (open->view.count * element >= cap)
        close_bucket(draft, open);
    return RONDO_OK;
}

static rondo_result assign(struct draft *draft, const int32_t *order)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; i < draft->ddp->trained && !result; i++)
        result = add_parameter(draft, order[i]);
    for (int type = 0; type < RONDO_TYPES && !result; type++)
        if (draft->open[type].parameters)
            close_bucket(draft, &draft->open[type]);
    return result;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static rondo_result allocate(struct ddp_bucket *bucket, rondo_ddp *ddp)
{
    size_t bytes = bucket->view.count * rondo_type_size(bucket->view.type);
    bool compress = ddp->config.compression && bucket->view.type == RONDO_FLOAT32;
    rondo_result result;

    bucket->ddp = ddp;
    bucket->view.comm = ddp->exchange_comm;
    bucket->view.stream = ddp->stream;
    result = ddp_memory_open(ddp, bytes + ALIGN, &bucket->view.data); /* never none */
    if (!result && compress)
        result = ddp_memory_open(ddp, bytes / 2 + ALIGN, &bucket->wire);
    return result;
}

void ddp_layout_close(struct ddp_layout *layout)
{
    for (int i = 0; i < layout->count; i++) {
        ddp_memory_close(layout->buckets[i].ddp, layout->buckets[i].view.data);
        ddp_memory_close(layout->buckets[i].ddp, layout->buckets[i].wire);
        free(layout->buckets[i].parameters);
    }
    free(layout->buckets);
    *layout = (struct ddp_layout){0};
}

static void draft_close(struct draft *draft)
{
    for (int type = 0; type < RONDO_TYPES; type++)
        free(draft->open[type].parameters);
    ddp_layout_close(&draft->layout);
    free(draft->bucket);
    free(draft->offset);
}

static rondo_result draft_open(struct draft *draft, rondo_ddp *ddp, const int32_t *order)
{
    size_t count = (size_t)ddp->parameter_count + 1;
    rondo_result result;

    *draft = (struct draft){.ddp = ddp};
    draft->layout.buckets = calloc(count, sizeof(*draft->layout.buckets));
    draft->bucket = calloc(count, sizeof(*draft->bucket));
    draft->offset = calloc(count, sizeof(*draft->offset));
    if (!draft->layout.buckets || !draft->bucket || !draft->offset)
        return ddp_fail(RONDO_ERROR_MEMORY, "Out of memory for the buckets of gradients.");
    result = assign(draft, order);
    for (int i = 0; i < draft->layout.count && !result; i++)
        result = allocate(&draft->layout.buckets[i], ddp);
    return result;
}

/* The gradients move to their new places. */
static void draft_use(struct draft *draft, rondo_ddp *ddp)
{
    struct ddp_layout old = ddp->layout;

    for (int i = 0; i < ddp->parameter_count; i++) {
        struct ddp_tensor *parameter = &ddp->parameters[i];
        const void *from = old.count && !parameter->frozen ? ddp_in_bucket(ddp, parameter) : NULL;

        if (parameter->frozen)
            continue;
        parameter->bucket = draft->bucket[i];
        parameter->offset = draft->offset[i];
        ddp->layout = draft->layout;
        if (from)
            ddp_copy(ddp, ddp_in_bucket(ddp, parameter), from, ddp_bytes(parameter));
        ddp->layout = old;
    }
    ddp->layout = draft->layout;
    draft->layout = old; /* to be closed */
}

rondo_result ddp_layout_open(rondo_ddp *ddp, const int32_t *order)
{
    struct draft draft;
    rondo_result result = draft_open(&draft, ddp, order);

    if (!result)
        draft_use(&draft, ddp);
    draft_close(&draft);
    return result;
}

/* ---- The order of the first exchange --------------------------------------------------------- */

rondo_result ddp_layout_learn(rondo_ddp *ddp)
{
    int32_t *order = ddp->arrival;
    size_t count = (size_t)ddp->trained;
    rondo_result result;

    ddp->order_known = true;
    if (!ddp->config.rebuild || !count)
        return RONDO_OK;
    for (int i = ddp->parameter_count - 1; i >= 0; i--) /* those that nobody announced, last */
        if (!ddp->parameters[i].frozen && !ddp->parameters[i].ready)
            order[ddp->arrived++] = i;
    result = rondo_broadcast(order, order, count, RONDO_INT32, ddp->root, ddp->comm, NULL);
    if (result)
        return ddp_broken(ddp, result, ddp->comm, "Agreeing on the order of gradients");
    ddp->order_is_new = true;
    return RONDO_OK;
}

/* Each trained parameter once? What comes from a peer is not believed. */
static bool is_an_order(rondo_ddp *ddp)
{
    bool good = true;

    for (int i = 0; i < ddp->parameter_count; i++)
        ddp->parameters[i].ready = false;
    for (int i = 0; i < ddp->trained && good; i++) {
        int index = ddp->arrival[i];

        good = index >= 0 && index < ddp->parameter_count && !ddp->parameters[index].frozen &&
               !ddp->parameters[index].ready;
        if (good)
            ddp->parameters[index].ready = true;
    }
    return good;
}

rondo_result ddp_layout_follow(rondo_ddp *ddp)
{
    struct draft draft = {0};
    rondo_result result;

    ddp->order_is_new = false;
    if (!is_an_order(ddp))
        ddp_problem(ddp, RONDO_ERROR_INTERNAL, "Rank %d got an order of gradients that is none.",
                    ddp->rank);
    else if ((result = draft_open(&draft, ddp, ddp->arrival)))
        ddp_problem(ddp, result, "Rank %d: %s", ddp->rank, rondo_ddp_last_error());
    result = ddp_agree(ddp, DDP_VOTE_PROBLEM + 1);
    if (!result) {
        draft_use(&draft, ddp);
        ddp->rebuilt = true;
        result = ddp_device_settle(ddp); /* the old buckets are freed now */
    }
    draft_close(&draft);
    return result;
}
