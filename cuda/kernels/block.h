/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * block.h - what the lanes of an executor's block share, and how they take turns.
 *
 *     decoder   reads steps and operands of the plan ahead of the leader, and works out lengths and
 *               offsets, into a ring of decoded steps; a lane of a warp that does nothing else
 *     leader    lane 0: waits and signals, knows the links, gives out tasks
 *     workers   all lanes but the decoder's warp, the leader among them: do the tasks
 *
 * A block of one lane does all three in turn. Between tasks the workers are at a barrier; another
 * one ends the task.
 */
#ifndef RONDO_CUDA_KERNELS_BLOCK_H
#define RONDO_CUDA_KERNELS_BLOCK_H

#include "cuda/kernels/operand.h"
#include "cuda/kernels/task.h"

#define STEP_FUNCTION LANE_FUNCTION
#include "plan/pieces.h"

enum { DECODED = 4 }; /* steps that the decoder is ahead */

/* An operand as far as it is known ahead. */
enum place { PLACE_FOUND, PLACE_SLOT, PLACE_PEER_INPUT, PLACE_PEER_OUTPUT };
struct decoded_operand {
    uint64_t at;    /* address; of a peer's buffer: bytes from its beginning */
    uint32_t place; /* enum place */
    uint32_t index; /* of the link, or the rank */
};

struct decoded {
    struct plan_step step;
    int32_t scaled; /* which source is raw input, -1: none */
    uint64_t count; /* elements */
    struct decoded_operand operands[CUDA_OPERANDS_MAX];
};

struct block {
    struct execution x;
    struct exec_world world;
    struct plan plan;
    struct cuda_execute_argument argument;
    struct exec_program ahead; /* where the decoder is */
    struct decoded ring[DECODED];
    uint32_t decoded, done; /* steps; the decoder's and the leader's */
    uint32_t over;          /* the leader has ended */
    uint32_t again;         /* a lane could not do its part of the task */
    uint32_t workers, program;
    uint32_t heard; /* bits of the peers that have said where their buffers are */
    struct link_addresses said[CUDA_PEERS_NEAR];
    struct cuda_task task;
    struct link_out out[CUDA_LINKS_NEAR];
    struct link_in in[CUDA_LINKS_NEAR];
};

#ifdef __CUDACC__
static __shared__ struct block block;
#else
static thread_local struct block block;
#endif

/* By all lanes of the block, in words. */
LANE_FUNCTION void block_copy(void *to, const void *from, size_t bytes)
{
    for (size_t i = threadIdx.x; i < bytes / sizeof(uint32_t); i += blockDim.x)
        static_cast<uint32_t *>(to)[i] = static_cast<const uint32_t *>(from)[i];
}

LANE_FUNCTION bool block_has_decoder(void)
{
    return block.workers < blockDim.x;
}

/* ---- Decoding -------------------------------------------------------------------------------- */

LANE_FUNCTION void decode_operand(const struct execution *x, const struct exec_program *program,
                                  const struct plan_operand *operand, struct decoded_operand *out)
{
    bool is_input = operand->buffer == PLAN_INPUT;

    if (operand->buffer == PLAN_SLOT) {
        out->place = PLACE_SLOT;
        out->index =
            (uint32_t)operand->channel * (uint32_t)x->world->size + (uint32_t)operand->rank;
    } else if (operand->buffer == PLAN_SCRATCH) {
        out->place = PLACE_FOUND;
        out->at = reinterpret_cast<uint64_t>(x->world->scratch) +
                  (operand->block * x->shape.segment + atom_start(x, program, operand->first)) *
                      x->shape.element;
    } else {
        out->at = user_offset(x, program, operand);
        if (operand->rank == x->plan->rank) {
            out->place = PLACE_FOUND;
            out->at += reinterpret_cast<uint64_t>(is_input ? x->input : x->output);
        } else {
            out->place = is_input ? PLACE_PEER_INPUT : PLACE_PEER_OUTPUT;
            out->index = (uint32_t)operand->rank;
        }
    }
}

