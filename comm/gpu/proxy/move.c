/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * move.c - the host's plan with a device as its backend: step_loop.h on a thread, data moved by
 * work on a CUDA stream of the communicator's own.
 *
 *     thread    wait: flag in a slot | queue: slot + input -> next slot | ... | count: publish
 *     stream                           kernels, one after another | count = 7
 *
 * Who waits is the host, so nothing on the device waits for a peer, and its work always ends. What
 * a step tells others (a slot is filled, a slot is free) becomes a completion, which is told when
 * the stream has written a count that comes behind the step's work. Flags, counters and cells stay
 * in memory of the host; payload lies in rings of the same layout, in device memory that adapters
 * write to and read from, or in the slots themselves, pinned. All steps of a call go to one stream,
 * so the order in which the host walks through the programs is the order of their work.
 */
#include "comm/gpu/proxy/proxy.h"

#include "base/caller/times.h"
#include "base/collective.h"
#include "base/fail.h"
#include "comm/gpu/arena.h"
#include "cuda/reduce.h"
#include "plan/ll.h"
#include "transport/link/connection.h"

#include <sched.h>

static struct gpu_proxy *proxy_of(const struct execution *x)
{
    const rondo_comm *comm = (const rondo_comm *)(const void *)x->world; /* its first member */

    return comm_gpu(comm)->proxy;
}

/* ---- What a step tells others --- */

static void note_flag(struct execution *x, _Atomic uint64_t *flag, uint64_t value)
{
    gpu_proxy_note(proxy_of(x),
                   (struct gpu_completion){.kind = COMPLETION_FLAG, .where = flag, .value = value});
}

static void note_count(struct execution *x, _Atomic uint32_t *counter, uint32_t value)
{
    gpu_proxy_note(proxy_of(x), (struct gpu_completion){
                                    .kind = COMPLETION_COUNT, .where = counter, .value = value});
}

static void note_push(struct execution *x, const struct link_out *out, struct link_slot *slot,
                      const char *payload, uint64_t flag)
{
    struct gpu_proxy *proxy = proxy_of(x);
    bool device = proxy->links[out - x->world->out].written_by_adapter;

    if (out->connection)
        gpu_proxy_note(proxy, (struct gpu_completion){.kind = device ? COMPLETION_PUSH_DEVICE
                                                                     : COMPLETION_PUSH,
                                                      .where = slot,
                                                      .connection = out->connection,
                                                      .payload = payload,
                                                      .bytes = (size_t)(out->fill - payload),
                                                      .value = flag});
}

static void note_return(struct execution *x, const struct link_in *in)
{
    gpu_proxy_note(proxy_of(x), (struct gpu_completion){.kind = COMPLETION_RETURN,
                                                        .connection = in->connection,
                                                        .value = in->received});
}

/* ---- Rings ----------------------------------------------------------------------------------- */

/* Pin pages of the host; returns what to add to an address there to get the device's. */
static uint64_t pin(struct gpu_proxy *proxy, void *memory, size_t bytes)
{
    CUdeviceptr device = 0;
    rondo_result result = gpu_pin(proxy->gpu->device.driver,
                                  &(struct gpu_pages){proxy->comm->id, memory, bytes}, &device);

    if (result)
        gpu_proxy_fail(proxy, result);
    else
        proxy->pinned[proxy->pinned_count++] = memory;
    return device - cuda_address(memory);
}

/* A ring in shared memory begins with its credit, and fills whole pages. */
static uint64_t pin_shared(struct gpu_proxy *proxy, struct link_credit *begin, const char *slots,
                           size_t slots_bytes)
{
    const size_t page = 4096;
    size_t bytes = (size_t)(slots - (const char *)begin) + slots_bytes;

    return pin(proxy, begin, (bytes + page - 1) / page * page);
}

/* NULL: it is not known yet where the rings of that link are. */
static const struct gpu_link *find_link(struct execution *x, const struct plan_operand *operand)
{
    size_t at = (size_t)operand->channel * (size_t)x->world->size + (size_t)operand->rank;
    struct gpu_proxy *proxy = proxy_of(x);
    struct gpu_link *link = &proxy->links[at];
    const struct link_out *out = &x->world->out[at];
    const struct link_in *in = &x->world->in[at];
    struct connection_rings rings;

    if (link->known)
        return link;
    if (!out->connection) {
        link->out = pin_shared(proxy, out->credit, out->slots, out->slot_count * out->stride);
        link->in = pin_shared(proxy, in->credit, in->slots, in->slot_count * in->stride);
    } else if (!out->connection->ops->rings(out->connection, &rings)) {
        return NULL;
    } else if (rings.out) {
        link->written_by_adapter = true;
        link->out = rings.out - cuda_address(out->slots);
        link->in = rings.in - cuda_address(in->slots);
    } else {
        link->out = link->in = pin(proxy, rings.memory, rings.bytes);
    }
    link->known = !proxy->result;
    return link;
}

