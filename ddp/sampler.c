/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sampler.c - which samples a rank takes.
 *
 * An epoch has an order, a permutation of all samples that every rank computes for itself. The
 * order is stretched or cut to a multiple of the ranks, and rank r takes every size-th of it:
 *
 *     7 samples, 3 ranks, filled up     3 0 6 1 5 2 4 | 3 0      rank 1 takes 0 5 3
 *     the same with drop_last           3 0 6 1 5 2              rank 1 takes 0 5
 *
 * When ranks come or go, what is left of the order is divided anew: of 7 samples, 2 taken by each
 * of 2 ranks, 3 ranks take one each:
 *
 *     3 0 6 1 | 5 2 4                                    first = 4; rank 1 takes 2
 *
 * The permutation is a Fisher-Yates shuffle driven by SplitMix64, which starts from a hash of seed
 * and epoch: it needs no history, so any epoch can be entered at once.
 */
#include "rondo/train.h"

#include "ddp/fail.h"

#include <stdbool.h>
#include <stdlib.h>

struct rondo_sampler {
    rondo_sampler_config config;
    size_t count; /* of this rank, from `first` to the end of the epoch */
    uint64_t epoch, taken;
    size_t first;  /* samples of the order that had been taken when it was divided */
    size_t *order; /* NULL: not shuffled */
};

/* Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014. */
static uint64_t split_mix(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Every number below `limit` equally often: what would make the first ones more likely is drawn
 * again. */
static size_t below(size_t limit, uint64_t *state)
{
    uint64_t surplus = (0 - (uint64_t)limit) % limit, x; /* 2^64 mod limit */

    do
        x = split_mix(state);
    while (x < surplus);
    return (size_t)(x % limit);
}

static void shuffle(rondo_sampler *sampler)
{
    uint64_t state = sampler->config.seed;
    size_t *order = sampler->order;

    state = split_mix(&state) + sampler->epoch;
    for (size_t i = 0; i < sampler->config.samples; i++)
        order[i] = i;
    for (size_t i = sampler->config.samples; i > 1; i--) {
        size_t other = below(i, &state), held = order[i - 1];

        order[i - 1] = order[other];
        order[other] = held;
    }
}

static size_t count_of(const rondo_sampler_config *config, size_t first)
{
    size_t size = (size_t)config->size, left = config->samples - first;
    size_t whole = left / size, rest = left % size;

    if (config->uneven)
        return whole + ((size_t)config->rank < rest);
    return config->drop_last || rest == 0 ? whole : whole + 1;
}

static rondo_result check(const rondo_sampler_config *config)
{
    if (!config || config->struct_size != sizeof(*config))
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_sampler_open: the config is %s.",
                        config ? "not of this version: set struct_size" : "NULL");
    if (config->size < 1 || config->rank < 0 || config->rank >= config->size)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_sampler_open: there is no rank %d of %d; ranks are 0 .. size-1.",
                        config->rank, config->size);
    if (config->samples > SIZE_MAX / sizeof(size_t) / 2)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_sampler_open: %zu samples are too many.",
                        config->samples);
    return RONDO_OK;
}

rondo_result rondo_sampler_open(const rondo_sampler_config *config, rondo_sampler **ret_sampler)
{
    rondo_sampler *sampler;
    rondo_result result = check(config);

    if (result)
        return result;
    if (!ret_sampler)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_sampler_open: no place for the sampler.");
    sampler = calloc(1, sizeof(*sampler));
    if (sampler && config->shuffle)
        sampler->order = malloc((config->samples + 1) * sizeof(size_t));
    if (!sampler || (config->shuffle && !sampler->order)) {
        rondo_sampler_close(sampler);
        return ddp_fail(RONDO_ERROR_MEMORY, "rondo_sampler_open: no memory for %zu samples.",
                        config->samples);
    }
    sampler->config = *config;
    if (sampler->order)
        shuffle(sampler);
    rondo_sampler_set_epoch(sampler, 0);
    *ret_sampler = sampler;
    return RONDO_OK;
}

void rondo_sampler_close(rondo_sampler *sampler)
{
    if (!sampler)
        return;
    free(sampler->order);
    free(sampler);
}

size_t rondo_sampler_count(const rondo_sampler *sampler)
{
    return sampler ? sampler->count : 0;
}

size_t rondo_sampler_next(rondo_sampler *sampler, size_t wanted, size_t *ret_samples)
{
    size_t left, some;

    if (!sampler)
        return 0;
    left = sampler->count - (size_t)sampler->taken;
    some = wanted < left ? wanted : left;
    for (size_t i = 0; i < some; i++) {
        size_t at = sampler->first + ((size_t)sampler->taken + i) * (size_t)sampler->config.size +
                    (size_t)sampler->config.rank;

        at %= sampler->config.samples; /* past the end: the order from its beginning */
        ret_samples[i] = sampler->order ? sampler->order[at] : at;
    }
    if (some > 0 || wanted == 0)
        sampler->taken += some;
    else
        rondo_sampler_set_epoch(sampler, sampler->epoch);
    return some;
}

void rondo_sampler_set_epoch(rondo_sampler *sampler, uint64_t epoch)
{
    bool other;

    if (!sampler)
        return;
    other = epoch != sampler->epoch;
    sampler->epoch = epoch;
    sampler->taken = 0;
    sampler->first = 0;
    sampler->count = count_of(&sampler->config, 0);
    if (sampler->order && other)
        shuffle(sampler);
}

rondo_sampler_position rondo_sampler_tell(const rondo_sampler *sampler)
{
    if (!sampler)
        return (rondo_sampler_position){0};
    return (rondo_sampler_position){sampler->epoch, sampler->taken, sampler->first};
}

uint64_t rondo_sampler_done(const rondo_sampler *sampler)
{
    uint64_t done;

    if (!sampler)
        return 0;
    done = sampler->first + sampler->taken * (uint64_t)sampler->config.size;
    return done < sampler->config.samples ? done : sampler->config.samples;
}

rondo_result rondo_sampler_seek(rondo_sampler *sampler, rondo_sampler_position position)
{
    size_t count = 0;

    if (!sampler)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_sampler_seek: there is no sampler.");
    if (position.first <= sampler->config.samples)
        count = count_of(&sampler->config, (size_t)position.first);
    if (position.taken > count || position.first > sampler->config.samples)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_sampler_seek: %llu samples taken are more than the %zu of an epoch; "
                        "is the position from other data or another number of ranks?",
                        (unsigned long long)position.taken, count);
    rondo_sampler_set_epoch(sampler, position.epoch);
    sampler->first = (size_t)position.first;
    sampler->count = count;
    sampler->taken = position.taken;
    return RONDO_OK;
}

rondo_result rondo_sampler_divide(rondo_sampler *sampler, int rank, int size, uint64_t epoch,
                                  uint64_t done)
{
    if (!sampler)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_sampler_divide: there is no sampler.");
    if (size < 1 || rank < 0 || rank >= size)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_sampler_divide: there is no rank %d of %d; ranks are 0 .. size-1.",
                        rank, size);
    if (done > sampler->config.samples)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_sampler_divide: %llu samples done are more than the %zu there are.",
                        (unsigned long long)done, sampler->config.samples);
    sampler->config.rank = rank;
    sampler->config.size = size;
    return rondo_sampler_seek(sampler, (rondo_sampler_position){epoch, 0, done});
}
