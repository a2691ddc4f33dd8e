/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sums.h - sums as fast as memory allows, the same bits as combine.h.
 *
 * What counts is how many loads are under way. Sources are loaded in groups of up to WIDTH before
 * any of them is used; where there are few, several packs of each (AHEAD) make up for it, so a lane
 * always has up to 8 loads of 16 bytes under way.
 *
 * Within a group, WIDTH being a power of 2, a balanced tree that leaves out what is missing is the
 * one that kernels/kernels.h defines:
 *
 *     5 sources   ((0 1)(2 3)) ((4 .)(. .))  =  ((0 1)(2 3)) 4
 *
 * and whole groups are whole subtrees, so the same holds among groups.
 */
#ifndef RONDO_CUDA_KERNELS_SUMS_H
#define RONDO_CUDA_KERNELS_SUMS_H

#include "cuda/kernels/results.h"

enum { LOADS = 8, GROUPS_MAX = CUDA_SOURCES_MAX / LOADS };

template <class Kind, class Pack, int WIDTH> struct group {
    enum { AHEAD = LOADS / WIDTH };
    typedef results<Kind, Pack, AHEAD> result;
    Pack packs[WIDTH][AHEAD];
    int first, count; /* of the sources, those that are in this group */

    LANE_METHOD void load(const struct work &work, int begin, uint64_t at, const struct span &span)
    {
        first = begin;
        count = work.sources - begin < WIDTH ? work.sources - begin : WIDTH;
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            if (i < count)
                load_ahead<Pack, AHEAD>(packs[i], work.operands[begin + i], at, span);
    }
    /* After what is in `out`; the first group begins it. */
    LANE_METHOD void fold(const struct work &work, result *out) const
    {
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            result next;

            if (i >= count)
                continue;
            next.open(work, first + i, packs[i]);
            if (i || first)
                next.template combine<KERNEL_SUM>(*out, false);
            *out = next;
        }
    }
    template <int SIZE> LANE_METHOD void tree(const struct work &work, int begin, result *out) const
    {
        if constexpr (SIZE == 1) {
            out->open(work, first + begin, packs[begin]);
        } else {
            result left;

            tree<SIZE / 2>(work, begin, out);
            if (begin + SIZE / 2 < count) {
                left = *out;
                tree<SIZE / 2>(work, begin + SIZE / 2, out);
                out->template combine<KERNEL_SUM>(left, false);
            }
        }
    }
};

/* Groups are taken one after the other; combine.h says how the results of subtrees wait. */
template <class Kind, class Pack, int WIDTH>
LANE_FUNCTION void sum_packs(const struct work &work, uint64_t at, const struct span &span)
{
    typedef group<Kind, Pack, WIDTH> Group;
    bool tree = work.arithmetic.order == KERNEL_BALANCED;
    typename Group::result waiting[4]; /* 1, 2, 4, 8 groups */
    typename Group::result out;
    Group group;
    int below = 0;

    group.load(work, 0, at, span);
    if (tree)
        group.template tree<WIDTH>(work, 0, &out);
    else
        group.fold(work, &out);
    if constexpr (WIDTH == LOADS) {
        for (int i = 1; i * WIDTH < work.sources; i++) {
            group.load(work, i * WIDTH, at, span);
            if (!tree) {
                group.fold(work, &out);
                continue;
            }
            waiting[below++] = out;
            group.template tree<WIDTH>(work, 0, &out);
            for (int bits = i; (i + 1) * WIDTH >= work.sources ? below > 0 : bits & 1; bits >>= 1)
                out.template combine<KERNEL_SUM>(waiting[--below], false);
        }
    }
    out.close(work, at, span);
}

template <class Kind, class Pack, int WIDTH>
LANE_FUNCTION void sum_span(const struct work &work, const struct span &span)
{
#pragma unroll 1
    for (uint64_t at = span.begin + span.lane * Pack::LANE_STEP; at < span.end;
         at += LOADS / WIDTH * span.lanes * Pack::ELEMENTS)
        sum_packs<Kind, Pack, WIDTH>(work, at, span);
}

template <class Kind>
LANE_CALLED void sum_all(const struct work &given, uint64_t count, uint64_t lane, uint64_t lanes)
{
    typedef typename Kind::bits bits;
    const struct work work = given; /* in registers: stores to elements do not change it */
    typedef wide_pack<bits> wide;
    struct cut cut = cut_count(work.operands, work.sources + work.destinations, count, sizeof(bits),
                               lane, lanes);

    if (work.sources <= 2)
        sum_span<Kind, wide, 2>(work, cut.wide);
    else if (work.sources <= 4)
        sum_span<Kind, wide, 4>(work, cut.wide);
    else
        sum_span<Kind, wide, LOADS>(work, cut.wide);
#pragma unroll 1
    for (int i = 0; i < 2; i++)
        sum_span<Kind, single_pack<bits>, LOADS>(work, cut.single[i]);
}

#endif