static bool find_links(struct execution *x, const struct plan_step *step)
{
    const struct plan_operand *operand = plan_sources(x->plan, step);

    for (int i = 0; i < step->sources + step->destinations; i++)
        if (operand[i].buffer == PLAN_SLOT && !find_link(x, &operand[i])) {
            x->blamed = operand[i].rank;
            return false;
        }
    return true;
}

/* ---- Moving ---------------------------------------------------------------------------------- */

#define STEP_FUNCTION static inline
#include "plan/pieces.h"

/* Make what an adapter wrote visible to kernels, which need not see it though it is in memory. */
static void flush_writes(struct gpu_proxy *proxy)
{
    const struct cuda_driver *cuda = proxy->gpu->device.driver;

    if (proxy->flushes)
        gpu_proxy_fail(proxy, cuda_result(cuda->cuFlushGPUDirectRDMAWrites(
                                              CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                              CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER),
                                          "cuFlushGPUDirectRDMAWrites"));
}

/* The next piece of a slot, as in plan/move.c. */
static CUdeviceptr next_piece(struct execution *x, const struct plan_operand *operand, bool source,
                              size_t bytes)
{
    size_t at = (size_t)operand->channel * (size_t)x->world->size + (size_t)operand->rank;
    const struct gpu_link *link = &proxy_of(x)->links[at];
    char **piece = source ? &x->world->in[at].take : &x->world->out[at].fill;
    CUdeviceptr address = cuda_address(*piece) + (source ? link->in : link->out);

    *piece += bytes;
    if (source && link->written_by_adapter)
        flush_writes(proxy_of(x));
    return address;
}

static struct cuda_operand locate(struct execution *x, const struct exec_program *program,
                                  const struct plan_operand *operand, bool source, size_t bytes)
{
    CUdeviceptr at;

    switch (operand->buffer) {
    case PLAN_SLOT:
        return cuda_operand_at(next_piece(x, operand, source, bytes));
    case PLAN_SCRATCH:
        at = proxy_of(x)->scratch +
             (operand->block * x->shape.segment + atom_start(x, program, operand->first)) *
                 x->shape.element;
        return cuda_operand_at(at);
    default: /* this rank's own: gpu_move_begin() refuses plans that reach into memory of peers */
        at = cuda_address(operand->buffer == PLAN_INPUT ? x->input : x->output);
        return cuda_operand_at(at + user_offset(x, program, operand));
    }
}

static void reduce(struct execution *x, const struct plan_step *step,
                   const struct cuda_operand *operands, size_t elements)
{
    struct gpu_proxy *proxy = proxy_of(x);
    const rondo_comm *comm = (const rondo_comm *)(const void *)x->world;
    const struct cuda_reduce_call call = {
        .blocks = comm->settings.max_blocks,
        .least = comm->settings.min_blocks,
        .sources = operands,
        .destinations = operands + step->sources,
        .source_count = step->sources,
        .destination_count = step->destinations,
        .count = elements,
        .order = step->flags & PLAN_BALANCED ? KERNEL_BALANCED : KERNEL_FOLD,
        .scaled = x->op->has_scale ? raw_source(x, step) : -1,
        .finish = step->flags & PLAN_FINISH,
    };

    gpu_proxy_flush(proxy);
    if (!proxy->result)
        gpu_proxy_fail(proxy, cuda_reduce(proxy->launcher, x->op, &call, proxy->stream));
    proxy->uncounted = true;
}

static enum exec_state move(struct execution *x, struct exec_program *program,
                            const struct plan_step *step)
{
    const struct plan_operand *from = plan_sources(x->plan, step);
    struct cuda_operand operands[CUDA_OPERANDS_MAX];
    size_t elements = step_elements(x, program, step);
    size_t bytes = elements * x->shape.element;

    if (!find_links(x, step))
        return EXEC_BLOCKED;
    for (int i = 0; i < step->sources + step->destinations; i++)
        operands[i] = locate(x, program, &from[i], i < step->sources, bytes);
    if (!elements)
        return EXEC_MOVED;
    if (!only_copies(x, step)) {
        reduce(x, step, operands, elements);
        return EXEC_MOVED;
    }
    for (int i = step->sources; i < step->sources + step->destinations; i++)
        if (operands[i].address != operands[0].address)
            gpu_proxy_copy(proxy_of(x), operands[i].address, operands[0].address, bytes);
    return EXEC_MOVED;
}

/* ---- The loop -------------------------------------------------------------------------------- */

/* Peers' memory is out of reach, so no plan that is chosen asks for it (gpu_move_begin()). */
static void addresses(struct execution *x, int peer)
{
    gpu_proxy_fail(proxy_of(x),
                   rondo_fail(RONDO_ERROR_INTERNAL, "Rank %d says where its buffers are.", peer));
}

