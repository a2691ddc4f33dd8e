/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel.c - short calls as one kernel each (cuda/executor.h): its blocks spin on flags in
 * memory of the device, which takes a few microseconds less than memory operations of streams do.
 *
 * Kernels that wait for each other must run at the same time: gpu/seat.c finds out whether they do.
 */
#include "comm/gpu/plan.h"

#include "base/collective.h"
#include "base/fail.h"
#include "collectives/algorithm.h"
#include "cuda/executor.h"

#include <stdlib.h>
#include <string.h>

struct gpu_program {
    struct gpu_program *next;
    struct plan *plan;
    struct cuda_program *program;
};

/* Ranks have to agree, so the answer is made of what is the same on every rank. */
bool gpu_is_short(const struct gpu_plans *plans, const struct task *task)
{
    const struct choice_key *key = &task->key;
    bool scaled = task->made.handle && task->made.kernel.has_scale;
    bool named = key->algorithm && strcmp(key->algorithm, "auto") != 0;

    return plans->seated && !named && !scaled &&
           strcmp(plans->comm->settings.algorithm, "auto") == 0 &&
           !collective_is_pair(key->collective) &&
           key->count <= plans->short_bytes /
                             (key->collective == RONDO_BARRIER ? 1 : rondo_type_size(key->type));
}

/* One round where there is a form of it; sums of both are the balanced tree's. */
static const struct algorithm *algorithm_of(rondo_collective collective)
{
    bool one_round = collective == RONDO_ALL_REDUCE || collective == RONDO_REDUCE;

    return algorithm_find(one_round ? "one_shot" : "direct");
}

static rondo_result compile(struct gpu_plans *plans, const struct choice_key *key,
                            struct gpu_program *program)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    rondo_result result =
        algorithm_plan(algorithm_of(key->collective), key->collective, plans->comm->size,
                       plans->comm->rank, key->root, &program->plan);

    if (result)
        return result;
    plans->gpu->device.driver->cuThreadExchangeStreamCaptureMode(&mode);
    result = cuda_program_open(plans->seat, program->plan, &program->program);
    plans->gpu->device.driver->cuThreadExchangeStreamCaptureMode(&mode);
    if (result)
        plan_close(program->plan);
    return result;
}

static rondo_result find_program(struct gpu_plans *plans, const struct choice_key *key,
                                 const struct gpu_program **ret_program)
{
    struct gpu_program *program = plans->programs;
    rondo_result result;

    while (program &&
           (program->plan->collective != key->collective || program->plan->root != key->root))
        program = program->next;
    if (!program) {
        program = calloc(1, sizeof(*program));
        if (!program)
            return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a plan.");
        result = compile(plans, key, program);
        if (result) {
            free(program);
            return result;
        }
        program->next = plans->programs;
        plans->programs = program;
    }
    *ret_program = program;
    return RONDO_OK;
}

rondo_result gpu_kernel_queue(struct gpu_plans *plans, const struct task *task,
                              struct gpu_flight *flight, CUstream stream)
{
    const struct gpu_program *program = NULL;
    struct gpu_run run;
    struct cuda_execute_call call;
    rondo_result result = find_program(plans, &task->key, &program);

    if (!result)
        result = gpu_run_open(plans, task, program->plan, stream, &run);
    if (!result)
        result = gpu_place_local(&run, task);
    if (result)
        return result;
    run.flight = flight;
    if (flight) {
        flight->kernel = true;
        flight->tasks[0].execution.plan = program->plan;
        gpu_watch_add(plans, flight);
    }
    gpu_bring_input(&run);
    gpu_ops_flush(&run.ops);
    call =
        (struct cuda_execute_call){.op = collective_reduces(task->key.collective) ? &run.op : NULL,
                                   .count = task->key.count,
                                   .element = run.shape.element,
                                   .input = run.input.at,
                                   .output = run.output.at,
                                   .fingerprint = run.fingerprint};
    if (!run.ops.result)
        run.ops.result = cuda_execute(plans->seat, program->program, &call, stream);
    gpu_take_output(&run);
    if (flight)
        gpu_run_close(&run);
    else /* in a graph it waits for nothing by operations of the stream */
        gpu_ops_flush(&run.ops);
    return run.ops.result;
}

void gpu_programs_close(struct gpu_plans *plans)
{
    while (plans->programs) {
        struct gpu_program *program = plans->programs;

        plans->programs = program->next;
        cuda_program_close(program->program);
        plan_close(program->plan);
        free(program);
    }
}

/* ---- The watch ------------------------------------------------------------------------------- */

struct task *gpu_kernel_standing(struct gpu_plans *plans, struct gpu_flight *flight,
                                 bool *ret_foreign)
{
    struct task *task = flight->tasks;
    struct execution *x = &task->execution;
    struct cuda_look look;

    cuda_seat_look(plans->seat, &look);
    *ret_foreign = look.state == EXEC_MISMATCH;
    if ((look.state != EXEC_BLOCKED && !*ret_foreign) || look.step >= x->plan->step_count)
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

    if (!plans->seated)
        return -1;
    cuda_seat_look(plans->seat, &look);
    return look.state == EXEC_BLOCKED && look.blamed >= 0 && look.blamed < plans->comm->size
               ? look.blamed
               : -1;
}

bool gpu_kernel_failed(const struct gpu_plans *plans)
{
    struct cuda_look look;

    cuda_seat_look(plans->seat, &look);
    return look.state == EXEC_MISMATCH;
}

void gpu_kernel_stop(struct gpu_plans *plans)
{
    if (plans->seat)
        cuda_seat_stop(plans->seat);
}
