/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.c - calls as work on a CUDA stream: each as one kernel (gpu/kernel.c), or as an operation
 * for every step of a plan (gpu/steps.c). Nothing is decided by the host after a call has returned,
 * so a graph can hold it.
 */
#include "comm/gpu/plan.h"
#include "comm/engine/choose.h"
#include "comm/failure/error.h"

#include "base/collective.h"
#include "base/fail.h"
#include "base/log.h"
#include "collectives/algorithm.h"
#include "cuda/reduce.h"
#include "plan/device.h"

#include <string.h>

/* ---- Which plan ------------------------------------------------------------------------------ */

static bool can_take(const struct gpu_plans *plans, const struct task *task)
{
    const struct choice_key *key = &task->key;
    const char *wanted = choice_wanted(plans->comm, key);

    if (collective_reduces(key->collective) && task->made.handle &&
        task->made.kernel.function == KERNEL_USER)
        return false;
    return strcmp(wanted, "auto") == 0 || strcmp(wanted, "zero_copy") == 0 ||
           gpu_kernel_named(plans, task);
}

bool gpu_plans_take(const struct gpu *gpu, const struct batch *batch)
{
    bool all = gpu->plans != NULL;

    for (int i = 0; i < batch->count && all; i++)
        all = can_take(gpu->plans, &batch->tasks[i]);
    return all;
}

/* Calls in which peers read inputs and write nothing. The same answer on every rank. */
static bool uses_engines(const struct gpu_plans *plans, rondo_collective collective)
{
    return plans->engines && !collective_reduces(collective) && !collective_is_pair(collective) &&
           collective != RONDO_BARRIER;
}

rondo_result gpu_find_way(struct gpu_plans *plans, const struct task *task, struct gpu_way *ret_way)
{
    const struct choice_key *key = &task->key;
    const struct algorithm *named = gpu_kernel_named(plans, task);
    bool engines = !named && uses_engines(plans, key->collective);
    bool nvls = !named && !engines && gpu_nvls_takes(plans, task);
    bool steps = nvls || engines;
    bool local = named || (!steps && gpu_is_short(plans, task));
    bool kernel = local || (!steps && gpu_is_medium(plans, key));
    const struct algorithm *algorithm = named   ? named
                                        : local ? gpu_kernel_algorithm(key->collective)
                                                : gpu_links_choose(plans, key);
    const struct plan_request devcomm = {.collective = key->collective,
                                         .size = plans->comm->size,
                                         .rank = plans->comm->rank,
                                         .root = key->root,
                                         .groups = plans->groups,
                                         .order = plans->comm->order};
    const struct plan_entry *known = plans->plans;
    struct plan_entry *entry;
    rondo_result result = plans_find(&plans->plans, algorithm, &devcomm, &entry);

    if (!result && !collective_is_pair(key->collective))
        result = kernel ? gpu_kernel_compile(plans, entry)
                        : plan_device_check(entry->plan, PLAN_DEVICE_OPERATIONS);
    if (result)
        return result;
    if (plans->plans != known)
        log_info("%s over %d ranks on the device: %s, by %s",
                 rondo_collective_name(key->collective), devcomm.size, algorithm->name,
                 kernel    ? "one kernel"
                 : nvls    ? "multicast of NVSwitch"
                 : engines ? "copy engines"
                           : "operations of the stream");
    *ret_way =
        (struct gpu_way){.plan = entry->plan,
                         .program = kernel ? entry->compiled : NULL,
                         .local = local || nvls,
                         .nvls = nvls,
                         .engines = engines,
                         .rounds = !(algorithm_promises(algorithm, key->collective, plans->groups) &
                                     PROMISE_ONE_ROUND)};
    return RONDO_OK;
}

rondo_result gpu_describe(struct gpu_plans *plans, const struct choice_key *key,
                          const struct plan *plan, size_t count, struct execution *ret_execution)
{
    struct exec_world *world = &plans->comm->world;
    size_t element = key->collective == RONDO_BARRIER ? 1 : rondo_type_size(key->type);
    rondo_result result;

    *ret_execution = (struct execution){
        .plan = plan, .world = world, .fingerprint = choice_fingerprint(key) | 1};
    result = exec_shape_plan(plan, count, element, world->slot_bytes, &ret_execution->shape);
    if (!result)
        exec_start(ret_execution);
    return result;
}

/* ---- A call ---------------------------------------------------------------------------------- */

/* Some elements of each block. */
struct piece {
    size_t start, count;
};

/* A call that is going to be queued; its buffers are still to be placed. */
static rondo_result open_run(struct gpu_run *run, const struct task *task,
                             const struct gpu_way *way, const struct piece *piece)
{
    const struct choice_key *key = &task->key;
    rondo_comm *comm = run->plans->comm;
    struct operation operation = task->made;
    rondo_result result = gpu_describe(run->plans, key, way->plan, piece->count, &run->x);

    run->start = piece->start;
    run->op = (struct kernel_op){.type = key->type, .function = KERNEL_SUM};
    if (result || !collective_reduces(key->collective))
        return result;
    if (!operation.handle)
        result = operations_resolve(&comm->operations, key->op, key->type, comm->size, &operation);
    if (way->rounds)
        operation_scale_average(&operation);
    run->op = operation.kernel;
    run->x.op = &run->op;
    return result;
}

