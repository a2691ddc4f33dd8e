/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.c - the copy-engine executor: a plan as work on a CUDA stream.
 *
 * The host walks once through the steps and queues each: messages are memory operations on the
 * mails of gpu/arena.h, copies and sums are short kernels that read where the peers' buffers are
 * from the words of their messages, when they run. Nothing spins on the device, so ranks of
 * different processes may share one; nothing is decided by the host after the call has returned,
 * so a graph can hold it.
 */
#include "comm/gpu/plan.h"
#include "comm/engine/choose.h"
#include "comm/failure/error.h"

#include "base/collective.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/range.h"
#include "collectives/algorithm.h"
#include "cuda/reduce.h"

#include <stdlib.h>
#include <string.h>

/* ---- Which plan ------------------------------------------------------------------------------ */

static bool can_take(const rondo_comm *comm, const struct task *task)
{
    const struct choice_key *key = &task->key;
    const char *wanted = key->algorithm ? key->algorithm : comm->settings.algorithm;

    if (strcmp(wanted, "auto") != 0 && strcmp(wanted, "zero_copy") != 0)
        return false;
    return !collective_reduces(key->collective) || !task->made.handle ||
           task->made.kernel.function != KERNEL_USER;
}

bool gpu_plans_take(const struct gpu *gpu, const struct batch *batch)
{
    bool all = gpu->plans != NULL;

    for (int i = 0; i < batch->count && all; i++)
        all = can_take(batch->comm, &batch->tasks[i]);
    return all;
}

rondo_result gpu_find_plan(struct gpu_plans *plans, const struct choice_key *key,
                           const struct plan **ret_plan)
{
    const struct algorithm *algorithm = gpu_links_choose(plans, key);
    const struct plan_seat seat = {.collective = key->collective,
                                   .size = plans->comm->size,
                                   .rank = plans->comm->rank,
                                   .root = key->root,
                                   .groups = plans->groups};
    struct gpu_plan_entry *entry = plans->entries;
    rondo_result result;

    while (entry && (entry->plan->collective != key->collective || entry->plan->root != key->root ||
                     entry->plan->algorithm != algorithm->name))
        entry = entry->next;
    if (!entry) {
        entry = calloc(1, sizeof(*entry));
        if (!entry)
            return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a plan.");
        result = algorithm_write(algorithm, &seat, &entry->plan);
        if (result) {
            free(entry);
            return result;
        }
        entry->next = plans->entries;
        plans->entries = entry;
        log_info("%s over %d ranks on the device: %s, by operations of the stream",
                 rondo_collective_name(key->collective), plans->comm->size, entry->plan->algorithm);
    }
    *ret_plan = entry->plan;
    return RONDO_OK;
}

/* ---- Moving ---------------------------------------------------------------------------------- */

static size_t atom_start(const struct gpu_run *run, uint32_t atom)
{
    return range_start(run->shape.count, run->shape.grain, run->plan->parts, atom);
}

/* The place of an operand in device memory. Of a peer's blocks this rank reads one, and the peer
 * has said where that is. */
static struct cuda_operand operand_of(const struct gpu_run *run, const struct plan_operand *operand)
{
    const struct gpu_plans *plans = run->plans;
    const struct gpu_mail *mail = gpu_mail(plans->own, operand->rank, GPU_LANE_COLLECTIVE);
    bool input = operand->buffer == PLAN_INPUT;
    const struct gpu_buffer *own = input ? &run->input : &run->output;
    struct cuda_operand result;

    if (operand->rank == run->plan->rank) {
        result = cuda_operand_at(own->at);
        result.offset = operand->block * own->stride;
    } else {
        result = gpu_mail_operand(&plans->views[plans->comm->rank], mail, input);
    }
    result.offset += atom_start(run, operand->first) * run->shape.element;
    return result;
}

static CUdeviceptr error_word(const struct gpu_run *run)
{
    return run->plans->device_progress + offsetof(struct gpu_progress, error);
}

void gpu_copies_flush(struct gpu_run *run)
{
    const struct cuda_copies_call call = {
        .items = run->copies.items,
        .count = run->copies.count,
        .segments = run->plans->device_table,
        .segment_count = (unsigned)run->plans->comm->size * GPU_SEGMENTS,
        .error = error_word(run),
    };

    if (!call.count)
        return;
    gpu_ops_flush(&run->ops);
    if (!run->ops.result)
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

    whole.segments = run->plans->device_table;
    whole.segment_count = (unsigned)run->plans->comm->size * GPU_SEGMENTS;
    whole.error = error_word(run);
    gpu_copies_flush(run);
    gpu_ops_flush(&run->ops);
    if (!run->ops.result)
        run->ops.result = cuda_reduce(run->plans->launcher, &run->op, &whole, run->ops.stream);
}

static bool is_same(const struct cuda_operand *a, const struct cuda_operand *b)
{
    return a->flags == b->flags && a->address + a->offset == b->address + b->offset;
}

