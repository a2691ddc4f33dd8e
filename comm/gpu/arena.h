/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.h - what ranks of a node keep for each other's CUDA streams, in memory of the host.
 *
 *     sender's stream     wait: mail.full = 0 | words | mail.full = fingerprint
 *     reader's stream     wait: mail.full = fingerprint | mail.full = 0 | kernels read the words
 *
 * Every rank has an arena in its shared heap, with a mail from each rank on each lane. All ranks
 * have it pinned, so their devices read and write it; the waits are memory operations of streams,
 * which keep no processor of the device busy, so ranks may share one. The words say where the
 * sender's buffers are (cuda/kernels/calls.h) and stay until the next message of the same sender.
 * A number of a message is not needed: a mail is empty again before it is filled, and what is
 * recorded in a graph can be replayed.
 */
#ifndef RONDO_COMM_GPU_ARENA_H
#define RONDO_COMM_GPU_ARENA_H

#include "base/lock.h"
#include "comm/gpu/inside.h"
#include "cuda/kernels/calls.h"
#include "cuda/vmm.h"

enum {
    GPU_SEGMENTS = 64,              /* allocations of a rank that its peers map at a time */
    GPU_USER_SEGMENTS = 40,         /* so many of them are the user's; the others are substitutes */
    GPU_RESERVE = GPU_SEGMENTS - 1, /* the slot of the one that is mapped at the start */
    GPU_PIECES = 32,                /* pieces of physical memory in one allocation */
    GPU_LANES = 2,
    GPU_LANE_COLLECTIVE = 0,
    GPU_LANE_PAIR = 1, /* sends and receives */
};

struct gpu_mail {
    _Alignas(64) _Atomic uint32_t full; /* the fingerprint of the call, or 0 */
    _Atomic uint64_t input, output;
    _Atomic uint32_t left; /* the sender has left for good: kernels touch nothing of it */
};

/* One allocation on a device, for peers to map. */
struct gpu_segment_card {
    uint64_t base, bytes;
    unsigned char handle[64]; /* CUipcMemHandle */
};

/* An order to the peers: what to map now in place of what they had in that slot. */
struct gpu_order {
    uint32_t number; /* its own */
    uint32_t slot;
    int32_t pieces; /* 0: the card has a handle; otherwise these many files */
    struct gpu_segment_card card;
    struct cuda_piece piece[GPU_PIECES];
};

/* The answer of a peer: the number of the order, and in the lowest bits how the peer did. */
enum { GPU_DONE, GPU_CANNOT, GPU_NOT_NOW, GPU_ANSWER_BITS = 2 };

struct gpu_arena {
    _Atomic uint32_t bell;    /* a futex: somebody published something */
    _Atomic uint32_t ordered; /* the number of the order; all have answered before the next one */
    struct gpu_order order;
    struct gpu_segment_card inbox;   /* of the rank's seat (gpu/seat.c) */
    _Atomic uint32_t seat;           /* what is known of it */
    struct gpu_segment_card reserve; /* 0 bytes: there is none that peers could map */
    _Atomic uint32_t reach;          /* share/reserve.c: how far this rank is with all of them */
    struct gpu_mail mails[];         /* [rank][lane]; behind them the answers of each rank */
};

static inline size_t gpu_arena_bytes(int size)
{
    return sizeof(struct gpu_arena) +
           (size_t)size * (GPU_LANES * sizeof(struct gpu_mail) + sizeof(_Atomic uint32_t));
}

static inline struct gpu_mail *gpu_mail(struct gpu_arena *arena, int from, int lane)
{
    return &arena->mails[from * GPU_LANES + lane];
}

