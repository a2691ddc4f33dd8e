/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.h - what ranks of a node keep for each other's CUDA streams, in memory of the host.
 *
 *     sender's stream     wait: mailbox.full = 0 | words | mailbox.full = fingerprint
 *     reader's stream     wait: mailbox.full = fingerprint | mailbox.full = 0 | kernels read words
 *
 * Every rank has an arena in its shared heap, with a mailbox from each rank on each channel. All
 * ranks have it pinned, so their devices read and write it; the waits are memory operations of
 * streams, which keep no processor of the device busy, so ranks may share one. The words say where
 * the sender's buffers are (cuda/kernels/calls.h) and stay until the next message of the same
 * sender. A number of a message is not needed: a mailbox is empty again before it is filled, and
 * what is recorded in a graph can be replayed.
 */
#ifndef RONDO_COMM_GPU_ARENA_H
#define RONDO_COMM_GPU_ARENA_H

#include "base/lock.h"
#include "base/spare.h"
#include "comm/gpu/inside.h"
#include "cuda/kernels/calls.h"
#include "cuda/stock.h"
#include "cuda/vmm.h"

enum {
    GPU_REGIONS = 64,              /* allocations of a rank that its peers map at a time */
    GPU_USER_REGIONS = 40,         /* so many of them are the user's; the others are substitutes */
    GPU_RESERVE = GPU_REGIONS - 1, /* the slot of the one that is mapped at the start */
    GPU_PIECES = 32,               /* pieces of physical memory in one allocation */
    GPU_CHANNELS = 2,
    GPU_CHANNEL_COLLECTIVE = 0,
    GPU_CHANNEL_PAIR = 1, /* sends and receives */
};

struct gpu_mailbox {
    _Alignas(64) _Atomic uint32_t full; /* the fingerprint of the call, or 0 */
    _Atomic uint64_t input, output;
    _Atomic uint32_t left; /* the sender has left for good: kernels touch nothing of it */
};

/* One allocation on a device, for peers to map. */
struct gpu_region_handle {
    uint64_t base, bytes;
    unsigned char handle[64]; /* CUipcMemHandle */
};

/* An order to the peers: what to map now in place of what they had in that slot. */
struct gpu_order {
    uint32_t number; /* its own */
    uint32_t slot;
    int32_t pieces; /* 0: the endpoint has a handle; otherwise these many files */
    struct gpu_region_handle region_handle;
    struct cuda_piece piece[GPU_PIECES];
};

/* The answer of a peer: the number of the order, and in the lowest bits how the peer did. */
enum { GPU_DONE, GPU_CANNOT, GPU_NOT_NOW, GPU_ANSWER_BITS = 2 };

/* The state of a rank's team for multicast, as it shows peers (nvls/open.c). */
struct gpu_team_shown {
    _Atomic uint32_t state;
    uint32_t blocks; /* that its kernels may have */
    int32_t file;    /* of rank 0: the team's object, in its process */
    uint32_t on;     /* RONDO_NVLS says so */
};

struct gpu_arena {
    _Atomic uint32_t doorbell; /* a futex: somebody published something */
    /* Counts what kernels of this rank read of other ranks and may have kept: regions, `left` */
    _Atomic uint32_t changes;
    _Atomic uint32_t ordered; /* the number of the order; all have answered before the next one */
    struct gpu_order order;
    struct gpu_region_handle inbox; /* of the rank's device communicator (gpu/devcomm.c) */
    _Atomic uint32_t devcomm;       /* what is known of it */
    struct gpu_team_shown nvls;
    struct gpu_region_handle reserve; /* 0 bytes: there is none that peers could map */
    _Atomic uint32_t reach;           /* share/reserve.c: how far this rank is with all of them */
    struct gpu_mailbox mailboxes[];   /* [rank][channel]; behind them the answers of each rank */
};

static inline size_t gpu_arena_bytes(int size)
{
    return sizeof(struct gpu_arena) +
           (size_t)size * (GPU_CHANNELS * sizeof(struct gpu_mailbox) + sizeof(_Atomic uint32_t));
}

static inline struct gpu_mailbox *gpu_mailbox(struct gpu_arena *arena, int from, int channel)
{
    return &arena->mailboxes[from * GPU_CHANNELS + channel];
}

/* Tells that rank's kernels that regions which they may have kept are out of date. Release: who
 * finds the number finds what was changed before. */
static inline void gpu_note_change(struct gpu_arena *arena)
{
    atomic_fetch_add_explicit(&arena->changes, 1, memory_order_release);
}

