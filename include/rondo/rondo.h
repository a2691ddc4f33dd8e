/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rondo.h - collective communication between ranks.
 *
 * A communicator joins `size` ranks, numbered 0 .. size-1; a rank is a process or a thread. Every
 * rank makes the same collective calls in the same order. The program in README.md shows a whole
 * life: open, all_reduce, close.
 *
 * Memory     any host pointer works; memory from rondo_mem_alloc() or rondo_comm_register() is
 *            mapped by the peers on the same node, so that no staging copy is made, and read by
 *            RDMA adapters where it is. The result never depends on the kind of memory. Buffers
 *            belong to a call until it is over: who frees one that a stream still uses may crash.
 * Blocking   a NULL stream means: return when this rank's output is complete and its input may be
 *            changed again. With a stream the call returns at once and runs after everything
 *            queued on that stream before it.
 * Errors     every function returns a rondo_result; outputs are written on success only.
 *            rondo_last_error() holds the sentence that names the rank, the peer, the call and the
 *            remedy. After an error inside a collective (anything but RONDO_ERROR_INVALID) the
 *            communicator is broken on every rank, which the call that a rank is in returns, or
 *            its next one. All that is left then is to agree, to shrink, to open another one among
 *            some of its ranks, and to close it. Once a call has returned an error, no peer
 *            reads or writes its buffers any more: they may be changed and freed at once. (If a
 *            peer does not let go of them, because it is stopped, their pages are exchanged:
 *            memory from rondo_mem_alloc() is as good as malloc()'s from then on until it is freed,
 *            registered memory is not registered any more, and pages that a program has pinned by
 *            other means are not those that it sees.) RONDO_OK means that the result is right.
 * Threads    different communicators are independent. Calls on one communicator may come from
 *            several threads and are then served one after another; all ranks must see the same
 *            order. pthread_cancel() takes effect when the function has returned, not within it:
 *            rondo_comm_abort() ends a call that waits.
 * Bits       every rank gets the same bits, and the same call repeated gives the same bits, in any
 *            floating-point mode of the thread, which stays (user functions run in the default). On
 *            one node, unless an algorithm is named, and always with the `deterministic` setting, a
 *            sum is associated as one balanced binary tree over the ranks in any algorithm.
 */
#ifndef RONDO_RONDO_H
#define RONDO_RONDO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RONDO_API __attribute__((visibility("default")))

#define RONDO_VERSION_MAJOR 0
#define RONDO_VERSION_MINOR 1
#define RONDO_VERSION_PATCH 0
/* To compare with in #if: 10000 * major + 100 * minor + patch. */
#define RONDO_VERSION \
    (RONDO_VERSION_MAJOR * 10000 + RONDO_VERSION_MINOR * 100 + RONDO_VERSION_PATCH)

typedef enum rondo_result {
    RONDO_OK = 0,
    RONDO_IN_PROGRESS,       /* a query: not finished yet; no error */
    RONDO_ERROR_INVALID,     /* an argument is wrong; nothing was started, all stays usable */
    RONDO_ERROR_MISMATCH,    /* a peer called something else: collective, count, type, op or root */
    RONDO_ERROR_PEER,        /* a peer is dead or gone */
    RONDO_ERROR_TIMEOUT,     /* a peer was silent for longer than the `timeout` setting */
    RONDO_ERROR_ABORTED,     /* rondo_comm_abort() was called, here or on a peer */
    RONDO_ERROR_MEMORY,      /* out of memory, or of shared memory */
    RONDO_ERROR_SYSTEM,      /* the operating system refused something */
    RONDO_ERROR_AUTH,        /* the other side does not know the secret, or bytes were changed */
    RONDO_ERROR_UNSUPPORTED, /* cannot be done here; the sentence says what is missing */
    RONDO_ERROR_INTERNAL,    /* a bug in Rondo */
    RONDO_RESULTS            /* how many there are */
} rondo_result;

/* Element types. The 8-bit floats are those of the OCP
 * specification (e4m3 has no infinity); conversions saturate. */
