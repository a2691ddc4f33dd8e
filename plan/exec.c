/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec.c - the host executor: step_loop.h on the calling thread, data moved by kernels/.
 *
 * Read step_loop.h and step_slots.h first, then move.c, which says what a copy or reduce step does
 * to memory.
 */
#include "plan/exec.h"

#include "base/caller/float_mode.h"
#include "base/collective.h"
#include "base/fail.h"
#include "base/range.h"
#include "base/relax.h"
#include "base/trace/trace.h"
#include "plan/zcopy.h"
#include "plan/move.h"
#include "plan/ll.h"
#include "transport/link/connection.h"

#include <stdio.h>

#define STEP_FUNCTION static inline
#include "plan/pieces.h"

#define step_load(p)     atomic_load_explicit(p, memory_order_acquire)
#define step_store(p, v) atomic_store_explicit(p, v, memory_order_release)
#define step_clear(p)    atomic_store_explicit(p, 0, memory_order_relaxed)

static inline void push(struct link_out *out, struct link_slot *slot, const char *payload,
                        uint64_t flag)
{
    connection_push(out->connection, slot, out->zcopy ? out->zcopy : payload,
                    (size_t)(out->fill - payload), flag);
    out->zcopy = NULL;
}
/* On shared memory a published slot is already where it belongs. */
#define step_push(out, slot, payload, flag) \
    ((out)->connection ? push(out, slot, payload, flag) : (void)0)

static inline void step_return(const struct link_in *in)
{
    connection_give_back(in->connection, in->received);
}

/* The alarm is a line of this rank's own, so asking costs a load from the cache. */
static inline bool is_left(const struct execution *x)
{
    const _Atomic uint32_t *alarm = x->world->alarm;

    return alarm && atomic_load_explicit(alarm, memory_order_acquire) && x->world->ops->is_left(x);
}

/* The count is of executions of this rank, so no other thread changes it meanwhile. Release, pairs
 * with the acquire in leave_done(): what was touched before is not touched any more. */
static void count_inside(const struct execution *x, int more)
{
    LINK_ATOMIC(uint32_t) *inside = x->world->inside;
    uint32_t count = atomic_load_explicit(inside, memory_order_relaxed);

    atomic_store_explicit(inside, count + (uint32_t)more, memory_order_release);
}

static enum exec_state step_enter(struct execution *x)
{
    if (!x->world->inside)
        return EXEC_MOVED;
    x->entered = true;
    count_inside(x, 1);
    /* Pairs with the fence in leave_done(): either this rank sees the alarm of one that has left,
     * or that one sees it inside, and waits. */
    atomic_thread_fence(memory_order_seq_cst);
    return is_left(x) ? EXEC_LEFT : EXEC_MOVED;
}

static inline bool step_holds(const struct execution *x)
{
    /* Reads of peers' memory end before the look at the alarm: a rank that has left rang it before
     * its caller could write there. */
    atomic_thread_fence(memory_order_acquire);
    return !is_left(x);
}

/* Nothing of peers is touched any more. */
static void go_outside(struct execution *x)
{
    x->entered = false;
    count_inside(x, -1);
}

static void step_addresses(struct execution *x, int peer, const struct link_addresses *said);

#define step_combine move_step
#include "plan/step_slots.h"

#include "plan/step_loop.h"

/* Goes on to the next step, and notes in the trace that this one has ended, if it took time: it
 * moved data, or was waited for. */
static inline void note_and_next(const struct execution *x, struct exec_program *program)
{
    const struct plan_step *step = step_at(x, program);
    bool moves = step->verb == PLAN_COPY || step->verb == PLAN_REDUCE;

    if (moves || program->blocked == program->at + 1) {
        trace_add(x->world->trace,
                  (struct trace_event){
                      .kind = TRACE_STEP,
                      .when = clock_nanoseconds(),
                      .call = x->traced,
                      .program = (uint8_t)(program - x->programs),
                      .verb = step->verb,
                      .event = step->event,
                      .step = (uint16_t)program->at,
                      .peer = moves ? -1 : step->peer,
                      .of.bytes = moves ? step_elements(x, program, step) * x->shape.element : 0});
        program->blocked = 0;
    }
    program->at++;
}

/* This is the same loop, for executions that are traced. */
#undef step_next
#define step_next note_and_next
#define step_run  step_run_noting
#include "plan/step_loop.h"
#undef step_run

static enum exec_state step_run_traced(struct execution *x, struct exec_program *program)
{
    enum exec_state state = step_run_noting(x, program);

    program->blocked = program->at + 1;
    return state;
}

enum {
    /* Chunks begin on cache lines, so that no two ranks write the same one. */
    GRAIN_BYTES = 64,
    /* Messages shorter than a slot use so many bytes of it in turn, divided by the ranks: lines
     * that have left a second cache are handed over faster, those that fit no cache slower. */
    SPREAD = 256 << 10,
    PLACE_ALIGN = 256, /* bytes */
    /* A message that its receiver reads where it is, is read in pieces of so many bytes: after each
     * both ranks see that it moves, and other threads get their turn. */
    READ_MOST = 64 << 20,
};

