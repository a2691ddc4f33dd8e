/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proxy.h - a device that moves the messages of calls on CUDA streams to and from other nodes;
 * between proxy/proxy.c, which makes it, and proxy/move.c, which runs calls with it.
 */
#ifndef RONDO_COMM_GPU_PROXY_PROXY_H
#define RONDO_COMM_GPU_PROXY_PROXY_H

#include "comm/gpu/inside.h"
#include "cuda/copies.h"

/* The rings of a link as the device sees them: what is to be added to addresses in the slots. */
struct gpu_link {
    bool known;
    bool written_by_adapter; /* what arrives may have to be flushed into the device's sight */
    uint64_t out, in;
};

/* A completion to peers, or to the writer of a slot, that may be given when the device has got so
 * far. */
struct gpu_completion {
    uint32_t after; /* the count of the stream at which it may be told */
    enum {
        COMPLETION_FLAG,
        COMPLETION_COUNT,
        COMPLETION_PUSH,
        COMPLETION_PUSH_DEVICE,
        COMPLETION_RETURN
    } kind;
    void *where; /* flags and counters; of a push: the slot */
    struct connection *connection;
    const char *payload;
    size_t bytes;
    uint64_t value;
};

struct gpu_proxy {
    struct gpu *gpu;
    rondo_comm *comm;
    enum device_way way; /* that this rank found */
    struct device_source source;
    char name[32];
    struct cuda_launcher *launcher;
    CUstream stream;
    bool flushes;           /* what adapters wrote has to be flushed before kernels see it */
    struct gpu_link *links; /* [channel * size + peer] */
    void **pinned;          /* of the host, at most two for each link */
    int pinned_count;
    CUdeviceptr scratch;
    size_t scratch_bytes;
    /* The state of the call in progress. */
    _Atomic uint32_t *reached; /* pinned; written by the stream */
    CUdeviceptr device_reached;
    uint32_t counted; /* the last count that the stream was told to write */
    bool uncounted;   /* there is work behind it */
    struct gpu_completion *completions;
    size_t completion_first, completion_end, completion_room;
    struct cuda_copies_item copies[CUDA_COPIES_MAX]; /* not queued yet */
    unsigned copy_count;
    rondo_result result; /* sticky */
};

/* ---- proxy/completion.c ---------------------------------------------------------------------- */

/* The first error of a call; after it nothing more is queued. */
void gpu_proxy_fail(struct gpu_proxy *proxy, rondo_result result);
/* Queue a copy, behind all that it has to do with; copies may wait for the next flush. */
void gpu_proxy_copy(struct gpu_proxy *proxy, CUdeviceptr to, CUdeviceptr from, size_t bytes);
void gpu_proxy_flush(struct gpu_proxy *proxy);
/* Have the stream say when all that was queued so far is done; and has it said so much? */
void gpu_proxy_count(struct gpu_proxy *proxy);
bool gpu_proxy_has_reached(const struct gpu_proxy *proxy, uint32_t after);
/* To be told when all that was queued so far is done, which may be now; after earlier ones. */
void gpu_proxy_note(struct gpu_proxy *proxy, struct gpu_completion completion);
/* Tell what is due; true if anything was. */
bool gpu_proxy_tell(struct gpu_proxy *proxy);

#endif