typedef enum rondo_type {
    RONDO_INT8 = 0,
    RONDO_UINT8,
    RONDO_INT16,
    RONDO_UINT16,
    RONDO_INT32,
    RONDO_UINT32,
    RONDO_INT64,
    RONDO_UINT64,
    RONDO_FLOAT16,
    RONDO_BFLOAT16,
    RONDO_FLOAT32,
    RONDO_FLOAT64,
    RONDO_FLOAT8_E4M3,
    RONDO_FLOAT8_E5M2,
    RONDO_TYPES /* how many there are */
} rondo_type;

/*
 * Reduction operations: one of these, or a handle made by rondo_op_create_*().
 * Integer sums and products wrap. MIN and MAX give NaN when any rank has NaN, and order -0 below
 * +0. AVG is the sum (of integers: wrapped) divided by the number of ranks, truncated towards zero
 * on integers; where a partial sum of float16 or an 8-bit float might overflow, inputs are made
 * smaller by a power of two first. BAND, BOR and BXOR are for integers only.
 */
typedef int rondo_op;
enum {
    RONDO_SUM = 0,
    RONDO_PROD,
    RONDO_MIN,
    RONDO_MAX,
    RONDO_AVG,
    RONDO_BAND,
    RONDO_BOR,
    RONDO_BXOR,
    RONDO_OPS
};

typedef struct rondo_comm rondo_comm;
typedef struct rondo_stream rondo_stream;
typedef struct rondo_event rondo_event;
typedef struct rondo_registration rondo_registration;

/* Names a communicator to be made: an address, and the secret that proves the right to join. */
typedef struct rondo_unique_id {
    unsigned char bytes[128];
} rondo_unique_id;

/*
 * Settings of one communicator; all but the timeout, the device, its blocks and the traffic class
 * must be the same on every rank. Start from RONDO_CONFIG_INIT: each field then means "not set". An
 * environment variable (docs/configuration.md) fills what is not set here.
 */
typedef struct rondo_config {
    size_t struct_size;
    int deterministic;     /* 1: sums associate as one balanced tree over ranks; -1: not set */
    const char *algorithm; /* "auto" or a name from `rondo explain --list`; NULL: not set */
    size_t slot_bytes;     /* payload of one slot; 0: not set */
    int slots;             /* slots in each direction between two ranks; 0: not set */
    double timeout;        /* seconds that a peer may be silent; 0: for ever, negative: not set */
    int cuda_device;       /* its number; each rank's own (cuda.h); -2: none; -1: not set */
    const char *network;   /* "tcp" or "verbs": the only one between hosts; NULL: not set */
    int traffic_class; /* of what goes between hosts, 1 .. 255: the byte of IP's header, and without
                        * IP (InfiniBand) its low 4 bits as service level; 0: not set */
    int min_blocks;    /* that kernels on a GPU have where the device holds so many; 0: not set */
    int max_blocks;    /* that they may have, and at least one per program; 0: not set */
    int uniform;       /* 1: a collective returns the same on all ranks left; -1: not set */
    int copy_engines;  /* 1: calls on GPUs that add nothing up use no kernels; -1: not set */
} rondo_config;
#define RONDO_CONFIG_INIT                                                     \
    {                                                                         \
        sizeof(rondo_config), -1, NULL, 0, 0, -1.0, -1, NULL, 0, 0, 0, -1, -1 \
    }

/*
 * fork(). A communicator, stream, event or group belongs to the process that made it. In a child
 * every call on one is RONDO_ERROR_INVALID with a sentence, and the parent notices nothing. A child
 * may close what it inherited, which does nothing to the parent or to peers, may exec or exit, and
 * may open communicators and streams of its own. Memory from rondo_mem_alloc() and registered
 * memory is shared with the parent: it may be read, and what is written there the parent sees;
 * rondo_mem_free() of it in the child is refused. Peers notice the death of a rank although a child
 * of it lives on.
 */

/* ---- Starting and ending --------------------------------------------------------------------- */

/*
 * Join the communicator of the job this process was started in. Rank, size and meeting point come
 * from the environment of `rondo run`, torchrun, mpirun (Open MPI, MPICH) or srun; alone, a process
 * is rank 0 of 1. Blocks until all ranks have called it; all that are left get it, or none does.
 * `config` may be NULL. The caller owns *ret_comm and closes it.
 */
RONDO_API rondo_result rondo_comm_open(const rondo_config *config, rondo_comm **ret_comm);

