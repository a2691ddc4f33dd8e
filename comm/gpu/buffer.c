/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buffer.c - the buffers of a call: memory that peers can be pointed to, or device memory that
 * stands in for memory they cannot reach. Calls of a communicator follow each other on the device,
 * so one stand-in of each kind serves them all.
 *
 * Where ranks are processes, what stands in is the reserve (share/reserve.c), as nobody has to map
 * anything for it. A call that is too long for it is cut into pieces, whoever needs it:
 *
 *     block 0           block 1           block 2
 *     |  |##|  |  |  |  |  |##|  |  |  |  |  |##|  |  |  |     the user's, a piece of it
 *                              |##|##|##|                      in the reserve
 *
 * Peers touch outputs only where they write sums, and of an input of several blocks each reads its
 * own one: so it does not matter to them how far apart the blocks are. Copy engines are told by the
 * host where an input is, before its owner has said it: there it is in the reserve in any case.
 */
#include "comm/gpu/plan.h"

#include "base/fail.h"

#include <stdlib.h>

/* True if peers can be told where the buffer is; if not, it is to be replaced. */
static bool is_shareable(const struct gpu_plans *plans, const struct gpu_buffer *buffer)
{
    enum cuda_memory kind = cuda_memory_kind(plans->gpu->device.driver, buffer->user);

    if (!plans->comm->one_process)
        return kind == CUDA_MEMORY_DEVICE;
    return kind != CUDA_MEMORY_HOST &&
           (kind != CUDA_MEMORY_DEVICE ||
            gpu_is_reached(plans, cuda_address(buffer->user), buffer->blocks * buffer->pitch));
}

/* In a stand-in blocks follow each other. */
static size_t packed(const struct gpu_buffer *buffer)
{
    return buffer->blocks * buffer->length;
}

/* True if what is left of the reserve has room for the buffer. */
static bool fits_reserve(const struct gpu_run *run, const struct gpu_buffer *buffer)
{
    return packed(buffer) <= run->plans->reserve_bytes - run->reserved;
}

static void stand_in(struct gpu_buffer *buffer, CUdeviceptr at)
{
    buffer->at = at;
    buffer->stride = buffer->length;
    buffer->replaced = true;
}

static void take_reserve(struct gpu_run *run, struct gpu_buffer *buffer)
{
    const size_t grain = 512; /* bytes, as CUDA aligns memory */
    size_t end = run->reserved + (packed(buffer) + grain - 1) / grain * grain;

    stand_in(buffer, run->plans->reserve + run->reserved);
    run->reserved = end < run->plans->reserve_bytes ? end : run->plans->reserve_bytes;
}

/* The smaller one stays: calls and graphs may use it, and peers have it mapped. */
static rondo_result grow(struct gpu_plans *plans, struct gpu_substitute *other, size_t bytes)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    struct gpu_outgrown *old = other->memory ? malloc(sizeof(*old)) : NULL;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    rondo_result result;

    if (other->memory && !old)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a call on the device.");
    if (old) {
        *old = (struct gpu_outgrown){.next = plans->outgrown, .memory = other->memory};
        plans->outgrown = old;
    }
    *other = (struct gpu_substitute){.next = other->next};
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    result = cuda_stock_take(&plans->launcher->stock, &plans->launcher->device, CUDA_HOLDING_DEVICE,
                             bytes, &other->memory);
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    other->bytes = result ? 0 : bytes;
    return result;
}

static rondo_result substitute(struct gpu_run *run, struct gpu_buffer *buffer,
                               struct gpu_substitute *other)
{
    size_t bytes = 1 << 20;
    rondo_result result;

    if (fits_reserve(run, buffer)) {
        take_reserve(run, buffer);
        return RONDO_OK;
    }
    while (bytes < packed(buffer))
        bytes *= 2;
    if (other->bytes < packed(buffer)) {
        result = grow(run->plans, other, bytes);
        if (result)
            return result;
    }
    stand_in(buffer, other->memory);
    return RONDO_OK;
}

static rondo_result share_substitute(struct gpu_run *run, struct gpu_buffer *buffer,
                                     struct gpu_substitute *other)
{
    struct gpu_plans *plans = run->plans;
    rondo_result result = substitute(run, buffer, other);

