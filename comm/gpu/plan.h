/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.h - a call that is being queued as work on a CUDA stream; between gpu/plan.c, for
 * collectives, and gpu/pair.c, for messages between two ranks. */
#ifndef RONDO_COMM_GPU_PLAN_H
#define RONDO_COMM_GPU_PLAN_H

#include "comm/gpu/arena.h"
#include "comm/gpu/ops.h"
#include "cuda/copies.h"
#include "cuda/reduce.h"

/* Blocks of a user's buffer, and what of each a piece of the call works on; in bytes. */
struct gpu_buffer {
    const void *user;
    size_t blocks, pitch; /* as the user has them: bytes from each to the next */
    size_t start, length; /* of the piece, in each block */
    CUdeviceptr at; /* of the piece in the first block; the user's, or what stands in for it */
    size_t stride;  /* from there to that in the next block */
    uint64_t word;  /* what peers are told: where that is */
    bool replaced;
};

struct gpu_run {
    struct gpu_plans *plans;
    const struct plan *plan;   /* NULL: a message between two ranks */
    struct gpu_flight *flight; /* NULL: it goes into a graph */
    struct exec_shape shape;   /* of the piece of the call at hand, */
    size_t start;              /* the element of each block at which that piece begins */
    struct kernel_op op;
    uint32_t fingerprint;
    int replaced;    /* buffers of messages so far */
    size_t reserved; /* bytes of the reserve that stand in for buffers of this call */
    struct gpu_buffer input, output;
    struct gpu_ops ops;
    struct {
        unsigned count;
        struct cuda_copies_item items[CUDA_COPIES_MAX];
    } copies; /* to be queued together */
};

/* ---- gpu/plan.c ---- */

enum { GPU_STEP_NONE = 0xffff };
/* Write into the progress that the call's stream waits at this step, or task, from now on; or that
 * it does not wait. What comes after a wait says so first: a peer that is through with this call
 * may begin the next one, and its mail must not be taken for one that is out of place here. */
void gpu_note_step(struct gpu_run *run, uint32_t step);
void gpu_await_empty(struct gpu_run *run, int peer, int lane);
void gpu_publish(struct gpu_run *run, int peer, int lane, bool addresses);
void gpu_await_mail(struct gpu_run *run, int peer, int lane);
void gpu_empty(struct gpu_run *run, int peer, int lane);
/* A copy: after the operations so far, before anything that
 * peers are told, and in no order to other copies. */
void gpu_copy(struct gpu_run *run, const struct cuda_operand *from, const struct cuda_operand *to,
              size_t bytes);
/* Queue the copies, if there are any. */
void gpu_copies_flush(struct gpu_run *run);
/* A kernel, after the operations and copies so far. */
void gpu_move(struct gpu_run *run, const struct cuda_reduce_call *call);
/* A call that is going to be queued; its buffers are still to be placed. */
rondo_result gpu_run_open(struct gpu_plans *plans, const struct task *task, const struct plan *plan,
                          CUstream stream, struct gpu_run *run);
/* The end of a call: its number is the last one that ended. */
void gpu_run_close(struct gpu_run *run);

/* ---- gpu/buffer.c ---- */

/* Into pieces of how many elements of each block is the call cut? The same answer on every rank. */
size_t gpu_piece_count(const struct gpu_plans *plans, const struct choice_key *key);
rondo_result gpu_place_buffers(struct gpu_plans *plans, const struct task *task,
                               struct gpu_run *run);
/* As gpu_place_buffers(), for a call in which peers touch no buffer. */
rondo_result gpu_place_local(struct gpu_run *run, const struct task *task);
/* Fill what stands in for the input, multiplied by the rank's scalar if there is one: only this
 * rank knows it. */
void gpu_bring_input(struct gpu_run *run);
/* Where a message's buffer is, or what stands in for it, filled from it if it is sent. */
rondo_result gpu_pair_place(struct gpu_run *run, struct gpu_buffer *buffer);
/* To where the user wants it, if something stood in for that. */
void gpu_take_output(struct gpu_run *run);

/* ---- gpu/graph.c ---- */

/* In place of gpu_note_step() in a graph: the next operation waits for a message of that rank, or
 * until it has taken this rank's. */
void gpu_graph_note_wait(struct gpu_run *run, int peer, int lane, bool data);
void gpu_graph_note_none(struct gpu_run *run);

/* ---- gpu/pair.c ---- */

rondo_result gpu_pairs_queue(struct gpu_plans *plans, const struct batch *batch, bool in_graph,
                             CUstream stream);

#endif
