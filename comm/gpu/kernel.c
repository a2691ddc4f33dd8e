/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel.c - calls as one kernel each (cuda/executor.h): its blocks spin on flags in memory of the
 * device, which takes a few microseconds less than memory operations of streams do.
 *
 *     short     inputs are sent whole, to inboxes; peers touch no buffers
 *     medium    the plan that operations of the stream would carry out, on buffers of peers
 *     long      is not one: a kernel for each step has the whole device, and ends. Where ranks
 *               share a device it is one, if it is not cut: between their operations of streams
 *               the hosts would have to wait for each other (gpu/gate.c), which takes 0.6 ms
 *     named     whatever its length, the plan of an algorithm that somebody named and that sends
 *               its data in messages: ring, tree and others
 *
 * Kernels that wait for each other must run at the same time: gpu/devcomm.c finds out whether they
 * do.
 */
#include "comm/engine/choose.h"
#include "comm/gpu/plan.h"

#include "base/collective.h"
#include "collectives/algorithm.h"
#include "cuda/executor.h"

#include <string.h>

/* Ranks have to agree, so the answers are made of what is the same on every rank. */
static bool is_kernel(const struct gpu_plans *plans, const struct choice_key *key, size_t most)
{
    size_t element = key->collective == RONDO_BARRIER ? 1 : rondo_type_size(key->type);

    return plans->devcomms_ready && strcmp(choice_wanted(plans->comm, key), "auto") == 0 &&
           !collective_is_pair(key->collective) && key->count <= most / element;
}

bool gpu_is_short(const struct gpu_plans *plans, const struct task *task)
{
    bool scaled = task->made.handle && task->made.kernel.has_scale;

    return !scaled && is_kernel(plans, &task->key, plans->short_bytes);
}

bool gpu_is_medium(const struct gpu_plans *plans, const struct choice_key *key)
{
    return is_kernel(plans, key, plans->medium_bytes) && gpu_piece_count(plans, key) >= key->count;
}

/* One round where there is a form of it; sums of both are the balanced tree's. */
const struct algorithm *gpu_kernel_algorithm(rondo_collective collective)
{
    bool one_round = collective == RONDO_ALL_REDUCE || collective == RONDO_REDUCE;

    return algorithm_find(one_round ? "one_shot" : "direct");
}

/* True if the algorithm keeps what the call's operation asks of it. */
static bool keeps_promises(const struct gpu_plans *plans, const struct task *task,
                           const struct algorithm *algorithm)
{
    const struct choice_key *key = &task->key;
    struct operation operation = task->made;

    if (collective_reduces(key->collective) && !operation.handle &&
        operations_resolve(&plans->comm->operations, key->op, key->type, plans->comm->size,
                           &operation))
        return false;
    return !(choice_needs(plans->comm, key, &operation, algorithm->name) &
             ~algorithm_promises(algorithm, key->collective, plans->groups));
}

const struct algorithm *gpu_kernel_named(const struct gpu_plans *plans, const struct task *task)
{
    rondo_collective collective = task->key.collective;
    const struct algorithm *algorithm = algorithm_find(choice_wanted(plans->comm, &task->key));

    if (!algorithm || !plans->devcomms_ready || collective_is_pair(collective) ||
        !algorithm->forms[collective].write ||
        algorithm->forms[collective].promises & PROMISE_PEER_MEMORY)
        return NULL;
    return keeps_promises(plans, task, algorithm) ? algorithm : NULL;
}

/* Some thread may be capturing, which forbids others to allocate. */
rondo_result gpu_kernel_compile(struct gpu_plans *plans, struct plan_entry *entry)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    struct cuda_program *program = NULL;
    rondo_result result;

    if (entry->compiled)
        return RONDO_OK;
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    result = cuda_program_open(plans->devcomm, entry->plan, &program);
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    entry->compiled = program;
    return result;
}

void gpu_program_discard(void *program)
{
    cuda_program_close(program);
}

/* To the device's executor a word means a region of the rank that says it. */
static uint64_t own_word(uint64_t word)
{
    return word & (((uint64_t)GPU_REGIONS << CUDA_WORD_REGION_SHIFT) - 1);
}