    if (result)
        return result;
    result = gpu_share(plans, buffer->at, packed(buffer), GPU_SHARE_OWN, &buffer->word);
    if (result == RONDO_IN_PROGRESS)
        result = rondo_fail(RONDO_ERROR_UNSUPPORTED,
                            "Rank %d has no device memory left that its peers can map: CUDA IPC "
                            "refuses it, or there are %d pieces already. RONDO_CUDA=host goes "
                            "without.",
                            plans->comm->rank, GPU_REGIONS);
    return result;
}

/* Uses the buffer where the user has it. */
static void stay(struct gpu_buffer *buffer)
{
    buffer->at = cuda_address(buffer->user) + buffer->start;
    buffer->stride = buffer->pitch;
}

/* Have peers find the user's memory. RONDO_IN_PROGRESS: they cannot, or not now. */
static rondo_result share(struct gpu_run *run, struct gpu_buffer *buffer, unsigned flags)
{
    struct gpu_plans *plans = run->plans;
    rondo_result result;

    if (!is_shareable(plans, buffer))
        return RONDO_IN_PROGRESS;
    result = gpu_share(plans, cuda_address(buffer->user), buffer->blocks * buffer->pitch, flags,
                       &buffer->word);
    buffer->word += buffer->start;
    return result;
}

/* `replace`: it must be, though peers could reach it. */
static rondo_result place_buffer(struct gpu_run *run, struct gpu_buffer *buffer,
                                 struct gpu_substitute *other, bool replace)
{
    unsigned flags = fits_reserve(run, buffer) ? GPU_SHARE_SOON : 0;
    rondo_result result;

    if (!packed(buffer))
        return RONDO_OK;
    stay(buffer);
    result = replace ? RONDO_IN_PROGRESS : share(run, buffer, flags);
    return result == RONDO_IN_PROGRESS ? share_substitute(run, buffer, other) : result;
}

/* An output that peers write: in the stand-in of the input, if that has one, as in a call in place;
 * so the two need no more room than the input. */
static rondo_result place_sums(struct gpu_run *run)
{
    struct gpu_buffer *output = &run->output;
    rondo_result result;

    if (!run->input.replaced || !packed(output))
        return place_buffer(run, output, &run->plans->substitutes[1], false);
    stay(output);
    result = share(run, output, GPU_SHARE_SOON);
    if (result != RONDO_IN_PROGRESS)
        return result;
    stand_in(output, run->input.at);
    output->word = run->input.word;
    return RONDO_OK;
}

/* Place a buffer that peers do not touch. */
static rondo_result place_local(struct gpu_run *run, struct gpu_buffer *buffer,
                                struct gpu_substitute *other)
{
    if (!packed(buffer))
        return RONDO_OK;
    stay(buffer);
    if (cuda_memory_kind(run->plans->gpu->device.driver, buffer->user) != CUDA_MEMORY_HOST)
        return RONDO_OK;
    return substitute(run, buffer, other);
}

/* ---- Collectives ----------------------------------------------------------------------------- */

/* Some rank's input may have as many blocks as the root's. */
size_t gpu_piece_count(const struct gpu_plans *plans, const struct choice_key *key)
{
    const size_t grain = 64; /* elements, so that pieces begin at lines as blocks do */
    size_t blocks =
        (size_t)plan_input_blocks(key->collective, plans->comm->size, key->root, key->root);
    size_t most, pieces, each;

    if (!plans->piece_bytes || !blocks || !key->count)
        return key->count;
    most = plans->piece_bytes / blocks / rondo_type_size(key->type);
    most = most > grain ? most - most % grain : grain;
    pieces = (key->count + most - 1) / most;
    each = (key->count + pieces - 1) / pieces;
    return pieces > 1 ? (each + grain - 1) / grain * grain : key->count;
}

static struct gpu_buffer measure(const struct gpu_run *run, const struct task *task,
                                 const void *user, int blocks)
{
    size_t element = run->x.shape.element;

    return (struct gpu_buffer){.user = user,
                               .blocks = (size_t)blocks,
                               .pitch = task->key.count * element,
                               .start = run->start * element,
                               .length = run->x.shape.count * element};
}

static void measure_buffers(struct gpu_run *run, const struct task *task)
{
    const struct plan *plan = run->x.plan;

    run->input = measure(run, task, task->input,
                         plan_input_blocks(plan->collective, plan->size, plan->rank, plan->root));
    run->output = measure(run, task, task->output,
                          plan_output_blocks(plan->collective, plan->size, plan->rank, plan->root));
}