/* Computes how many places of a slot messages of up to `longest` bytes use in turn. */
static void spread(struct exec_shape *shape, size_t longest, size_t slot_bytes, int size)
{
    size_t room = SPREAD / (size_t)size < slot_bytes ? SPREAD / (size_t)size : slot_bytes;
    uint32_t places = 1;

    shape->place = (longest + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN;
    while (longest >= PAST_CACHE_FROM && shape->place * places * 2 <= room)
        places *= 2;
    shape->last_place = places - 1;
}

rondo_result exec_shape_plan(const struct plan *plan, size_t count, size_t element,
                             size_t slot_bytes, struct exec_shape *ret_shape)
{
    struct exec_shape shape = {.count = count, .element = element, .segment = count};
    size_t longest = 0, grains;

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
        if (atom <= count / plan->parts) /* else the whole count fits one segment; no overflow */
            shape.segment = atom * plan->parts;
        longest = range_start(shape.segment, shape.grain, plan->parts, 1);
    } else if (collective_is_pair(plan->collective) && count > READ_MOST / element) {
        shape.segment = READ_MOST / element;
    }
    grains = (shape.segment + shape.grain - 1) / shape.grain;
    shape.each = grains / plan->parts;
    shape.rest = grains % plan->parts;
    longest *= plan->message_atoms * element;
    shape.longest = longest;
    spread(&shape, longest, slot_bytes, plan->size);
    if (longest <= LINK_PACKED)
        shape.lines = longest ? (unsigned)((longest + LINK_INLINE - 1) / LINK_INLINE) : 1;
    *ret_shape = shape;
    return RONDO_OK;
}

void exec_shape_in_parts(struct exec_shape *shape, size_t slot_bytes, uint32_t parts)
{
    if (shape->lines || shape->longest > LINK_PART || parts < 2 || parts * LINK_PART > slot_bytes)
        return;
    shape->parted = true;
    shape->lines = 1;
    shape->place = LINK_PART;
    shape->last_place = parts - 1;
}

size_t exec_scratch_bytes(const struct plan *plan, const struct exec_shape *shape)
{
    return plan->scratch_blocks * shape->segment * shape->element;
}

void exec_start(struct execution *x)
{
    const struct plan *plan = x->plan;

    x->awaited = plan->address_messages;
    x->entered = x->our_mode = false;
    x->zcopies = x->shape.longest >= ZCOPY_FROM && x->world->zcopies;
    for (int i = 0; i < plan->programs; i++) {
        struct exec_program *program = &x->programs[i];

        program->begin = plan->program[i].begin;
        program->end = plan->program[i].end;
        program->done = program->expects = false;
        program->blocked = 0;
        program->blamed = plan->rank;
        exec_open_segment(x, program, 0);
    }
}

/* Turn the addresses in a peer's message into pointers; the lengths to check against are our
 * own. */
static void step_addresses(struct execution *x, int peer, const struct link_addresses *said)
{
    const struct plan *plan = x->plan;
    rondo_collective other = plan->collective == RONDO_RECV ? RONDO_SEND : plan->collective;
    size_t block = x->shape.count * x->shape.element;
    size_t inputs = (size_t)plan_input_blocks(other, plan->size, peer, plan->root);
    size_t outputs = (size_t)plan_output_blocks(other, plan->size, peer, plan->root);
    const size_t bytes[2] = {inputs * block, outputs * block};
    struct exec_peer *at = exec_peer(x, peer);

    x->world->ops->resolve(x->world, peer, said, bytes, at);
    if (other != plan->collective && peer == plan->rank) /* a message to oneself */
        x->input = at->input;
    /* What is reduced must be mapped, not only readable. */
    if (bytes[0] && !at->input && (x->op || !at->remote_input))
        x->unreachable = true;
    if (bytes[1] && !at->output && x->op)
        x->unreachable = true;
}

enum exec_state exec_advance(struct execution *x)
{
    bool moved = false;
    bool done = true;

    for (int i = 0; i < x->plan->programs; i++) {
        enum exec_state state;

        if (x->programs[i].done)
            continue;
        state = x->world->trace && trace_has_ring(x->world->trace)
                    ? step_run_traced(x, &x->programs[i])
                    : step_run(x, &x->programs[i]);
        if (x->zcopies && !x->programs[i].done &&
            !(x->programs[i].expects && state == EXEC_BLOCKED)) {
            zcopy_post(x, &x->programs[i]);
            x->programs[i].expects = true;
        }
        x->programs[i].blamed = x->blamed;
        if (state > EXEC_BLOCKED)
            return state;
        moved |= state != EXEC_BLOCKED;
        done &= state == EXEC_DONE;
    }
    if (!done) {
        /* Looking takes some 20 cycles, which cost nothing now that there is to wait. */
        x->our_mode = float_mode_is_ours(float_mode());
        return moved ? EXEC_MOVED : EXEC_BLOCKED;
    }
    if (x->entered)
        go_outside(x);
    return EXEC_DONE;
}