/* To health.c each piece is the whole call. In a graph it has no number: the host does not see it
 * run. */
static rondo_result open_inflight(struct gpu_run *run, const struct task *task,
                                  const struct gpu_way *way)
{
    if (run->plans->in_graph)
        return RONDO_OK;
    run->inflight = gpu_inflight_open(run->plans, task, 1);
    if (!run->inflight)
        return RONDO_ERROR_MEMORY;
    run->inflight->kernel = way->program || way->nvls;
    run->inflight->tasks[0].execution = run->x;
    run->inflight->tasks[0].execution.op = NULL; /* that is the run's */
    return RONDO_OK;
}

/* Fills what stands in for the input. Where peers read that, it is scaled already; a kernel that
 * sends the input scales it. */
static void bring_input(struct gpu_run *run, const struct gpu_way *way)
{
    bool scales = way->local && run->op.has_scale;

    run->op.has_scale &= !way->local;
    gpu_bring_input(run);
    run->op.has_scale = scales;
}

/* The buffers of the call have their places. */
static void queue_run(struct gpu_run *run, const struct task *task, const struct gpu_way *way)
{
    gpu_timing_open(run, &task->key, 1);
    gpu_watchdog_add(run->plans, run->inflight);
    bring_input(run, way);
    if (way->nvls)
        gpu_nvls_queue(run);
    else if (way->program)
        gpu_kernel_queue(run, way->program);
    else
        gpu_steps_queue(run);
    gpu_take_output(run);
    gpu_run_close(run);
}

static rondo_result queue_piece(struct gpu_plans *plans, const struct task *task,
                                const struct gpu_way *way, const struct piece *piece,
                                CUstream stream)
{
    struct gpu_run run;
    rondo_result result;

    gpu_run_init(plans, stream, &run);
    run.engines = way->engines;
    result = open_run(&run, task, way, piece);
    if (!result)
        result = open_inflight(&run, task, way);
    if (!result)
        result = way->local ? gpu_place_local(&run, task) : gpu_place_buffers(&run, task);
    if (!result) {
        queue_run(&run, task, way);
        result = run.ops.result;
    }
    if (result)
        gpu_inflight_abandon(plans, run.inflight);
    return result;
}

static rondo_result queue_task(struct gpu_plans *plans, const struct task *task, CUstream stream)
{
    struct piece piece = {0, 0};
    struct gpu_way way;
    size_t count = task->key.count, each;
    rondo_result result = gpu_find_way(plans, task, &way);

    if (result)
        return result;
    atomic_store_explicit(&plans->comm->ran_on_device, way.plan->algorithm, memory_order_relaxed);
    /* Kernels are not cut. */
    each = way.program || way.nvls ? count : gpu_piece_count(plans, &task->key);
    do {
        piece.count = count - piece.start < each ? count - piece.start : each;
        result = queue_piece(plans, task, &way, &piece, stream);
        piece.start += piece.count;
    } while (!result && piece.start < count);
    return result;
}

/* ---- A batch --------------------------------------------------------------------------------- */

/* All calls of the batch; the order's place is entered. */
static rondo_result queue_batch(struct gpu_plans *plans, const struct batch *batch, CUstream stream)
{
    bool in_graph = plans->in_graph;
    rondo_result result = RONDO_OK;

    /* Nobody says when a graph is launched: from now on a call may be on its way at any time. */
    if (in_graph && !atomic_exchange_explicit(&plans->graphs, true, memory_order_acq_rel))
        cuda_count_inflights(1);
    if (in_graph)
        result = gpu_judge_capture(plans, plans->errors);
    for (int i = 0; i < batch->count && !result; i++)
        if (!collective_is_pair(batch->tasks[i].key.collective))
            result = queue_task(plans, &batch->tasks[i], stream);
    return result ? result : gpu_pairs_queue(plans, batch, stream);
}

rondo_result gpu_plans_queue(struct gpu_plans *plans, const struct batch *batch, CUstream stream,
                             struct gpu_errors *errors)
{
    struct gpu_sequence *sequence = &plans->gpu->sequence;
    struct gpu_place place;
    rondo_result result;

    lock_take(&plans->lock);
    result = gpu_inside(plans);
    if (result) {
        lock_give(&plans->lock);
        return result;
    }
    plans->errors = errors;
    cuda_queueing_begin();
    result = gpu_sequence_enter(sequence, stream, &place);
    plans->in_graph = place.capture != 0;
    plans->stream = place.stream;
    if (!result)
        result = queue_batch(plans, batch, stream);
    if (!result)
        result = gpu_sequence_leave(sequence, &place);
    cuda_queueing_end();
    gpu_inside_queued(plans);
    lock_give(&plans->lock);
    /* Peers wait for what was not queued. */
    return result ? comm_break(plans->comm, result, plans->comm->rank) : RONDO_OK;
}
