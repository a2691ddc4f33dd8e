/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * executor.cu - a plan, run by one kernel: a team of blocks for each program.
 *
 * The step loop is the host's, plan/step_loop.h; what it asks for is done here: loads and stores at
 * the scope of the system, data movement as tasks of all workers (block.h), short messages as words
 * that carry their number (execution.h). The counters of the links are in memory of the device and
 * go on from launch to launch, so a launch that was captured in a graph can be replayed.
 *
 * Nothing here waits for ever: about every 50 microseconds the leader looks whether it should stop,
 * and tells the host where it is.
 */
#include "cuda/kernels/peers.h"

#define step_load(p)     lane_load_acquire(p)
#define step_store(p, v) lane_store_release(p, v)
#define step_clear(p)    lane_store_release(p, UINT64_C(0))
#define step_addresses   peer_note

static_assert(sizeof(struct link_slot) == LINK_LINE, "a slot begins with its flag's line");

LANE_FUNCTION const struct plan_step *step_at(const struct execution *x,
                                              const struct exec_program *program)
{
    (void)x, (void)program;
    while (lane_load_block(&block.decoded) == block.done)
        if (!block_has_decoder())
            decode_next();
    return &block.ring[block.done % DECODED].step;
}

LANE_FUNCTION void step_next(const struct execution *x, struct exec_program *program)
{
    (void)x;
    program->at++;
    lane_store_block(&block.done, block.done + 1);
}

/* ---- Short messages -------------------------------------------------------------------------- */

LANE_FUNCTION struct cuda_packed *entry_of(struct link_ll *ll, uint32_t before)
{
    return &reinterpret_cast<struct cuda_ll *>(ll)->entries[before % CUDA_PACKED_ROOM];
}

LANE_FUNCTION struct link_line *step_ll_head(const struct execution *x,
                                                  struct link_ll *ll, uint32_t before,
                                                  unsigned lines)
{
    (void)x, (void)lines;
    return &entry_of(ll, before)->head;
}

LANE_FUNCTION uint32_t step_ll_depth(const struct execution *x, unsigned lines)
{
    (void)x, (void)lines;
    return CUDA_PACKED_ROOM;
}

LANE_FUNCTION bool do_packing(enum cuda_command command, const char *payload,
                              const struct cuda_packed *entry, unsigned words, uint32_t number)
{
    block.task.command = command;
    block.task.blocks = 1;
    block.task.number = number;
    block.task.count = words;
    block.task.operands[0] = reinterpret_cast<uint64_t>(payload);
    block.task.operands[1] = reinterpret_cast<uint64_t>(entry);
    return block_do_task();
}

/*
 * The words need no order among each other, nor to the flag. An empty message is there to order
 * other memory, and where buffers of peers are used, any may be: there the flag comes last.
 */
LANE_FUNCTION void step_write_ll(const struct execution *x, const struct link_out *out,
                                      unsigned words, uint64_t flag)
{
    (void)x;
    struct cuda_packed *entry = entry_of(out->ll, out->sent);

    if (out->fill != out->packed && !block.plan.address_messages)
        lane_store_relaxed(&entry->head.flag, flag);
    do_packing(CUDA_PACK, out->packed, entry, words, (uint32_t)flag);
    if (out->fill == out->packed || block.plan.address_messages)
        lane_store_release(&entry->head.flag, flag);
}

LANE_FUNCTION bool step_read_ll(const struct execution *x, const struct link_in *in,
                                     unsigned words, uint64_t flag)
{
    (void)x;
    return do_packing(CUDA_UNPACK, in->packed, entry_of(in->ll, in->received), words,
                      (uint32_t)flag);
}

/* ---- What else the step loop asks for -------------------------------------------------------- */

LANE_FUNCTION struct cuda_status *status_of(uint32_t program)
{
    return reinterpret_cast<struct cuda_status *>(block.argument.status) + program;
}

