/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pass.c - begin, gradient_ready, wait.
 *
 * A bucket is launched when all its gradients are there and all buckets before it are launched, so
 * the order of launching is the same on every rank, whatever the order of gradients. What is not
 * announced when the pass ends is left out: it counts as zero, so that the exchange takes place in
 * any case, and nobody waits for a rank that made a mistake.
 */
#include "ddp/core.h"
#include "ddp/number.h"
#include "rondo/bindings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rondo_result check_usable(const rondo_ddp *ddp, const char *function)
{
    rondo_result result = ddp_check_call(ddp, function);

    if (!result && ddp->broken)
        return ddp_fail(
            RONDO_ERROR_INVALID,
            "%s: the communicator failed before; what is left to do is moving to another one, "
            "and closing.",
            function);
    return result;
}

/* ---- Begin ----------------------------------------------------------------------------------- */

rondo_result ddp_pass_begin(rondo_ddp *ddp, bool exchange)
{
    rondo_result result = ddp->order_is_new ? ddp_layout_follow(ddp) : RONDO_OK;
    bool buffers = exchange && ddp->config.broadcast_buffers && ddp->buffer_count;

    if (!result && buffers)
        result = ddp_device_settle(ddp);
    if (!result && buffers)
        result = ddp_broadcast(ddp, ddp->buffers, ddp->buffer_count, ddp->root);
    if (result)
        return result;
    for (int i = 0; i < ddp->parameter_count; i++)
        ddp->parameters[i].ready = false;
    for (int i = 0; i < ddp->layout.count; i++)
        ddp->layout.buckets[i].pending = ddp->layout.buckets[i].parameter_count;
    ddp->in_pass = true;
    ddp->exchange = exchange;
    ddp->announced = 0;
    ddp->next = 0;
    if (!ddp->order_known)
        ddp->arrived = 0;
    ddp->began = clock_seconds();
    return ddp_device_begin(ddp);
}

rondo_result rondo_ddp_begin(rondo_ddp *ddp, int exchange)
{
    rondo_result result = check_usable(ddp, "rondo_ddp_begin");

    if (result)
        return result;
    if (ddp->in_pass && ddp->announced)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_ddp_begin: rank %d has announced %d gradients in the pass before; "
                        "end it by rondo_ddp_wait().",
                        ddp->rank, ddp->announced);
    if (ddp->in_pass && ddp->config.join)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_ddp_begin: rank %d has begun a pass already, which ranks that "
                        "joined take part in; end it by rondo_ddp_wait().",
                        ddp->rank);
    ddp->in_pass = false;
    if (ddp->config.join)
        result = ddp_announce(ddp, exchange ? DDP_EXCHANGES : DDP_ACCUMULATES);
    return result ? result : ddp_pass_begin(ddp, exchange);
}

/* ---- Gradients ------------------------------------------------------------------------------- */

static rondo_result launch_full_buckets(rondo_ddp *ddp)
{
    rondo_result result = RONDO_OK;

    while (!result && ddp->next < ddp->layout.count && !ddp->layout.buckets[ddp->next].pending)
        result = ddp_exchange_start(&ddp->layout.buckets[ddp->next++]);
    return result;
}

static void put_into_bucket(rondo_ddp *ddp, struct ddp_tensor *parameter)
{
    if (parameter->own_gradient)
        ddp_copy(ddp, ddp_in_bucket(ddp, parameter), parameter->own_gradient, ddp_bytes(parameter));
    ddp->layout.buckets[parameter->bucket].pending--;
}

static void check_finite(rondo_ddp *ddp, const struct ddp_tensor *parameter)
{
    const void *gradient = ddp_gradient(ddp, parameter);
    size_t found = ddp_find_infinite(gradient, parameter->count, parameter->type);

    if (found < parameter->count)
        ddp_problem(ddp, RONDO_ERROR_INVALID,
                    "Rank %d has a gradient that is not finite: '%s' has %g at element %zu. The "
                    "loss may have overflowed, or the data of that rank are bad.",
                    ddp->rank, parameter->name, ddp_value(gradient, found, parameter->type), found);
}

