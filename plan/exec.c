/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec.c - the host executor: step_loop.h on the calling thread, data moved by kernels/.
 *
 * Read step_loop.h first. Here is what a host adds: where an operand is in memory, which arithmetic a step means, and
 * memory of peers that can only be read across processes.
 */
#include "plan/exec.h"

#include "base/fail.h"
#include "base/range.h"

#include <stdio.h>
#include <string.h>

#define STEP_FUNCTION static inline
#define step_load(p) atomic_load_explicit(p, memory_order_acquire)
#define step_store(p, v) atomic_store_explicit(p, v, memory_order_release)

static inline void step_push(const struct link_out *out)
{
    (void)out; /* on shared memory a published slot is already where it belongs */
}

static void step_addresses(struct execution *x, int peer, const struct link_addresses *said);
static enum exec_state step_combine(struct execution *x, struct exec_program *program,
                                    const struct plan_step *step);

#include "plan/step_loop.h"

enum { GRAIN_BYTES = 64 }; /* chunks begin on cache lines, so that no two ranks write the same one */

rondo_result exec_shape_plan(const struct plan *plan, size_t count, size_t element,
                             size_t slot_bytes, struct exec_shape *ret_shape)
{
    struct exec_shape shape = {.count = count, .element = element, .window = count};
    size_t longest = 0;

    shape.grain = GRAIN_BYTES / element;
    if (plan->message_atoms) {
        size_t atom = slot_bytes / element / plan->message_atoms; /* elements an atom may have */

        if (!atom)
            return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                              "%s %s over %d ranks needs slots of at least %zu bytes, they have "
                              "%zu: set RONDO_SLOT_BYTES.",
                              plan->algorithm, rondo_collective_name(plan->collective), plan->size,
                              element * plan->message_atoms, slot_bytes);
        if (atom < shape.grain)
            shape.grain = 1;
        atom -= atom % shape.grain;
        if (atom <= count / plan->parts) /* else the whole count fits one window; no overflow */
            shape.window = atom * plan->parts;
        longest = range_start(shape.window, shape.grain, plan->parts, 1);
    }
    shape.inlined = plan->message_atoms * longest * element <= LINK_INLINE;
    *ret_shape = shape;
    return RONDO_OK;
}

size_t exec_scratch_bytes(const struct plan *plan, const struct exec_shape *shape)
{
    return plan->scratch_blocks * shape->window * shape->element;
}

static bool collective_reduces(rondo_collective collective)
{
    return collective == RONDO_ALL_REDUCE || collective == RONDO_REDUCE ||
           collective == RONDO_REDUCE_SCATTER;
}

void exec_start(struct execution *x)
{
    const struct plan *plan = x->plan;

    x->awaited = plan->address_messages;
    x->reduces = collective_reduces(plan->collective);
    for (int i = 0; i < plan->programs; i++) {
        struct exec_program *program = &x->programs[i];

        program->begin = plan->program[i].begin;
        program->end = plan->program[i].end;
        program->done = false;
        step_open_window(x, program, 0);
    }
}

/* What a peer's message says becomes pointers; the lengths that are checked are ours. */
static void step_addresses(struct execution *x, int peer, const struct link_addresses *said)
{
    const struct plan *plan = x->plan;
    size_t block = x->shape.count * x->shape.element;
    size_t inputs = (size_t)plan_input_blocks(plan->collective, plan->size, peer, plan->root);
    size_t outputs = (size_t)plan_output_blocks(plan->collective, plan->size, peer, plan->root);
    const size_t bytes[2] = {inputs * block, outputs * block};
    struct exec_peer *at = &x->world->peers[peer];

    x->world->ops->resolve(x->world, peer, said, bytes, at);
    if (bytes[0] && !at->input && (x->reduces || !at->remote_input))
        x->unreachable = true;
    if (bytes[1] && !at->output && x->reduces)
        x->unreachable = true;
}

/* A user buffer of this rank or of a peer; NULL: it is not mapped here. */
static inline char *user_buffer(const struct execution *x, const struct plan_operand *operand)
{
    const struct exec_peer *peer;

    if (operand->rank == x->plan->rank)
        return operand->buffer == PLAN_INPUT ? (char *)(uintptr_t)x->input : x->output;
    peer = &x->world->peers[operand->rank];
    return operand->buffer == PLAN_INPUT ? peer->input : peer->output;
}

/* Bytes from the beginning of a user buffer to the range. */
static inline size_t user_offset(const struct execution *x, const struct exec_program *program,
                                 const struct plan_operand *operand)
{
    return (operand->block * x->shape.count + program->start +
            step_atom_start(x, program, operand->first)) *
           x->shape.element;
}