/* The answer of `rank` to the last order of the arena's owner; written by that rank. */
static inline _Atomic uint32_t *gpu_answer(struct gpu_arena *arena, int size, int rank)
{
    return (_Atomic uint32_t *)(void *)&arena->mailboxes[size * GPU_CHANNELS] + rank;
}

/* A rank's arena as this process and its device see it. */
struct gpu_view {
    struct gpu_arena *arena;
    CUdeviceptr device;
};

/* The device's address of something in an arena. */
static inline CUdeviceptr gpu_view_at(const struct gpu_view *view, const void *member)
{
    return view->device + (CUdeviceptr)((const char *)member - (const char *)view->arena);
}

/* The operand by which kernels reach the sender's memory, through a word of its mailbox. */
static inline struct cuda_operand gpu_mailbox_operand(const struct gpu_view *own,
                                                      const struct gpu_mailbox *mailbox, bool input)
{
    size_t word =
        input ? offsetof(struct gpu_mailbox, input) : offsetof(struct gpu_mailbox, output);

    return (struct cuda_operand){.address = gpu_view_at(own, (const char *)mailbox + word),
                                 .flags = CUDA_INDIRECT,
                                 .gate = (uint32_t)(offsetof(struct gpu_mailbox, left) - word)};
}

/* ---- arena.c --------------------------------------------------------------------------------- */

struct gpu_pages {
    uint64_t comm; /* whose they are; ranks of a communicator agree on them */
    char *memory;
    size_t bytes;
};

/* Pin memory of the host for all devices, once per process however many ranks ask for it. What of
 * it another communicator has pinned is that one's no longer. */
rondo_result gpu_pin(const struct cuda_driver *driver, const struct gpu_pages *pages,
                     CUdeviceptr *ret_device);
void gpu_unpin(const struct cuda_driver *driver, const void *memory, uint64_t comm);

/* ---- Plans on CUDA streams: what a rank keeps, in gpu->plans --------------------------------- */

struct gpu_piece {
    unsigned long long id; /* of the allocation: addresses are used again, this is not */
    uint64_t base, bytes;
};

/* A region that this rank has shown to its peers in a slot: an allocation, or physical memory that
 * is mapped piece behind piece. */
struct gpu_region {
    int pieces;    /* 0: nothing */
    bool files;    /* peers map it by files, not by a handle */
    bool own;      /* a substitute: it stays */
    bool kept;     /* a graph may use it at any time */
    uint32_t used; /* the number of the last call with it */
    struct gpu_piece piece[GPU_PIECES];
};

/* A peer's region, as it is mapped here. */
struct gpu_mapping {
    struct gpu_mapping *next; /* to be unmapped as well */
    CUdeviceptr base;
    int pieces; /* 0: by a handle */
    struct cuda_piece piece[];
};

/* A call that was queued on a stream and may not have ended. */
struct gpu_inflight {
    struct gpu_inflight *next;
    uint32_t number;
    uint64_t word;    /* of the progress, or the kernel's program and step, at the last look */
    uint64_t segment; /* of the kernel, then */
    double began;     /* since when it has been there and waited, 0: it does not */
    double missed;    /* since when a peer that it waits for is seen to be gone, 0: it is there */
    uint32_t foreign; /* of another call: what was in the mailbox that it waits for, then */
    struct gpu_errors *errors; /* of its stream; NULL: it has ended, and the stream knows how */
    bool added, abandoned;     /* to the watchdog; it will not end */
    bool kernel;               /* it runs as one kernel, which has a progress of its own */
    struct gpu_timing *timing; /* of a call that is traced */
    bool pairs;                /* the progress names a task; otherwise a step of the only one */
    int count;
    struct task tasks[]; /* their executions tell health.c where they stand */
};

/* Device memory that stands in for memory which peers cannot map; grows, never shrinks. */
struct gpu_substitute {
    struct gpu_substitute *next;
    CUdeviceptr memory;
    size_t bytes;
};

struct gpu_outgrown {
    struct gpu_outgrown *next;
    CUdeviceptr memory;
};

/* The stages of a broken communicator's device on leaving its calls (gpu/leave.c). */
enum gpu_leaving {
    GPU_STAYS,
    GPU_HIDDEN,  /* what is queued will not touch memory of peers; what runs may */
    GPU_OUTSIDE, /* nothing does */
    GPU_LEFT,    /* nor do the devices of peers touch this rank's: streams are let go */
};

