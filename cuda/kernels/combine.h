/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * combine.h - k operands combined into m, by any operation in any order: one pass over the sources,
 * in which the operation is looked up for each. What sums.h does faster is for that; this is for
 * all the rest, and the same bits.
 *
 * All of a lane's loads come before its first store, so a destination may be a source.
 *
 * A balanced tree over k sources, taken one after the other: results of whole subtrees wait on a
 * stack, and a source with an odd number completes as many of them as its number ends with ones.
 *
 *     source      0    1    2    3       4        5        6 (the last)
 *     on top      0    01   2    0123    4        45       0123456 = 0123 + (45 + 6)
 *     waiting               01           0123     0123
 */
#ifndef RONDO_CUDA_KERNELS_COMBINE_H
#define RONDO_CUDA_KERNELS_COMBINE_H

#include "cuda/kernels/results.h"

template <class Kind, class Result>
LANE_FUNCTION void combine_by(const struct work &work, const Result &left, Result *right)
{
    bool is_signed = work.arithmetic.is_signed;

    switch (work.arithmetic.function) {
    case KERNEL_SUM:
        right->template combine<KERNEL_SUM>(left, is_signed);
        break;
    case KERNEL_PROD:
        right->template combine<KERNEL_PROD>(left, is_signed);
        break;
    case KERNEL_MIN:
        right->template combine<KERNEL_MIN>(left, is_signed);
        break;
    case KERNEL_MAX:
        right->template combine<KERNEL_MAX>(left, is_signed);
        break;
    }
    if constexpr (Kind::BITWISE) {
        switch (work.arithmetic.function) {
        case KERNEL_BAND:
            right->template combine<KERNEL_BAND>(left, is_signed);
            break;
        case KERNEL_BOR:
            right->template combine<KERNEL_BOR>(left, is_signed);
            break;
        case KERNEL_BXOR:
            right->template combine<KERNEL_BXOR>(left, is_signed);
            break;
        }
    }
}

template <class Kind, class Pack, int AHEAD>
LANE_FUNCTION void combine_packs(const struct work &work, uint64_t at, const struct span &span)
{
    typedef results<Kind, Pack, AHEAD> result;
    bool tree = work.arithmetic.order == KERNEL_BALANCED;
    result waiting[6]; /* subtrees of 2, 4 ... 64 sources */
    result top, next;
    Pack packs[AHEAD], ahead[AHEAD];
    int below = 0;

    load_ahead<Pack, AHEAD>(ahead, work.operands[0], at, span);
#pragma unroll 1
    for (int source = 0; source < work.sources; source++) {
        bool last = source + 1 == work.sources;
        int merges = source > 0;

#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            packs[i] = ahead[i];
        if (!last)
            load_ahead<Pack, AHEAD>(ahead, work.operands[source + 1], at, span);
        next.open(work, source, packs);
        if (tree && source > 0) {
            if (last) {
                merges = below + 1;
            } else if (source % 2 == 0) {
                waiting[below++] = top;
                merges = 0;
            } else {
                for (int bits = source >> 1; bits & 1; bits >>= 1)
                    merges++;
            }
        }
#pragma unroll 1
        for (int i = 0; i < merges; i++) {
            if (i > 0)
                top = waiting[--below];
            combine_by<Kind>(work, top, &next);
        }
        top = next;
    }
    top.close(work, at, span);
}

template <class Kind, class Pack, int AHEAD>
LANE_FUNCTION void combine_span(const struct work &work, const struct span &span)
{
#pragma unroll 1
    for (uint64_t at = span.begin + span.lane * Pack::LANE_STEP; at < span.end;
         at += AHEAD * span.lanes * Pack::ELEMENTS)
        combine_packs<Kind, Pack, AHEAD>(work, at, span);
}

/* All of it, by all lanes that have come. */
template <class Kind>
LANE_CALLED void combine_all(const struct work &given, uint64_t count, uint64_t lane,
                             uint64_t lanes)
{
    typedef typename Kind::bits bits;
    const struct work work = given; /* in registers: stores to elements do not change it */
    struct cut cut = cut_count(work.operands, work.sources + work.destinations, count, sizeof(bits),
                               lane, lanes);

    combine_span<Kind, wide_pack<bits>, sizeof(bits) == 1 ? 2 : 4>(work, cut.wide);
#pragma unroll 1
    for (int i = 0; i < 2; i++)
        combine_span<Kind, single_pack<bits>, 1>(work, cut.single[i]);
}

#endif
