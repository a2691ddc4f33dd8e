/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steps.c - the copy-engine executor: a plan as operations of a CUDA stream.
 *
 * step_loop.h queues one for each step, and none is waited for: messages are memory operations on
 * the mailboxes of gpu/arena.h, copies and sums are short kernels that read where the peers'
 * buffers are from the words of their messages, when they run; or, where a program wants all of the
 * device's multiprocessors for itself, copies are those of copy engines, out of the peers' reserves
 * (share/reserve.c). Nothing spins on the device, so ranks of different processes may share one. A
 * stream does one thing after the other: so the plans have one program, and, as they use no slots,
 * one segment.
 */
#include "comm/gpu/plan.h"
#include "cuda/reduce.h"

#include <string.h>

void gpu_run_init(struct gpu_plans *plans, CUstream stream, struct gpu_run *run)
{
    memset(run, 0, offsetof(struct gpu_run, ops.ops));
    run->plans = plans;
    run->ops.cuda = plans->gpu->device.driver;
    run->ops.stream = stream;
    run->copies.count = 0;
}

/* ---- Moving ---------------------------------------------------------------------------------- */

#define STEP_FUNCTION static inline
#include "plan/pieces.h"

/* Where the block that this rank reads is in the reserve of a peer, in which its blocks follow each
 * other. */
static size_t offset_in_reserve(const struct gpu_run *run, int peer)
{
    const struct plan *plan = run->x.plan;
    size_t block = run->x.shape.count * run->x.shape.element;

    return plan_input_blocks(plan->collective, plan->size, peer, plan->root) > 1
               ? (size_t)plan->rank * block
               : 0;
}

/* The place of an operand in device memory. Of a peer's blocks this rank reads one, and the peer
 * has said where that is. */
static struct cuda_operand operand_of(const struct gpu_run *run, const struct exec_program *program,
                                      const struct plan_operand *operand)
{
    const struct gpu_plans *plans = run->plans;
    const struct gpu_mailbox *mailbox =
        gpu_mailbox(plans->own, operand->rank, GPU_CHANNEL_COLLECTIVE);
    bool input = operand->buffer == PLAN_INPUT;
    const struct gpu_buffer *own = input ? &run->input : &run->output;
    struct cuda_operand result;

    if (operand->rank == plans->comm->rank) {
        result = cuda_operand_at(own->at);
        result.offset = operand->block * own->stride;
    } else if (run->engines) {
        result = cuda_operand_at(gpu_reserve_at(plans, operand->rank));
        result.offset = offset_in_reserve(run, operand->rank);
    } else {
        result = gpu_mailbox_operand(&plans->views[plans->comm->rank], mailbox, input);
    }
    result.offset += atom_start(&run->x, program, operand->first) * run->x.shape.element;
    return result;
}

static CUdeviceptr error_word(const struct gpu_run *run)
{
    return run->plans->device_progress + offsetof(struct gpu_progress, error);
}

/* One behind the other, with nothing for a multiprocessor to do. */
static void engines_flush(struct gpu_run *run)
{
    const struct cuda_driver *cuda = run->ops.cuda;

    for (unsigned i = 0; i < run->copies.count && !run->ops.result; i++) {
        const struct cuda_copies_item *item = &run->copies.items[i];

        run->ops.result = cuda_result(cuda->cuMemcpyAsync(item->to.address + item->to.offset,
                                                          item->from.address + item->from.offset,
                                                          item->bytes, run->ops.stream),
                                      "cuMemcpyAsync");
    }
    run->copies.count = 0;
}

void gpu_copies_flush(struct gpu_run *run)
{
    const struct cuda_copies_call call = {
        .items = run->copies.items,
        .count = run->copies.count,
        .regions = run->plans->device_table,
        .region_count = (unsigned)run->plans->comm->size * GPU_REGIONS,
        .error = error_word(run),
    };

    if (!call.count)
        return;
    gpu_ops_flush(&run->ops);
    if (run->engines)
        engines_flush(run);
    else if (!run->ops.result)
        run->ops.result = cuda_copies(run->plans->launcher, &call, run->ops.stream);
    run->copies.count = 0;
}

void gpu_copy(struct gpu_run *run, const struct cuda_operand *from, const struct cuda_operand *to,
              size_t bytes)
{
    if (run->copies.count == CUDA_COPIES_MAX)
        gpu_copies_flush(run);
    run->copies.items[run->copies.count++] =
        (struct cuda_copies_item){.from = *from, .to = *to, .bytes = bytes};
}

void gpu_move(struct gpu_run *run, const struct cuda_reduce_call *call)
{
    struct cuda_reduce_call whole = *call;

    whole.regions = run->plans->device_table;
    whole.region_count = (unsigned)run->plans->comm->size * GPU_REGIONS;
    whole.error = error_word(run);
    whole.blocks = run->plans->comm->settings.max_blocks;
    whole.least = run->plans->comm->settings.min_blocks;
    gpu_copies_flush(run);
    gpu_ops_flush(&run->ops);
    if (!run->ops.result)
        run->ops.result = cuda_reduce(run->plans->launcher, &run->op, &whole, run->ops.stream);
}

