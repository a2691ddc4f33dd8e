/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h - the communicator: what belongs to one rank of it.
 *
 * It is put together from parts that are used and tested on their own: settings, links
 * (exec_world), status pages, plans, operations, turns. Only the holder of the turn (turn.h)
 * touches `choices`, `calls` and what changes in `world`; anybody may read what opening put there
 * (sizes, where the alarm is).
 */
#ifndef RONDO_COMM_STATE_COMM_H
#define RONDO_COMM_STATE_COMM_H

#include "base/collective.h"
#include "base/fork.h"
#include "base/lock.h"
#include "comm/recorder/recorder.h"
#include "comm/state/blame.h"
#include "comm/state/status.h"
#include "comm/state/choice.h"
#include "comm/state/exposure.h"
#include "comm/state/operation.h"
#include "comm/state/tuning.h"
#include "comm/state/turn.h"
#include "plan/exec.h"
#include "transport/networks.h"

/* The configuration after the environment has had its say. */
struct comm_settings {
    bool deterministic;
    bool uniform;      /* a collective has the same result on all ranks that are left */
    bool networked;    /* peers may be on other hosts */
    bool forced;       /* a network is used within a host, too */
    char transport[8]; /* auto, or the only one allowed */
    char between[8]; /* as `transport`, of ranks on different hosts: the configuration's network */
    int traffic_class; /* 0: the system's */
    enum seal_mode security;
    int cuda_device;                 /* negative: none */
    unsigned min_blocks, max_blocks; /* of kernels; 0: as many as are worth it */
    bool copy_engines;               /* move data on a device without kernels, where that can be */
    int reads;               /* by cross-memory attach: 1 yes, 0 no, -1 if it works and is faster */
    int streams;             /* past the cache into slots: 1 yes, 0 no, -1 whatever is faster */
    char algorithm[48];      /* a name that algorithm_find() knows, or "auto" */
    bool automatic;          /* the algorithm is "auto" */
    struct link_costs costs; /* RONDO_COSTS; a latency of 0: to be measured */
    const char *groups;      /* RONDO_GROUPS */
    size_t slot_bytes;
    bool fitted; /* slot_bytes follows from the number of ranks */
    int slots;
    double timeout; /* seconds, 0: never; what counts is comm_timeout() */
    double spin;    /* seconds, negative: choose */
    double late;    /* seconds until a wait is told in the log, 0: never */
};

#define COMM_CLOSED UINT32_MAX /* it is no process's, so that every call is refused */