static rondo_result check_announcement(rondo_ddp *ddp, int index)
{
    const char *function = "rondo_ddp_gradient_ready";
    rondo_result result = check_usable(ddp, function);

    if (result)
        return result;
    if (index < 0 || index >= ddp->parameter_count)
        return ddp_fail(RONDO_ERROR_INVALID, "%s: there is no parameter %d, there are %d.",
                        function, index, ddp->parameter_count);
    if (!ddp->in_pass)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "%s: rank %d announced '%s' outside of a pass; call rondo_ddp_begin() "
                        "before the forward pass.",
                        function, ddp->rank, ddp->parameters[index].name);
    if (ddp->parameters[index].frozen)
        return ddp_fail(RONDO_ERROR_INVALID, "%s: '%s' is frozen, so it has no gradient.", function,
                        ddp->parameters[index].name);
    if (ddp->parameters[index].ready)
        return ddp_problem(ddp, RONDO_ERROR_INVALID,
                           "%s: rank %d announced '%s' twice in one pass, the second time after "
                           "its exchange may have begun. Announce a parameter that is used several "
                           "times after its last use.",
                           function, ddp->rank, ddp->parameters[index].name);
    return RONDO_OK;
}

rondo_result rondo_ddp_gradient_ready(rondo_ddp *ddp, int index)
{
    rondo_result result = check_announcement(ddp, index);
    struct ddp_tensor *parameter;

    if (result)
        return result;
    parameter = &ddp->parameters[index];
    parameter->ready = parameter->touched = true;
    ddp->announced++;
    if (ddp->config.check_nan)
        check_finite(ddp, parameter);
    if (ddp->config.accumulation == RONDO_DDP_TREE)
        ddp_tree_add(ddp, parameter); /* out of memory is told by wait */
    if (!ddp->exchange)
        return RONDO_OK;
    if (!ddp->order_known)
        ddp->arrival[ddp->arrived++] = index;
    put_into_bucket(ddp, parameter);
    return launch_full_buckets(ddp);
}

/* ---- The end of a pass ----------------------------------------------------------------------- */

/* Not announced, though it should be: one problem with the names of all, or as many as fit. */
static void report_missing(rondo_ddp *ddp)
{
    char names[DDP_SENTENCE / 2];
    int missing = 0;
    size_t used = 0;

    names[0] = 0;
    for (int i = 0; i < ddp->parameter_count; i++) {
        const struct ddp_tensor *parameter = &ddp->parameters[i];

        if (parameter->frozen || parameter->ready)
            continue;
        missing++;
        if (used + strlen(parameter->name) + 10 < sizeof(names))
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s'%s'", used ? ", " : "",
                                     parameter->name);
        else
            used = sizeof(names); /* the others are only counted */
    }
    if (missing)
        ddp_problem(ddp, RONDO_ERROR_INVALID,
                    "rondo_ddp_wait: rank %d has no gradient of %d of %d parameters in this pass: "
                    "%s%s. Announce them by rondo_ddp_gradient_ready(), or set find_unused if a "
                    "pass may leave parameters out.",
                    ddp->rank, missing, ddp->trained, names,
                    used == sizeof(names) ? " and others" : "");
}

static void keep_gradient(rondo_ddp *ddp, struct ddp_tensor *parameter)
{
    size_t bytes = ddp_bytes(parameter);

    parameter->kept = malloc(bytes + 1);
    if (parameter->kept)
        memcpy(parameter->kept, ddp_gradient(ddp, parameter), bytes);
    else
        ddp_problem(ddp, RONDO_ERROR_MEMORY, "Rank %d is out of memory for '%s'.", ddp->rank,
                    parameter->name);
}

/* A parameter that was not announced in this pass; earlier passes of the step may have been. What
 * its gradient held before the step is a part of a tree's first sum, as if it were announced. */
static void leave_out(rondo_ddp *ddp, struct ddp_tensor *parameter)
{
    bool tree = ddp->config.accumulation == RONDO_DDP_TREE;
    bool untouched = !parameter->touched && !parameter->kept;
    void *gradient = ddp_gradient(ddp, parameter);
    size_t bytes = ddp_bytes(parameter);

    if (untouched && ddp->config.find_unused && (ddp->exchange || tree)) /* maybe nobody has it */
        keep_gradient(ddp, parameter);
    if (tree) {
        if (!untouched)
            memset(gradient, 0, bytes);
        ddp_tree_add(ddp, parameter);
    }
    if (!ddp->exchange)
        return;
    put_into_bucket(ddp, parameter);
    if (!parameter->touched)
        ddp_copy(ddp, ddp_in_bucket(ddp, parameter), NULL, bytes);
}