struct gpu_plans {
    struct gpu_plans *next; /* of those that are left alone for ever */
    rondo_comm *comm;
    int rank, size; /* its, for when it is closed */
    struct gpu *gpu;
    struct cuda_launcher *launcher;
    struct gpu_arena *own;
    struct gpu_view *views;    /* [rank], own one included */
    struct cuda_region *table; /* [rank * GPU_REGIONS + region], pinned */
    CUdeviceptr device_table;
    struct gpu_region regions[GPU_REGIONS]; /* own ones */
    bool pieces_refused;                    /* a peer cannot map files */
    int fd_server;                          /* where peers ask for files, 0: nowhere yet */
    bool asks;                              /* this rank asks, as it may not take files */
    bool pending;                           /* not all peers have answered the last order */
    int pending_slot;                       /* the slot of that order */
    struct gpu_region pending_region;       /* the region that it shows */
    bool backing_off;                       /* peers had no room for more mappings */
    uint32_t backoff_since;                 /* the call at which they had none */
    uint32_t *obeyed;                       /* [rank]: the order that was answered last */
    struct gpu_mapping **mappings; /* [rank * GPU_REGIONS + slot], NULL: nothing to unmap */
    struct gpu_mapping *retired;   /* replaced, but still mapped */
    int retired_count;
    int *peer_devices; /* numbers of other devices whose ranks are in this process */
    int peer_device_count;
    CUdeviceptr reserve; /* stands in for what is not longer, 0: none */
    size_t reserve_bytes;
    size_t piece_bytes; /* what fits into every rank's; 0: calls need none, and are not cut */
    bool engines;       /* calls that only move data are copies out of reserves, by copy engines */
    struct gpu_substitute substitutes[2];    /* of inputs, of outputs */
    struct gpu_substitute *pair_substitutes; /* of the messages of a batch */
    struct gpu_outgrown *outgrown;           /* what they all were before they grew */
    struct plan_entry *plans;     /* beside them are programs for the device communicator */
    struct grouping *groups;      /* of ranks by their devices' links; NULL: all are equally near */
    struct link_costs costs;      /* with these groups */
    struct counts counts;         /* of the two ways of all_reduce in these groups */
    size_t short_bytes;           /* up to which a call may be one kernel that sends inputs */
    size_t medium_bytes;          /* ... or one that reads them */
    struct cuda_devcomm *devcomm; /* NULL: calls cannot be one kernel */
    CUdeviceptr *inboxes;         /* [rank], as mapped here */
    struct gpu_nvls *nvls;        /* NULL: no call goes through multicast */
    bool devcomms_ready;          /* every rank has a device communicator, mapped here */
    CUstream side;                /* where groups of several communicators on one stream run */
    CUevent forked;
    struct lock lock;            /* of calls being queued */
    bool in_graph;               /* the one being queued goes into a graph */
    struct gpu_errors *errors;   /* of its stream */
    unsigned long long stream;   /* number of its stream */
    struct gpu_timings *timings; /* NULL: no call was traced so far */
    /* Progress, for the watchdog. */
    struct gpu_progress *progress; /* pinned */
    CUdeviceptr device_progress;
    uint32_t calls;
    _Atomic bool graphs; /* some of the calls are in graphs */
    int graph_blamed;    /* whom one of them waited for at the last look, -1: nobody */
    struct lock inflights_lock;
    struct gpu_inflight *inflights, **last_inflight;
    struct spares spares;         /* calls in flight that have ended */
    struct gpu_capture *captures; /* streams from which graphs got calls */
    struct gpu_plans *next_watched;
    bool queueing; /* a call is being queued */
    _Atomic enum gpu_leaving leaving;
    double left_since; /* 0: the communicator was not broken yet */
    int unanswered;    /* the rank that did not answer when this one left, -1: none */
    bool hidden;       /* peers' memory, from kernels; under the lock of the calls in flight */
    pthread_t watchdog, mapper;
    bool watching, maps;
    _Atomic bool closing;
};

/* Written by streams. */
struct gpu_progress {
    _Atomic uint32_t ended;   /* the number of the last call that ended */
    _Atomic uint32_t error;   /* CUDA_CALL_BAD_OPERAND or CUDA_CALL_BAD_PEER and so on */
    _Atomic uint64_t waiting; /* gpu/waits.c */
};

/* ---- gpu/links.c ----------------------------------------------------------------------------- */

