/* SPDX-License-Identifier: BSD-3-Clause */
/* inside.h - what the files of comm/gpu/ share. */
#ifndef RONDO_COMM_GPU_INSIDE_H
#define RONDO_COMM_GPU_INSIDE_H

#include "base/collective.h"
#include "base/lock.h"
#include "base/spare.h"
#include "comm/gpu/gpu.h"
#include "comm/gpu/sequence.h"
#include "cuda/device.h"

/* Written by a CUDA stream and the host, a cache line each. */
struct gpu_flag {
    _Alignas(64) _Atomic uint32_t value;
};

/* The flags by which host and stream tell each other about one use of a block. */
struct gpu_flags {
    struct gpu_flag ready; /* by the stream: what the host needs is there */
    struct gpu_flag done;  /* by the host: what the stream needs is there */
    struct gpu_flag free;  /* by the stream: it has no more use for the block */
};

/* Memory of the host that the device reaches and, as it is of the shared heap, the peers too. */
struct gpu_block {
    struct gpu_block *next;
    size_t bytes;            /* of the payload */
    struct gpu_flags *flags; /* at the beginning of it */
    CUdeviceptr device_flags;
    char *payload;
    enum {
        BLOCK_FREE,
        BLOCK_TAKEN, /* free again when its flag says so */
        BLOCK_KEPT,  /* by a graph; in use while its flag does not say free */
        BLOCK_LOST   /* something may use it for ever */
    } state;
};

struct gpu {
    struct cuda_device device;
    CUstream stream;      /* for what has none: comes after the legacy default stream's work */
    rondo_stream *worker; /* runs the host's part of calls on CUDA streams */
    size_t piece;         /* bytes that it makes long calls of */
    struct gpu_sequence sequence;
    atomic_int behind; /* calls outside of graphs that streams have still to hand over */
    struct gpu *next;  /* of those that stay when their communicators are closed */
    struct cuda_launcher *launcher; /* NULL: the device cannot run Rondo's kernels */
    struct lock lock;               /* of what follows */
    struct gpu_block *blocks;
    struct staged *captured;     /* parts of graphs */
    rondo_result shut;           /* why streams hand over no calls any more, RONDO_OK: they do */
    char why[FAIL_SENTENCE_MAX]; /* written before `shut` by who closes, and never again */
    struct spares spares;        /* of calls that have ended */
    void *arena;                 /* gpu/arena.h; in the shared heap, NULL: none */
    struct gpu_plans *plans;     /* NULL: calls go by way of the host */
    struct gpu_proxy *proxy;     /* NULL: the host moves all that goes by way of it */
    struct gpu_gate *gate;       /* with other ranks in the same context; NULL: there are none */
};

/* ---- proxy/move.c: the backend that works on a stream of the communicator's own -------------- */

rondo_result gpu_move_begin(rondo_comm *comm, struct task *task);
enum exec_state gpu_move_advance(struct execution *execution);

/* ---- gpu.c ----------------------------------------------------------------------------------- */

/* The device part of a communicator, which has one when a call on a CUDA stream was made. */
rondo_result gpu_of(rondo_comm *comm, struct gpu **ret_gpu);
/* Finds what gpu_of() does, for the first call on that stream: a communicator that was opened
 * without a device gets the one of the call. */
rondo_result gpu_find(const struct batch *batch, CUstream stream, struct gpu **ret_gpu);

/* Memory for a call by way of the host, which is given back when it has ended. NULL: there is none.
 */
void *gpu_spare_take(struct gpu *gpu, size_t bytes);
void gpu_spare_give(struct gpu *gpu, void *memory); /* accepts NULL */

/* The calls are about to run by way of the host: a collective of them is the last that ran. */
static inline void gpu_ran_on_host(const struct batch *batch)
{
    for (int i = 0; i < batch->count; i++)
        if (!collective_is_pair(batch->tasks[i].key.collective))
            atomic_store_explicit(&batch->comm->ran_on_device, NULL, memory_order_relaxed);
}

/* ---- share/whose.c --------------------------------------------------------------------------- */

/* The number of the device that a call on that stream is for: the stream's, or the current
 * context's, or, on a thread without one, that of the memory in the call. */
int gpu_whose(const struct cuda_driver *cuda, const struct batch *batch, CUstream stream);

/* ---- gpu/endpoint.c -------------------------------------------------------------------------- */

struct gpu_plans;
/* After all that was queued has ended, or was let go; false: some of it is still to come, and may
 * touch memory of peers. Accepts NULL. */
bool gpu_plans_close(struct gpu_plans *plans);

/* ---- gpu/block.c ----------------------------------------------------------------------------- */

/* True if the memory belongs to a block, where the host works on it. */
bool gpu_stages(rondo_comm *comm, const void *memory);
/* Take a block with room for so many bytes, flags cleared. It is free again when its flag says
 * so. */
rondo_result gpu_block_take(struct gpu *gpu, size_t bytes, struct gpu_block **ret_block);
void gpu_block_return(struct gpu *gpu, struct gpu_block *block); /* nothing uses it */
void gpu_block_keep(struct gpu *gpu, struct gpu_block *block);
void gpu_block_lose(struct gpu *gpu, struct gpu_block *block);
/* True if streams have still to use some. */
bool gpu_blocks_are_used(struct gpu *gpu);
/* All that streams have still to use are waited for, or, if `lost`, left alone for ever. */
void gpu_blocks_close(struct gpu *gpu, bool lost);