/* After the exchange: gradients that no rank had are as before. */
static void restore_kept(rondo_ddp *ddp, bool exchanged)
{
    for (int i = 0; i < ddp->parameter_count; i++) {
        struct ddp_tensor *parameter = &ddp->parameters[i];

        if (parameter->kept && exchanged && !ddp->votes[DDP_VOTES + i])
            memcpy(ddp_gradient(ddp, parameter), parameter->kept, ddp_bytes(parameter));
        free(parameter->kept);
        parameter->kept = NULL;
        parameter->touched = false;
    }
}

static rondo_result hear_from_all(rondo_ddp *ddp)
{
    int32_t *votes = ddp->votes;
    size_t count = DDP_VOTES + (ddp->config.find_unused ? (size_t)ddp->parameter_count : 0);
    rondo_result result;

    votes[DDP_VOTE_PASSES] = ddp->passes + 1;
    votes[DDP_VOTE_MINUS_PASSES] = -(ddp->passes + 1);
    for (size_t i = DDP_VOTES; i < count; i++)
        votes[i] = ddp->parameters[i - DDP_VOTES].touched;
    result = ddp_agree(ddp, count);
    if (!result && votes[DDP_VOTE_PASSES] != -votes[DDP_VOTE_MINUS_PASSES])
        result = ddp_fail(RONDO_ERROR_MISMATCH,
                          "rondo_ddp_wait: ranks made different numbers of passes in this step, "
                          "from %d to %d.",
                          -votes[DDP_VOTE_MINUS_PASSES], votes[DDP_VOTE_PASSES]);
    return result;
}

/* *ret_exposed: seconds for which there was nothing to do but wait. */
static rondo_result await_exchange(rondo_ddp *ddp, double *ret_exposed)
{
    double began = clock_seconds();
    rondo_result result;

    rondo_trace_begin("wait for gradients", 0);
    result = ddp_device_end(ddp);
    if (!result)
        result = rondo_stream_synchronize(ddp->stream);
    rondo_trace_end("wait for gradients", 0);
    if (result)
        return ddp_broken(ddp, result, ddp->exchange_comm, "The exchange of gradients");
    *ret_exposed = clock_seconds() - began;
    result = ddp_device_finish(ddp, ret_exposed);
    if (result)
        return result;
    for (int i = 0; i < ddp->layout.count; i++) {
        const struct ddp_bucket *bucket = &ddp->layout.buckets[i];

        ddp->statistics.communication += bucket->finished - bucket->started;
        ddp->statistics.compression += bucket->work;
        if (bucket->result)
            ddp_problem(ddp, bucket->result,
                        "Rank %d: the hook's finish() for bucket %d returned: %s.", ddp->rank,
                        bucket->view.index, rondo_result_string(bucket->result));
    }
    return RONDO_OK;
}

/* Everything is launched. */
static rondo_result finish_exchange(rondo_ddp *ddp)
{
    double exposed = 0, heard;
    rondo_result result = await_exchange(ddp, &exposed);

    rondo_trace_begin("agreement on a step", 0);
    heard = clock_seconds();
    if (!result)
        result = hear_from_all(ddp);
    rondo_trace_end("agreement on a step", 0);
    restore_kept(ddp, !result);
    if (!result && !ddp->order_known)
        result = ddp_layout_learn(ddp);
    ddp->statistics.exchanges++;
    ddp->statistics.communication += clock_seconds() - heard;
    ddp->statistics.exposed += exposed + clock_seconds() - heard;
    ddp->passes = ddp->own_passes = 0;
    return result;
}

rondo_result ddp_pass_finish(rondo_ddp *ddp)
{
    rondo_result result;

    if (ddp->exchange && !ddp->joined && !ddp->config.find_unused)
        report_missing(ddp);
    for (int i = 0; i < ddp->parameter_count; i++)
        if (!ddp->parameters[i].frozen && !ddp->parameters[i].ready)
            leave_out(ddp, &ddp->parameters[i]);
    if (!ddp->exchange) {
        ddp->passes++;
        ddp->own_passes += !ddp->joined;
        ddp->in_pass = false;
        return RONDO_OK;
    }
    ddp_late_arrive(ddp);
    result = launch_full_buckets(ddp);
    if (!result)
        result = finish_exchange(ddp);
    ddp_late_leave(ddp);
    ddp->in_pass = false;
    return result;
}

rondo_result rondo_ddp_wait(rondo_ddp *ddp)
{
    rondo_result result = check_usable(ddp, "rondo_ddp_wait");

    if (result)
        return result;
    if (!ddp->in_pass)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_ddp_wait: rank %d is not in a pass; call rondo_ddp_begin() first.",
                        ddp->rank);
    return ddp_pass_finish(ddp);
}
