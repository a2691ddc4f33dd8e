/* SPDX-License-Identifier: BSD-3-Clause */
/* hooks.c - exchanges of one's own, and 16-bit floats on the way. */
#include "bodies.h"

#include <math.h>
#include <string.h>

static double sum_of_ranks(const struct toy *toy, const void *context, int parameter, size_t i)
{
    const double *factor = context;
    double all = 0;

    for (int rank = 0; rank < toy->size; rank++)
        all += toy_gradient(rank, 1, parameter, i);
    return all * *factor;
}

/* ---- A hook of one's own --------------------------------------------------------------------- */

/* An all-reduce by two calls; then twice the sum. */
struct two_calls {
    int rank, size;
    int started, finished;
    bool fails;
};

static rondo_result reduce_and_broadcast(void *context, const rondo_ddp_bucket *bucket)
{
    struct two_calls *calls = context;
    int root = bucket->index % calls->size;
    rondo_result result;

    if (calls->fails && calls->started == 1)
        return RONDO_ERROR_UNSUPPORTED;
    calls->started++;
    result = rondo_reduce(bucket->data, bucket->data, bucket->count, bucket->type, RONDO_SUM, root,
                          bucket->comm, bucket->stream);
    if (!result)
        result = rondo_broadcast(bucket->data, bucket->data, bucket->count, bucket->type, root,
                                 bucket->comm, bucket->stream);
    return result;
}

static rondo_result twice(void *context, const rondo_ddp_bucket *bucket)
{
    struct two_calls *calls = context;
    float *data = bucket->data;

    for (size_t i = 0; i < bucket->count; i++)
        data[i] *= 2;
    calls->finished++;
    return RONDO_OK;
}

rondo_result hooks_replace_the_all_reduce(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    struct two_calls calls = {toy->rank, toy->size, 0, 0, false};
    rondo_ddp_config config = toy_config();
    rondo_result result;

    config.hook = (rondo_ddp_hook){reduce_and_broadcast, twice, &calls};
    result = toy_open(toy, &config);
    if (!result)
        result = toy_pass(toy, 1, 1, true);
    if (!result)
        result = toy_check(toy, sum_of_ranks, &(double){2});
    if (!result && (calls.started < 2 || calls.started != calls.finished))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "%d starts, %d ends", calls.started,
                           calls.finished);
    toy_free(toy);
    return result;
}

static rondo_result fail_to_finish(void *context, const rondo_ddp_bucket *bucket)
{
    const int *rank = context;

    return *rank == 0 ? RONDO_ERROR_SYSTEM : RONDO_OK;
}

static rondo_result start_all_reduce(void *context, const rondo_ddp_bucket *bucket)
{
    return rondo_all_reduce(bucket->data, bucket->data, bucket->count, bucket->type, RONDO_SUM,
                            bucket->comm, bucket->stream);
}

/* A finish() that fails on rank 0, then a start() that fails on all. */
rondo_result hooks_fail_on_all(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    struct two_calls calls = {toy->rank, toy->size, 0, 0, true};
    rondo_ddp_config config = toy_config();
    rondo_result result;

    config.hook = (rondo_ddp_hook){start_all_reduce, fail_to_finish, &toy->rank};
    result = toy_open(toy, &config);
    if (!result)
        result = toy_expect(toy, toy_pass(toy, 1, 1, true), RONDO_ERROR_SYSTEM, "Rank 0",
                            "finish() for bucket 0");
    rondo_ddp_close(toy->ddp);
    toy->ddp = NULL;
    config.hook = (rondo_ddp_hook){reduce_and_broadcast, NULL, &calls};
    if (!result)
        result = toy_open(toy, &config);
    if (!result)
        result = toy_expect(toy, toy_pass(toy, 1, 1, true), RONDO_ERROR_UNSUPPORTED, "Rank 0",
                            "start() for bucket 1");
    toy_free(toy);
    return result;
}

/* ---- Compression ----------------------------------------------------------------------------- */

rondo_result hooks_compress(rondo_comm *comm, void *unused, char *sentence)
{
    rondo_result result = RONDO_OK;

    for (int c = RONDO_DDP_FLOAT16; c <= RONDO_DDP_BFLOAT16 && !result; c++) {
        struct toy *toy = toy_new(comm, true, sentence); /* also types that stay as they are */
        rondo_ddp_config config = toy_config();
        double factor = 1;

        config.compression = (rondo_ddp_compression)c;
        if (toy->size != 3) { /* its reciprocal is not exact */
            config.average = RONDO_DDP_BY_RANKS;
            factor = 1. / toy->size;
        }
        result = toy_open(toy, &config);
        for (int step = 0; step < 3 && !result; step++) {
            result = toy_say(toy, rondo_ddp_zero_gradients(toy->ddp), "zero");
            if (!result)
                result = toy_pass(toy, 1, 1, step % 2);
            if (!result)
                result = toy_check(toy, sum_of_ranks, &factor);
        }
        toy_free(toy);
    }
    return result;
}

