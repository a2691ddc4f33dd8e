/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h - the communicator: what belongs to one rank of it.
 *
 * It is put together from parts that are used and tested on their own: settings, links
 * (exec_world), boards, plans, operations, turns. Only the holder of the turn (turn.h) touches
 * `world`, `choices` and `calls`.
 */
#ifndef RONDO_COMM_COMM_H
#define RONDO_COMM_COMM_H

#include "base/fork.h"
#include "collectives/select.h"
#include "comm/blame.h"
#include "comm/board.h"
#include "comm/choose.h"
#include "comm/exposure.h"
#include "comm/operation.h"
#include "comm/turn.h"
#include "plan/exec.h"
#include "transport/transport.h"

#include <pthread.h>

/* The configuration after the environment has had its say. */
struct comm_settings {
    bool deterministic;
    bool networked;    /* peers may be on other hosts */
    char transport[8]; /* auto, or the only one allowed */
    enum seal_mode security;
    int cuda_device;    /* -1: none */
    bool reads_across;  /* cross-memory attach is used */
    bool measure_reads; /* ... if it is possible, in calls that are faster with it */
    bool tries_reads;   /* ... as it is possible */
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
    pthread_mutex_t error_lock;
    char error[FAIL_SENTENCE_MAX]; /* the last one, for rondo_last_error() */
    struct gpu *gpu;               /* NULL: it belongs to no device */
    struct rondo_registration *registrations;
    pthread_mutex_t registrations_lock;
    struct blame blame, stream_blame; /* of the turn's holder, of who watches CUDA streams */
};

/* ---- settings.c ------------------------------------------------------------------------------ */

rondo_result comm_read_settings(const rondo_config *config, int size,
                                struct comm_settings *ret_settings);
/* The job meets over a network, so its ranks may be on several hosts. */
void comm_settings_expect_hosts(struct comm_settings *settings);
/* Equal on ranks whose settings fit together. */
uint32_t comm_settings_hash(const struct comm_settings *settings);

/* ---- open.c: making one ---------------------------------------------------------------------- */

/* Step 1: memory and this rank's card. Step 2: with everybody's cards, in rank order, the links. */
rondo_result comm_prepare(int size, int rank, const struct comm_settings *settings,
                          rondo_comm **ret_comm);
rondo_result comm_connect(rondo_comm *comm, const struct rank_card *cards);
/* nearby.c: `comm->groups`, from the setting, or from hosts and NUMA nodes on everybody's cards. */
rondo_result comm_find_groups(rondo_comm *comm);
/* Step 3, collective: measure the links (measure.c). Everybody has the same costs afterwards. */
rondo_result comm_measure(rondo_comm *comm);
/* Part of it: between groups of ranks, if there are any; only some ranks do something. */
rondo_result comm_measure_groups(rondo_comm *comm, struct group_costs *ret_costs);
/* The end of it, also where costs are known: returns when all ranks are connected. Before that no
 * rank may close, others may still be looking at what it shows. */
rondo_result comm_assemble(rondo_comm *comm);
/* Frees what any of the steps made; accepts NULL. */
void comm_free(rondo_comm *comm);
/* Run `step` for many ranks of this process at once, each
 * in a thread of its own; the first error of any. */
rondo_result comm_in_threads(rondo_result (*step)(void *), void *const *arguments, int count);

/* ---- error.c --------------------------------------------------------------------------------- */

/* Keep the thread's last sentence as the communicator's; returns `result`. */
rondo_result comm_note_error(rondo_comm *comm, rondo_result result);
/* The same, and break the communicator: peers on the node see it on the board. */
rondo_result comm_break(rondo_comm *comm, rondo_result result, int culprit);
/* Why it is broken, for this thread. */
rondo_result comm_say_broken(rondo_comm *comm);
/* In a forked child: the communicator is the parent's. Takes no lock that the parent may have. */
rondo_result comm_refuse(const char *function);
/* RONDO_OK, or why it is broken, with the sentence repeated for this thread. */
static inline rondo_result comm_check(rondo_comm *comm)
{
    if (fork_is_foreign(comm->home))
        return comm_refuse("A call");
    return atomic_load_explicit(&comm->broken, memory_order_acquire) ? comm_say_broken(comm)
                                                                     : RONDO_OK;
}

#endif