static bool is_same(const struct cuda_operand *a, const struct cuda_operand *b)
{
    return a->flags == b->flags && a->address + a->offset == b->address + b->offset;
}

/* True if the step may read what a copy of this call wrote. */
static bool reads_own_output(const struct gpu_run *run, const struct plan_operand *from)
{
    return from->rank == run->plans->comm->rank && from->buffer != PLAN_INPUT;
}

static void move(struct gpu_run *run, const struct exec_program *program,
                 const struct plan_step *step)
{
    struct cuda_operand operands[CUDA_OPERANDS_MAX];
    const struct plan_operand *from = plan_sources(run->x.plan, step);
    const struct cuda_reduce_call call = {
        .sources = operands,
        .destinations = operands + step->sources,
        .source_count = step->sources,
        .destination_count = step->destinations,
        .count = step_elements(&run->x, program, step),
        .order = step->flags & PLAN_BALANCED ? KERNEL_BALANCED : KERNEL_FOLD,
        .scaled = -1,
        .finish = !only_copies(&run->x, step) && step->flags & PLAN_FINISH,
    };
    bool one_to_one = step->sources == 1 && step->destinations == 1;

    for (int i = 0; i < step->sources + step->destinations; i++)
        operands[i] = operand_of(run, program, &from[i]);
    if (!call.count || (one_to_one && !call.finish && is_same(&operands[0], &operands[1])))
        return;
    if (!one_to_one || call.finish) {
        gpu_move(run, &call);
        return;
    }
    if (reads_own_output(run, from))
        gpu_copies_flush(run);
    gpu_copy(run, &operands[0], &operands[1], call.count * run->x.shape.element);
}

/* ---- Messages -------------------------------------------------------------------------------- */

static CUdeviceptr mailbox_full(const struct gpu_plans *plans, int to, int from, int channel)
{
    const struct gpu_mailbox *mailbox = gpu_mailbox(plans->views[to].arena, from, channel);

    return gpu_view_at(&plans->views[to], &mailbox->full);
}

/* Where that peer's block of it is, or the only one. */
static uint64_t word_for(const struct gpu_buffer *buffer, int peer)
{
    return buffer->blocks > 1 ? buffer->word + (uint64_t)peer * buffer->stride : buffer->word;
}

void gpu_publish(struct gpu_run *run, int peer, int channel, bool addresses)
{
    const struct gpu_plans *plans = run->plans;
    const struct gpu_view *view = &plans->views[peer];
    const struct gpu_mailbox *mailbox = gpu_mailbox(view->arena, plans->comm->rank, channel);

    gpu_copies_flush(run);
    gpu_go_on(run);
    if (addresses) {
        gpu_ops_write_word(&run->ops, gpu_view_at(view, &mailbox->input),
                           word_for(&run->input, peer));
        gpu_ops_write_word(&run->ops, gpu_view_at(view, &mailbox->output),
                           word_for(&run->output, peer));
    }
    gpu_ops_write(&run->ops, mailbox_full(plans, peer, plans->comm->rank, channel),
                  run->x.fingerprint);
    gpu_tell_gate(run, peer, plans->comm->rank, channel, run->x.fingerprint);
}

void gpu_empty(struct gpu_run *run, int peer, int channel)
{
    gpu_copies_flush(run);
    gpu_go_on(run);
    gpu_ops_write(&run->ops, mailbox_full(run->plans, run->plans->comm->rank, peer, channel), 0);
    gpu_tell_gate(run, run->plans->comm->rank, peer, channel, 0);
}

/* ---- The loop -------------------------------------------------------------------------------- */

static struct gpu_run *run_of(struct execution *x)
{
    return (struct gpu_run *)(void *)x; /* its first member */
}

static enum exec_state await(struct execution *x, const struct plan_step *step)
{
    gpu_await(run_of(x), &(struct gpu_wait){.step = (uint32_t)(step - x->plan->steps),
                                            .peer = step->peer,
                                            .channel = GPU_CHANNEL_COLLECTIVE,
                                            .data = step->event == PLAN_DATA});
    return EXEC_MOVED;
}

static enum exec_state step_publish(struct execution *x, const struct plan_step *step)
{
    gpu_publish(run_of(x), step->peer, GPU_CHANNEL_COLLECTIVE, step->flags & PLAN_ADDRESSES);
    return EXEC_MOVED;
}

static enum exec_state step_give_back(struct execution *x, const struct plan_step *step)
{
    gpu_empty(run_of(x), step->peer, GPU_CHANNEL_COLLECTIVE);
    return EXEC_MOVED;
}

static enum exec_state step_combine(struct execution *x, const struct exec_program *program,
                                    const struct plan_step *step)
{
    move(run_of(x), program, step);
    return EXEC_MOVED;
}

#define step_wait_data        await
#define step_wait_credit      await
#define step_at(x, program)   (&(x)->plan->steps[(program)->at])
#define step_next(x, program) ((program)->at++)
#include "plan/step_loop.h"

void gpu_steps_queue(struct gpu_run *run)
{
    for (int i = 0; i < run->x.plan->programs; i++)
        step_run(&run->x, &run->x.programs[i]);
}
