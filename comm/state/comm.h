/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h - the communicator: what belongs to one rank of it.
 *
 * It is put together from parts that are used and tested on their own: settings, links
 * (exec_world), boards, plans, operations, turns. Only the holder of the turn (turn.h) touches
 * `choices`, `calls` and what changes in `world`; anybody may read what opening put there (sizes,
 * where the alarm is).
 */
#ifndef RONDO_COMM_STATE_COMM_H
#define RONDO_COMM_STATE_COMM_H

#include "base/fork.h"
#include "base/lock.h"
#include "collectives/select/select.h"
#include "comm/state/blame.h"
#include "comm/state/board.h"
#include "comm/state/choice.h"
#include "comm/state/exposure.h"
#include "comm/state/operation.h"
#include "comm/state/turn.h"
#include "plan/exec.h"
#include "transport/link/ops.h"
#include "transport/link/seal.h"

/* The configuration after the environment has had its say. */
struct comm_settings {
    bool deterministic;
    bool networked;    /* peers may be on other hosts */
    char transport[8]; /* auto, or the only one allowed */
    enum seal_mode security;
    int cuda_device;    /* -1: none */
    bool reads_across;  /* cross-memory attach is used */
    bool measure_reads; /* test whether it works; calls use it if they are faster with it */
    bool tries_reads;   /* it works, and calls try whether they are faster with it (reads.h) */
    int streams;        /* past the cache into slots: 1 yes, 0 no, -1 whatever is faster */
    char algorithm[32];
    size_t slot_bytes;
    bool fitted; /* slot_bytes follows from the number of ranks */
    int slots;
    double timeout; /* seconds, 0: never */
    double spin;    /* seconds, negative: choose */
};

struct rondo_comm {
    struct exec_world world; /* first: exec_world_ops get it back */
    int rank, size, local_rank, local_size;
    uint32_t home;    /* of the process that it belongs to: fork_home() */
    bool one_process; /* all ranks are threads of this process */
    bool entered;     /* the shared heap is kept open for us */
    bool assembled;   /* every rank has opened it; who is not there any more has closed it */
    struct comm_settings settings;
    uint64_t id;
    char *arena;
    void *arrays; /* one block: cards, processes, boards, alarms, repeat, and those of the world */
    struct rank_card *cards;    /* [rank] */
    struct process **processes; /* [rank], NULL: on another node */
    struct board *board;        /* our own: peers map it read-only, as we do theirs */
    struct board **boards;      /* [rank], own one included; mirrors of ranks of other nodes */
    struct board *mirrors;      /* [rank], NULL: all ranks are on this node */
    struct shm_alarm **alarms;  /* [rank], of the ranks of this node; NULL: others */
    struct exposure exposure;   /* leave.h */
    struct lease *lease;        /* on the arena; NULL: not all peers are known */
    rondo_comm *next;           /* in the list of all, leave.c */
    struct network *networks[NETWORKS]; /* NULL: not used */
    unsigned char key[32];              /* the job's secret */
    int network_rounds;                 /* looks at the network before a wait sleeps */
    unsigned looks;                     /* at the networks */
    bool tcp_carries;                   /* messages of some rank come over TCP */
    struct link_costs costs;
    struct grouping *groups; /* of ranks near each other; NULL: all are equally near */
    unsigned past_cache;     /* what calls begin to store that way (PAST_CACHE_...), as measured */
    size_t long_slot_bytes;  /* of slots over TCP, at least what other slots have */
    int spin_rounds;         /* polls before a wait yields */
    int crowd;               /* ranks per core of this machine, 1 to 100 */
    bool shares_cores;       /* all ranks are on this node, and outnumber its cores */
    struct choices choices;
    struct operations operations;
    struct turn turn;
    struct repeat *repeat;      /* repeat.h */
    const struct choice *shown; /* whose call the board shows, while its hash is `shown_hash` */
    uint32_t shown_hash;
    uint32_t calls;    /* collectives begun: their sequence number */
    uint32_t chain;    /* of all calls so far, which fingerprints depend on */
    uint32_t internal; /* of these calls, those that no user made */
    /* Collectives in a row that found peers' memory out of reach,
     * and those to come that will not try (run.c). */
    unsigned unreached, resting;
    atomic_int broken; /* a rondo_result: the first failure */
    struct lock error_lock;
    char error[FAIL_SENTENCE_MAX]; /* the last one, for rondo_last_error() */
    struct gpu *gpu;               /* NULL: it belongs to no device */
    const struct hands *hands;     /* who moves the data of its calls, task.h */
    struct rondo_registration *registrations;
    struct lock registrations_lock;
    struct blame blame, stream_blame; /* of the turn's holder, of who watches CUDA streams */
};

#endif
