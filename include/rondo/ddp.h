/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp.h - data-parallel training: every rank has the whole model and its own part of the data, and
 * gradients are averaged while the backward pass is still going on.
 *
 *     rondo_ddp_open(comm, &model, NULL, &ddp);      all ranks get rank 0's values
 *     for each step:
 *         rondo_ddp_begin(ddp, 1);                   before the forward pass
 *         forward(); loss();
 *         for each layer, last one first:
 *             backward of the layer, adding to rondo_ddp_gradient(ddp, i);
 *             rondo_ddp_gradient_ready(ddp, i);      may start an all-reduce in the background
 *         rondo_ddp_wait(ddp);                       now every rank has the same average
 *         optimizer();
 *         rondo_ddp_zero_gradients(ddp);
 *
 * Pass    what lies between begin and wait: one forward and one backward on one micro-batch.
 * Step    one or more passes, of which the last one exchanges gradients (`exchange` of begin).
 * Bucket  gradients that are reduced by one call. Parameters fill buckets in the order in which
 *         gradients are expected: first from the last parameter to the first one, from the second
 *         step on in the order in which they came on rank 0 in the first one. A bucket starts when
 *         it is full and all before it have started, so all ranks start them in the same order.
 * Errors  as in rondo.h; the sentence is rondo_ddp_last_error()'s. What goes wrong on one rank (a
 *         missing gradient, a NaN) is returned by rondo_ddp_wait() on every rank, and everything
 *         stays usable; an error of the communicator itself leaves closing, and rondo_ddp_move().
 * Threads one thread at a time uses a rondo_ddp. It uses `comm` in open, begin, wait and join only,
 *         and a communicator of its own in between, so that other calls may be made on `comm`.
 *         Not in an open group: what would only be collected there is refused.
 */
#ifndef RONDO_DDP_H
#define RONDO_DDP_H

#include <rondo/rondo.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rondo_ddp rondo_ddp;

/* The sentence of the last error of a function of ddp.h or train.h in this thread; "" if none. */
RONDO_API const char *rondo_ddp_last_error(void);

/* ---- The model ------------------------------------------------------------------------------- */

/* A parameter or a buffer; parameters are known by their place in the list. */
typedef struct rondo_ddp_tensor {
    const char *name; /* for messages; copied */
    void *data;       /* `count` elements, yours, valid until close */
    void *gradient;   /* yours, as many elements; NULL: the library gives out memory inside the
                         bucket, which saves a copy in and out. NULL for buffers. */
    size_t count;
    rondo_type type; /* parameters: float32, float64, float16 or bfloat16; buffers: any */
    int frozen;      /* 1: a parameter that is not trained, so it has no gradient */
} rondo_ddp_tensor;

typedef struct rondo_ddp_model {
    const rondo_ddp_tensor *parameters; /* in the order in which the forward pass uses them */
    int parameter_count;
    const rondo_ddp_tensor *buffers; /* state that is not trained, as running means */
    int buffer_count;
} rondo_ddp_model;

/* ---- Settings; the same on every rank -------------------------------------------------------- */

/* By what the sum of gradients is divided. */
typedef enum rondo_ddp_average {
    RONDO_DDP_BY_RANKS = 0, /* the number of ranks (with join: see rondo_ddp_join_mode) */
    RONDO_DDP_BY_PASSES,    /* the number of passes of the step, over all ranks: then micro-batches
                               need no scaled loss */
    RONDO_DDP_SUM           /* nothing: you scale */
} rondo_ddp_average;

/*
 * The ways in which the passes of a step add up.
 *
 * ADD: your backward pass adds to the gradient, pass after pass.
 *
 * TREE: the library takes each pass's gradient and zeroes it, and adds them up as a balanced tree,
 * as rondo.h does over ranks:
 *
 *     tree(a, 1) = g[a]     tree(a, m) = tree(a, p) + tree(a + p, m - p)
 *                           with p the largest power of two below m
 *
 * where g[a] is the gradient of micro-batch a of M, and rank r of n computes micro-batches r * M/n
 * to (r+1) * M/n - 1. If M/n is a power of two each rank's part is a subtree, so with the
 * `deterministic` setting of the communicator and BY_PASSES the result, tree(0, M) / M, has the
 * same bits for every such n (and for n = 1 with any M). float32 and float64 only.
 */