/* Make an id on one rank and hand it to the others by any
 * means. This process listens until `size` ranks have come. */
RONDO_API rondo_result rondo_unique_id_create(rondo_unique_id *ret_id);

/* Join by id. Blocks until all `size` ranks have called it;
 * inside a group it completes at rondo_group_end(). */
RONDO_API rondo_result rondo_comm_open_id(const rondo_unique_id *id, int size, int rank,
                                          const rondo_config *config, rondo_comm **ret_comm);

/* All ranks in this process: comms[r] is rank r's, to be used by a thread each or in groups. */
RONDO_API rondo_result rondo_comm_open_all(int size, const rondo_config *config,
                                           rondo_comm **ret_comms);

/*
 * Collective: ranks that give the same `color` >= 0 form a new communicator, ordered by `key`, then
 * by old rank. With color -1 a rank takes part but gets none: *ret_comm is NULL.
 */
RONDO_API rondo_result rondo_comm_split(rondo_comm *comm, int color, int key,
                                        const rondo_config *config, rondo_comm **ret_comm);
/* Collective: a communicator over the same ranks with its own order of calls. */
RONDO_API rondo_result rondo_comm_dup(rondo_comm *comm, rondo_comm **ret_comm);

/*
 * A communicator out of some ranks of another, without the rest: these make no call, and may be
 * dead. `ranks` are `count` different ranks of `parent`, the caller's among them; each of them
 * gives the same list, and ranks[i] becomes rank i. Blocks until all of them have called it, and
 * sends no message on `parent`, which may be broken (between hosts it has to be sound), stays as it
 * is, and must not be closed meanwhile. RONDO_ERROR_PEER within a second on each of them if one
 * ends, or closes `parent`, before the new communicator is there: the sentence names its rank in
 * `parent`, and the others may call it again without that one at once. For one `parent`, one call
 * at a time; not in a group. An error leaves `parent` as it is.
 */
RONDO_API rondo_result rondo_comm_open_among(rondo_comm *parent, const int *ranks, int count,
                                             const rondo_config *config, rondo_comm **ret_comm);

/* Collective, not in a group: wait until what this rank queued is done and all ranks are here. */
RONDO_API rondo_result rondo_comm_finalize(rondo_comm *comm);
/* Free it; local, waits for queued work. Refused in a group with a call on it, or on memory that it
 * registered. Accepts NULL. Set the pointer to NULL: calls refuse that, and one of the last 16
 * closed. A process may end without closing: its queue is lost, who waits gets RONDO_ERROR_PEER. */
RONDO_API void rondo_comm_close(rondo_comm *comm);
/* Break it, from any thread: calls in progress, also its dup and split, end with
 * RONDO_ERROR_ABORTED here and on every peer, between hosts also one that still makes it. */
RONDO_API rondo_result rondo_comm_abort(rondo_comm *comm);

/* ---- Going on after a failure (docs/recovery.md) --------------------------------------------- */

/*
 * These work on a communicator that is broken as well, on up to 2048 ranks, not in a group. Agree,
 * shrink and grow are collective: all ranks that are left make the same of these calls in the same
 * order (RONDO_ERROR_MISMATCH on all of them if they do not). They wait for their turn behind other
 * calls of this rank on `comm`, and for a rank that does not come until it has ended, has closed
 * `comm`, or has been silent for the timeout: then it has failed, for good. A rank that comes after
 * that gets RONDO_ERROR_PEER, and can only close `comm`. Arrays of ranks have room for all ranks of
 * `comm`, are filled in ascending order, and may be NULL, like the places for how many there are.
 */

/*
 * *flags becomes the bitwise and of the flags of the ranks that are left (NULL: this rank has no
 * say), ret_failed the ranks that have failed, *ret_count how many these are: the same on every
 * rank that gets RONDO_OK, also if ranks end meanwhile. A rank that ends during the call is in this
 * list or in the next one. Failed ranks are no error.
 */
RONDO_API rondo_result rondo_comm_agree(rondo_comm *comm, uint64_t *flags, int *ret_failed,
                                        int *ret_count);
/* Those of the last agreement, and who is seen to have ended or closed `comm` since. Local, from
 * any thread, does not wait; other ranks may know of others. Ranks of other hosts are asked how
 * they are, whose answers the next call knows. */
