/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.h - a call that is being queued as work on a CUDA stream; between gpu/plan.c, for
 * collectives, gpu/pair.c, for messages between two ranks, and those who do parts of both. */
#ifndef RONDO_COMM_GPU_PLAN_H
#define RONDO_COMM_GPU_PLAN_H

#include "comm/gpu/arena.h"
#include "comm/gpu/ops.h"
#include "comm/state/plans.h"
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

/* A way is how a call runs on the device. */
struct gpu_way {
    const struct plan *plan;
    const struct cuda_program *program; /* of one kernel; NULL: operations of the stream */
    bool local;                         /* peers touch no buffers */
    bool nvls;                          /* through multicast, which the plan describes */
    bool engines;                       /* its copies are those of copy engines */
    bool rounds;                        /* partial sums travel: each is rounded */
};

/* The message or room that a stream waits for. */
struct gpu_wait {
    uint32_t step; /* of the plan; or the task of a batch of messages */
    int peer, channel;
    bool data; /* a message of the peer; or else that its own is taken */
    /* As it is read: */
    bool graph;    /* in a call of a graph */
    bool works;    /* it does not wait, but has, and the call has not ended */
    uint64_t word; /* all of it */
    uint32_t fingerprint;
};

struct gpu_run {
    struct execution x; /* first: run_of() gets the run back; of the piece of the call at hand */
    struct gpu_plans *plans;
    struct gpu_inflight *inflight; /* NULL: it goes into a graph */
    size_t start;                  /* the element of each block at which the piece begins */
    struct kernel_op op;
    enum { NOTED_NOTHING, NOTED_WAIT, NOTED_WORK } noted; /* what the host sees, gpu/waits.c */
    int replaced;                                         /* buffers of messages so far */
    size_t reserved; /* bytes of the reserve that stand in for buffers of this call */
    bool engines;    /* no kernels: the input is at the beginning of each rank's reserve */
    struct gpu_buffer input, output;
    struct gpu_ops ops;
    struct {
        unsigned count;
        struct cuda_copies_item items[CUDA_COPIES_MAX];
    } copies; /* to be queued together */
};

/* ---- gpu/steps.c ----------------------------------------------------------------------------- */

void gpu_publish(struct gpu_run *run, int peer, int channel, bool addresses);
void gpu_empty(struct gpu_run *run, int peer, int channel);
/* A copy: after the operations so far, before anything that
 * peers are told, and in no order to other copies. */
void gpu_copy(struct gpu_run *run, const struct cuda_operand *from, const struct cuda_operand *to,
              size_t bytes);
/* Queue the copies, if there are any. */
void gpu_copies_flush(struct gpu_run *run);
/* A kernel, after the operations and copies so far. */
void gpu_move(struct gpu_run *run, const struct cuda_reduce_call *call);
/* A run of nothing yet, on that stream. */
void gpu_run_init(struct gpu_plans *plans, CUstream stream, struct gpu_run *run);
/* Queue all steps of the run's plan. */
void gpu_steps_queue(struct gpu_run *run);

/* ---- gpu/plan.c ------------------------------------------------------------------------------ */

/* How a task is executed, of which `count` elements are at hand: for the run, and for the call in
 * flight of which health.c asks where it stands. */
rondo_result gpu_describe(struct gpu_plans *plans, const struct choice_key *key,
                          const struct plan *plan, size_t count, struct execution *ret_execution);
/* The way of a call between two ranks is for sentences only. The same answer on every rank. */
rondo_result gpu_find_way(struct gpu_plans *plans, const struct task *task,
                          struct gpu_way *ret_way);

/* ---- gpu/buffer.c ---------------------------------------------------------------------------- */

/* Into pieces of how many elements of each block is the call cut? The same answer on every rank. */
size_t gpu_piece_count(const struct gpu_plans *plans, const struct choice_key *key);
rondo_result gpu_place_buffers(struct gpu_run *run, const struct task *task);
/* Gives the buffers of a call their places if peers touch none of them. */
rondo_result gpu_place_local(struct gpu_run *run, const struct task *task);
/* True if peers write outputs of this collective. */
bool gpu_writes_outputs(rondo_collective collective);
/* Fill what stands in for the input, multiplied by the rank's scalar if there is one: only this
 * rank knows it. */
void gpu_bring_input(struct gpu_run *run);
/* Where a message's buffer is, or what stands in for it, filled from it if it is sent. */
rondo_result gpu_pair_place(struct gpu_run *run, struct gpu_buffer *buffer);
/* To where the user wants it, if something stood in for that. */
void gpu_take_output(struct gpu_run *run);

/* ---- gpu/waits.c ----------------------------------------------------------------------------- */

/* Have the stream wait, and the host see for what. What comes after a wait says so first, by
 * gpu_go_on(): a peer that is through with this call may begin the next one, and its mailbox must
 * not be taken for one that is out of place here. */