typedef enum rondo_ddp_accumulation { RONDO_DDP_ADD = 0, RONDO_DDP_TREE } rondo_ddp_accumulation;

/* A mode says whether ranks have different numbers of steps, and what sums are divided by when some
 * have none left. */
typedef enum rondo_ddp_join_mode {
    RONDO_DDP_NO_JOIN = 0,  /* all ranks have the same number of steps */
    RONDO_DDP_JOIN_BY_SIZE, /* by all ranks: each sample weighs as much as before */
    /* by those that still have data; where ranks join within a step, by the passes that they made
       of it: BY_RANKS by how many ranks had data in a pass on average */
    RONDO_DDP_JOIN_BY_REMAINING
} rondo_ddp_join_mode;

/* Compressed gradients are divided by the divisor, rounded to 16 bits and summed in that type. */
typedef enum rondo_ddp_compression {
    RONDO_DDP_UNCOMPRESSED = 0,
    RONDO_DDP_FLOAT16,
    RONDO_DDP_BFLOAT16
} rondo_ddp_compression;

/* A hook sees this of a bucket. */
typedef struct rondo_ddp_bucket {
    int index;
    void *data; /* this rank's gradients; zeros between them keep each 64-byte aligned */
    size_t count;
    rondo_type type;
    double divisor; /* of the average */
    rondo_comm *comm;
    rondo_stream *stream;
} rondo_ddp_bucket;

/*
 * Your own exchange in place of the all-reduce. `start` is called when the bucket is full, in the
 * thread that announced its last gradient: it queues calls on bucket->stream. `finish`, which may
 * be NULL, is called when they are done, in a thread of the stream. Together they replace data by
 * the average over ranks. Ranks without data that joined call both with zeros.
 */
typedef struct rondo_ddp_hook {
    rondo_result (*start)(void *context, const rondo_ddp_bucket *bucket);
    rondo_result (*finish)(void *context, const rondo_ddp_bucket *bucket);
    void *context;
} rondo_ddp_hook;

/*
 * For a model in memory of a CUDA device, whose passes are queued on a stream: buckets are then in
 * memory of the device, too, and are exchanged on a stream of their own, in the order of marks and
 * without any thread that waits, but for rondo_ddp_wait(), after which all is done on both streams.
 * A mark is a point on one of the two streams; marks are numbered from 0 and set again and again.
 *
 * Not with this, yet: compression, hooks, RONDO_DDP_TREE, RONDO_DDP_BY_PASSES (give the loss that
 * weight), joining, find_unused, check_nan.
 */
typedef struct rondo_ddp_device {
    void *stream; /* the CUDA stream of exchanges; NULL: the model is in memory of the host */
    void *context;
    /* In the order of passes; `from` NULL: zeros. */
    rondo_result (*copy)(void *context, void *to, const void *from, size_t bytes);
    /* Set a mark, on the stream of passes or on that of exchanges. */
    rondo_result (*mark)(void *context, int mark, int of_exchange);
    /* Has all that is queued on the stream of exchanges from now on come after the mark. */
    rondo_result (*follow)(void *context, int mark);
    /* Seconds from one mark to another, both passed. */
    rondo_result (*between)(void *context, int from, int to, double *ret_seconds);
} rondo_ddp_device;

typedef struct rondo_ddp_config {
    size_t struct_size;
    size_t bucket_bytes;       /* a bucket that has as many is complete */
    size_t first_bucket_bytes; /* of the first, so that the exchange starts early */
    rondo_ddp_average average;
    rondo_ddp_accumulation accumulation;
    rondo_ddp_join_mode join;
    rondo_ddp_compression compression; /* of float32 gradients */
    rondo_ddp_hook hook;               /* start = NULL: none */
    /* 1: a pass may leave parameters out. A gradient that no rank has is kept as it is; else ranks
       without it count as zero. 0: it is an error. */
    int find_unused;
    int check_nan;         /* 1: a gradient with NaN or infinity is an error that names its rank */
    int broadcast_buffers; /* 1: begin of a pass that exchanges gives all ranks rank 0's buffers */
    int rebuild;           /* 1: buckets follow the order of gradients of the first step */
    rondo_ddp_device device;
} rondo_ddp_config;
#define RONDO_DDP_CONFIG_INIT                                                                      \
    {                                                                                              \
        sizeof(rondo_ddp_config), (size_t)25 << 20, (size_t)1 << 20, RONDO_DDP_BY_RANKS,           \
            RONDO_DDP_ADD, RONDO_DDP_NO_JOIN, RONDO_DDP_UNCOMPRESSED, {NULL, NULL, NULL}, 0, 0, 1, \
            1,                                                                                     \
        {                                                                                          \
            NULL, NULL, NULL, NULL, NULL, NULL                                                     \
        }                                                                                          \
    }

