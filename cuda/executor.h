/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * executor.h - plans that run as one kernel (cuda/kernels/executor.cu), queued on a stream.
 *
 * A seat is what one rank needs for it: its links, and the inbox in memory of its device that peers
 * write to. Every rank opens one, tells the others where its inbox is, connects those of all peers,
 * and opens its plans. After that a call is one launch: no memory is allocated, nothing is waited
 * for, and it may be captured in a graph.
 *
 *     cuda_seat_open()     ->  inbox, its length     the others map it: peer access, CUDA IPC
 *     cuda_seat_connect()  <-  the inbox of every peer, as mapped here
 *     cuda_program_open()  <-  a plan; once per choice
 *     cuda_execute()           on a stream, as often as one likes, one after the other
 *     cuda_seat_look()         how it ended, or where it is
 *
 * The kernels of all ranks have to run at the same time, and those of ranks that share a device
 * have to fit on it together: cuda_execute() refuses what would not.
 */
#ifndef RONDO_CUDA_EXECUTOR_H
#define RONDO_CUDA_EXECUTOR_H

#include "cuda/kernels/execution.h"
#include "cuda/module.h"

struct cuda_seat;
struct cuda_program;

struct cuda_seat_shape {
    int rank, size;
    int slots; /* 2 .. CUDA_PACKED_ROOM */
    size_t slot_bytes;
    unsigned share; /* ranks whose kernels run on this device at the same time, this one too */
    uint32_t start; /* the number of messages that links begin with; 0 but for tests */
    unsigned segments_each; /* of a peer's memory that addresses may name; 0: none */
};

/* `launcher` must outlive the seat. The device's context is current in all of these. */
rondo_result cuda_seat_open(struct cuda_launcher *launcher, const struct cuda_seat_shape *shape,
                            struct cuda_seat **ret_seat);
/* Have peers given everything back that this rank sent? The last thing that a kernel writes into an
 * inbox of a peer is that; before it, the inbox must stay. Between calls; waits for the device. */
bool cuda_seat_is_settled(const struct cuda_seat *seat);
/* After this rank is through with its calls. `keep_inbox`: peers may still write there, so its
 * memory is not given back; the caller does, or forgets it. Accepts NULL. */
void cuda_seat_close(struct cuda_seat *seat, bool keep_inbox);

/* Where this rank's inbox is, and how long it and everybody else's is. */
CUdeviceptr cuda_seat_inbox(const struct cuda_seat *seat, size_t *ret_bytes);
/* Connect the seat: inboxes[r] is that of rank r, at its address for this device; [rank]: this
 * rank's own. */
rondo_result cuda_seat_connect(struct cuda_seat *seat, const CUdeviceptr *inboxes);
/* Name the memory that the words of `peer` may mean: `count` segments, up to segments_each. Waits
 * for the device. */
rondo_result cuda_seat_segments(struct cuda_seat *seat, int peer,
                                const struct cuda_segment *segments, unsigned count);

/* Upload a plan; it is not needed after that. RONDO_ERROR_UNSUPPORTED if it
 * cannot run here, with a sentence that says why. Waits for the device. */
rondo_result cuda_program_open(struct cuda_seat *seat, const struct plan *plan,
                               struct cuda_program **ret_program);
void cuda_program_close(struct cuda_program *program); /* accepts NULL */

struct cuda_execute_call {
    const struct kernel_op *op; /* NULL: nothing is reduced */
    size_t count, element;      /* elements of a block, and bytes of one */
    CUdeviceptr input, output;
    struct link_addresses own; /* words for peers, of kind CUDA_ADDRESS_WORD; 0: none */
    bool unreachable;          /* peers cannot be given this rank's memory */
    uint32_t fingerprint;
    unsigned blocks; /* of each program's team; 0: chosen by the length of messages */
};

/* Queue it. One call of a seat at a time: the stream orders them, or the caller does. */
rondo_result cuda_execute(struct cuda_seat *seat, const struct cuda_program *program,
                          const struct cuda_execute_call *call, CUstream stream);

struct cuda_look {
    enum exec_state state; /* BLOCKED: some program has not ended; DONE: all are through */
    int program;           /* the first that did not end well, or not yet */
    uint32_t step;         /* of the plan, at which it is */
    int blamed;
    uint32_t foreign; /* EXEC_MISMATCH */
};
/* The state of the last call. EXEC_FAILED: it was told to stop. Never waits; any thread. */
void cuda_seat_look(const struct cuda_seat *seat, struct cuda_look *ret_look);
/* Make the kernels of this seat end soon, now and later; its links are of no use then. Any
 * thread. */
void cuda_seat_stop(struct cuda_seat *seat);

#endif