/* May the step read what a copy of this call wrote? */
static bool reads_own_output(const struct gpu_run *run, const struct plan_operand *from)
{
    return from->rank == run->plan->rank && from->buffer != PLAN_INPUT;
}

static void move(struct gpu_run *run, const struct plan_step *step)
{
    struct cuda_operand operands[CUDA_OPERANDS_MAX];
    const struct plan_operand *from = plan_sources(run->plan, step);
    struct cuda_reduce_call call = {
        .sources = operands,
        .destinations = operands + step->sources,
        .source_count = step->sources,
        .destination_count = step->destinations,
        .count = atom_start(run, from->first + step->atoms) - atom_start(run, from->first),
        .order = step->flags & PLAN_BALANCED ? KERNEL_BALANCED : KERNEL_FOLD,
        .scaled = -1,
        .finish = step->flags & PLAN_FINISH,
    };
    bool one_to_one = step->sources == 1 && step->destinations == 1;

    if (step->verb == PLAN_COPY)
        call.finish = call.finish && run->op.divisor > 1;
    for (int i = 0; i < step->sources + step->destinations; i++)
        operands[i] = operand_of(run, &from[i]);
    if (!call.count || (one_to_one && !call.finish && is_same(&operands[0], &operands[1])))
        return;
    if (!one_to_one || call.finish) {
        gpu_move(run, &call);
        return;
    }
    if (reads_own_output(run, from))
        gpu_copies_flush(run);
    gpu_copy(run, &operands[0], &operands[1], call.count * run->shape.element);
}

/* ---- Messages -------------------------------------------------------------------------------- */

void gpu_note_step(struct gpu_run *run, uint32_t step)
{
    if (run->flight)
        gpu_ops_write(&run->ops, run->plans->device_progress + offsetof(struct gpu_progress, at),
                      run->flight->number << 16 | (step & 0xffff));
    else if (step == GPU_STEP_NONE)
        gpu_graph_note_none(run);
}

static CUdeviceptr mail_full(const struct gpu_plans *plans, int to, int from, int lane)
{
    const struct gpu_mail *mail = gpu_mail(plans->views[to].arena, from, lane);

    return gpu_view_at(&plans->views[to], &mail->full);
}

void gpu_await_empty(struct gpu_run *run, int peer, int lane)
{
    if (!run->flight)
        gpu_graph_note_wait(run, peer, lane, false);
    gpu_ops_wait(&run->ops, mail_full(run->plans, peer, run->plans->comm->rank, lane), 0);
}

/* Where that peer's block of it is, or the only one. */
static uint64_t word_for(const struct gpu_buffer *buffer, int peer)
{
    return buffer->blocks > 1 ? buffer->word + (uint64_t)peer * buffer->stride : buffer->word;
}

void gpu_publish(struct gpu_run *run, int peer, int lane, bool addresses)
{
    const struct gpu_plans *plans = run->plans;
    const struct gpu_view *view = &plans->views[peer];
    const struct gpu_mail *mail = gpu_mail(view->arena, plans->comm->rank, lane);

    gpu_copies_flush(run);
    gpu_note_step(run, GPU_STEP_NONE);
    if (addresses) {
        gpu_ops_write_word(&run->ops, gpu_view_at(view, &mail->input), word_for(&run->input, peer));
        gpu_ops_write_word(&run->ops, gpu_view_at(view, &mail->output),
                           word_for(&run->output, peer));
    }
    gpu_ops_write(&run->ops, mail_full(plans, peer, plans->comm->rank, lane), run->fingerprint);
}

void gpu_await_mail(struct gpu_run *run, int peer, int lane)
{
    if (!run->flight)
        gpu_graph_note_wait(run, peer, lane, true);
    gpu_ops_wait(&run->ops, mail_full(run->plans, run->plans->comm->rank, peer, lane),
                 run->fingerprint);
}

void gpu_empty(struct gpu_run *run, int peer, int lane)
{
    gpu_copies_flush(run);
    gpu_note_step(run, GPU_STEP_NONE);
    gpu_ops_write(&run->ops, mail_full(run->plans, run->plans->comm->rank, peer, lane), 0);
}

static void queue_step(struct gpu_run *run, const struct plan_step *step)
{
    bool data = step->event == PLAN_DATA;

    switch (step->verb) {
    case PLAN_WAIT:
        gpu_note_step(run, (uint32_t)(step - run->plan->steps));
        if (data)
            gpu_await_mail(run, step->peer, GPU_LANE_COLLECTIVE);
        else
            gpu_await_empty(run, step->peer, GPU_LANE_COLLECTIVE);
        break;
    case PLAN_SIGNAL:
        if (data)
            gpu_publish(run, step->peer, GPU_LANE_COLLECTIVE, step->flags & PLAN_ADDRESSES);
        else
            gpu_empty(run, step->peer, GPU_LANE_COLLECTIVE);
        break;
    default:
        move(run, step);
    }
}