RONDO_API rondo_result rondo_comm_failed(rondo_comm *comm, int *ret_failed, int *ret_count);
/* Break it, from any thread, so that peers which wait in calls come to the agreement as well: calls
 * end with RONDO_ERROR_ABORTED here and on every peer. Does nothing to one that is broken. */
RONDO_API rondo_result rondo_comm_revoke(rondo_comm *comm);
/*
 * A communicator of the ranks that are left, in their old order; the ranks that failed are agreed
 * upon. All ranks get it, or all get an error. `config` may be NULL: the settings of `comm`. The
 * caller owns *ret_comm; `comm` stays as it is, and may be closed then.
 */
RONDO_API rondo_result rondo_comm_shrink(rondo_comm *comm, const rondo_config *config,
                                         rondo_comm **ret_comm);
/*
 * A communicator of all ranks of `comm` and of newcomers, who meet by `id`, which any rank has
 * made. Members give `comm` and -1, and keep their ranks; a newcomer gives NULL and its rank, from
 * the number of members up. `size` counts all. Blocks until all have come; all ranks get the new
 * communicator, or all get an error: RONDO_ERROR_TIMEOUT if a newcomer never comes. A newcomer that
 * meets nobody by the id gets RONDO_ERROR_INVALID. A failed member is RONDO_ERROR_PEER: shrink
 * first. `config` as in shrink; a newcomer's has to fit. The caller owns *ret_comm; `comm` stays.
 */
RONDO_API rondo_result rondo_comm_grow(rondo_comm *comm, const rondo_unique_id *id, int size,
                                       int rank, const rondo_config *config, rondo_comm **ret_comm);
/* Set the `timeout` setting of this rank from now on, also for a call that waits: seconds, 0: for
 * ever. Local, from any thread. Ranks may have different ones; the shortest is found out first. */
RONDO_API rondo_result rondo_comm_set_timeout(rondo_comm *comm, double seconds);

/* ---- Asking ---------------------------------------------------------------------------------- */

RONDO_API int rondo_comm_rank(const rondo_comm *comm);
RONDO_API int rondo_comm_size(const rondo_comm *comm);
/* Rank and number of ranks among those on the same node. */
RONDO_API int rondo_comm_local_rank(const rondo_comm *comm);
RONDO_API int rondo_comm_local_size(const rondo_comm *comm);
/*
 * RONDO_OK while the communicator is sound, else the error that broke it. For watchdogs: it does
 * not wait for peers, but for one thing. When calls on CUDA streams were under way as the
 * communicator broke, it returns when no device of a peer touches their memory any more: mostly
 * within milliseconds, after about 0.5 s if a peer does not answer, after 2 s in any case.
 */
RONDO_API rondo_result rondo_comm_query(rondo_comm *comm);
/* The last error's sentence on `comm`, or (NULL) of the thread; "" if none. Till the next call. */
RONDO_API const char *rondo_last_error(const rondo_comm *comm);
RONDO_API const char *rondo_result_string(rondo_result result);
RONDO_API size_t rondo_type_size(rondo_type type); /* bytes; 0 if there is no such type */
RONDO_API const char *rondo_type_name(rondo_type type);
RONDO_API const char *rondo_op_name(rondo_op op);
RONDO_API const char *rondo_version(void); /* "0.1.0", of the library that runs */
RONDO_API int rondo_version_number(void);  /* its RONDO_VERSION */

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Zeroed memory of this process's shared heap, mapped by peers. Page aligned. Thread-safe. */
RONDO_API rondo_result rondo_mem_alloc(size_t bytes, void **ret_memory);
RONDO_API rondo_result rondo_mem_free(void *memory); /* accepts NULL; waits for queued calls */
/*
 * Give existing memory to the shared heap in place: it keeps its address, peers map whole pages,
 * calls copy what lies around them. Private, anonymous, writable memory, as malloc() gives it: else
 * RONDO_ERROR_INVALID. Deregister it before it is freed, or close `comm`: these wait for queued
 * calls, and for all whose peers use it (0.5 s if `comm` is broken: then those fail). During the
 * three calls no driver may have it pinned, and no thread, nor call of one, write it: it gets lost.
 */
