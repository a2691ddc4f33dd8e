/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * executor.h - plans that run as one kernel (cuda/kernels/executor.cu), queued on a stream.
 *
 * A device communicator is what one rank needs for it: its links, and the inbox in memory of its
 * device that peers write to. Every rank opens one, tells the others where its inbox is, connects
 * those of all peers, and opens its plans. After that a call is one launch: no memory is allocated,
 * nothing is waited for, and it may be captured in a graph.
 *
 *     cuda_devcomm_open()  ->  inbox, its length     the others map it: peer access, CUDA IPC
 *     cuda_devcomm_connect()  <-  the inbox of every peer, as mapped here
 *     cuda_program_open()  <-  a plan; once per choice
 *     cuda_execute()           on a stream, as often as one likes, one after the other
 *     cuda_devcomm_look()      how it ended, or where it is
 *
 * The kernels of all ranks have to run at the same time, and those of ranks that share a device
 * have to fit on it together: cuda_execute() refuses what would not.
 */
#ifndef RONDO_CUDA_EXECUTOR_H
#define RONDO_CUDA_EXECUTOR_H

#include "cuda/kernels/execution.h"
#include "cuda/module.h"

struct cuda_devcomm;
struct cuda_program;

struct cuda_devcomm_shape {
    int rank, size;
    int slots; /* 2 .. CUDA_PACKED_ROOM */
    size_t slot_bytes;
    unsigned share; /* ranks whose kernels run on this device at the same time, this one too */
    uint32_t start; /* the number of messages that links begin with; 0 but for tests */
    unsigned regions_each;  /* of a peer's memory that addresses may name; 0: none */
    unsigned regions_known; /* in the callers' own tables, of a peer */
};

/* `launcher` must outlive the device communicator. The device's context is current in all of
 * these. */
rondo_result cuda_devcomm_open(struct cuda_launcher *launcher,
                               const struct cuda_devcomm_shape *shape,
                               struct cuda_devcomm **ret_devcomm);
/* After this rank is through with its calls. `keep_inbox`: peers may still write there, so its
 * memory is not given back; the caller does, or forgets it. Accepts NULL. */
void cuda_devcomm_close(struct cuda_devcomm *devcomm, bool keep_inbox);

/* Where this rank's inbox is, and how long it and everybody else's is. */
CUdeviceptr cuda_devcomm_inbox(const struct cuda_devcomm *devcomm, size_t *ret_bytes);
/* Connect the device communicator: inboxes[r] is that of rank r, at its address for this device;
 * [rank]: this rank's own. */
rondo_result cuda_devcomm_connect(struct cuda_devcomm *devcomm, const CUdeviceptr *inboxes);
/* Name the memory that the words of `peer` may mean: `count` regions, up to regions_each. Waits
 * for the device. */
rondo_result cuda_devcomm_regions(struct cuda_devcomm *devcomm, int peer,
                                  const struct cuda_region *regions, unsigned count);

/* Upload a plan; it is not needed after that. RONDO_ERROR_UNSUPPORTED if it
 * cannot run here, with a sentence that says why. Waits for the device. */
rondo_result cuda_program_open(struct cuda_devcomm *devcomm, const struct plan *plan,
                               struct cuda_program **ret_program);
void cuda_program_close(struct cuda_program *program); /* accepts NULL */

struct cuda_execute_call {
    const struct kernel_op *op; /* NULL: nothing is reduced */
    size_t count, element;      /* elements of a block, and bytes of one */
    CUdeviceptr input, output;
    struct link_addresses own; /* words for peers, of kind CUDA_ADDRESS_WORD; 0: none */
    bool unreachable;          /* peers cannot be given this rank's memory */
    /* The caller's own table of what words of peers may name, in place of the device
     * communicator's; 0: that. */
    CUdeviceptr regions;
    unsigned regions_each;
    /* A word for each rank, gate_stride bytes apart: other than 0 where a rank has left, whose
     * memory is touched no more. 0: there are none. */
    CUdeviceptr gates;
    unsigned gate_stride;
    /* A word that the host adds to whenever the caller's regions or gates have changed, so that
     * kernels need not look at them each time; 0: they do. Not without regions. */
    CUdeviceptr changes;
    CUdeviceptr error; /* a word that gets CUDA_CALL_BAD_PEER and a rank that cannot be reached */
    uint32_t fingerprint;
    unsigned blocks;      /* of each program's team; 0: chosen by the length of messages */
    unsigned least, most; /* of all teams, where that is so; the most may be 0: the device's */
};

/* Queue it. One call of a device communicator at a time: the stream orders them, or the caller
 * does. */
rondo_result cuda_execute(struct cuda_devcomm *devcomm, const struct cuda_program *program,
                          const struct cuda_execute_call *call, CUstream stream);

struct cuda_look {
    enum exec_state state; /* BLOCKED: some program has not ended; DONE: all are through */
    int program;           /* the first that did not end well, or not yet */
    uint32_t step;         /* of the plan, at which it is */
    uint64_t segment;      /* that it works on: its first element */
    int blamed;
    uint32_t foreign; /* EXEC_MISMATCH */
};
/* The state of the call that runs, or ran last. EXEC_FAILED: it was told to stop. Never waits; any
 * thread. */
void cuda_devcomm_look(const struct cuda_devcomm *devcomm, struct cuda_look *ret_look);
/* Have the kernels of this device communicator begin to touch no memory of peers but inboxes, from
 * now on, and those that wait stay where they are until they are stopped. Any thread. */
void cuda_devcomm_hold(struct cuda_devcomm *devcomm);
/* True if a kernel of this device communicator may be touching memory of peers, inboxes aside. Any
 * thread. */
bool cuda_devcomm_is_inside(const struct cuda_devcomm *devcomm);
/* Make the kernels of this device communicator end soon, now and later; its links are of no use
 * then. Any thread. */
void cuda_devcomm_stop(struct cuda_devcomm *devcomm);

#endif