enum { VALUES = 100000 };

/* The nearest number with `digits` binary digits whose last one is worth at least 2^lowest. */
static double nearest(double value, int digits, int lowest, double largest)
{
    int exponent;
    double unit, rounded;

    if (!isfinite(value) || value == 0)
        return value;
    frexp(value, &exponent);
    unit = ldexp(1, exponent - digits > lowest ? exponent - digits : lowest);
    rounded = nearbyint(value / unit) * unit;
    return fabs(rounded) > largest ? copysign(INFINITY, value) : rounded;
}

/* Every exponent that matters, many mantissas, and values halfway between two neighbours. */
static void fill(float *values)
{
    static const float special[] = {0.f,        -0.f,           INFINITY,       -INFINITY,
                                    NAN,        65504.f,        65519.996f,     65520.f,
                                    -65536.f,   6.1035156e-5f,  6.0975e-5f,     5.96e-8f,
                                    2.98e-8f,   2.9802323e-8f,  8.9406967e-8f,  1e-30f,
                                    3.4e38f,    1.00048828125f, 1.00146484375f, 1.00390625f,
                                    1.01171875f};
    static const uint32_t nans[] = {0x7fffffff, 0xffffffff, 0x7f800001};
    size_t count = sizeof(special) / sizeof(special[0]);

    for (size_t i = 0; i < VALUES; i++) {
        uint64_t hash = world_hash(5, i);
        int exponent = (int)(hash >> 40) % 44 - 26; /* 2^-26 .. 2^17 */
        float mantissa =
            (float)(1024 + (hash & 1023)) + (hash & 1024 ? .5f : 0) + (hash & 2048 ? 0.01f : 0);

        values[i] = ldexpf(hash & 4096 ? mantissa : -mantissa, exponent - 10);
    }
    memcpy(values, special, count * sizeof(special[0]));
    memcpy(values + count, nans, sizeof(nans)); /* their payloads must not round to infinity */
}

static rondo_result check_rounded(rondo_ddp *ddp, bool half, char *sentence)
{
    static float before[VALUES];
    const float *after = rondo_ddp_gradient(ddp, 0);

    fill(before);
    for (size_t i = 0; i < VALUES; i++) {
        double want = half ? nearest(before[i], 11, -24, 65504)
                           : nearest(before[i], 8, -133, 3.3895313892515355e38);

        if (isnan(want) ? !isnan(after[i])
                        : after[i] != want || !signbit(after[i]) != !signbit(want))
            return world_say(sentence, RONDO_ERROR_INTERNAL, "%.9g became %.9g, not %.9g",
                             (double)before[i], (double)after[i], want);
    }
    return RONDO_OK;
}

/* For one rank: what it gets back is what it gave, rounded. */
rondo_result hooks_round_to_nearest(rondo_comm *comm, void *unused, char *sentence)
{
    static float data[VALUES];
    rondo_ddp_tensor tensor = {"w", data, NULL, VALUES, RONDO_FLOAT32, 0};
    rondo_ddp_model model = {&tensor, 1, NULL, 0};
    rondo_result result = RONDO_OK;

    for (int half = 0; half < 2 && !result; half++) {
        rondo_ddp_config config = RONDO_DDP_CONFIG_INIT;
        rondo_ddp *ddp = NULL;

        config.compression = half ? RONDO_DDP_FLOAT16 : RONDO_DDP_BFLOAT16;
        if ((result = rondo_ddp_open(comm, &model, &config, &ddp)) ||
            (result = rondo_ddp_begin(ddp, 1)))
            return world_say(sentence, result, "%s", rondo_ddp_last_error());
        fill(rondo_ddp_gradient(ddp, 0));
        if ((result = rondo_ddp_gradient_ready(ddp, 0)) || (result = rondo_ddp_wait(ddp)))
            return world_say(sentence, result, "%s", rondo_ddp_last_error());
        result = check_rounded(ddp, half, sentence);
        rondo_ddp_close(ddp);
    }
    return result;
}