LANE_FUNCTION bool is_held(void)
{
    return lane_load_acquire(&reinterpret_cast<struct cuda_halt *>(block.argument.halt)->hold);
}

LANE_FUNCTION enum exec_state step_enter(struct execution *x)
{
    lane_store_relaxed(&status_of(block.program)->inside, (uint32_t)1);
    /* Pairs with the fence in cuda_devcomm_hold(): either this sees that it is held, or the host
     * sees it inside. */
    lane_fence();
    peers_resolve(x);
    if (is_held())
        return EXEC_LEFT;
    return x->unreachable ? EXEC_FALLBACK : EXEC_MOVED;
}

/* The host looks after ranks that leave: comm/gpu/leave.c. */

LANE_FUNCTION bool step_holds(const struct execution *x)
{
    (void)x;
    return true;
}

LANE_FUNCTION void step_return(const struct link_in *in)
{
    (void)in;
}

LANE_FUNCTION void step_fetch_ahead(const struct execution *x, const struct link_out *out)
{
    (void)x, (void)out;
}

LANE_FUNCTION void step_push(const struct link_out *out, const struct link_slot *slot,
                             const char *base, uint64_t flag);
LANE_FUNCTION void step_sweep_ll(const struct execution *x, const struct link_out *out);
LANE_CALLED enum exec_state step_combine(struct execution *x, const struct exec_program *program,
                                           const struct plan_step *step);

#include "plan/step_slots.h"

#include "plan/step_loop.h"

/* A message of another form fills the words that it does not use: see execution.h on numbers. */
LANE_FUNCTION void step_push(const struct link_out *out, const struct link_slot *slot,
                             const char *base, uint64_t flag)
{
    (void)slot, (void)base;
    if (out->ll && ((uint32_t)flag & CUDA_NUMBERS_FRESH) < CUDA_PACKED_ROOM &&
        !(block.x.shape.lines > 1 && step_packs(step_at(&block.x, NULL), out->ll)))
        do_packing(CUDA_PACK, out->packed, entry_of(out->ll, out->sent), 0, (uint32_t)flag);
}

/* The words behind a flag have numbers of their own, which are kept fresh: step_push(). */
LANE_FUNCTION void step_sweep_ll(const struct execution *x, const struct link_out *out)
{
    (void)x;
    for (uint32_t i = 0; i < CUDA_PACKED_ROOM; i++)
        step_sweep_flag(out, &entry_of(out->ll, i)->head);
}

/* The address of an operand, of which the slots move on by `bytes`. */
LANE_FUNCTION uint64_t find(struct execution *x, const struct decoded_operand *operand,
                            bool is_source, uint64_t bytes)
{
    char **piece;
    uint64_t at;

    switch (operand->place) {
    case PLACE_FOUND:
        return operand->at;
    case PLACE_PEER_INPUT:
        return reinterpret_cast<uint64_t>(x->world->peers[operand->index].input) + operand->at;
    case PLACE_PEER_OUTPUT:
        return reinterpret_cast<uint64_t>(x->world->peers[operand->index].output) + operand->at;
    default:
        piece = is_source ? &x->world->in[operand->index].take
                          : &x->world->out[operand->index].fill;
        at = reinterpret_cast<uint64_t>(*piece);
        *piece += bytes;
        return at;
    }
}