/* Where the operand is. Slots are taken and filled piece by piece. */
static inline char *locate(struct execution *x, const struct exec_program *program,
                           const struct plan_operand *operand, bool source, size_t bytes)
{
    struct exec_world *world = x->world;
    size_t connection;
    char *at;

    switch (operand->buffer) {
    case PLAN_SLOT:
        connection = (size_t)operand->lane * (size_t)world->size + (size_t)operand->rank;
        if (source) {
            at = world->in[connection].take;
            world->in[connection].take = at + bytes;
        } else {
            at = world->out[connection].fill;
            world->out[connection].fill = at + bytes;
        }
        return at;
    case PLAN_SCRATCH:
        return world->scratch +
               (operand->block * x->shape.window + step_atom_start(x, program, operand->first)) *
                   x->shape.element;
    default:
        at = user_buffer(x, operand);
        return at ? at + user_offset(x, program, operand) : NULL;
    }
}

/* Elements of a range: of the step's first operand that has an address, or of the slot's own first atom. */
static inline size_t step_elements(const struct execution *x, const struct exec_program *program,
                                   const struct plan_step *step)
{
    const struct plan_operand *operand = plan_sources(x->plan, step);
    int last = step->sources + step->destinations - 1;

    for (int i = 0; i < last && operand->buffer == PLAN_SLOT; i++)
        operand++;
    return step_atom_start(x, program, operand->first + step->atoms) -
           step_atom_start(x, program, operand->first);
}

/* Which source is this rank's own raw input, the one that a pre-multiplied sum scales; -1: none. */
static inline int raw_source(const struct execution *x, const struct plan_step *step)
{
    const struct plan_operand *sources = plan_sources(x->plan, step);

    for (int i = 0; i < step->sources; i++)
        if (sources[i].buffer == PLAN_INPUT && sources[i].rank == x->plan->rank)
            return i;
    return -1;
}

/* Copy out of memory that is not mapped here. */
static enum exec_state read_across(struct execution *x, struct exec_program *program,
                                   const struct plan_step *step, size_t bytes)
{
    const struct plan_operand *source = plan_sources(x->plan, step);
    uint64_t from =
        x->world->peers[source->rank].remote_input + user_offset(x, program, source);
    rondo_result result =
        x->world->ops->read(x->world, source->rank, x->world->destinations[0], from, bytes);

    for (int i = 1; i < step->destinations && !result; i++)
        kernel_copy(x->world->destinations[i], x->world->destinations[0], bytes);
    x->blamed = source->rank;
    return result ? EXEC_FAILED : EXEC_MOVED;
}

static enum exec_state step_combine(struct execution *x, struct exec_program *program,
                                    const struct plan_step *step)
{
    struct exec_world *world = x->world;
    const struct plan_operand *operands = plan_sources(x->plan, step);
    size_t count = step_elements(x, program, step);
    size_t bytes = count * x->shape.element;
    struct kernel_call call;

    for (int i = 0; i < step->sources; i++)
        world->sources[i] = locate(x, program, &operands[i], true, bytes);
    operands += step->sources;
    for (int i = 0; i < step->destinations; i++)
        world->destinations[i] = locate(x, program, &operands[i], false, bytes);
    if (!count)
        return EXEC_MOVED;
    if (!world->sources[0])
        return read_across(x, program, step, bytes);
    if (!x->op || (step->verb == PLAN_COPY && !x->op->has_scale &&
                   !((step->flags & PLAN_FINISH) && x->op->divisor > 1))) {
        for (int i = 0; i < step->destinations; i++)
            if (world->destinations[i] != world->sources[0])
                kernel_copy(world->destinations[i], world->sources[0], bytes);
        return EXEC_MOVED;
    }
    call = (struct kernel_call){
        .sources = world->sources,
        .destinations = world->destinations,
        .source_count = step->sources,
        .destination_count = step->destinations,
        .count = count,
        .order = step->flags & PLAN_BALANCED ? KERNEL_BALANCED : KERNEL_FOLD,
        .scaled = x->op->has_scale ? raw_source(x, step) : -1,
        .finish = step->flags & PLAN_FINISH,
    };
    kernel_reduce(x->op, &call);
    return EXEC_MOVED;
}

enum exec_state exec_advance(struct execution *x)
{
    bool moved = false;
    bool done = true;

    for (int i = 0; i < x->plan->programs; i++) {
        enum exec_state state;

        if (x->programs[i].done)
            continue;
        state = step_run(x, &x->programs[i]);
        if (state > EXEC_BLOCKED)
            return state;
        moved |= state != EXEC_BLOCKED;
        done &= state == EXEC_DONE;
    }
    if (done)
        return EXEC_DONE;
    return moved ? EXEC_MOVED : EXEC_BLOCKED;
}

void exec_describe(const struct execution *x, char *text, size_t size)
{
    const struct plan *plan = x->plan;

    for (int i = 0; i < plan->programs; i++) {
        const struct exec_program *program = &x->programs[i];
        char step[256];

        if (program->done || program->at >= program->end)
            continue;
        plan_describe_step(plan, &plan->steps[program->at], step, sizeof(step));
        snprintf(text, size, "step %u of %u of %s %s: %s", program->at - program->begin + 1,
                 program->end - program->begin, plan->algorithm,
                 rondo_collective_name(plan->collective), step);
        return;
    }
    snprintf(text, size, "the end of %s %s", plan->algorithm,
             rondo_collective_name(plan->collective));
}