/* ---- Training -------------------------------------------------------------------------------- */

/*
 * Collective. Compares model and settings with rank 0's (the error names rank and tensor), then
 * gives all ranks rank 0's parameters and buffers. Gradients begin as zeros where the library gives
 * them out. `config` may be NULL. The caller owns *ret_ddp and closes it before `comm`.
 */
RONDO_API rondo_result rondo_ddp_open(rondo_comm *comm, const rondo_ddp_model *model,
                                      const rondo_ddp_config *config, rondo_ddp **ret_ddp);
/*
 * Local; accepts NULL. Gradients that the library gave out are gone. Inside of a pass that
 * exchanges it aborts the exchange on every rank, so that nobody waits for this one.
 */
RONDO_API void rondo_ddp_close(rondo_ddp *ddp);

/*
 * Returns where the gradient of a parameter is; NULL if it is frozen or does not exist. Yours stay
 * where they are; those that the library gave out may move, once, in a call of begin: ask after it.
 */
RONDO_API void *rondo_ddp_gradient(const rondo_ddp *ddp, int parameter);
/* Set all gradients to zero, also your own. Not inside a pass. */
RONDO_API rondo_result rondo_ddp_zero_gradients(rondo_ddp *ddp);

/*
 * Begin a pass. `exchange` 0: gradients are only accumulated on this rank; 1: the pass ends the
 * step and averages what its passes have accumulated. The same on every rank.
 * A forward pass alone (evaluation) needs none; without a join mode a pass without gradients may be
 * begun again.
 */
RONDO_API rondo_result rondo_ddp_begin(rondo_ddp *ddp, int exchange);
/*
 * The gradient of this parameter is complete for this pass; it belongs to the library until wait.
 * Never waits for other ranks. Twice in one pass is an error, also of the wait that follows.
 */
RONDO_API rondo_result rondo_ddp_gradient_ready(rondo_ddp *ddp, int parameter);
/* End of the backward pass: waits for the exchange. Afterwards the gradients are the average. */
RONDO_API rondo_result rondo_ddp_wait(rondo_ddp *ddp);

/*
 * No data left here: take part in what the others do, with zeros, until all ranks have called this;
 * then all get parameters and buffers of a rank that had data to the end. `step` (may be NULL) is
 * called after each exchange, with the averaged gradients in place, so that an optimizer here stays
 * like the others'. Needs a join mode.
 */
typedef rondo_result (*rondo_ddp_step_function)(void *context);
RONDO_API rondo_result rondo_ddp_join(rondo_ddp *ddp, rondo_ddp_step_function step, void *context);

/* ---- Ranks that come and go (docs/elastic.md) ------------------------------------------------ */

/*
 * After an error of a pass, before ranks agree on how to go on: no peer waits in an exchange for
 * this rank any more. Local. What is left then is moving, and closing.
 */
RONDO_API void rondo_ddp_revoke(rondo_ddp *ddp);
/*
 * Go on with this model on another communicator: one that was shrunk, grown or made anew.
 * Collective over `comm`: ranks that have the model move, newcomers call rondo_ddp_open() with
 * the same model and settings, and rank 0 is one that moves. Parameters and buffers stay as they
 * are here, and newcomers get rank 0's. A pass that was begun is forgotten; gradients are zeros,
 * and those that the library gives out have moved: ask after them. Closes nothing: `comm` takes
 * the place of the old one, which may be broken, and may be closed then. After an error: agree,
 * and move again.
 */
RONDO_API rondo_result rondo_ddp_move(rondo_ddp *ddp, rondo_comm *comm);
/*
 * Collective: everything else that a newcomer needs, as an optimizer's state and counters: rank 0's
 * values of `count` arrays, of which every rank names the same (their `data`, `count` and `type`).
 */
RONDO_API rondo_result rondo_ddp_share(rondo_ddp *ddp, const rondo_ddp_tensor *arrays, int count);

/* ---- What it does, and how long it takes ----------------------------------------------------- */