/* For a rank's endpoint: between its device and another one that it reaches, or itself. */
void gpu_links_note(const struct cuda_device *device, CUdevice other, struct device_link *ret_link);
/* With everybody's endpoints: groups, costs, and how long a call may be to be one kernel. */
rondo_result gpu_links_weigh(struct gpu_plans *plans);
/* For calls as operations of streams; the same answer on every rank. */
const struct algorithm *gpu_links_choose(struct gpu_plans *plans, const struct choice_key *key);

/* ---- share/share.c --------------------------------------------------------------------------- */

enum {
    GPU_SHARE_OWN = 1,  /* it is a substitute */
    GPU_SHARE_SOON = 2, /* something else can stand in for it, if peers take long */
};

/*
 * Gives the word by which peers are told where device memory is. Publishes what it lies in, if they
 * have to map that, and waits until all have. RONDO_IN_PROGRESS: it cannot be shared, or not now.
 */
rondo_result gpu_share(struct gpu_plans *plans, CUdeviceptr memory, size_t bytes, unsigned flags,
                       uint64_t *ret_word);
/* Show the reserve, which peers map before the first call; false: they cannot be told where it is,
 * which the log says. */
bool gpu_share_reserve(struct gpu_plans *plans, CUdeviceptr memory, size_t bytes);
/* True if the ranks of this process, on other devices, can use it where it is. */
bool gpu_is_reached(const struct gpu_plans *plans, CUdeviceptr memory, size_t bytes);

/* ---- share/map.c ----------------------------------------------------------------------------- */

/* Memory that a rank has shown by a handle, for this process. */
rondo_result gpu_map(struct gpu_plans *plans, int rank,
                     const struct gpu_region_handle *region_handle, CUdeviceptr *ret_base);
/* Fill the endpoint of memory that peers shall map by a handle. */
rondo_result gpu_hand_out(const struct gpu_plans *plans, CUdeviceptr base, size_t bytes,
                          struct gpu_region_handle *ret_region_handle);
/* The reserve of that rank; false: this rank cannot, and has said so. Before the first call. */
bool gpu_map_reserve(struct gpu_plans *plans, int rank);
/* The files of an order of that rank, all or none; asked for where they may not be taken. */
rondo_result gpu_take_files(struct gpu_plans *plans, int rank, const struct gpu_order *order,
                            int ret_files[GPU_PIECES]);
/* From now on what peers order is done, until the communicator closes or is broken. */
rondo_result gpu_map_start(struct gpu_plans *plans);
void gpu_map_stop(struct gpu_plans *plans); /* plans->closing is set, and somebody has rung */
void gpu_unmap_all(struct gpu_plans *plans);

/* ---- share/fd_server.c ----------------------------------------------------------------------- */

/* From now on peers may ask for the files of an order; safe to call again. */
rondo_result gpu_fd_server_open(struct gpu_plans *plans);
/* Answer those who ask now; while an order is out, and often. */
void gpu_fd_server_serve(const struct gpu_plans *plans);
void gpu_fd_server_close(struct gpu_plans *plans);
/* Ask that rank for the files of its order, order->pieces of them, which the caller closes. */
rondo_result gpu_fd_server_take(struct gpu_plans *plans, int rank, const struct gpu_order *order,
                                int ret_files[GPU_PIECES]);

/* ---- gpu/plan.c ------------------------------------------------------------------------------ */

/* True if the batch can run as plans on the device. The same answer on every rank. */
bool gpu_plans_take(const struct gpu *gpu, const struct batch *batch);
/* Queue a batch on a stream of the device. Its context is current. */
rondo_result gpu_plans_queue(struct gpu_plans *plans, const struct batch *batch, CUstream stream,
                             struct gpu_errors *errors);

/* ---- gpu/devcomm.c --------------------------------------------------------------------------- */

/* Bytes of a block up to which a call is one kernel: see gpu/kernel.c. */
enum { GPU_SHORT = 32 << 10, GPU_MEDIUM = 8 << 20 };
/* Open this rank's device communicator, if there can be one, and show it to the others. */
rondo_result gpu_devcomm_show(struct gpu_plans *plans);
/* Waits until all ranks have said whether they have a device communicator; *ret_all: all have. */
rondo_result gpu_devcomms_await(struct gpu_plans *plans, bool *ret_all);
/* Map the inboxes of all, then, when all ranks have, connect. */
rondo_result gpu_devcomm_map(struct gpu_plans *plans);
rondo_result gpu_devcomm_connect(struct gpu_plans *plans);
void gpu_devcomm_close(struct gpu_plans *plans);

/* ---- share/reserve.c ------------------------------------------------------------------------- */