/* ---- A call ---------------------------------------------------------------------------------- */

void gpu_run_close(struct gpu_run *run)
{
    gpu_copies_flush(run);
    if (run->flight)
        gpu_ops_write(&run->ops, run->plans->device_progress + offsetof(struct gpu_progress, ended),
                      run->flight->number);
    else
        gpu_graph_note_none(run);
    gpu_ops_flush(&run->ops);
}

rondo_result gpu_run_open(struct gpu_plans *plans, const struct task *task, const struct plan *plan,
                          CUstream stream, struct gpu_run *run)
{
    const struct choice_key *key = &task->key;
    rondo_comm *comm = plans->comm;
    size_t element = key->collective == RONDO_BARRIER ? 1 : rondo_type_size(key->type);
    struct operation operation = task->made;
    rondo_result result = RONDO_OK;

    memset(run, 0, offsetof(struct gpu_run, ops.ops));
    run->plans = plans;
    run->plan = plan;
    run->ops.cuda = plans->gpu->device.driver;
    run->ops.stream = stream;
    run->copies.count = 0;
    run->op = (struct kernel_op){.type = key->type, .function = KERNEL_SUM};
    if (collective_reduces(key->collective)) {
        if (!operation.handle)
            result =
                operations_resolve(&comm->operations, key->op, key->type, comm->size, &operation);
        run->op = operation.kernel;
    }
    if (!result)
        result = exec_shape_plan(plan, key->count, element, comm->world.slot_bytes, &run->shape);
    run->fingerprint = choice_fingerprint(key) | 1;
    return result;
}

/* Some elements of each block. */
struct piece {
    size_t start, count;
};

static rondo_result open_piece(struct gpu_plans *plans, const struct task *task,
                               const struct piece *piece, CUstream stream, struct gpu_run *run)
{
    const struct plan *plan = NULL;
    rondo_result result = gpu_find_plan(plans, &task->key, &plan);

    if (!result)
        result = gpu_run_open(plans, task, plan, stream, run);
    if (!result)
        result = exec_shape_plan(plan, piece->count, run->shape.element,
                                 plans->comm->world.slot_bytes, &run->shape);
    if (result)
        return result;
    run->start = piece->start;
    return gpu_place_buffers(plans, task, run);
}

static rondo_result queue_collective(struct gpu_plans *plans, const struct task *task,
                                     const struct piece *piece, struct gpu_flight *flight,
                                     CUstream stream)
{
    struct gpu_run run;
    rondo_result result = open_piece(plans, task, piece, stream, &run);

    if (result)
        return result;
    run.flight = flight;
    gpu_watch_add(plans, flight);
    gpu_bring_input(&run);
    run.op.has_scale = false;
    for (uint32_t i = run.plan->program[0].begin; i < run.plan->program[0].end; i++)
        queue_step(&run, &run.plan->steps[i]);
    gpu_take_output(&run);
    gpu_run_close(&run);
    return run.ops.result;
}

/* To health.c each piece is the whole call. In a graph it has no number: the host does not see it
 * run. */
static rondo_result queue_piece(struct gpu_plans *plans, const struct task *task,
                                const struct piece *piece, CUstream stream)
{
    struct gpu_flight *flight = NULL;
    rondo_result result = plans->in_graph ? RONDO_OK : gpu_flight_open(plans, task, 1, &flight);

    if (!result)
        result = gpu_is_short(plans, task) ? gpu_kernel_queue(plans, task, flight, stream)
                                           : queue_collective(plans, task, piece, flight, stream);
    if (result && flight)
        gpu_flight_abandon(plans, flight);
    return result;
}

static rondo_result queue_task(struct gpu_plans *plans, const struct task *task, CUstream stream)
{
    size_t count = task->key.count, each = gpu_piece_count(plans, &task->key);
    struct piece piece = {0, 0};
    rondo_result result;

    do {
        piece.count = count - piece.start < each ? count - piece.start : each;
        result = queue_piece(plans, task, &piece, stream);
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
        gpu_flights_count(1);
    if (in_graph)
        result = gpu_judge_capture(plans, plans->errors);
    for (int i = 0; i < batch->count && !result; i++)
        if (!collective_is_pair(batch->tasks[i].key.collective))
            result = queue_task(plans, &batch->tasks[i], stream);
    return result ? result : gpu_pairs_queue(plans, batch, in_graph, stream);
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
    gpu_queueing_begin();
    result = gpu_sequence_enter(sequence, stream, &place);
    plans->in_graph = place.capture != 0;
    if (!result)
        result = queue_batch(plans, batch, stream);
    if (!result)
        result = gpu_sequence_leave(sequence, &place);
    gpu_queueing_end();
    gpu_inside_queued(plans);
    lock_give(&plans->lock);
    /* Peers wait for what was not queued. */
    return result ? comm_break(plans->comm, result, plans->comm->rank) : RONDO_OK;
}
