/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.h - what the files of the data-parallel core share; rondo/ddp.h says what it is for.
 *
 *     open.c      copy the model and the settings, close
 *     agree.c     is it the same model everywhere? what went wrong on one rank, told to all
 *     layout.c    which gradient lies where in which bucket; once again after the first step
 *     pass.c      begin, gradient_ready, wait
 *     exchange.c  one bucket: all-reduce, compression, hook, on the stream
 *     device.c    the same for a model in memory of a device; memory of either kind
 *     tree.c      passes of a step as one balanced tree
 *     join.c      ranks without data
 *     report.c    statistics, the buckets in words
 *     elastic/move.c   the same model on another communicator
 *     number.c    conversions, division, NaN: loops over numbers
 *
 * Two threads see a bucket: the user's, which fills and launches it, and the stream's, which has it
 * from launching until rondo_stream_synchronize(); never both.
 */
#ifndef RONDO_DDP_CORE_H
#define RONDO_DDP_CORE_H

#include "base/caller/times.h"
#include "ddp/fail.h"

#include <stdbool.h>

enum { DDP_TREE_LEVELS = 31 }; /* passes of a step are counted by an int */

struct ddp_tensor {
    char *name;
    void *data;
    void *own_gradient; /* the user's; NULL: it lives in the bucket */
    size_t count;
    rondo_type type;
    bool frozen;

    /* Parameters that are not frozen. */
    int bucket;
    size_t offset; /* in the bucket, in elements */
    bool ready;    /* announced in this pass */
    bool touched;  /* announced since the last exchange */
    void *kept;    /* its gradient before this step, if a pass left it out first; else NULL */
    void *partial[DDP_TREE_LEVELS]; /* tree.c; made when needed */
};

struct ddp_bucket {
    rondo_ddp *ddp;
    rondo_ddp_bucket view; /* what hooks see */
    void *wire;            /* view.count elements of 16 bits; NULL: not compressed */
    int *parameters;       /* in the order in which they lie here */
    int parameter_count;
    int pending; /* gradients that are not announced in this pass */

    /* The last exchange, in seconds after begin; `work` is a part of started to finished. */
    double ready, started, finished, work;
    rondo_result result; /* of the hook's finish() */
};

struct ddp_layout {
    struct ddp_bucket *buckets;
    int count;
};

/* late.c */
struct ddp_late {
    double left;                       /* when this rank left the last exchange; 0: none yet */
    uint64_t passes;                   /* counted so far */
    double own[RONDO_DDP_LATE_PASSES]; /* seconds of the last ones, from leaving to waiting */
};

struct rondo_ddp {
    rondo_comm *comm;          /* the user's; for what is done at fixed places */
    rondo_comm *exchange_comm; /* for buckets: its order of calls is its own */
    rondo_stream *stream;
    int rank, size;
    rondo_ddp_config config;
    struct ddp_tensor *parameters, *buffers;
    int parameter_count, buffer_count, trained;

    struct ddp_layout layout;
    int32_t *arrival; /* [trained]: parameters in the order of gradients of the first exchange */
    int arrived;
    bool order_known;  /* `arrival` is rank 0's */
    bool order_is_new; /* `arrival` is rank 0's, but the buckets do not follow it yet */
    bool rebuilt;

    bool in_pass, exchange;
    bool joined;     /* no data here: the pass is made of zeros */
    bool broken;     /* the communicator failed */
    int announced;   /* gradients in this pass */
    int next;        /* bucket to launch */
    int passes;      /* finished ones since the last exchange */
    int own_passes;  /* those of them with data of this rank */
    int made_passes; /* of the step, over all ranks, with the one that was announced; with join */
    int remaining;   /* ranks that have data; all without join */
    int root;        /* the lowest of them in the last pass */
    double began;    /* clock */
    int32_t *votes;  /* agree.c; [DDP_VOTES + parameter_count] */
    int32_t *states; /* join.c; [size] */

    rondo_result problem; /* the first one of this rank in this step; told to all at its end */
    char sentence[DDP_SENTENCE];
    rondo_ddp_statistics statistics;
    struct ddp_late late;
};

/* ---- open.c ---------------------------------------------------------------------------------- */

/* Collective over ddp->comm, for ranks that open and for those that were there before and move: the
 * exchange, the buckets as at the beginning; who is new gets parameters and buffers. */
rondo_result ddp_enter(rondo_ddp *ddp, bool was_there);
/* Local: without the exchange and the buckets. Nobody waits for this rank any more. */
void ddp_leave(rondo_ddp *ddp);

/* ---- agree.c --------------------------------------------------------------------------------- */

/* Votes of ranks; the largest counts. From DDP_VOTES on: 1 if the parameter was touched. */
enum { DDP_VOTE_PROBLEM, DDP_VOTE_PASSES, DDP_VOTE_MINUS_PASSES, DDP_VOTES };
/* These take the places of the last two where ranks enter a communicator. */
enum { DDP_VOTE_WAS_THERE = DDP_VOTE_PASSES, DDP_VOTE_NEWCOMER };