/* Until a word that this rank shows is at least that much. */
rondo_result gpu_await_shown(const struct gpu_plans *plans, int rank, const _Atomic uint32_t *word,
                             uint32_t least, uint32_t *ret_value);

/* ---- gpu/kernel.c ---------------------------------------------------------------------------- */

/* The task of a call in flight, its execution set to where the kernel stands; NULL: it does not
 * wait. `moved`: it stood somewhere else at the last look. */
struct task *gpu_kernel_standing(struct gpu_plans *plans, struct gpu_inflight *inflight,
                                 bool *ret_foreign, bool *ret_moved);
/* The rank that the kernel that runs now waits for, -1: none. */
int gpu_kernel_blamed(const struct gpu_plans *plans);
/* True if a kernel has ended because of a message of another call. */
bool gpu_kernel_failed(const struct gpu_plans *plans);
/* From now on kernels begin to touch no memory of peers; gpu_kernel_is_inside() says whether one
 * may be touching some. Both are for any thread. */
void gpu_kernel_hold(struct gpu_plans *plans);
bool gpu_kernel_is_inside(const struct gpu_plans *plans);
/* Make kernels end, now and later; any thread. */
void gpu_kernel_stop(struct gpu_plans *plans);

/* ---- gpu/waits.c ----------------------------------------------------------------------------- */

/* True if a call of a graph waits. */
bool gpu_graph_waits(const struct gpu_plans *plans);
/* Check that the rank lives that the graph waits for, and that no peer's communicator is broken. */
void gpu_graph_look_after(struct gpu_plans *plans);

/* ---- gpu/watchdog.c -------------------------------------------------------------------------- */

/* A thread of the plans does nothing else until they close: it looks, and sleeps until somebody
 * rings the doorbell, or for so many seconds, less than one. */
void gpu_look_until_closed(struct gpu_plans *plans, void (*look_once)(struct gpu_plans *),
                           double (*seconds)(struct gpu_plans *));
rondo_result gpu_watchdog_start(struct gpu_plans *plans);
/* After all that was queued has ended, or, if the communicator is broken, was let go; false if
 * some of it is stuck all the same. */
bool gpu_watchdog_stop(struct gpu_plans *plans);
/* Open the record of the next call in flight, with these tasks; the caller says how each is
 * executed. NULL, with a sentence: out of memory. */
struct gpu_inflight *gpu_inflight_open(struct gpu_plans *plans, const struct task *tasks,
                                       int count);
/* Tell the watchdog of a call in flight that is on its way or will be at once, as queueing waits
 * for the stream if it copies from or to plain memory of the host. Accepts NULL. From its last
 * operation on, the record may be gone. */
void gpu_watchdog_add(struct gpu_plans *plans, struct gpu_inflight *inflight);
/* Drop the record of a call that could not be queued, whether the watchdog was told of it or not.
 * Accepts NULL. */
void gpu_inflight_abandon(struct gpu_plans *plans, struct gpu_inflight *inflight);
void gpu_ring(struct gpu_plans *plans); /* wake the watchdogs of all peers */
/* True if the stream stands, or will, at a wait of a call in flight, so that nothing of it runs. */
bool gpu_backing_off(const struct gpu_plans *plans);

/* ---- gpu/judge.c ----------------------------------------------------------------------------- */

/* Streams may ask about calls of these plans from gpu_judge_enlist() to gpu_judge_delist(). */
void gpu_judge_enlist(struct gpu_plans *plans);
void gpu_judge_delist(struct gpu_plans *plans);
/* Note that a graph gets calls from the stream of `errors`. */
rondo_result gpu_judge_capture(struct gpu_plans *plans, struct gpu_errors *errors);
/* Tell streams of the calls that have ended. False: how, cannot be said yet; ask again. */
bool gpu_judge(struct gpu_plans *plans);
/* Tell a stream, which has ended, of all its calls. */
void gpu_judge_stream(struct gpu_errors *errors);

/* ---- gpu/leave.c ----------------------------------------------------------------------------- */

/* Begin to queue a call; an error: why it can't be queued. */
rondo_result gpu_inside(struct gpu_plans *plans);
/* End what gpu_inside() began: the call is queued, or could not be. */
void gpu_inside_queued(struct gpu_plans *plans);
/* The watchdog: nothing is on its way any more? Then nothing touches memory of peers. */
void gpu_outside_if_idle(struct gpu_plans *plans);
/* The watchdog: the communicator is broken. True: all have left, streams may be let go. */
bool gpu_leave(struct gpu_plans *plans, struct gpu_inflight *oldest);

#endif