void gpu_await(struct gpu_run *run, const struct gpu_wait *wait);
void gpu_go_on(struct gpu_run *run);
/* A mailbox will be like that, by the operations so far; who shares the device may go on. */
void gpu_tell_gate(struct gpu_run *run, int to, int from, int channel, uint32_t full);
/* The end of a call: its number is the last one that ended. */
void gpu_run_close(struct gpu_run *run);
/* True if a stream waits, and for what; if not, `works` says whether it is at work in a call that
 * has waited. */
bool gpu_wait_read(const struct gpu_plans *plans, struct gpu_wait *ret_wait);
/* True if what it waits for is there, so that it will go on. */
bool gpu_wait_is_over(const struct gpu_plans *plans, const struct gpu_wait *wait);
/* Give the stream what it waits for, and touch no other mailbox: a peer that is let go as well may
 * need the same mailbox to be empty that this rank needs to be full. */
void gpu_wait_let_go(const struct gpu_plans *plans);

/* ---- gpu/kernel.c ---------------------------------------------------------------------------- */

/* True if the call is one kernel, whether it touches buffers of peers or not. The same answer on
 * every rank. */
bool gpu_is_short(const struct gpu_plans *plans, const struct task *task);
bool gpu_is_medium(const struct gpu_plans *plans, const struct choice_key *key);
/* True if two ranks have the same device. The same answer on every rank. */
bool gpu_is_shared(const rondo_comm *comm);
/* The algorithm that somebody named for a call which it makes one kernel; NULL: nobody did. The
 * same answer on every rank. */
const struct algorithm *gpu_kernel_named(const struct gpu_plans *plans, const struct task *task);
/* The algorithm of a short call, and the plan of a short or medium one for the device
 * communicator. */
const struct algorithm *gpu_kernel_algorithm(rondo_collective collective);
rondo_result gpu_kernel_compile(struct gpu_plans *plans, struct plan_entry *entry);
void gpu_program_discard(void *program);
/* Queue the kernel, behind the operations so far. */
void gpu_kernel_queue(struct gpu_run *run, const struct cuda_program *program);

/* ---- gpu/timing.c ---------------------------------------------------------------------------- */

/* A call is about to be queued on the run's stream: `what` it is, or the first of `count` messages.
 * Without a trace, or in a graph, nothing happens. */
void gpu_timing_open(struct gpu_run *run, const struct choice_key *what, int count);
/* All of the call is queued but the word that says that it has ended. */
void gpu_timing_close(struct gpu_run *run);
/* The next two are for the watchdog. Looks whether the oldest call's stream has come to it. */
void gpu_timing_look(struct gpu_plans *plans, struct gpu_inflight *inflight);
/* The call, which has a timing, has ended. */
void gpu_timing_end(struct gpu_plans *plans, struct gpu_inflight *inflight);
/* Free all; no call is on its way. */
void gpu_timings_close(struct gpu_plans *plans);

/* ---- share/left.c ---------------------------------------------------------------------------- */

/* Memory on a device that stays until no peer touches it any more; embedded in what knows it. */
struct gpu_left {
    struct gpu_left *next;
    void (*give)(struct gpu_left *left); /* it is over: free it; the context is current */
    struct cuda_launcher *launcher;
    struct lease *lease;
    uint32_t home; /* the process */
};

/* Keep it; false: nobody would know until when. All calls of this rank have ended. */
bool gpu_leave_behind(const struct gpu_plans *plans, struct gpu_left *left);
/* Keep memory of the stock; if nobody would know until when, it is never used again. */
void gpu_leave_memory(const struct gpu_plans *plans, CUdeviceptr memory);
/* Give back what is over, of all communicators that this process has closed. */
void gpu_left_reap(void);

/* ---- share/alone.c --------------------------------------------------------------------------- */

/* Keep the plans of a broken communicator, which is closed, for streams that have still to come to
 * its calls, and let these go on then. */
void gpu_leave_alone(struct gpu_plans *plans);

/* ---- share/reserve.c ------------------------------------------------------------------------- */

/* Allocate the reserve and show it to the others. */
void gpu_reserve_show(struct gpu_plans *plans);
/* Give it back, or leave it behind if peers' copy engines may read it. */
void gpu_reserve_close(struct gpu_plans *plans);
/* Returns where this process finds that rank's. */
CUdeviceptr gpu_reserve_at(const struct gpu_plans *plans, int rank);

/* ---- nvls/open.c ----------------------------------------------------------------------------- */

/* With the device communicators of all ranks: make them a team, if they can be, and check its sums.
 * All ranks find the same; why there is none, the log says. */
rondo_result gpu_nvls_open(struct gpu_plans *plans);

/* ---- nvls/close.c ---------------------------------------------------------------------------- */

/* All kernels of this rank have ended. */
void gpu_nvls_close(struct gpu_plans *plans);

/* ---- nvls/call.c ----------------------------------------------------------------------------- */

/* True if the call goes through the team. The same answer on every rank. */
bool gpu_nvls_takes(struct gpu_plans *plans, const struct task *task);
/* Queue its kernel, behind the operations so far. */
void gpu_nvls_queue(struct gpu_run *run);

/* ---- gpu/pair.c ------------------------------------------------------------------------------ */

rondo_result gpu_pairs_queue(struct gpu_plans *plans, const struct batch *batch, CUstream stream);

#endif