/* Remember what is wrong on this rank, unless something is already, until ddp_agree(). */
rondo_result ddp_problem(rondo_ddp *ddp, rondo_result result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/*
 * Collective: the largest of each of the first `count` votes (the one about problems is filled in
 * here). If there is a problem, the lowest rank that has one tells its sentence to all.
 */
rondo_result ddp_agree(rondo_ddp *ddp, size_t count);
/* Collective: is the model the same as rank 0's? */
rondo_result ddp_agree_on_model(rondo_ddp *ddp);
/* Collective: `root`'s data to all, in one group. */
rondo_result ddp_broadcast(rondo_ddp *ddp, const struct ddp_tensor *tensors, int count, int root);
/* After a failed call of the communicator: nothing works any more. */
rondo_result ddp_broken(rondo_ddp *ddp, rondo_result result, const rondo_comm *comm,
                        const char *what);

/* ---- late.c ---------------------------------------------------------------------------------- */

/* This rank waits for an exchange from now on; and: it has left it. */
void ddp_late_arrive(rondo_ddp *ddp);
void ddp_late_leave(rondo_ddp *ddp);

/* ---- layout.c -------------------------------------------------------------------------------- */

/* Buckets for parameters in this order; the gradients are there, as they were. */
rondo_result ddp_layout_open(rondo_ddp *ddp, const int32_t *order);
void ddp_layout_close(struct ddp_layout *layout);
/* Collective, once: rank 0's order to all, after the first exchange. */
rondo_result ddp_layout_learn(rondo_ddp *ddp);
/* Collective, once: buckets in that order. */
rondo_result ddp_layout_follow(rondo_ddp *ddp);

/* Both return where a gradient is: in the bucket, and in the user's memory. */
void *ddp_in_bucket(const rondo_ddp *ddp, const struct ddp_tensor *parameter);
void *ddp_gradient(const rondo_ddp *ddp, const struct ddp_tensor *parameter);
size_t ddp_bytes(const struct ddp_tensor *tensor);

/* ---- pass.c ---------------------------------------------------------------------------------- */

/* Collective: buckets, buffers and counters for a pass that begins. */
rondo_result ddp_pass_begin(rondo_ddp *ddp, bool exchange);
/* Collective if the pass exchanges: what was not announced is left out; wait, hear from all. */
rondo_result ddp_pass_finish(rondo_ddp *ddp);

/* ---- exchange.c ------------------------------------------------------------------------------ */

/* Queue the exchange of a full bucket. */
rondo_result ddp_exchange_start(struct ddp_bucket *bucket);
/* Queue the all-reduce of a bucket alone; and copy its result out to gradients of the user's. */
rondo_result ddp_exchange_queue(const struct ddp_bucket *bucket);
void ddp_exchange_copy_out(const struct ddp_bucket *bucket);

/* ---- device.c -------------------------------------------------------------------------------- */

/* Memory for gradients, zeroed, where the model is. */
rondo_result ddp_memory_open(rondo_ddp *ddp, size_t bytes, void **ret_memory);
void ddp_memory_close(const rondo_ddp *ddp, void *memory); /* accepts NULL */
/* Copy in the order of passes; `from` NULL: zeros. What fails is a problem that the next wait
 * tells. */
void ddp_copy(rondo_ddp *ddp, void *to, const void *from, size_t bytes);
/* Says why a configuration does not go together with a device; NULL: it does. */
const char *ddp_device_refuses(const rondo_ddp_config *config);
/* Wait until the device is through with what passes have queued. */
rondo_result ddp_device_settle(rondo_ddp *ddp);
/* Queue the exchange of a full bucket on a device; for ddp_exchange_start(). */
rondo_result ddp_device_exchange(struct ddp_bucket *bucket);
/* Local: set the marks of a pass that begins, and of one whose gradients are all queued. */
rondo_result ddp_device_begin(rondo_ddp *ddp);
rondo_result ddp_device_end(rondo_ddp *ddp);
/* After the exchange: the times of all buckets; gradients of the user's; the seconds in which the
 * device had nothing else to do. Without a device nothing. */
rondo_result ddp_device_finish(rondo_ddp *ddp, double *ret_exposed);

/* ---- tree.c ---------------------------------------------------------------------------------- */

/* Add this pass's gradient to the tree. In the last pass it becomes the sum of all, else zero. */
rondo_result ddp_tree_add(rondo_ddp *ddp, struct ddp_tensor *parameter);

/* ---- join.c ---------------------------------------------------------------------------------- */

enum ddp_state { DDP_NO_DATA, DDP_ACCUMULATES, DDP_EXCHANGES };
/* Collective, with a join mode: who still has data? */
rondo_result ddp_announce(rondo_ddp *ddp, enum ddp_state state);

#endif