#define step_load(p) atomic_load_explicit(p, memory_order_acquire)
/* Both are stored in functions whose execution is `x`. */
#define step_store(p, v) \
    _Generic((p), _Atomic uint64_t * : note_flag, _Atomic uint32_t * : note_count)(x, p, v)
#define step_clear(p)                       atomic_store_explicit(p, 0, memory_order_relaxed)
#define step_push(out, slot, payload, flag) note_push(x, out, slot, payload, flag)
#define step_return(in)                     note_return(x, in)
#define step_enter(x)                       ((void)(x), EXEC_MOVED)
#define step_holds(x)                       ((void)(x), true)
#define step_addresses(x, peer, said)       ((void)(said), addresses(x, peer))
#define step_combine                        move
#include "plan/step_slots.h"

#include "plan/step_loop.h"

bool gpu_moves(const struct gpu *gpu, const struct batch *batch)
{
    bool all = gpu->proxy != NULL;

    for (int i = 0; i < batch->count && all; i++) {
        const struct task *task = &batch->tasks[i];

        all = !collective_reduces(task->key.collective) || !task->made.handle ||
              cuda_reduce_can(&task->made.kernel);
    }
    return all;
}

/* Ranks that moved the same call in different ways would read each other's old slots. */
#define MOVED_BY_DEVICE 0x6d6f7665u

rondo_result gpu_move_begin(rondo_comm *comm, struct task *task)
{
    struct gpu_proxy *proxy = comm_gpu(comm)->proxy;
    struct execution *x = &task->execution;
    size_t scratch = exec_scratch_bytes(x->plan, &x->shape);
    rondo_result result;

    if (plan_reaches(x->plan))
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "%s reaches into memory of peers, which ranks of other hosts cannot.",
                          x->plan->algorithm);
    x->shape.lines = 0; /* payload is never among flags */
    x->past_cache = 0;
    x->fingerprint = link_fingerprint(x->fingerprint ^ MOVED_BY_DEVICE);
    task->began = 0; /* its time says nothing about how the host stores */
    if (scratch <= proxy->scratch_bytes)
        return RONDO_OK;
    cuda_stock_return(&proxy->launcher->stock, &proxy->gpu->device, proxy->scratch);
    proxy->scratch = 0;
    proxy->scratch_bytes = 0;
    result = cuda_stock_take(&proxy->launcher->stock, &proxy->gpu->device, CUDA_HOLDING_DEVICE,
                             scratch, &proxy->scratch);
    if (!result)
        proxy->scratch_bytes = scratch;
    return result;
}

enum exec_state gpu_move_advance(struct execution *x)
{
    struct gpu_proxy *proxy = proxy_of(x);
    bool moved = gpu_proxy_tell(proxy), done = true;

    for (int i = 0; i < x->plan->programs && !proxy->result; i++) {
        enum exec_state state;

        if (x->programs[i].done)
            continue;
        state = step_run(x, &x->programs[i]);
        x->programs[i].blamed = x->blamed;
        if (state > EXEC_BLOCKED)
            return state;
        moved |= state != EXEC_BLOCKED;
        done &= state == EXEC_DONE;
    }
    gpu_proxy_count(proxy);
    if (proxy->result) {
        x->blamed = proxy->comm->rank;
        return EXEC_FAILED;
    }
    if (!done)
        return moved ? EXEC_MOVED : EXEC_BLOCKED;
    moved |= gpu_proxy_tell(proxy);
    if (proxy->completion_first == proxy->completion_end &&
        gpu_proxy_has_reached(proxy, proxy->counted))
        return EXEC_DONE;
    x->blamed = proxy->comm->rank;
    return moved ? EXEC_MOVED : EXEC_BLOCKED;
}

/*
 * Nothing that is queued waits for anybody, so it ends, unless the device has failed. After an
 * error no count is queued behind the last work, so it is the stream that is asked: what it still
 * does must not touch buffers that the caller believes to be its own again.
 */
void gpu_move_end(struct gpu *gpu)
{
    enum { POLLS = 500 };
    struct gpu_proxy *proxy = gpu->proxy;
    CUresult code = CUDA_ERROR_NOT_READY;
    int polls = 0;

    gpu_proxy_count(proxy);
    while (code == CUDA_ERROR_NOT_READY &&
           (proxy->result || !gpu_proxy_has_reached(proxy, proxy->counted))) {
        code = gpu->device.driver->cuStreamQuery(proxy->stream);
        if (code == CUDA_ERROR_NOT_READY && polls++ < POLLS)
            sched_yield();
        else if (code == CUDA_ERROR_NOT_READY)
            doze_for(DOZE_OWN);
        else if (code != CUDA_SUCCESS)
            gpu_proxy_fail(proxy, cuda_result(code, "cuStreamQuery"));
    }
    proxy->completion_first = proxy->completion_end = 0;
}