LANE_CALLED enum exec_state step_combine(struct execution *x, const struct exec_program *program,
                                           const struct plan_step *step)
{
    const struct decoded *decoded = &block.ring[block.done % DECODED];
    struct cuda_task *task = &block.task;
    uint64_t bytes = decoded->count * x->shape.element;
    bool copies = only_copies(x, step);

    (void)program;
    for (int i = 0; i < step->sources + step->destinations; i++)
        task->operands[i] = find(x, &decoded->operands[i], i < step->sources, bytes);
    if (!decoded->count || (copies && step->destinations == 1 &&
                            task->operands[0] == task->operands[1]))
        return EXEC_MOVED;
    task->command = copies ? CUDA_COPY : CUDA_COMBINE;
    task->blocks = bytes > block.argument.alone ? block.argument.blocks : 1;
    task->kind = block.argument.kind;
    task->sources = step->sources;
    task->destinations = step->destinations;
    task->count = copies ? bytes : decoded->count;
    task->arithmetic = block.argument.arithmetic;
    task->arithmetic.order = step->flags & PLAN_BALANCED ? KERNEL_BALANCED : KERNEL_FOLD;
    task->arithmetic.scaled = decoded->scaled;
    task->arithmetic.divisor = step->flags & PLAN_FINISH && x->op ? x->op->divisor : 0;
    block_do_task();
    return EXEC_MOVED;
}

/* ---- The launch ------------------------------------------------------------------------------ */

/* True if the awaited message has come in another form, so from another call. */
LANE_FUNCTION bool has_unexpected(struct execution *x)
{
    const struct plan_step *step = step_at(x, NULL);
    const struct link_in *in;
    uint64_t flag;

    if (step->verb != PLAN_WAIT || step->event != PLAN_DATA)
        return false;
    in = &x->world->in[step->channel * x->world->size + step->peer];
    if (!in->ll)
        return false;
    flag = step_load(&step_in_head(x, in, !x->shape.lines)->flag);
    if (!flag || (uint32_t)flag != in->received + 1)
        return false;
    x->foreign = (uint32_t)(flag >> 32);
    return true;
}

LANE_FUNCTION bool is_stopped(void)
{
    return lane_load_acquire(&reinterpret_cast<struct cuda_halt *>(block.argument.halt)->stop);
}

/* From time to time: tell where the program is; should it go on? */
LANE_CALLED enum exec_state look_up(struct execution *x, const struct exec_program *program)
{
    struct cuda_status *status = status_of(block.program);

    lane_store_relaxed(&status->segment, (uint64_t)program->start);
    lane_store_relaxed(&status->blamed, (uint32_t)x->blamed);
    lane_store_release(&status->step, program->at);
    if (is_stopped())
        return EXEC_FAILED;
    if (is_held())
        return EXEC_LEFT;
    return has_unexpected(x) ? EXEC_MISMATCH : EXEC_BLOCKED;
}

/* A message of another call has come: later launches say something else, so this is kept, and they
 * end. */
LANE_CALLED void halt(const struct cuda_status *status)
{
    struct cuda_halt *halt = reinterpret_cast<struct cuda_halt *>(block.argument.halt);

    halt->program = block.program;
    halt->failed.step = status->step;
    halt->failed.blamed = status->blamed;
    halt->failed.foreign = status->foreign;
    lane_store_release(&halt->failed.state, (uint32_t)EXEC_MISMATCH);
    lane_store_release(&halt->stop, (uint32_t)1);
}

/* Nothing of peers is touched any more, from here on to the end, for which the host has its time:
 * this rank's caller hears of the end. */
LANE_CALLED enum exec_state stay_outside(struct cuda_status *status)
{
    lane_store_release(&status->inside, (uint32_t)0);
    while (!is_stopped())
        __nanosleep(LOOK_ENDED_NS);
    return EXEC_FAILED;
}

/* Have the host find out why a peer's memory cannot be reached, if it looks for that. */
LANE_CALLED enum exec_state give_up(struct cuda_status *status)
{
    if (!block.argument.error)
        return EXEC_FALLBACK;
    lane_store_release(reinterpret_cast<uint32_t *>(block.argument.error),
                       CUDA_CALL_BAD_PEER | (uint32_t)block.x.blamed);
    return stay_outside(status);
}

