/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limit_sum.c - sums of float32 vectors: every source is read once, every result written once.
 *
 * The loops are plain C. They are compiled once per number of sources up to eight, and once per
 * width of vectors that the processor may have. Stores past the cache did not pay in trials with
 * two ranks: 64 KiB to 4 MiB took longer with them, 16 MiB as long, 64 MiB longer.
 */
#include "bench/limit_sum.h"

#include <string.h>

enum { BLOCK = 1024, AT_ONCE = 8 };

/* At most AT_ONCE sources; as many results as sources, or one. */
struct sum {
    float *const *to;
    int outputs;
    const float *const *from;
    int sources;
    size_t count;
};

/* The loop of fixed numbers of sources and results; a result may be one of the sources. */
static inline __attribute__((always_inline)) void
add(float *const *to, int outputs, const float *const *from, int sources, size_t count)
{
    const float *at[AT_ONCE];
    float *sums[AT_ONCE];

    for (int i = 0; i < AT_ONCE; i++) {
        at[i] = from[i < sources ? i : 0];
        sums[i] = to[i < outputs ? i : 0];
    }
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
    for (size_t i = 0; i < count; i++) {
        float sum = at[0][i];

        for (int s = 1; s < sources; s++)
            sum += at[s][i];
        for (int o = 0; o < outputs; o++)
            sums[o][i] = sum;
    }
}

/* Computes as many results as there are sources, or one. */
static inline __attribute__((always_inline)) void add_fixed(const struct sum *sum, int sources)
{
    if (sum->outputs > 1)
        add(sum->to, sources, sum->from, sources, sum->count);
    else
        add(sum->to, 1, sum->from, sources, sum->count);
}

/* clang-format off */
#define OF(n) case n: add_fixed(sum, n); break;
static inline __attribute__((always_inline)) void add_any(const struct sum *sum)
{
    switch (sum->sources) {
        OF(2) OF(3) OF(4) OF(5) OF(6) OF(7) OF(8)
    default:
        memmove(sum->to[0], sum->from[0], sum->count * sizeof(float));
    }
}
/* clang-format on */

static void add_plain(const struct sum *sum)
{
    add_any(sum);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void add_avx2(const struct sum *sum)
{
    add_any(sum);
}
#endif

static void add_some(const struct sum *sum)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        add_avx2(sum);
    else
#endif
        add_plain(sum);
}

/* Any number of sources, eight at once: what they gave so far is the first of the next eight. */
static void sum_block(float *to, const float *const *from, int sources, size_t start, size_t count)
{
    float partial[BLOCK];
    float *next = partial;
    int done = 0;

    while (done < sources) {
        const float *some[AT_ONCE];
        struct sum sum = {&next, 1, some, 0, count};

        if (done > 0)
            some[sum.sources++] = partial;
        while (sum.sources < AT_ONCE && done < sources)
            some[sum.sources++] = from[done++] + start;
        if (done == sources)
            next = to;
        add_some(&sum);
    }
}

/* More ranks than a loop takes: block by block, which is then copied to the other results. */
static void sum_blocks(const struct sum *sum)
{
    for (size_t start = 0; start < sum->count; start += BLOCK) {
        size_t some = sum->count - start < BLOCK ? sum->count - start : BLOCK;
        float *first = sum->to[0] + start;

        sum_block(first, sum->from, sum->sources, start, some);
        for (int i = 1; i < sum->outputs; i++)
            memcpy(sum->to[i] + start, first, some * sizeof(float));
    }
}

void limit_sum(float *const *to, int outputs, const float *const *from, int sources, size_t count)
{
    const struct sum sum = {to, outputs, from, sources, count};

    if (sources <= AT_ONCE && (outputs == sources || outputs == 1))
        add_some(&sum);
    else
        sum_blocks(&sum);
}
