/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c - gradients in memory of a device.
 *
 * The host's way has a thread that waits for one bucket after the other. Here everything is queued
 * and nobody waits: marks on the stream of passes say when a bucket is full, and the stream of
 * exchanges follows them.
 *
 *     passes      begin | gradients of bucket 0 | ready 0 | gradients of bucket 1 | ready 1 | end
 *     exchanges     follow ready 0 | started 0, all-reduce, finished 0 | follow ready 1 | ...
 *
 * What a device is this room doesn't know: its functions are the user's (rondo_ddp_device).
 */
#include "ddp/core.h"

#include "rondo/cuda.h"

#include <string.h>

enum mark { BEGIN, END, BUCKETS };
enum bucket_mark { READY, STARTED, FINISHED, BUCKET_MARKS };

static int mark_of(const struct ddp_bucket *bucket, enum bucket_mark mark)
{
    return BUCKETS + bucket->view.index * BUCKET_MARKS + (int)mark;
}

static bool has_device(const rondo_ddp *ddp)
{
    return ddp->config.device.stream != NULL;
}

/* After a function of the user's. */
static rondo_result check(rondo_ddp *ddp, rondo_result result)
{
    if (!result)
        return RONDO_OK;
    ddp->broken = true;
    ddp->in_pass = false;
    return ddp_fail(result, "Rank %d: a function of the device of its gradients failed: %s.",
                    ddp->rank, rondo_result_string(result));
}

const char *ddp_device_refuses(const rondo_ddp_config *config)
{
    const rondo_ddp_device *device = &config->device;

    if (!device->stream)
        return NULL;
    if (!device->copy || !device->mark || !device->follow || !device->between)
        return "its device has not all four functions";
    if (config->compression || config->hook.start)
        return "gradients on a device cannot be compressed, nor given to a hook";
    if (config->accumulation == RONDO_DDP_TREE || config->average == RONDO_DDP_BY_PASSES)
        return "gradients on a device need RONDO_DDP_ADD, and RONDO_DDP_BY_RANKS or RONDO_DDP_SUM";
    if (config->join || config->find_unused || config->check_nan)
        return "gradients on a device go without join, find_unused and check_nan";
    return NULL;
}

/* ---- Memory of either kind ------------------------------------------------------------------- */

rondo_result ddp_memory_open(rondo_ddp *ddp, size_t bytes, void **ret_memory)
{
    rondo_result result = has_device(ddp) ? rondo_cuda_mem_alloc(bytes, ret_memory)
                                          : rondo_mem_alloc(bytes, ret_memory);

    if (result)
        return ddp_fail_call(result, NULL, "Memory for buckets of gradients");
    if (has_device(ddp))
        ddp_copy(ddp, *ret_memory, NULL, bytes);
    return RONDO_OK;
}

void ddp_memory_close(const rondo_ddp *ddp, void *memory)
{
    if (memory && has_device(ddp))
        rondo_cuda_mem_free(memory);
    else
        rondo_mem_free(memory);
}

void ddp_copy(rondo_ddp *ddp, void *to, const void *from, size_t bytes)
{
    const rondo_ddp_device *device = &ddp->config.device;
    rondo_result result = RONDO_OK;

    if (!bytes)
        return;
    if (has_device(ddp))
        result = device->copy(device->context, to, from, bytes);
    else if (from)
        memcpy(to, from, bytes);
    else
        memset(to, 0, bytes);
    if (result)
        ddp_problem(ddp, result, "Rank %d: copying gradients on its device failed: %s.", ddp->rank,
                    rondo_result_string(result));
}

/* ---- The two streams ------------------------------------------------------------------------- */

/* A mark of passes, which exchanges follow. */
static rondo_result hand_over(rondo_ddp *ddp, int mark)
{
    const rondo_ddp_device *device = &ddp->config.device;
    rondo_result result = device->mark(device->context, mark, 0);

    return check(ddp, result ? result : device->follow(device->context, mark));
}

rondo_result ddp_device_settle(rondo_ddp *ddp)
{
    rondo_result result = has_device(ddp) ? hand_over(ddp, END) : RONDO_OK;

    if (result || !has_device(ddp))
        return result;
    result = rondo_stream_synchronize(ddp->stream);
    return result ? ddp_broken(ddp, result, NULL, "Waiting for the device of the gradients")
                  : RONDO_OK;
}

rondo_result ddp_device_begin(rondo_ddp *ddp)
{
    const rondo_ddp_device *device = &ddp->config.device;

    return has_device(ddp) ? check(ddp, device->mark(device->context, BEGIN, 0)) : RONDO_OK;
}

rondo_result ddp_device_end(rondo_ddp *ddp)
{
    return has_device(ddp) ? hand_over(ddp, END) : RONDO_OK;
}

rondo_result ddp_device_exchange(struct ddp_bucket *bucket)
{
    rondo_ddp *ddp = bucket->ddp;
    const rondo_ddp_device *device = &ddp->config.device;
    rondo_result result = hand_over(ddp, mark_of(bucket, READY));

    if (!result)
        result = check(ddp, device->mark(device->context, mark_of(bucket, STARTED), 1));
    if (result)
        return result;
    result = ddp_exchange_queue(bucket);
    if (result)
        return ddp_broken(ddp, result, ddp->exchange_comm, "Starting the exchange of gradients");
    return check(ddp, device->mark(device->context, mark_of(bucket, FINISHED), 1));
}

/* ---- When all is done ------------------------------------------------------------------------ */

static rondo_result times_of(struct ddp_bucket *bucket)
{
    const rondo_ddp_device *device = &bucket->ddp->config.device;
    double *times[BUCKET_MARKS] = {&bucket->ready, &bucket->started, &bucket->finished};
    rondo_result result = RONDO_OK;

    for (int i = 0; i < BUCKET_MARKS && !result; i++)
        result =
            device->between(device->context, BEGIN, mark_of(bucket, (enum bucket_mark)i), times[i]);
    bucket->work = 0;
    return result;
}

rondo_result ddp_device_finish(rondo_ddp *ddp, double *ret_exposed)
{
    const rondo_ddp_device *device = &ddp->config.device;
    double computed = 0, exchanged = 0;
    rondo_result result;

    if (!has_device(ddp))
        return RONDO_OK;
    result = device->between(device->context, BEGIN, END, &computed);
    for (int i = 0; i < ddp->layout.count && !result; i++) {
        struct ddp_bucket *bucket = &ddp->layout.buckets[i];

        result = times_of(bucket);
        if (bucket->finished > exchanged)
            exchanged = bucket->finished;
        ddp_exchange_copy_out(bucket);
    }
    if (result)
        return check(ddp, result);
    *ret_exposed = exchanged > computed ? exchanged - computed : 0;
    return RONDO_OK;
}
