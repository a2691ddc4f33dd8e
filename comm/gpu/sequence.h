/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sequence.h - calls of one communicator run one after another on its device, whatever streams
 * and graphs they are in: all ranks make them in the same order, and two at a time would take each
 * other's messages.
 */
#ifndef RONDO_COMM_GPU_SEQUENCE_H
#define RONDO_COMM_GPU_SEQUENCE_H

#include "base/lock.h"
#include "cuda/device.h"

enum { GPU_CHAINS = 8 }; /* captures of a communicator's calls that may be under way at a time */

/* The calls in one capture so far. */
struct gpu_chain {
    cuuint64_t capture; /* its number, 0: none yet */
    CUevent end;        /* recorded in it, behind the last call */
    unsigned used;      /* when, among all; the oldest one makes room */
};

struct gpu_sequence {
    const struct cuda_driver *cuda;
    struct lock lock;
    CUevent last;  /* after the last call, be it in a stream or in a launch of a graph */
    bool recorded; /* some call was */
    /* The number of the stream that it was in, unless graphs are about */
    unsigned long long stream;
    struct gpu_chain chains[GPU_CHAINS];
    unsigned uses;
    _Atomic bool graphs; /* some calls are in graphs */
};

/* The stream, or the capture of one, that a call goes into. */
struct gpu_place {
    CUstream handle;
    unsigned long long stream; /* number: handles are used again, and may mean a thread's stream */
    cuuint64_t capture;        /* the capture that it goes into, 0: none */
};

/* The device's context is current for all of these. */
rondo_result gpu_sequence_open(struct gpu_sequence *sequence, const struct cuda_driver *cuda);
void gpu_sequence_close(struct gpu_sequence *sequence);
/* True if a launch of a graph with calls, or a call where there are graphs, has not ended. */
bool gpu_sequence_is_launched(const struct gpu_sequence *sequence);
/* Order what is put into the stream from here on after all calls before. */
rondo_result gpu_sequence_enter(struct gpu_sequence *sequence, CUstream stream,
                                struct gpu_place *ret_place);
/* Note that a call has been put into the stream at that place. */
rondo_result gpu_sequence_leave(struct gpu_sequence *sequence, const struct gpu_place *place);

#endif