static inline CUdeviceptr gpu_ready_address(const struct gpu_block *block)
{
    return block->device_flags + offsetof(struct gpu_flags, ready);
}

static inline CUdeviceptr gpu_done_address(const struct gpu_block *block)
{
    return block->device_flags + offsetof(struct gpu_flags, done);
}

static inline CUdeviceptr gpu_free_address(const struct gpu_block *block)
{
    return block->device_flags + offsetof(struct gpu_flags, free);
}

/* ---- gpu/gate.c ------------------------------------------------------------------------------ */

/* With everybody's endpoints: do threads of this process have ranks that share a device? */
rondo_result gpu_gate_open(rondo_comm *comm);
void gpu_gate_close(struct gpu_gate *gate); /* accepts NULL */
/* True if the peer is one of those threads' ranks. Graphs ask for none of the functions that
 * follow. */
bool gpu_gate_has(const rondo_comm *comm, int peer);
/* Notes what a mailbox will hold by what is queued: the fingerprint of a message, or 0. */
void gpu_gate_tell(const rondo_comm *comm, int to, int from, int channel, uint32_t full);
/* Until the peer has queued what ends that wait. */
void gpu_gate_await(rondo_comm *comm, int peer, int channel, bool data);
/* A part of a collective call is queued: until all of those ranks have queued it. */
void gpu_gate_pass(rondo_comm *comm);
/* Waits as gpu_gate_pass() does, for calls by way of the host, each until the ranks that it is with
 * have queued it. */
void gpu_gate_pass_batch(const struct batch *batch);
/* This thread queues calls of several ranks, one after the other, and waits for none. */
void gpu_gate_wait_for_none(bool none);

/* ---- gpu/staging.c --------------------------------------------------------------------------- */

/*
 * The places that the bytes of a task are brought to; a buffer that stays where it is has 0 bytes.
 */
struct stage {
    char *input, *output;
    const void *user_input;
    void *user_output;
    size_t input_bytes, output_bytes;
    /* The user's memory is plain memory of the host, which the host copies, not the stream. */
    bool plain_input, plain_output;
    /* The places of input and output in the block. */
    size_t input_at, output_at;
};

/* Decides which memory of a batch's tasks the host cannot use (or the device, if it moves the
 * messages), and where it will be: what overlaps for the user does so in the block.
 * RONDO_ERROR_MEMORY, or the bytes of block that it takes. */
rondo_result stage_plan(struct gpu *gpu, const struct batch *batch, struct stage *ret_stages,
                        size_t *ret_bytes);
/* Have the tasks work in the block, which is at `device` for whoever moves the messages. */
void stage_place(struct stage *stages, struct task *tasks, int count, char *block, char *device);
/* Plain memory, by the host, when the stream is there: before the call, and after it. */
void stage_in_plain(const struct stage *stage);
void stage_out_plain(const struct stage *stage);
rondo_result stage_in(const struct gpu *gpu, const struct stage *stage, CUstream stream);
rondo_result stage_out(const struct gpu *gpu, const struct stage *stage, CUstream stream);

/* ---- proxy/proxy.c --------------------------------------------------------------------------- */

/* Finds whether this rank's device can move messages to other nodes, and which way. */
enum device_way gpu_proxy_find(rondo_comm *comm);
/* Keeps the proxy if all ranks' devices have one; else there is none any more, and the log says
 * why. */
void gpu_proxy_agree(rondo_comm *comm);
/* Nothing is queued any more; rings are still there. The memory that it shared stays valid. */
void gpu_proxy_stop(struct gpu_proxy *proxy);
void gpu_proxy_close(struct gpu_proxy *proxy); /* networks are closed; both accept NULL */

/* ---- proxy/move.c ---------------------------------------------------------------------------- */

/* True if the messages of this batch go from and to the device. The same answer on every rank. */
bool gpu_moves(const struct gpu *gpu, const struct batch *batch);
/* The batch has ended, or failed: what is queued for it on the device ends. */
void gpu_move_end(struct gpu *gpu);

/* ---- gpu/judge.c ----------------------------------------------------------------------------- */

/* Keeps a stream's errors that come after the call returned. */
struct gpu_errors {
    struct lock lock;
    int users;
    int under_way;       /* calls that run as plans on the device, of which it is not known yet */
    rondo_result result; /* the first one */
    char sentence[FAIL_SENTENCE_MAX];
};

struct gpu_errors *gpu_errors_hold(struct gpu_errors *errors);
void gpu_errors_drop(struct gpu_errors *errors);
/* With the thread's last sentence. */
void gpu_errors_note(struct gpu_errors *errors, rondo_result result);

/* ---- gpu/queue.c ----------------------------------------------------------------------------- */

/* Queue batches on a CUDA stream: data to the host, the calls there, side by side, and back. */
rondo_result gpu_queue(CUstream stream, const struct batch *batches, int count,
                       struct gpu_errors *errors);
/* Forget what graphs had: the communicator is sound, so that no graph with calls of it is launched
 * any more. */
void gpu_captured_close(struct gpu *gpu);

/* ---- gpu/many.c ------------------------------------------------------------------------------ */

/* Queue a batch that plans on the device can do. */
rondo_result gpu_queue_plans(CUstream stream, const struct batch *batch, struct gpu_errors *errors);
/* Queue batches of several communicators, side by side. */
rondo_result gpu_queue_many(CUstream stream, const struct batch *batches, int count,
                            struct gpu_errors *errors);

#endif