/* Sums over all exchanges since open or reset. Hidden communication is 1 - exposed / total. */
typedef struct rondo_ddp_statistics {
    uint64_t exchanges;   /* passes that exchanged */
    uint64_t bytes;       /* of gradients given to the exchange, as they travel */
    double communication; /* seconds in which exchanges of buckets were under way */
    double exposed;       /* seconds that rondo_ddp_wait() waited for them */
    double compression;   /* seconds of converting, copying in and out, scaling */
    int buckets;
    int rebuilt; /* 1: buckets follow the order of gradients */
} rondo_ddp_statistics;
RONDO_API rondo_result rondo_ddp_statistics_get(const rondo_ddp *ddp, rondo_ddp_statistics *ret);
RONDO_API rondo_result rondo_ddp_statistics_reset(rondo_ddp *ddp);

/*
 * This tells who comes late, over the last passes that all ranks have counted, at most
 * RONDO_DDP_LATE_PASSES. A rank's own time is from its leaving of one exchange to its waiting for
 * the next, by its own clock, so it holds across hosts; work that a device does meanwhile is seen
 * only where the host waits for it before rondo_ddp_wait().
 */
#define RONDO_DDP_LATE_PASSES 256
typedef struct rondo_ddp_lateness {
    uint64_t passes; /* the same for all ranks */
    uint64_t last;   /* in which this rank came last */
    double mean;     /* seconds after the first rank */
    double most;
    double held_up; /* seconds that it was later than all others, over all passes */
} rondo_ddp_lateness;
/* Collective, between passes; `ret` has room for as many as the communicator has ranks, and is
 * filled in alike on all of them. */
RONDO_API rondo_result rondo_ddp_lateness_get(rondo_ddp *ddp, rondo_ddp_lateness *ret);

/* One bucket in its last exchange; times are seconds after begin. */
typedef struct rondo_ddp_bucket_statistics {
    int parameters;
    size_t bytes;
    double ready;    /* its last gradient was announced */
    double started;  /* its all-reduce began on this rank */
    double finished; /* ... and ended */
} rondo_ddp_bucket_statistics;
RONDO_API rondo_result rondo_ddp_bucket_statistics_get(const rondo_ddp *ddp, int bucket,
                                                       rondo_ddp_bucket_statistics *ret);

/*
 * The buckets in words, one a line: which parameters, how many bytes, when. Writes at most `bytes`
 * with the final 0; returns the length of the whole text, as snprintf() does.
 */
RONDO_API size_t rondo_ddp_describe(const rondo_ddp *ddp, char *text, size_t bytes);

/* ---- Batch normalisation over the batches of all ranks --------------------------------------- */

/*
 * y = (x - mean) / sqrt(var + epsilon) * weight + bias, per channel, with mean and variance over
 * the batches of all ranks. x is [batch][channels][inner], float32; batches may differ, also be 0.
 * One per layer: it keeps what backward needs. Blocking calls on `comm`; not for ranks that joined.
 */
typedef struct rondo_batch_norm rondo_batch_norm;
typedef struct rondo_batch_norm_layer {
    size_t channels;
    const float *weight, *bias;             /* [channels]; NULL: 1 and 0 */
    float *running_mean, *running_variance; /* [channels]; NULL: none are kept */
    float epsilon, momentum; /* running = (1 - momentum) * running + momentum * new */
} rondo_batch_norm_layer;

RONDO_API rondo_result rondo_batch_norm_open(rondo_comm *comm, const rondo_batch_norm_layer *layer,
                                             rondo_batch_norm **ret_norm);
RONDO_API void rondo_batch_norm_close(rondo_batch_norm *norm); /* accepts NULL */
/* Collective. x must stay until backward; y may be x only if backward is not called. */
RONDO_API rondo_result rondo_batch_norm_forward(rondo_batch_norm *norm, const float *x, float *y,
                                                size_t batch, size_t inner);
/*
 * Collective. dx is written, dweight and dbias (may be NULL) are added to: by this rank's part of
 * the batch, as any other gradient that is averaged later.
 */
RONDO_API rondo_result rondo_batch_norm_backward(rondo_batch_norm *norm, const float *dy, float *dx,
                                                 float *dweight, float *dbias);
/* Local: with the running mean and variance, for evaluation. */
RONDO_API rondo_result rondo_batch_norm_evaluate(rondo_batch_norm *norm, const float *x, float *y,
                                                 size_t batch, size_t inner);

#ifdef __cplusplus
}
#endif
#endif
