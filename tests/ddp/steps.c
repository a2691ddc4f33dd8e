/* SPDX-License-Identifier: BSD-3-Clause */
/* steps.c - steps in which nothing goes wrong. */
#include "bodies.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sum over all ranks of passes first .. last. */
struct sum {
    int first, last;
    double divisor;
};

static double summed(const struct toy *toy, const void *context, int parameter, size_t i)
{
    const struct sum *sum = context;
    double all = 0;

    for (int rank = 0; rank < toy->size; rank++)
        for (int pass = sum->first; pass <= sum->last; pass++)
            all += toy_gradient(rank, pass, parameter, i);
    return all / sum->divisor;
}

/* Bucket of a parameter's first name in the description. */
static bool starts_with(struct toy *toy, const char *name)
{
    char text[4096], wanted[64] = ":";
    const char *bucket;

    strcat(strcat(strcat(wanted, " '"), name), "'");
    rondo_ddp_describe(toy->ddp, text, sizeof(text));
    bucket = strstr(text, "bucket 0: ");
    return bucket && strstr(bucket, wanted) &&
           strstr(bucket, wanted) < bucket + strcspn(bucket, "\n");
}

/* Odd ranks announce in the other order; from the second step on buckets follow rank 0's. */
rondo_result steps_sum_and_rebuild(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, true, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result = toy_open(toy, &config);

    if (!result && !starts_with(toy, "head.weight"))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "bucket 0 has not the last parameter");
    for (int pass = 0; pass < 5 && !result; pass++) {
        result = toy_pass(toy, pass, 1, toy->rank % 2);
        if (!result)
            result = toy_check(toy, summed, &(struct sum){pass, pass, 1});
        if (!result) /* buckets may move here, and gradients with them */
            result = toy_say(toy, rondo_ddp_begin(toy->ddp, 0), "begin");
        if (!result)
            result = toy_check(toy, summed, &(struct sum){pass, pass, 1});
        if (!result)
            result = rondo_ddp_zero_gradients(toy->ddp);
    }
    if (!result && !starts_with(toy, "embed.weight"))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "buckets did not follow the gradients");
    toy_free(toy);
    return result;
}

rondo_result steps_average(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result;

    config.average = RONDO_DDP_BY_RANKS;
    result = toy_open(toy, &config);
    if (!result)
        result = toy_pass(toy, 1, 1, true);
    if (!result)
        result = toy_check(toy, summed, &(struct sum){1, 1, toy->size});
    toy_free(toy);
    return result;
}

/* Three passes, one exchange; twice, once divided by ranks and once by passes. */
rondo_result steps_accumulate(rondo_comm *comm, void *unused, char *sentence)
{
    rondo_result result = RONDO_OK;

    for (int by_passes = 0; by_passes < 2 && !result; by_passes++) {
        struct toy *toy = toy_new(comm, false, sentence);
        rondo_ddp_config config = toy_config();
        double divisor = toy->size * (by_passes ? 3 : 1);

        config.average = by_passes ? RONDO_DDP_BY_PASSES : RONDO_DDP_BY_RANKS;
        result = toy_open(toy, &config);
        for (int step = 0; step < 3 && !result; step++) {
            for (int pass = 0; pass < 3 && !result; pass++)
                result = toy_pass(toy, step + pass, pass == 2, (step + pass) % 2);
            if (!result)
                result = toy_check(toy, summed, &(struct sum){step, step + 2, divisor});
            if (!result)
                result = rondo_ddp_zero_gradients(toy->ddp);
        }
        toy_free(toy);
    }
    return result;
}

/* On 1, 2, 4 ranks: quotients of small numbers by 2 to 8 are exact, also in 16 bits. */
rondo_result steps_divide_all_types(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, true, sentence);
    rondo_ddp_config config = toy_config();
    rondo_result result;

    config.average = RONDO_DDP_BY_PASSES;
    result = toy_open(toy, &config);
    for (int pass = 0; pass < 2 && !result; pass++)
        result = toy_pass(toy, pass, pass, true);
    if (!result)
        result = toy_check(toy, summed, &(struct sum){0, 1, 2 * toy->size});
    toy_free(toy);
    return result;
}

rondo_result steps_broadcast_buffers(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_result result = toy_open(toy, NULL);

    for (int step = 1; step <= 2 && !result; step++) {
        toy->buffer[1][7] = step * 10 + toy->rank;
        result = rondo_ddp_begin(toy->ddp, 0); /* no exchange: buffers stay as they are */
        if (!result && toy->buffer[1][7] != step * 10 + toy->rank)
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "an accumulating pass broadcast");
        if (!result)
            result = rondo_ddp_begin(toy->ddp, 1);
        if (!result && toy->buffer[1][7] != step * 10)
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "buffer is %d, not rank 0's",
                               toy->buffer[1][7]);
    }
    result = toy_say(toy, result, "begin");
    toy_free(toy);
    return result;
}

