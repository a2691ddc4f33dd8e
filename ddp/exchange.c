/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange.c - what happens to one bucket, in the order of the stream:
 *
 *     before()           note the time; compress into 16 bits
 *     the all-reduce     or what the hook queued
 *     after()            expand, or divide; copy out to gradients of the user's
 *
 * The library divides itself where it can: RONDO_AVG is one pass less over memory.
 */
#include "ddp/core.h"
#include "ddp/number.h"
#include "rondo/bindings.h"

/* Returns the divisor of the sum of gradients in this step. A rank that has joined within it made
 * only some of its passes. */
static double divisor_of(const rondo_ddp *ddp)
{
    int passes = ddp->passes + 1;
    double made = ddp->config.join == RONDO_DDP_JOIN_BY_REMAINING ? ddp->made_passes
                                                                  : (double)ddp->size * passes;

    switch (ddp->config.average) {
    case RONDO_DDP_BY_RANKS:
        return made / passes;
    case RONDO_DDP_BY_PASSES:
        return made;
    case RONDO_DDP_SUM:
        break;
    }
    return 1;
}

/* In TREE the division is ours, so that it is the same one for every number of ranks. */
static bool library_divides(const struct ddp_bucket *bucket)
{
    const rondo_ddp *ddp = bucket->ddp;

    return !bucket->wire && !ddp->config.hook.start && ddp->config.accumulation == RONDO_DDP_ADD &&
           bucket->view.divisor == ddp->size;
}

static rondo_type wire_type(const struct ddp_bucket *bucket)
{
    if (!bucket->wire)
        return bucket->view.type;
    return bucket->ddp->config.compression == RONDO_DDP_FLOAT16 ? RONDO_FLOAT16 : RONDO_BFLOAT16;
}

static size_t wire_bytes(const struct ddp_bucket *bucket)
{
    return bucket->view.count * rondo_type_size(wire_type(bucket));
}

void ddp_exchange_copy_out(const struct ddp_bucket *bucket)
{
    rondo_ddp *ddp = bucket->ddp;

    for (int i = 0; i < bucket->parameter_count; i++) {
        const struct ddp_tensor *parameter = &ddp->parameters[bucket->parameters[i]];

        if (parameter->own_gradient && parameter->count)
            ddp_copy(ddp, parameter->own_gradient, ddp_in_bucket(ddp, parameter),
                     ddp_bytes(parameter));
    }
}

/* Both run in the stream's thread. */
static void before(void *context)
{
    struct ddp_bucket *bucket = context;
    const rondo_ddp_bucket *view = &bucket->view;

    rondo_trace_begin("exchange of a bucket", (unsigned)view->index);
    bucket->started = clock_seconds() - bucket->ddp->began;
    if (bucket->wire)
        ddp_compress(view->data, bucket->wire, view->count, wire_type(bucket),
                     (float)view->divisor);
    bucket->work = clock_seconds() - bucket->ddp->began - bucket->started;
}

static void after(void *context)
{
    struct ddp_bucket *bucket = context;
    const rondo_ddp_bucket *view = &bucket->view;
    const rondo_ddp_hook *hook = &bucket->ddp->config.hook;
    double begin = clock_seconds();

    if (hook->start)
        bucket->result = hook->finish ? hook->finish(hook->context, view) : RONDO_OK;
    else if (bucket->wire)
        ddp_expand(bucket->wire, view->data, view->count, wire_type(bucket));
    else if (!library_divides(bucket) && view->divisor != 1)
        ddp_divide(view->data, view->count, view->type, view->divisor);
    ddp_exchange_copy_out(bucket);
    bucket->finished = clock_seconds() - bucket->ddp->began;
    rondo_trace_end("exchange of a bucket", (unsigned)view->index);
    bucket->work += clock_seconds() - begin;
}

rondo_result ddp_exchange_queue(const struct ddp_bucket *bucket)
{
    const rondo_ddp *ddp = bucket->ddp;
    const rondo_ddp_bucket *view = &bucket->view;
    void *at = bucket->wire ? bucket->wire : view->data;
    rondo_op op = library_divides(bucket) ? RONDO_AVG : RONDO_SUM;

    return rondo_all_reduce(at, at, view->count, wire_type(bucket), op, ddp->exchange_comm,
                            ddp->stream);
}

rondo_result ddp_exchange_start(struct ddp_bucket *bucket)
{
    rondo_ddp *ddp = bucket->ddp;
    const rondo_ddp_hook *hook = &ddp->config.hook;
    rondo_result result;

    bucket->view.divisor = divisor_of(ddp);
    bucket->result = RONDO_OK;
    bucket->ready = clock_seconds() - ddp->began;
    ddp->statistics.bytes += wire_bytes(bucket);
    if (ddp->config.device.stream)
        return ddp_device_exchange(bucket);
    result = rondo_stream_call(ddp->stream, before, bucket);
    if (result)
        return ddp_broken(ddp, result, NULL, "Starting the exchange of gradients");
    if (!hook->start) {
        result = ddp_exchange_queue(bucket);
        if (result)
            return ddp_broken(ddp, result, ddp->exchange_comm,
                              "Starting the exchange of gradients");
    } else if ((result = hook->start(hook->context, &bucket->view))) {
        ddp_problem(ddp, result, "Rank %d: the hook's start() for bucket %d returned: %s.",
                    ddp->rank, bucket->view.index, rondo_result_string(result));
    }
    result = rondo_stream_call(ddp->stream, after, bucket);
    return result ? ddp_broken(ddp, result, NULL, "Starting the exchange of gradients") : RONDO_OK;
}