LANE_FUNCTION void lead(void)
{
    struct exec_program *program = &block.x.programs[block.program];
    struct cuda_status *status = status_of(block.program);
    uint64_t looked = lane_clock();
    enum exec_state state;

    lane_store_release(&status->state, (uint32_t)EXEC_BLOCKED);
    do {
        state = step_run(&block.x, program);
        if (state == EXEC_BLOCKED)
            __nanosleep(LOOK_FLAGS_NS);
        if ((state == EXEC_BLOCKED || state == EXEC_MOVED) &&
            lane_clock() - looked > LOOK_STOP_NS) {
            state = look_up(&block.x, program);
            looked = lane_clock();
        }
    } while (state == EXEC_BLOCKED || state == EXEC_MOVED);
    if (state == EXEC_LEFT)
        state = stay_outside(status);
    if (state == EXEC_FALLBACK)
        state = give_up(status);
    lane_store_relaxed(&status->segment, (uint64_t)program->start);
    lane_store_relaxed(&status->step, program->at);
    lane_store_relaxed(&status->blamed, (uint32_t)block.x.blamed);
    lane_store_relaxed(&status->foreign, block.x.foreign);
    lane_store_release(&status->inside, (uint32_t)0);
    /* Release, pairs with the host's acquire: what is said beside it is there. */
    lane_store_release(&status->state, (uint32_t)state);
    if (state == EXEC_MISMATCH)
        halt(status);
    block_dismiss();
}

/* True if link `i` is one that this program keeps in shared memory. Others belong to other
 * programs. */
LANE_FUNCTION bool is_near(const uint64_t *used, unsigned i)
{
    return i < CUDA_LINKS_NEAR && used[block.program] >> i & 1;
}

/* The links that this program uses; at the end they go on in the next launch. */
LANE_FUNCTION void take_links(const struct exec_world *world)
{
    for (unsigned i = threadIdx.x; i < CUDA_LINKS_NEAR; i += blockDim.x) {
        if (is_near(block.argument.out_used, i))
            block.out[i] = world->out[i];
        if (is_near(block.argument.in_used, i))
            block.in[i] = world->in[i];
    }
}

LANE_FUNCTION void keep_links(const struct exec_world *world)
{
    for (unsigned i = threadIdx.x; i < CUDA_LINKS_NEAR; i += blockDim.x) {
        if (is_near(block.argument.out_used, i))
            world->out[i] = block.out[i];
        if (is_near(block.argument.in_used, i))
            world->in[i] = block.in[i];
    }
}

/* The block's copy of what is read often. */
LANE_FUNCTION void set_up(const struct cuda_execute_argument &argument)
{
    block_copy(&block.argument, &argument, sizeof(argument));
    block_copy(&block.x, &argument.execution, sizeof(block.x));
    block_copy(&block.world, argument.execution.world, sizeof(block.world));
    block_copy(&block.plan, argument.execution.plan, sizeof(block.plan));
    __syncthreads();
    if (threadIdx.x == 0) {
        block.program = blockIdx.x / argument.blocks;
        block.workers = blockDim.x > (unsigned)warpSize ? blockDim.x - warpSize : blockDim.x;
        block.world.scratch = reinterpret_cast<char *>(argument.scratch);
        if (block.world.size * PLAN_CHANNELS <= CUDA_LINKS_NEAR) {
            block.world.out = block.out;
            block.world.in = block.in;
        }
        block.x.plan = &block.plan;
        block.x.world = &block.world;
        block.x.op = argument.execution.op ? &block.argument.op : NULL;
        block.x.awaited = argument.awaited[block.program];
        block.ahead = block.x.programs[block.program];
        block.decoded = block.done = block.over = block.heard = 0;
    }
    __syncthreads();
}

CUDA_KERNEL(rondo_execute, struct cuda_execute_argument, argument)
{
    set_up(argument);
    if (block_member()) {
        team_help();
        return;
    }
    take_links(argument.execution.world);
    __syncthreads();
    if (threadIdx.x == 0)
        lead();
    else if (threadIdx.x < block.workers)
        block_work();
    else if (threadIdx.x == block.workers)
        decode_all();
    __syncthreads();
    keep_links(argument.execution.world);
}
