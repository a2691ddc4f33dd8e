/* SPDX-License-Identifier: BSD-3-Clause */
/* executor.c - plans to the device, and launches: see executor.h. */
#include "cuda/executor.h"

#include "base/fail.h"
#include "cuda/devcomm.h"
#include "cuda/reduce.h"
#include "plan/device.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* Shorter pieces are not worth the way to other blocks and back, which takes about 2 us. */
    ALONE = 32 << 10,
    /* Bytes of the longest message for which a team gets a further block. */
    BLOCK_BYTES = 32 << 10,
    /* Blocks of all teams, unless the caller says: several communicators' kernels have room. */
    BLOCKS_MOST = 32,
};
_Static_assert((int)CUDA_SOURCES_MAX == (int)PLAN_DEVICE_OPERANDS &&
                   (int)CUDA_DESTINATIONS_MAX == (int)PLAN_DEVICE_OPERANDS,
               "what is proved for a device is what it runs");
_Static_assert((int)ALONE >= (int)CUDA_PACKED_BYTES, "short messages are moved by one block");

static size_t rounded(size_t bytes)
{
    return (bytes + LINK_LINE - 1) / LINK_LINE * LINK_LINE;
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* The most that any count takes: a segment's atoms fit into a message each. */
static size_t most_scratch(const struct plan *plan, size_t slot_bytes)
{
    return plan->scratch_blocks
               ? plan->scratch_blocks * (size_t)plan->parts * (slot_bytes / plan->message_atoms)
               : 0;
}

static void fill_extents(const struct plan *plan, struct cuda_extent *extents)
{
    for (int r = 0; r < plan->size; r++)
        extents[r] = (struct cuda_extent){
            (uint32_t)plan_input_blocks(plan->collective, plan->size, r, plan->root),
            (uint32_t)plan_output_blocks(plan->collective, plan->size, r, plan->root)};
}

/* Note that a step uses a link, for its program. Where there are more links than a launch keeps in
 * shared memory, all stay where they are. */
static void note_link(struct cuda_program *program, int index, const struct plan_step *step)
{
    bool is_in = (step->verb == PLAN_WAIT) == (step->event == PLAN_DATA);
    int links = program->plan.size * PLAN_CHANNELS;

    program->awaited[index] +=
        step->verb == PLAN_WAIT && step->event == PLAN_DATA && step->flags & PLAN_ADDRESSES;
    if (links <= CUDA_LINKS_NEAR)
        (is_in ? program->in_used : program->out_used)[index] |=
            UINT64_C(1) << (step->channel * program->plan.size + step->peer);
}

static void note_links(struct cuda_program *program, const struct plan *plan)
{
    for (int p = 0; p < plan->programs; p++)
        for (uint32_t i = plan->program[p].begin; i < plan->program[p].end; i++)
            if (plan->steps[i].verb == PLAN_WAIT || plan->steps[i].verb == PLAN_SIGNAL)
                note_link(program, p, &plan->steps[i]);
}

/* struct plan, steps, operands and extents, one behind the other. */
static rondo_result upload(struct cuda_program *program, const struct plan *plan)
{
    size_t steps_at = rounded(sizeof(*plan));
    size_t operands_at = steps_at + rounded(plan->step_count * sizeof(struct plan_step));
    size_t extents_at = operands_at + rounded(plan->operand_count * sizeof(struct plan_operand));
    size_t bytes = extents_at + (size_t)plan->size * sizeof(struct cuda_extent);
    char *image = calloc(1, bytes);
    struct plan *copy = (struct plan *)(void *)image;
    rondo_result result = devcomm_alloc(program->devcomm, bytes, &program->memory);

    if (!image)
        result =
            rondo_fail(RONDO_ERROR_MEMORY, "There is no memory for a plan of %zu bytes.", bytes);
    if (!result) {
        *copy = *plan;
        copy->steps = (struct plan_step *)(uintptr_t)(program->memory + steps_at);
        copy->operands = (struct plan_operand *)(uintptr_t)(program->memory + operands_at);
        if (plan->step_count)
            memcpy(image + steps_at, plan->steps, plan->step_count * sizeof(struct plan_step));
        if (plan->operand_count)
            memcpy(image + operands_at, plan->operands,
                   plan->operand_count * sizeof(struct plan_operand));
        fill_extents(plan, (struct cuda_extent *)(void *)(image + extents_at));
        program->extents = program->memory + extents_at;
        result = devcomm_upload(program->devcomm, program->memory, image, bytes);
    }
    free(image);
    return result;
}

rondo_result cuda_program_open(struct cuda_devcomm *devcomm, const struct plan *plan,
                               struct cuda_program **ret_program)
{
    struct cuda_program *program;
    rondo_result result = plan_device_check(plan, PLAN_DEVICE_KERNEL);

    if (result)
        return result;
    program = calloc(1, sizeof(*program));
    if (!program)
        return rondo_fail(RONDO_ERROR_MEMORY, "There is no memory for a plan.");
    program->devcomm = devcomm;
    program->plan = *plan;
    program->plan.steps = NULL;
    program->plan.operands = NULL;
    note_links(program, plan);
    program->scratch_bytes = most_scratch(plan, devcomm->shape.slot_bytes);
    result = upload(program, plan);
    if (!result)
        result = devcomm_alloc(devcomm, program->scratch_bytes, &program->scratch);
    if (result)
        cuda_program_close(program);
    else
        *ret_program = program;
    return result;
}

void cuda_program_close(struct cuda_program *program)
{
    if (!program)
        return;
    devcomm_free(program->devcomm, program->memory);
    devcomm_free(program->devcomm, program->scratch);
    free(program);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Choose words for messages that fit into words, and for empty ones. */
static void choose_form(struct exec_shape *shape)
{
    shape->lines = 0;
    if (shape->longest > CUDA_PACKED_BYTES)
        return;
    shape->lines = (unsigned)((shape->longest + CUDA_WORD_PAYLOAD - 1) / CUDA_WORD_PAYLOAD);
    if (shape->lines < 2) /* 1 would be the host's form of one line */
        shape->lines = 2;
}

/* Chooses how many blocks each program gets; 0 with a sentence: not even one fits. */
static unsigned choose_team(const struct cuda_devcomm *devcomm, const struct cuda_program *program,
                            const struct cuda_execute_call *call, const struct exec_shape *shape)
{
    unsigned share = devcomm->shape.share ? devcomm->shape.share : 1;
    unsigned programs = (unsigned)program->plan.programs;
    unsigned room = devcomm->launcher->kernels[CUDA_KERNEL_execute].blocks / share / programs;
    /* Without messages peers' memory is read: as much at once as there is. */
    size_t bytes = shape->longest ? shape->longest : call->count * call->element;
    size_t most = programs < BLOCKS_MOST ? BLOCKS_MOST / programs : 1;
    size_t wanted = bytes / BLOCK_BYTES < most ? 1 + bytes / BLOCK_BYTES : most;

    if (wanted < (call->least + programs - 1) / programs)
        wanted = (call->least + programs - 1) / programs;
    if (call->most && wanted > call->most / programs)
        wanted = call->most > programs ? call->most / programs : 1;
    if (call->blocks)
        wanted = call->blocks;
    if (!room || (call->blocks && call->blocks > room)) {
        rondo_fail(RONDO_ERROR_UNSUPPORTED,
                   "CUDA device %d holds %u blocks of the executor at a time, too few for %u ranks "
                   "with %u programs of %u blocks each: let fewer ranks share it.",
                   devcomm->launcher->device.number,
                   devcomm->launcher->kernels[CUDA_KERNEL_execute].blocks, share, programs,
                   call->blocks ? call->blocks : 1);
        return 0;
    }
    return wanted < room ? (unsigned)wanted : room;
}

static void describe(struct cuda_devcomm *devcomm, const struct cuda_program *program,
                     const struct cuda_execute_call *call, struct cuda_execute_argument *argument)
{
    struct exec_world on_host = {0}; /* which sends nothing zero-copy */
    struct execution *x = &argument->execution;

    x->op = call->op;
    x->world = &on_host;
    x->input = (const char *)(uintptr_t)call->input;
    x->output = (char *)(uintptr_t)call->output;
    x->own = call->own;
    x->fingerprint = call->fingerprint;
    x->unreachable = call->unreachable;
    x->plan = &program->plan;
    exec_start(x);
    /* From here on for the device. */
    x->plan = (const struct plan *)(uintptr_t)program->memory;
    x->world = (struct exec_world *)(uintptr_t)devcomm->world;
    if (call->op) {
        argument->op = *call->op;
        argument->arithmetic = cuda_arithmetic_of(call->op, KERNEL_FOLD, -1, false);
        argument->arithmetic.scale = cuda_arithmetic_of(call->op, KERNEL_FOLD, 0, false).scale;
        argument->kind = (int32_t)cuda_kind_of(call->op->type);
    }
    argument->scratch = program->scratch;
    argument->teams = devcomm->teams;
    argument->status = cuda_address(devcomm->host->status);
    argument->halt = cuda_address(&devcomm->host->halt);
    argument->extents = program->extents;
    argument->regions = call->regions ? call->regions : devcomm->regions;
    argument->regions_each = call->regions ? call->regions_each : devcomm->shape.regions_each;
    argument->changes = call->regions ? call->changes : 0;
    argument->known = argument->regions_each <= devcomm->shape.regions_known ? devcomm->known : 0;
    argument->gates = call->gates;
    argument->gate_stride = call->gate_stride;
    argument->error = call->error;
    memcpy(argument->awaited, program->awaited, sizeof(argument->awaited));
    memcpy(argument->out_used, program->out_used, sizeof(argument->out_used));
    memcpy(argument->in_used, program->in_used, sizeof(argument->in_used));
    argument->alone = ALONE;
}

rondo_result cuda_execute(struct cuda_devcomm *devcomm, const struct cuda_program *program,
                          const struct cuda_execute_call *call, CUstream stream)
{
    struct cuda_execute_argument argument = {.kind = 0};
    rondo_result result;

    if (call->op && !cuda_reduce_can(call->op))
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "A reduction by a user's function cannot run on a GPU.");
    result = exec_shape_plan(&program->plan, call->count, call->element, devcomm->shape.slot_bytes,
                             &argument.execution.shape);
    if (result)
        return result;
    choose_form(&argument.execution.shape);
    if (exec_scratch_bytes(&program->plan, &argument.execution.shape) > program->scratch_bytes)
        return rondo_fail(RONDO_ERROR_INTERNAL, "%zu bytes of scratch memory are too few.",
                          program->scratch_bytes);
    argument.blocks = choose_team(devcomm, program, call, &argument.execution.shape);
    if (!argument.blocks)
        return RONDO_ERROR_UNSUPPORTED;
    describe(devcomm, program, call, &argument);
    return cuda_launch(devcomm->launcher, CUDA_KERNEL_execute,
                       argument.blocks * (unsigned)program->plan.programs, &argument, stream);
}