RONDO_API rondo_result rondo_comm_register(rondo_comm *comm, void *memory, size_t bytes,
                                           rondo_registration **ret_registration);
RONDO_API rondo_result rondo_comm_deregister(rondo_comm *comm, rondo_registration *registration);

/* ---- Collectives ----------------------------------------------------------------------------- */
/*
 * `count` counts elements. Buffers, in elements, with n = size:
 *
 *                   input              output
 *   all_reduce      count              count              output = op over ranks of input
 *   reduce          count              count at root      elsewhere output is ignored, may be NULL
 *   broadcast       count at root      count              elsewhere input is ignored, may be NULL
 *   all_gather      count              n * count          block r = input of rank r
 *   reduce_scatter  n * count          count              output = op over ranks of block [my rank]
 *   all_to_all      n * count          n * count          block r = block [my rank] of rank r
 *   gather          count              n * count at root
 *   scatter         n * count at root  count
 *
 * In place: output = input where both are as long, else the shorter one is block [my rank] of the
 * longer one. Other overlaps are RONDO_ERROR_INVALID. Any alignment and any count work, also 0 and
 * fewer than n.
 */
RONDO_API rondo_result rondo_all_reduce(const void *input, void *output, size_t count,
                                        rondo_type type, rondo_op op, rondo_comm *comm,
                                        rondo_stream *stream);
RONDO_API rondo_result rondo_reduce(const void *input, void *output, size_t count, rondo_type type,
                                    rondo_op op, int root, rondo_comm *comm, rondo_stream *stream);
RONDO_API rondo_result rondo_broadcast(const void *input, void *output, size_t count,
                                       rondo_type type, int root, rondo_comm *comm,
                                       rondo_stream *stream);
RONDO_API rondo_result rondo_all_gather(const void *input, void *output, size_t count,
                                        rondo_type type, rondo_comm *comm, rondo_stream *stream);
RONDO_API rondo_result rondo_reduce_scatter(const void *input, void *output, size_t count,
                                            rondo_type type, rondo_op op, rondo_comm *comm,
                                            rondo_stream *stream);
RONDO_API rondo_result rondo_all_to_all(const void *input, void *output, size_t count,
                                        rondo_type type, rondo_comm *comm, rondo_stream *stream);
RONDO_API rondo_result rondo_gather(const void *input, void *output, size_t count, rondo_type type,
                                    int root, rondo_comm *comm, rondo_stream *stream);
RONDO_API rondo_result rondo_scatter(const void *input, void *output, size_t count, rondo_type type,
                                     int root, rondo_comm *comm, rondo_stream *stream);
RONDO_API rondo_result rondo_barrier(rondo_comm *comm, rondo_stream *stream);

/* Matched in order per pair of ranks; counts and types agree. A send may wait for its receive. */
RONDO_API rondo_result rondo_send(const void *input, size_t count, rondo_type type, int peer,
                                  rondo_comm *comm, rondo_stream *stream);
RONDO_API rondo_result rondo_recv(void *output, size_t count, rondo_type type, int peer,
                                  rondo_comm *comm, rondo_stream *stream);

typedef enum rondo_collective {
    RONDO_ALL_REDUCE = 0,
    RONDO_REDUCE,
    RONDO_BROADCAST,
    RONDO_ALL_GATHER,
    RONDO_REDUCE_SCATTER,
    RONDO_ALL_TO_ALL,
    RONDO_GATHER,
    RONDO_SCATTER,
    RONDO_BARRIER,
    RONDO_SEND,
    RONDO_RECV,
    RONDO_COLLECTIVES /* how many there are */
} rondo_collective;
RONDO_API const char *rondo_collective_name(rondo_collective collective);

/* Any of the above as data, with choices that the named
 * calls leave to Rondo. Zero what you do not use. */
typedef struct rondo_call {
    size_t struct_size; /* sizeof(rondo_call) */
    rondo_collective collective;
    rondo_type type;
    rondo_op op;
    int root; /* or the peer of send and recv */
    const void *input;
    void *output;
    size_t count;
    rondo_comm *comm;
    rondo_stream *stream;
    const char *algorithm; /* by it, or not at all; NULL: as configured. The same on every rank. */
} rondo_call;
RONDO_API rondo_result rondo_collective_call(const rondo_call *call);