/* Peers write no outputs but sums. */
static struct link_addresses addresses_of(const struct gpu_run *run)
{
    return (struct link_addresses){.input = own_word(run->input.word),
                                   .output = own_word(run->output.word),
                                   .input_kind = CUDA_ADDRESS_WORD,
                                   .output_kind = gpu_writes_outputs(run->x.plan->collective)
                                                      ? CUDA_ADDRESS_WORD
                                                      : CUDA_ADDRESS_NONE};
}

void gpu_kernel_queue(struct gpu_run *run, const struct cuda_program *program)
{
    const struct gpu_plans *plans = run->plans;
    const struct gpu_view *own = &plans->views[plans->comm->rank];
    const struct cuda_execute_call call = {
        .op = run->x.op,
        .count = run->x.shape.count,
        .element = run->x.shape.element,
        .input = run->input.at,
        .output = run->output.at,
        .own = addresses_of(run),
        .regions = plans->device_table,
        .regions_each = GPU_REGIONS,
        .changes = gpu_view_at(own, &own->arena->changes),
        .gates = gpu_view_at(own, &gpu_mailbox(own->arena, 0, GPU_CHANNEL_COLLECTIVE)->left),
        .gate_stride = GPU_CHANNELS * sizeof(struct gpu_mailbox),
        .error = plans->device_progress + offsetof(struct gpu_progress, error),
        .least = plans->comm->settings.min_blocks,
        .most = plans->comm->settings.max_blocks,
        .fingerprint = run->x.fingerprint};

    /* What begins now spins until peers' kernels come. A peer that is about to make its call may
     * still make a stream or memory, for which a driver can wait until kernels of the context have
     * ended: an H200's did, for good. */
    if (!plans->in_graph)
        gpu_gate_pass(plans->comm);
    gpu_ops_flush(&run->ops);
    if (!run->ops.result)
        run->ops.result = cuda_execute(run->plans->devcomm, program, &call, run->ops.stream);
    if (!plans->in_graph)
        gpu_gate_pass(plans->comm); /* it holds up who is behind its successor until it ends */
}

/* ---- The watchdog ---------------------------------------------------------------------------- */

struct task *gpu_kernel_standing(struct gpu_plans *plans, struct gpu_inflight *inflight,
                                 bool *ret_foreign, bool *ret_moved)
{
    struct task *task = inflight->tasks;
    struct execution *x = &task->execution;
    struct cuda_look look;
    uint64_t word;

    cuda_devcomm_look(plans->devcomm, &look);
    word = (uint64_t)look.program << 32 | look.step;
    *ret_moved = word != inflight->word || look.segment != inflight->segment;
    inflight->word = word;
    inflight->segment = look.segment;
    *ret_foreign = look.state == EXEC_MISMATCH;
    if ((look.state != EXEC_BLOCKED && !*ret_foreign) || look.step >= x->plan->step_count ||
        look.program >= x->plan->programs)
        return NULL;
    for (int i = 0; i < x->plan->programs; i++)
        x->programs[i].done = i != look.program;
    x->programs[look.program].at = look.step;
    x->programs[look.program].blamed = x->blamed = look.blamed;
    x->foreign = look.foreign;
    return task;
}

int gpu_kernel_blamed(const struct gpu_plans *plans)
{
    struct cuda_look look;

    if (!plans->devcomms_ready)
        return -1;
    cuda_devcomm_look(plans->devcomm, &look);
    return look.state == EXEC_BLOCKED && look.blamed >= 0 && look.blamed < plans->comm->size
               ? look.blamed
               : -1;
}

bool gpu_kernel_failed(const struct gpu_plans *plans)
{
    struct cuda_look look;

    cuda_devcomm_look(plans->devcomm, &look);
    return look.state == EXEC_MISMATCH;
}

void gpu_kernel_hold(struct gpu_plans *plans)
{
    if (plans->devcomm)
        cuda_devcomm_hold(plans->devcomm);
}

bool gpu_kernel_is_inside(const struct gpu_plans *plans)
{
    return plans->devcomm && cuda_devcomm_is_inside(plans->devcomm);
}

void gpu_kernel_stop(struct gpu_plans *plans)
{
    if (plans->devcomm)
        cuda_devcomm_stop(plans->devcomm);
}