rondo_result gpu_place_local(struct gpu_run *run, const struct task *task)
{
    struct gpu_plans *plans = run->plans;
    rondo_result result;

    measure_buffers(run, task);
    result = place_local(run, &run->input, &plans->substitutes[0]);
    return result ? result : place_local(run, &run->output, &plans->substitutes[1]);
}

bool gpu_writes_outputs(rondo_collective collective)
{
    return collective == RONDO_ALL_REDUCE || collective == RONDO_REDUCE;
}

rondo_result gpu_place_buffers(struct gpu_run *run, const struct task *task)
{
    struct gpu_plans *plans = run->plans;
    rondo_collective collective = run->x.plan->collective;
    bool in_place = task->input == task->output && collective == RONDO_ALL_TO_ALL;
    bool replace = in_place || run->op.has_scale || run->engines;
    rondo_result result;

    measure_buffers(run, task);
    result = place_buffer(run, &run->input, &plans->substitutes[0], replace);
    if (result)
        return result;
    return gpu_writes_outputs(collective) ? place_sums(run)
                                          : place_local(run, &run->output, &plans->substitutes[1]);
}

/* ---- Messages between two ranks -------------------------------------------------------------- */

/* The messages of a batch are on their way together, so each has a substitute of its own. */
rondo_result gpu_pair_place(struct gpu_run *run, struct gpu_buffer *buffer)
{
    struct gpu_plans *plans = run->plans;
    struct gpu_substitute **link = &plans->pair_substitutes;
    bool sends = buffer == &run->input;
    rondo_result result;

    for (int i = 0; i < run->replaced && *link; i++)
        link = &(*link)->next;
    if (!*link)
        *link = calloc(1, sizeof(**link));
    if (!*link)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a message.");
    result = sends ? place_buffer(run, buffer, *link, false) : place_local(run, buffer, *link);
    run->replaced += buffer->replaced;
    if (!result && sends)
        gpu_bring_input(run);
    return result;
}

/* ---- To stand-ins and back ------------------------------------------------------------------- */

static CUdeviceptr user_at(const struct gpu_buffer *buffer, size_t block)
{
    return cuda_address(buffer->user) + block * buffer->pitch + buffer->start;
}

/* Between the user's memory and what stands in for it, a block or all at once. */
static void copy_blocks(struct gpu_run *run, const struct gpu_buffer *buffer, bool in)
{
    const struct cuda_driver *cuda = run->ops.cuda;
    bool whole = buffer->length == buffer->pitch;
    size_t bytes = whole ? packed(buffer) : buffer->length;

    gpu_ops_flush(&run->ops);
    for (size_t i = 0; i < (whole ? 1 : buffer->blocks) && !run->ops.result; i++) {
        CUdeviceptr user = user_at(buffer, i), other = buffer->at + i * buffer->stride;

        run->ops.result = cuda_result(
            cuda->cuMemcpyAsync(in ? other : user, in ? user : other,
                                cuda_copyable(cuda, user, bytes), run->ops.stream),
            in ? "cuMemcpyAsync of a call's input" : "cuMemcpyAsync of a call's output");
    }
}

static void scale_into(struct gpu_run *run, CUdeviceptr from, CUdeviceptr to, size_t bytes)
{
    struct cuda_operand source = cuda_operand_at(from), destination = cuda_operand_at(to);

    gpu_move(run, &(struct cuda_reduce_call){.sources = &source,
                                             .destinations = &destination,
                                             .source_count = 1,
                                             .destination_count = 1,
                                             .count = bytes / run->x.shape.element,
                                             .scaled = 0});
}

/* Only this rank knows the scalar of its input, so the input is multiplied before peers read it. */
void gpu_bring_input(struct gpu_run *run)
{
    const struct gpu_buffer *input = &run->input;

    if (!input->replaced)
        return;
    if (!run->op.has_scale || !is_shareable(run->plans, input))
        copy_blocks(run, input, true);
    if (run->op.has_scale && !is_shareable(run->plans, input))
        scale_into(run, input->at, input->at, packed(input));
    else if (run->op.has_scale)
        for (size_t i = 0; i < input->blocks; i++)
            scale_into(run, user_at(input, i), input->at + i * input->stride, input->length);
}

void gpu_take_output(struct gpu_run *run)
{
    gpu_copies_flush(run);
    gpu_ops_flush(&run->ops);
    if (run->output.replaced)
        copy_blocks(run, &run->output, false);
}
