/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buffer.c - the buffers of a call: memory that peers can be pointed to, or device memory that
 * stands in for memory they cannot reach. Calls of a communicator follow each other on the device,
 * so one stand-in of each kind serves them all.
 */
#include "comm/gpu/plan.h"

#include "base/fail.h"

#include <stdlib.h>

/* Can peers be told where it is, or else, is it to be replaced? */
static bool is_shareable(const struct gpu_plans *plans, const struct gpu_buffer *buffer)
{
    enum cuda_memory kind = cuda_memory_kind(plans->gpu->device.driver, buffer->user);

    if (!plans->comm->one_process)
        return kind == CUDA_MEMORY_DEVICE;
    return kind != CUDA_MEMORY_HOST &&
           (kind != CUDA_MEMORY_DEVICE ||
            gpu_is_reached(plans, cuda_address(buffer->user), buffer->bytes));
}

/* Is there room for it in what is left of the reserve? */
static bool fits_reserve(const struct gpu_run *run, const struct gpu_buffer *buffer)
{
    return buffer->bytes <= run->plans->reserve_bytes - run->reserved;
}

static void take_reserve(struct gpu_run *run, struct gpu_buffer *buffer)
{
    const size_t grain = 512; /* bytes, as CUDA aligns memory */
    size_t end = run->reserved + (buffer->bytes + grain - 1) / grain * grain;

    buffer->at = run->plans->reserve + run->reserved;
    buffer->replaced = true;
    run->reserved = end < run->plans->reserve_bytes ? end : run->plans->reserve_bytes;
}

static rondo_result substitute(struct gpu_run *run, struct gpu_buffer *buffer,
                               struct gpu_substitute *other)
{
    struct gpu_plans *plans = run->plans;
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    size_t bytes = 1 << 20;
    rondo_result result;

    if (fits_reserve(run, buffer)) {
        take_reserve(run, buffer);
        return RONDO_OK;
    }
    while (bytes < buffer->bytes)
        bytes *= 2;
    if (other->bytes < buffer->bytes) {
        /* The smaller one stays: calls and graphs may use it, and peers have it mapped. */
        struct gpu_outgrown *old = other->memory ? malloc(sizeof(*old)) : NULL;

        if (other->memory && !old)
            return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a call on the device.");
        cuda->cuThreadExchangeStreamCaptureMode(&mode);
        if (old) {
            *old = (struct gpu_outgrown){.next = plans->outgrown, .memory = other->memory};
            plans->outgrown = old;
        }
        other->memory = 0;
        other->bytes = 0;
        result = cuda_stock_take(&plans->launcher->stock, &plans->launcher->device,
                                 CUDA_HOLDING_DEVICE, bytes, &other->memory);
        cuda->cuThreadExchangeStreamCaptureMode(&mode);
        if (result)
            return result;
        other->bytes = bytes;
    }
    buffer->at = other->memory;
    buffer->replaced = true;
    return RONDO_OK;
}

static rondo_result share_substitute(struct gpu_run *run, struct gpu_buffer *buffer,
                                     struct gpu_substitute *other)
{
    struct gpu_plans *plans = run->plans;
    rondo_result result = substitute(run, buffer, other);

    if (result)
        return result;
    result = gpu_share(plans, buffer->at, buffer->bytes, GPU_SHARE_OWN, &buffer->word);
    if (result == RONDO_IN_PROGRESS)
        result = rondo_fail(RONDO_ERROR_UNSUPPORTED,
                            "Rank %d has no device memory left that its peers can map: CUDA IPC "
                            "refuses it, or there are %d pieces already. RONDO_CUDA=host goes "
                            "without.",
                            plans->comm->rank, GPU_SEGMENTS);
    return result;
}

/* `replace`: it must be, though peers could reach it. */
static rondo_result place_buffer(struct gpu_run *run, struct gpu_buffer *buffer,
                                 struct gpu_substitute *other, bool replace)
{
    struct gpu_plans *plans = run->plans;
    unsigned flags = fits_reserve(run, buffer) ? GPU_SHARE_SOON : 0;
    rondo_result result = RONDO_IN_PROGRESS;

    if (!buffer->bytes)
        return RONDO_OK;
    buffer->at = cuda_address(buffer->user);
    if (!replace && is_shareable(plans, buffer))
        result = gpu_share(plans, buffer->at, buffer->bytes, flags, &buffer->word);
    return result == RONDO_IN_PROGRESS ? share_substitute(run, buffer, other) : result;
}