/*
 * The time in microseconds that the cost model predicts for the call, from when the last rank has
 * come: what the choice of its algorithm goes by, with the costs that were measured when the
 * communicator opened, or RONDO_COSTS. Nothing runs, no message is sent, and nothing is decided.
 * Buffers and stream are not looked at and may be NULL: buffers count as such that peers can reach.
 * The costs are those of memory of the host, also on a communicator with a device: there the answer
 * tells which of two calls is longer, not how long. Local, and the same on every rank; from any
 * thread, also beside calls in progress. It takes as long as choosing an algorithm: microseconds
 * for a few ranks, milliseconds for thousands. Errors are those of the call.
 */
RONDO_API rondo_result rondo_estimate(const rondo_call *call, double *ret_microseconds);

/* ---- Groups: many calls, fused; also the calls of many ranks from one thread ----------------- */

/*
 * Between start and end, calls of this thread are collected; the outermost end runs them together
 * and returns the first error. Sends and receives of a group never wait for each other's order, so
 * exchanges cannot deadlock. To close or free what its calls use is refused before the end.
 */
RONDO_API rondo_result rondo_group_start(void);
RONDO_API rondo_result rondo_group_end(void);
/* The estimate of what the calling thread's group holds so far: calls on one communicator count
 * one after another, communicators side by side. The group stays as it is. */
RONDO_API rondo_result rondo_group_estimate(double *ret_microseconds);

/* ---- Operations of your own ------------------------------------------------------------------ */

/* Every rank's input is multiplied by its own `*scalar` (of `type`, read at once) before a sum. */
RONDO_API rondo_result rondo_op_create_premul_sum(rondo_comm *comm, const void *scalar,
                                                  rondo_type type, rondo_op *ret_op);
/*
 * inout[i] = f(in[i], inout[i]) for i < count, where `in` holds the lower ranks. It must be
 * associative; if it is not `commutative` ranks are combined in rank order. Called from any thread
 * that makes calls on `comm`. Not collective: handles may differ between ranks.
 */
typedef void (*rondo_op_function)(void *context, const void *in, void *inout, size_t count,
                                  rondo_type type);
RONDO_API rondo_result rondo_op_create_user(rondo_comm *comm, rondo_op_function function,
                                            void *context, int commutative, rondo_op *ret_op);
RONDO_API rondo_result rondo_op_destroy(rondo_comm *comm, rondo_op op);

/* ---- Streams: calls in order, in the background ---------------------------------------------- */

RONDO_API rondo_result rondo_stream_open(rondo_stream **ret_stream);
RONDO_API void rondo_stream_close(rondo_stream *stream); /* waits for its calls; accepts NULL */
/* Wait for all that was queued; returns the stream's first error since the last synchronize. */
RONDO_API rondo_result rondo_stream_synchronize(rondo_stream *stream);
/* RONDO_OK, RONDO_IN_PROGRESS or an error. */
RONDO_API rondo_result rondo_stream_query(rondo_stream *stream);
/*
 * A function of yours in the stream's order, in the stream's thread; what it wrote is seen by who
 * synchronizes after it. It must not wait for this stream, but may close it. In a group it is
 * queued at once, before the group's calls.
 */
typedef void (*rondo_stream_function)(void *context);
RONDO_API rondo_result rondo_stream_call(rondo_stream *stream, rondo_stream_function function,
                                         void *context);

/*
 * A point on a stream. Record, then query or wait, also from other threads; may be recorded again
 * afterwards. Inside a group it comes before the group's calls, which are queued when that ends.
 */
RONDO_API rondo_result rondo_event_open(rondo_event **ret_event);
RONDO_API void rondo_event_close(rondo_event *event); /* accepts NULL */
RONDO_API rondo_result rondo_event_record(rondo_event *event, rondo_stream *stream);
RONDO_API rondo_result rondo_event_query(rondo_event *event);
RONDO_API rondo_result rondo_event_wait(rondo_event *event);
/* Work queued on `stream` after this waits until the event has happened. */
RONDO_API rondo_result rondo_stream_wait_event(rondo_stream *stream, rondo_event *event);

#ifdef __cplusplus
}
#endif
#endif