/* One step further; there must be room in the ring, and a step left. */
LANE_CALLED void decode_next(void)
{
    const struct execution *x = &block.x;
    struct exec_program *program = &block.ahead;
    struct decoded *decoded = &block.ring[block.decoded % DECODED];
    const struct plan_step *step = &decoded->step;

    decoded->step = x->plan->steps[program->at];
    if (step->verb == PLAN_COPY || step->verb == PLAN_REDUCE) {
        decoded->count = step_elements(x, program, step);
        decoded->scaled = x->op && x->op->has_scale ? raw_source(x, step) : -1;
        for (int i = 0; i < step->sources + step->destinations; i++)
            decode_operand(x, program, &plan_sources(x->plan, step)[i], &decoded->operands[i]);
    }
    program->at++;
    if (program->at < program->end) {
    } else if (x->shape.count - program->start <= x->shape.segment) {
        program->done = true;
    } else {
        exec_open_segment(x, program, program->start + x->shape.segment);
    }
    lane_store_block(&block.decoded, block.decoded + 1);
}

/* The decoder's life. */
LANE_FUNCTION void decode_all(void)
{
    while (!block.ahead.done) {
        while (block.decoded - lane_load_block(&block.done) == DECODED)
            if (lane_load_block(&block.over))
                return;
        decode_next();
    }
}

/* ---- Tasks ----------------------------------------------------------------------------------- */

LANE_FUNCTION struct cuda_team *block_team(void)
{
    return reinterpret_cast<struct cuda_team *>(block.argument.teams) + block.program;
}

LANE_FUNCTION unsigned block_member(void)
{
    return blockIdx.x % block.argument.blocks;
}

/* This lane's part of the task that all know by now. */
LANE_CALLED void block_do_part(void)
{
    struct lane_id lane_id = {(uint64_t)block_member() * block.workers + threadIdx.x,
                              (uint64_t)block.task.blocks * block.workers};

    if (!task_do(&block.task, lane_id))
        lane_store_block(&block.again, 1);
}

/* Leader: the other blocks begin, too. */
LANE_FUNCTION void team_post(void)
{
    struct cuda_team *team = block_team();

    team->task.command = block.task.command;
    team->task.blocks = block.task.blocks;
    team->task.kind = block.task.kind;
    team->task.sources = block.task.sources;
    team->task.destinations = block.task.destinations;
    team->task.number = block.task.number;
    team->task.count = block.task.count;
    team->task.arithmetic = block.task.arithmetic;
    if (block.task.command != CUDA_QUIT)
        for (int i = 0; i < block.task.sources + block.task.destinations; i++)
            team->task.operands[i] = block.task.operands[i];
    /* Release, pairs with the acquire in team_await(): who sees the number sees the task. */
    lane_store_device(&team->posted, team->posted + 1);
}

/* Leader: until all others are through with what was posted. */
LANE_FUNCTION void team_gather(void)
{
    struct cuda_team *team = block_team();
    uint32_t all = team->posted * (block.argument.blocks - 1);

    /* Acquire, pairs with the release of helpers: what they wrote is there. */
    while (lane_load_device(&team->done) != all)
        __nanosleep(LOOK_FLAGS_NS);
}

/* Leader: let all workers do block.task. False: some lane could not. */
LANE_CALLED bool block_do_task(void)
{
    bool shared = block.task.blocks > 1;

    block.again = 0;
    if (shared)
        team_post();
    lane_barrier(block.workers);
    block_do_part();
    lane_barrier(block.workers);
    if (shared)
        team_gather();
    return !block.again;
}

/* The life of a worker in the leader's block. */
LANE_FUNCTION void block_work(void)
{
    for (;;) {
        lane_barrier(block.workers);
        if (block.task.command == CUDA_QUIT)
            return;
        block_do_part();
        lane_barrier(block.workers);
    }
}

/* Leader: that was all. */
LANE_FUNCTION void block_dismiss(void)
{
    lane_store_block(&block.over, 1);
    block.task.command = CUDA_QUIT;
    if (block.argument.blocks > 1) {
        team_post();
        team_gather();
        block_team()->posted = 0;
        block_team()->done = 0;
    }
    lane_barrier(block.workers);
}

/* The life of another block of the team: all of its lanes. */
LANE_CALLED void team_help(void)
{
    struct cuda_team *team = block_team();
    uint32_t seen = 0;

    for (;;) {
        if (threadIdx.x == 0)
            while (lane_load_device(&team->posted) == seen)
                __nanosleep(LOOK_FLAGS_NS);
        seen++;
        __syncthreads();
        block_copy(&block.task, &team->task, sizeof(block.task));
        __syncthreads();
        if (block.task.command != CUDA_QUIT && threadIdx.x < block.workers)
            block_do_part();
        __syncthreads();
        /* Release, pairs with the acquire in team_gather(). */
        if (threadIdx.x == 0)
            lane_count_device(&team->done);
        if (block.task.command == CUDA_QUIT)
            return;
    }
}

#endif