/* The answer of `rank` to the last order of the arena's owner; written by that rank. */
static inline _Atomic uint32_t *gpu_answer(struct gpu_arena *arena, int size, int rank)
{
    return (_Atomic uint32_t *)(void *)&arena->mails[size * GPU_LANES] + rank;
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

/* What kernels use of the sender's memory, by a word of its mail. */
static inline struct cuda_operand gpu_mail_operand(const struct gpu_view *own,
                                                   const struct gpu_mail *mail, bool input)
{
    size_t word = input ? offsetof(struct gpu_mail, input) : offsetof(struct gpu_mail, output);

    return (struct cuda_operand){.address = gpu_view_at(own, (const char *)mail + word),
                                 .flags = CUDA_INDIRECT,
                                 .gate = (uint32_t)(offsetof(struct gpu_mail, left) - word)};
}

/* ---- arena.c ---- */

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

/* ---- Plans on CUDA streams: what a rank keeps, in gpu->plans ---- */

struct gpu_piece {
    unsigned long long id; /* of the allocation: addresses are used again, this is not */
    uint64_t base, bytes;
};

/* A segment that this rank has shown to its peers in a slot: an allocation, or physical memory that
 * is mapped piece behind piece. */
struct gpu_segment {
    int pieces;    /* 0: nothing */
    bool files;    /* peers map it by files, not by a handle */
    bool own;      /* a substitute: it stays */
    bool kept;     /* a graph may use it at any time */
    uint32_t used; /* the number of the last call with it */
    struct gpu_piece piece[GPU_PIECES];
};

/* A peer's segment, as it is mapped here. */
struct gpu_mapping {
    struct gpu_mapping *next; /* to be unmapped as well */
    CUdeviceptr base;
    int pieces; /* 0: by a handle */
    struct cuda_piece piece[];
};

/* A call that was queued on a stream and may not have ended. */
struct gpu_flight {
    struct gpu_flight *next;
    uint32_t number;
    uint32_t at;      /* the progress when it was last looked at */
    double began;     /* since when it has been that, 0: not yet */
    double missed;    /* since when a peer that it waits for is seen to be gone, 0: it is there */
    uint32_t foreign; /* of another call: what was in the mail that it waits for, then */
    struct gpu_errors *errors; /* of its stream; NULL: it has ended, and the stream knows how */
    bool added, abandoned;     /* to the watch; it will not end */
    bool kernel;               /* it runs as one kernel, which has a progress of its own */
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

/* A stream from which a graph got calls; which launches of it have ended nobody knows. */
struct gpu_capture {
    struct gpu_capture *next;
    struct gpu_errors *errors;
};

/* How far a broken communicator's device is with leaving (gpu/leave.c). */
enum gpu_leaving {
    GPU_STAYS,
    GPU_HIDDEN,  /* what is queued will not touch memory of peers; what runs may */
    GPU_OUTSIDE, /* nothing does */
    GPU_LEFT,    /* nor do the devices of peers touch this rank's: streams are let go */
};

struct gpu_plan_entry {
    struct gpu_plan_entry *next;
    struct plan *plan;
};

struct cuda_launcher;
struct cuda_seat;
struct gpu_program;
struct gpu_plans {
    struct gpu_plans *next; /* of those that are left alone for ever */
    rondo_comm *comm;
    struct gpu *gpu;
    struct cuda_launcher *launcher;
    struct gpu_arena *own;
    struct gpu_view *views;     /* [rank], own one included */
    struct cuda_segment *table; /* [rank * GPU_SEGMENTS + segment], pinned */
    CUdeviceptr device_table;
    struct gpu_segment segments[GPU_SEGMENTS]; /* own ones */
    bool pieces_refused;                       /* a peer cannot map files */
    int door;                                  /* where peers ask for files, 0: nowhere yet */
    bool asks;                                 /* this rank asks, as it may not take files */
    bool pending;                              /* not all peers have answered the last order */
    int pending_slot;                          /* the slot of that order */
    struct gpu_segment pending_segment;        /* the segment that it shows */
    bool rests;                                /* peers had no room for more mappings */
    uint32_t rests_since;                      /* the call at which they had none */
    uint32_t *obeyed;                          /* [rank]: the order that was answered last */
    struct gpu_mapping **mappings; /* [rank * GPU_SEGMENTS + slot], NULL: nothing to unmap */
    struct gpu_mapping *retired;   /* replaced, but still mapped */
    int retired_count;
    int *peer_devices; /* numbers of other devices whose ranks are in this process */
    int peer_device_count;
    CUdeviceptr reserve; /* stands in for what is not longer, 0: none */
    size_t reserve_bytes;
    size_t piece_bytes; /* what fits into every rank's; 0: calls need none, and are not cut */
    struct gpu_substitute substitutes[2];    /* of inputs, of outputs */
    struct gpu_substitute *pair_substitutes; /* of the messages of a batch */
    struct gpu_outgrown *outgrown;           /* what they all were before they grew */
    struct gpu_plan_entry *entries;
    struct grouping *groups;      /* of ranks by their devices' links; NULL: all are equally near */
    struct link_costs costs;      /* with these groups */
    struct counts counts;         /* of the two ways of all_reduce in these groups */
    size_t short_bytes;           /* up to which a call may be one kernel */
    struct cuda_seat *seat;       /* NULL: calls cannot be one kernel */
    CUdeviceptr *inboxes;         /* [rank], as mapped here */
    bool seated;                  /* every rank has a seat, mapped here */
    struct gpu_program *programs; /* plans for it */
    CUstream side;                /* where groups of several communicators on one stream run */
    CUevent forked;
    struct lock lock;          /* of calls being queued */
    bool in_graph;             /* the one being queued goes into a graph */
    struct gpu_errors *errors; /* of its stream */
    /* Progress, for the watch. */
    struct gpu_progress *progress; /* pinned */
    CUdeviceptr device_progress;
    uint32_t calls;
    _Atomic bool graphs; /* some of the calls are in graphs */
    int graph_blamed;    /* whom one of them waited for at the last look, -1: nobody */
    struct lock flights_lock;
    struct gpu_flight *flights, **last_flight;
    struct gpu_capture *captures; /* streams from which graphs got calls */
    struct gpu_plans *next_watched;
    bool queueing; /* a call is being queued */
    _Atomic enum gpu_leaving leaving;
    double left_since; /* 0: the communicator was not broken yet */
    int unanswered;    /* the rank that did not answer when this one left, -1: none */
    bool hidden;       /* peers' memory, from kernels; under the lock of the flights */
    pthread_t watch, mapper;
    bool watching, maps;
    _Atomic bool closing;
};

/* Written by streams. */
struct gpu_progress {
    _Atomic uint32_t ended;   /* the number of the last call that ended */
    _Atomic uint32_t at;      /* low 16 bits of the call's number, and the step that it waits at */
    _Atomic uint32_t error;   /* CUDA_CALL_BAD_OPERAND and so on */
    _Atomic uint64_t waiting; /* of a graph: gpu/graph.c */
};

/* ---- gpu/links.c ---- */

/* For a rank's card: between its device and another one that it reaches, or itself. */
void gpu_links_note(const struct cuda_device *device, CUdevice other, struct device_link *ret_link);
/* With everybody's cards: groups, costs, and how long a call may be to be one kernel. */
rondo_result gpu_links_weigh(struct gpu_plans *plans);
/* For calls as operations of streams; the same answer on every rank. */
const struct algorithm *gpu_links_choose(struct gpu_plans *plans, const struct choice_key *key);

/* ---- share/share.c ---- */

enum {
    GPU_SHARE_OWN = 1,  /* it is a substitute */
    GPU_SHARE_SOON = 2, /* something else can stand in for it, if peers take long */
};

/* Where peers find device memory: the word that they are told. Publishes what it lies in, if they
 * have to map that, and waits until all have. RONDO_IN_PROGRESS: it cannot be shared, or not now.
 */
rondo_result gpu_share(struct gpu_plans *plans, CUdeviceptr memory, size_t bytes, unsigned flags,
                       uint64_t *ret_word);
/* Show the reserve, which peers map before the first call; false: they cannot be told where it is,
 * which the log says. */
bool gpu_share_reserve(struct gpu_plans *plans, CUdeviceptr memory, size_t bytes);
/* Can the ranks of this process, on other devices, use it where it is? */
bool gpu_is_reached(const struct gpu_plans *plans, CUdeviceptr memory, size_t bytes);

/* ---- share/map.c ---- */

/* Memory that a rank has shown by a handle, for this process. */
rondo_result gpu_map(struct gpu_plans *plans, int rank, const struct gpu_segment_card *card,
                     CUdeviceptr *ret_base);
/* Fill the card of memory that peers shall map by a handle. */
rondo_result gpu_hand_out(const struct gpu_plans *plans, CUdeviceptr base, size_t bytes,
                          struct gpu_segment_card *ret_card);
/* The reserve of that rank; false: this rank cannot, and has said so. Before the first call. */
bool gpu_map_reserve(struct gpu_plans *plans, int rank);
/* From now on what peers order is done, until the communicator closes or is broken. */
rondo_result gpu_map_start(struct gpu_plans *plans);
void gpu_map_stop(struct gpu_plans *plans); /* plans->closing is set, and somebody has rung */
void gpu_unmap_all(struct gpu_plans *plans);
/* A call is being queued: until the second, nothing is unmapped. */
void gpu_queueing_begin(void);
void gpu_queueing_end(void);
/* So many calls more, or fewer, are on their way. */
void gpu_flights_count(int more);

/* ---- share/door.c ---- */

/* From now on peers may ask for the files of an order; safe to call again. */
rondo_result gpu_door_open(struct gpu_plans *plans);
/* Answer those who ask now; while an order is out, and often. */
void gpu_door_serve(const struct gpu_plans *plans);
void gpu_door_close(struct gpu_plans *plans);
/* Ask that rank for the files of its order, order->pieces of them, which the caller closes. */
rondo_result gpu_door_take(struct gpu_plans *plans, int rank, const struct gpu_order *order,
                           int ret_files[GPU_PIECES]);

/* ---- gpu/plan.c ---- */

/* The plan of a call; of one between two ranks it is for sentences only. */
rondo_result gpu_find_plan(struct gpu_plans *plans, const struct choice_key *key,
                           const struct plan **ret_plan);

/* Can the batch run as plans on the device? The same answer on every rank. */
bool gpu_plans_take(const struct gpu *gpu, const struct batch *batch);
/* Queue a batch on a stream of the device. Its context is current. */
rondo_result gpu_plans_queue(struct gpu_plans *plans, const struct batch *batch, CUstream stream,
                             struct gpu_errors *errors);

/* ---- gpu/seat.c ---- */

enum { GPU_SHORT = 32 << 10 }; /* bytes of a block, up to which a call is one kernel */
/* Open this rank's seat, if there can be one, and show it to the others. */
rondo_result gpu_seat_show(struct gpu_plans *plans);
/* Have all ranks one? Waits until they have said so. */
rondo_result gpu_seats_await(struct gpu_plans *plans, bool *ret_all);
/* Map the inboxes of all, then, when all ranks have, sit down. */
rondo_result gpu_seat_map(struct gpu_plans *plans);
rondo_result gpu_seat_connect(struct gpu_plans *plans);
void gpu_seat_close(struct gpu_plans *plans);

/* ---- share/reserve.c ---- */

/* Allocate the reserve and show it to the others. */
void gpu_reserve_show(struct gpu_plans *plans);
/* Until a word that this rank shows is at least that much. */
rondo_result gpu_await_shown(const struct gpu_plans *plans, int rank, const _Atomic uint32_t *word,
                             uint32_t least, uint32_t *ret_value);

/* ---- gpu/kernel.c ---- */

/* Is the call one kernel? The same answer on every rank. */
bool gpu_is_short(const struct gpu_plans *plans, const struct task *task);
rondo_result gpu_kernel_queue(struct gpu_plans *plans, const struct task *task,
                              struct gpu_flight *flight, CUstream stream);
/* The task of a flight, its execution set to where the kernel stands; NULL: it does not wait. */
struct task *gpu_kernel_standing(struct gpu_plans *plans, struct gpu_flight *flight,
                                 bool *ret_foreign);
/* The rank that the kernel that runs now waits for, -1: none. */
int gpu_kernel_blamed(const struct gpu_plans *plans);
/* Has a kernel ended because of a message of another call? */
bool gpu_kernel_failed(const struct gpu_plans *plans);
void gpu_programs_close(struct gpu_plans *plans); /* before the seat */
/* Make kernels end, now and later; any thread. */
void gpu_kernel_stop(struct gpu_plans *plans);

/* ---- gpu/graph.c ---- */

/* Does a call of a graph wait? */
bool gpu_graph_waits(const struct gpu_plans *plans);
/* Check that the rank lives that the graph waits for, and that no peer's communicator is broken. */
void gpu_graph_look_after(struct gpu_plans *plans);
/* Give the graph what it waits for. */
void gpu_graph_let_go(struct gpu_plans *plans);

/* ---- gpu/watch.c ---- */

/* A thread of the plans does nothing else until they close: it looks, and sleeps until somebody
 * rings the bell, or for so many seconds, less than one. */
void gpu_look_until_closed(struct gpu_plans *plans, void (*look_once)(struct gpu_plans *),
                           double (*seconds)(struct gpu_plans *));
rondo_result gpu_watch_start(struct gpu_plans *plans);
/* After all that was queued has ended, or, if the communicator is broken, was let go; false if
 * some of it is stuck all the same. */
bool gpu_watch_stop(struct gpu_plans *plans);
/* Open the flight of the next call, of these tasks: sends and receives, or one collective. */
rondo_result gpu_flight_open(struct gpu_plans *plans, const struct task *tasks, int count,
                             struct gpu_flight **ret_flight);
/* Tell the watch of a flight that is on its way or will be at once, as queueing waits for the
 * stream if it copies from or to plain memory of the host. Accepts NULL. From its last operation
 * on, the flight may be gone. */
void gpu_watch_add(struct gpu_plans *plans, struct gpu_flight *flight);
/* Drop a flight that could not be queued, whether the watch was told of it or not. */
void gpu_flight_abandon(struct gpu_plans *plans, struct gpu_flight *flight);
void gpu_ring(struct gpu_plans *plans); /* wake the watches of all peers */
/* Does the stream stand, or will it, at a wait of the call that is not over? Then nothing of it
 * runs. */
bool gpu_flight_rests(struct gpu_plans *plans, struct gpu_flight *flight);

/* ---- gpu/judge.c ---- */

/* Streams may ask about calls of these plans from gpu_judge_enlist() to gpu_judge_delist(). */
void gpu_judge_enlist(struct gpu_plans *plans);
void gpu_judge_delist(struct gpu_plans *plans);
/* Note that a graph gets calls from the stream of `errors`. */
rondo_result gpu_judge_capture(struct gpu_plans *plans, struct gpu_errors *errors);
/* Tell streams of the calls that have ended. False: how, cannot be said yet; ask again. */
bool gpu_judge(struct gpu_plans *plans);
/* Tell a stream, which has ended, of all its calls. */
void gpu_judge_stream(struct gpu_errors *errors);

/* ---- gpu/leave.c ---- */

/* Begin to queue a call; an error: why it can't be queued. */
rondo_result gpu_inside(struct gpu_plans *plans);
/* End what gpu_inside() began: the call is queued, or could not be. */
void gpu_inside_queued(struct gpu_plans *plans);
/* The watch: nothing is on its way any more? Then nothing touches memory of peers. */
void gpu_outside_if_idle(struct gpu_plans *plans);
/* The watch: the communicator is broken. True: all have left, streams may be let go. */
bool gpu_leave(struct gpu_plans *plans, struct gpu_flight *oldest);

#endif