static void copy_input(struct gpu_run *run, const struct gpu_buffer *input)
{
    const struct cuda_driver *cuda = run->ops.cuda;
    CUdeviceptr from = cuda_address(input->user);

    gpu_ops_flush(&run->ops);
    if (!run->ops.result)
        run->ops.result = cuda_result(cuda->cuMemcpyAsync(input->at, from,
                                                          cuda_copyable(cuda, from, input->bytes),
                                                          run->ops.stream),
                                      "cuMemcpyAsync of a call's input");
}

/* The messages of a batch are on their way together, so each has a substitute of its own. */
rondo_result gpu_pair_place(struct gpu_run *run, struct gpu_buffer *buffer)
{
    struct gpu_plans *plans = run->plans;
    struct gpu_substitute **link = &plans->pair_substitutes;
    rondo_result result;

    for (int i = 0; i < run->replaced && *link; i++)
        link = &(*link)->next;
    if (!*link)
        *link = calloc(1, sizeof(**link));
    if (!*link)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a message.");
    result = place_buffer(run, buffer, *link, false);
    run->replaced += buffer->replaced;
    if (!result && buffer->replaced && buffer == &run->input)
        copy_input(run, buffer);
    return result;
}

static void measure_buffers(struct gpu_run *run, const struct task *task)
{
    const struct plan *plan = run->plan;
    size_t block = run->shape.count * run->shape.element;

    run->input =
        (struct gpu_buffer){.user = task->input,
                            .bytes = block * (size_t)plan_input_blocks(plan->collective, plan->size,
                                                                       plan->rank, plan->root)};
    run->output = (struct gpu_buffer){
        .user = task->output,
        .bytes = block *
                 (size_t)plan_output_blocks(plan->collective, plan->size, plan->rank, plan->root)};
}

static rondo_result place_local(struct gpu_run *run, struct gpu_buffer *buffer,
                                struct gpu_substitute *other)
{
    if (!buffer->bytes)
        return RONDO_OK;
    buffer->at = cuda_address(buffer->user);
    if (cuda_memory_kind(run->plans->gpu->device.driver, buffer->user) != CUDA_MEMORY_HOST)
        return RONDO_OK;
    return substitute(run, buffer, other);
}

rondo_result gpu_place_local(struct gpu_run *run, const struct task *task)
{
    struct gpu_plans *plans = run->plans;
    rondo_result result;

    measure_buffers(run, task);
    result = place_local(run, &run->input, &plans->substitutes[0]);
    return result ? result : place_local(run, &run->output, &plans->substitutes[1]);
}

rondo_result gpu_place_buffers(struct gpu_plans *plans, const struct task *task,
                               struct gpu_run *run)
{
    bool in_place = task->input == task->output && run->plan->collective == RONDO_ALL_TO_ALL;
    rondo_result result;

    measure_buffers(run, task);
    result = place_buffer(run, &run->input, &plans->substitutes[0], in_place || run->op.has_scale);
    return result ? result : place_buffer(run, &run->output, &plans->substitutes[1], false);
}

/* What a rank's own input is multiplied by is known to this rank alone, so it does that before. */
void gpu_bring_input(struct gpu_run *run)
{
    const struct gpu_buffer *input = &run->input;

    if (!input->replaced)
        return;
    if (run->op.has_scale && is_shareable(run->plans, input)) {
        struct cuda_operand from = cuda_operand_at(cuda_address(input->user));
        struct cuda_operand to = cuda_operand_at(input->at);

        gpu_move(run, &(struct cuda_reduce_call){.sources = &from,
                                                 .destinations = &to,
                                                 .source_count = 1,
                                                 .destination_count = 1,
                                                 .count = input->bytes / run->shape.element,
                                                 .scaled = 0});
        return;
    }
    copy_input(run, input);
    if (run->op.has_scale) {
        struct cuda_operand own = cuda_operand_at(input->at);

        gpu_move(run, &(struct cuda_reduce_call){.sources = &own,
                                                 .destinations = &own,
                                                 .source_count = 1,
                                                 .destination_count = 1,
                                                 .count = input->bytes / run->shape.element,
                                                 .scaled = 0});
    }
}

void gpu_take_output(struct gpu_run *run)
{
    const struct gpu_buffer *output = &run->output;
    const struct cuda_driver *cuda = run->ops.cuda;
    CUdeviceptr to = cuda_address(output->user);

    gpu_copies_flush(run);
    gpu_ops_flush(&run->ops);
    if (output->replaced && !run->ops.result)
        run->ops.result =
            cuda_result(cuda->cuMemcpyAsync(to, output->at, cuda_copyable(cuda, to, output->bytes),
                                            run->ops.stream),
                        "cuMemcpyAsync of a call's output");
}