static bool buckets_are_plausible(struct toy *toy, int count)
{
    rondo_ddp_bucket_statistics bucket;
    int parameters = 0;

    for (int b = 0; b < count; b++) {
        if (rondo_ddp_bucket_statistics_get(toy->ddp, b, &bucket) || bucket.ready <= 0 ||
            bucket.started < bucket.ready || bucket.finished < bucket.started)
            return false;
        parameters += bucket.parameters;
    }
    return parameters == TOY_PARAMETERS - 1 &&
           rondo_ddp_bucket_statistics_get(toy->ddp, count, &bucket) == RONDO_ERROR_INVALID;
}

rondo_result steps_are_counted_and_described(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_ddp_statistics s = {0};
    char text[4096], small[10];
    rondo_result result = toy_open(toy, &config);

    for (int pass = 0; pass < 4 && !result; pass++)
        result = toy_pass(toy, pass, pass % 2, false);
    if (!result)
        result = rondo_ddp_statistics_get(toy->ddp, &s);
    if (!result && (s.exchanges != 2 || s.buckets < 2 || !s.rebuilt || s.bytes < 2 * 482 * 4 ||
                    s.bytes > 2 * 700 * 4 || !(s.exposed > 0) || !(s.communication > 0)))
        result = world_say(sentence, RONDO_ERROR_INTERNAL,
                           "%d exchanges, %d buckets, %d bytes, %g s exposed of %g s",
                           (int)s.exchanges, s.buckets, (int)s.bytes, s.exposed, s.communication);
    if (!result && !buckets_are_plausible(toy, s.buckets))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "buckets are wrong");
    if (!result && (rondo_ddp_describe(toy->ddp, text, sizeof(text)) != strlen(text) ||
                    !strstr(text, "'embed.weight'") || !strstr(text, "exchanged from") ||
                    rondo_ddp_describe(toy->ddp, small, sizeof(small)) != strlen(text) ||
                    strlen(small) != 9 || rondo_ddp_describe(toy->ddp, NULL, 0) != strlen(text)))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "described as '%s'", text);
    if (!result)
        result = rondo_ddp_statistics_reset(toy->ddp);
    if (!result)
        result = rondo_ddp_statistics_get(toy->ddp, &s);
    if (!result && (s.exchanges || s.bytes || s.exposed > 0))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "reset left something");
    if (!result && (rondo_ddp_statistics_get(NULL, &s) != RONDO_ERROR_INVALID ||
                    rondo_ddp_statistics_reset(NULL) != RONDO_ERROR_INVALID ||
                    rondo_ddp_describe(NULL, text, sizeof(text)) != 0))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "something is told of nothing");
    toy_free(toy);
    return result;
}

/* Rank 1 dawdles; all ranks are told so, and the same. */
rondo_result steps_name_the_latest_rank(rondo_comm *comm, void *unused, char *sentence)
{
    enum { PASSES = 7 };
    struct toy *toy = toy_new(comm, false, sentence);
    rondo_ddp_config config = toy_config();
    rondo_ddp_lateness late[WORLD_RANKS] = {0}, others[WORLD_RANKS];
    size_t bytes = (size_t)rondo_comm_size(comm) * sizeof(*late);
    rondo_result result = toy_open(toy, &config);
    uint64_t sum = 0;

    for (int pass = 0; pass < PASSES && !result; pass++) {
        if (toy->rank == 1)
            usleep((useconds_t)(world_patience(0.03) * 1e6));
        result = toy_pass(toy, pass, 1, false);
    }
    if (!result)
        result = rondo_ddp_lateness_get(toy->ddp, late);
    memcpy(others, late, bytes);
    if (!result)
        result = rondo_broadcast(others, others, bytes, RONDO_UINT8, 0, comm, NULL);
    for (int rank = 0; rank < rondo_comm_size(comm); rank++)
        sum += late[rank].last;
    if (!result &&
        (memcmp(late, others, bytes) != 0 || sum != PASSES - 1 || late[1].passes != PASSES - 1 ||
         late[1].last <= (PASSES - 1) / 2 || late[1].most < late[1].mean || late[1].held_up <= 0))
        result = world_say(sentence, RONDO_ERROR_INTERNAL,
                           "rank 1 was last in %d of %d passes, by %g s; %d are counted",
                           (int)late[1].last, (int)late[1].passes, late[1].mean, (int)sum);
    if (!result && (rondo_ddp_lateness_get(NULL, late) != RONDO_ERROR_INVALID ||
                    rondo_ddp_lateness_get(toy->ddp, NULL) != RONDO_ERROR_INVALID))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "something is told of nothing");
    toy_free(toy);
    return result;
}

/* By default all fits into one bucket, whose description is shortened. */
rondo_result steps_describe_in_short(rondo_comm *comm, void *unused, char *sentence)
{
    struct toy *toy = toy_new(comm, false, sentence);
    char text[4096];
    rondo_result result = toy_open(toy, NULL);

    if (!result)
        rondo_ddp_describe(toy->ddp, text, sizeof(text));
    if (!result && (!strstr(text, "6 parameters: 'head.weight' 'norm' 'up.bias' 'empty' ... "
                                  "'embed.weight'\n") ||
                    !strstr(text, "7 parameters, 6 of them trained, 2 buffers; 1 bucket, ")))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "described as '%s'", text);
    toy_free(toy);
    return result;
}