/* The link from which the program waits for a message; NULL: it doesn't. */
static const struct link_in *awaited_link(const struct execution *x,
                                          const struct exec_program *program)
{
    const struct plan_step *step = &x->plan->steps[program->at];

    if (program->done || step->verb != PLAN_WAIT || step->event != PLAN_DATA)
        return NULL;
    return &x->world->in[step->channel * x->world->size + step->peer];
}

bool exec_poll(const struct execution *x, int looks)
{
    enum { LOOKS_PER_RELAX = 8 };
    const struct link_line *heads[PLAN_PROGRAMS_MAX];
    uint32_t numbers[PLAN_PROGRAMS_MAX];
    int count = 0;

    for (int i = 0; i < x->plan->programs; i++) {
        const struct link_in *in = awaited_link(x, &x->programs[i]);

        if (!in)
            continue;
        heads[count] = step_in_head(x, in, x->shape.lines);
        numbers[count++] = in->received + 1;
    }
    if (!count && x->shape.lines == 1) {
        for (int i = 0; i < looks; i += LOOKS_PER_RELAX)
            relax();
        return true;
    }
    for (; looks > 0 && count; looks--)
        for (int i = 0; i < count; i++)
            if ((uint32_t)step_load(&heads[i]->flag) == numbers[i])
                return true;
    return false;
}

/* True if the next message of a link has come, in the form of so many lines. */
static bool has_come(const struct execution *x, const struct link_in *in, unsigned lines,
                     uint32_t *ret_fingerprint)
{
    const struct link_line *head = step_in_head(x, in, lines);
    uint64_t flag = step_load(&head->flag);

    *ret_fingerprint = (uint32_t)(flag >> 32);
    return flag && (uint32_t)flag == in->received + 1;
}

bool exec_has_unexpected(struct execution *x)
{
    for (int i = 0; i < x->plan->programs; i++) {
        const struct link_in *in = awaited_link(x, &x->programs[i]);

        for (unsigned lines = 0; in && lines <= 2; lines++) {
            bool awaited = lines == (x->shape.lines > 2 ? 2 : x->shape.lines);

            if (awaited || !has_come(x, in, lines, &x->foreign))
                continue;
            x->blamed = x->plan->steps[x->programs[i].at].peer;
            return in->ll;
        }
    }
    return false;
}

bool exec_unexpected(const struct execution *x, unsigned channels)
{
    uint32_t fingerprint;

    for (int channel = 0; channels >> channel; channel++)
        for (int peer = 0; peer < x->world->size && channels >> channel & 1; peer++)
            if (peer != x->plan->rank && has_come(x, &x->world->in[channel * x->world->size + peer],
                                                  x->shape.lines, &fingerprint))
                return true;
    return false;
}

/* Messages on the same link in the steps from `begin` up to `at`. */
static uint32_t sent_before(const struct plan *plan, uint32_t begin, uint32_t at)
{
    const struct plan_step *last = &plan->steps[at];
    uint32_t count = 0;

    for (uint32_t i = begin; i < at; i++) {
        const struct plan_step *step = &plan->steps[i];

        count += step->verb == PLAN_WAIT && step->event == PLAN_CREDIT &&
                 step->peer == last->peer && step->channel == last->channel;
    }
    return count;
}

static bool program_sends_first(const struct execution *x, const struct plan_program *program)
{
    const struct plan *plan = x->plan;
    bool waited = false;

    for (uint32_t i = program->begin; i < program->end; i++) {
        const struct plan_step *step = &plan->steps[i];
        bool credit = step->verb == PLAN_WAIT && step->event == PLAN_CREDIT;

        waited |= step->verb == PLAN_WAIT && !credit;
        if (credit && (waited || !step_has_room(
                                     x, &x->world->out[step->channel * x->world->size + step->peer],
                                     sent_before(plan, program->begin, i))))
            return false;
    }
    return true;
}

bool exec_sends_first(const struct execution *x)
{
    enum { STEPS = 1024 }; /* going through more of them takes too long for a short call */
    const struct plan *plan = x->plan;

    if (plan_reaches(plan) || plan->step_count > STEPS || x->shape.segment < x->shape.count)
        return false;
    for (int i = 0; i < plan->programs; i++)
        if (!program_sends_first(x, &plan->program[i]))
            return false;
    return true;
}

unsigned exec_deaf_channels(const struct plan *plan)
{
    unsigned channels = 0;

    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct plan_step *step = &plan->steps[i];

        if (step->verb == PLAN_WAIT && step->event == PLAN_DATA)
            return 0;
        if (step->verb == PLAN_SIGNAL && step->event == PLAN_DATA)
            channels |= 1U << step->channel;
    }
    return channels;
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
