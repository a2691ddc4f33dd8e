/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.h - one source to all destinations, by lanes. */
#ifndef RONDO_CUDA_KERNELS_COPY_H
#define RONDO_CUDA_KERNELS_COPY_H

#include "cuda/kernels/results.h"

template <class Pack, int AHEAD>
LANE_FUNCTION void copy_span(const struct work &work, const struct span &span)
{
#pragma unroll 1
    for (uint64_t at = span.begin + span.lane * Pack::LANE_STEP; at < span.end;
         at += AHEAD * span.lanes * Pack::ELEMENTS) {
        Pack packs[AHEAD];

        load_ahead<Pack, AHEAD>(packs, work.operands[0], at, span);
        for (int i = 0; i < work.destinations; i++)
            store_ahead<Pack, AHEAD>(packs, work.operands[1 + i], at, span);
    }
}

template <class Bits>
LANE_FUNCTION void copy_elements(const struct work &work, uint64_t count, uint64_t lane,
                                 uint64_t lanes)
{
    struct cut cut =
        cut_count(work.operands, 1 + work.destinations, count, sizeof(Bits), lane, lanes);

    copy_span<wide_pack<Bits>, 8>(work, cut.wide);
#pragma unroll 1
    for (int i = 0; i < 2; i++)
        copy_span<single_pack<Bits>, 2>(work, cut.single[i]);
}

/* Bytes have no type: they move as words where all operands are on boundaries of words. */
LANE_CALLED void copy_all(const struct work &given, uint64_t bytes, uint64_t lane, uint64_t lanes)
{
    const struct work work = given; /* in registers: stores to elements do not change it */
    uint64_t low = bytes;

    for (int i = 0; i <= work.destinations; i++)
        low |= work.operands[i];
    if (low % sizeof(uint32_t) == 0)
        copy_elements<uint32_t>(work, bytes / sizeof(uint32_t), lane, lanes);
    else
        copy_elements<uint8_t>(work, bytes, lane, lanes);
}

#endif