struct rondo_comm {
    struct exec_world world; /* first: exec_world_ops get it back */
    int rank, size, local_rank, local_size;
    uint32_t home;         /* of the process that it belongs to: fork_home(); or COMM_CLOSED */
    bool one_process;      /* all ranks are threads of this process */
    bool entered;          /* the shared heap is kept open for us */
    bool may_part;         /* ranks of other hosts may close it before others, which is no error */
    atomic_bool own_call;  /* the library makes a call of its own; for the log alone */
    atomic_bool assembled; /* every rank has opened it; who is not there any more has closed it */
    struct comm_settings settings;
    uint64_t id;
    char *arena;
    void *arrays;                 /* one block of all arrays below */
    struct endpoint *endpoints;   /* [rank] */
    struct process **processes;   /* [rank], NULL: on another node */
    struct status *status;        /* our own: peers map it read-only, as we do theirs */
    struct status **status_pages; /* [rank], own one included; mirrors of ranks of other nodes */
    struct status *mirrors;       /* [rank], NULL: all ranks are on this node */
    struct shm_alarm **alarms;    /* [rank], of the ranks of this node; NULL: others */
    struct exposure *exposures;   /* [1 + size], comm_exposure() */
    struct lease *lease;          /* on the arena; NULL: not all peers are known */
    rondo_comm *next;             /* in the list of all, leave.c */
    struct networks networks;     /* to ranks of other nodes */
    unsigned char key[32];        /* the job's secret */
    struct tuning tuning;
    struct grouping *groups; /* of ranks near each other; NULL: all are equally near */
    int *order;              /* ranks as they sit in the hardware; NULL: by their numbers */
    struct choices choices;
    struct operations operations;
    struct turn turn;
    struct fast_path *fast_path;            /* [FAST_PATHS], fast_path.h */
    _Atomic(struct rondo_request *) posted; /* engine/post.h; NULL: none */
    _Atomic uint64_t group_serial; /* of the last note of a group on it, group_path.h; 0: none */
    const struct choice
        *shown; /* whose call the status page shows, while its hash is `shown_hash` */
    uint32_t shown_hash;
    const char
        *last_algorithm; /* of the last collective that a thread of the host ran; NULL: none */
    struct recorder *recorder; /* NULL: calls are not recorded */
    uint32_t calls;            /* collectives begun: their sequence number */
    uint32_t chain;            /* of all calls so far, which fingerprints depend on */
    uint32_t internal;         /* of these calls, those that no user made */
    struct attempts *attempts; /* [1 + 2 * size], comm_attempts() */
    atomic_int broken;         /* a rondo_result: the first failure */
    struct lock error_lock;
    char error[FAIL_SENTENCE_MAX]; /* the last one, for rondo_last_error() */
    /* A call on a CUDA stream may be the first that needs a device, beside other threads' calls. */
    _Atomic(struct gpu *) gpu_now;               /* comm_gpu() */
    _Atomic(const struct backend *) backend_now; /* comm_backend() */
    struct rondo_registration *registrations;
    struct lock registrations_lock;
    struct recovery *recovery; /* comm/recovery; NULL: no agreement so far */
    /* Agrees on the result of a batch of collectives, that of this rank given, whose turn it is
     * (comm/recovery/uniform.c). NULL: each rank returns its own. */
    rondo_result (*settle)(rondo_comm *comm, rondo_result result);
    _Atomic(struct answerer *) answerer; /* answer.h; NULL: none */
    atomic_bool answers;                 /* it was started, or could not be */
    _Atomic double timeout;              /* comm_timeout() */
    struct blame blame, stream_blame;    /* of the turn's holder, of who watches CUDA streams */
    _Atomic(const char *)
        ran_on_device; /* algorithm of the last collective; NULL: see `last_algorithm` */
};

/* Acquire, pairs with the release in comm_assemble(): a watching thread may ask, too. */
static inline bool comm_is_assembled(const rondo_comm *comm)
{
    return atomic_load_explicit(&comm->assembled, memory_order_acquire);
}

/* Returns NULL if it belongs to no device. */
static inline struct gpu *comm_gpu(const rondo_comm *comm)
{
    return atomic_load_explicit(&comm->gpu_now, memory_order_acquire);
}

/* Returns who moves the data of its calls, see task.h. */
static inline const struct backend *comm_backend(const rondo_comm *comm)
{
    return atomic_load_explicit(&comm->backend_now, memory_order_acquire);
}

/* Release, pairs with the acquire of both above: the device is open. */
static inline void comm_set_gpu(rondo_comm *comm, struct gpu *gpu, const struct backend *backend)
{
    atomic_store_explicit(&comm->gpu_now, gpu, memory_order_release);
    atomic_store_explicit(&comm->backend_now, backend, memory_order_release);
}

/* Buffers of the collective in progress, or of the message to a peer. */
static inline struct exposure *comm_exposure(const rondo_comm *comm, rondo_collective collective,
                                             int peer)
{
    return &comm->exposures[collective == RONDO_SEND ? 1 + peer : 0];
}

/* Attempts to reach peers' memory: by collectives, or by messages one way to or from a peer. */
static inline struct attempts *comm_attempts(const rondo_comm *comm, rondo_collective collective,
                                             int peer)
{
    int first = collective == RONDO_SEND ? 1 : 1 + comm->size;

    return &comm->attempts[collective_is_pair(collective) ? first + peer : 0];
}

/* Seconds that a peer may be silent, 0: for ever. It may change at any time. */
static inline double comm_timeout(const rondo_comm *comm)
{
    return atomic_load_explicit(&comm->timeout, memory_order_relaxed);
}

#endif
