/* SPDX-License-Identifier: BSD-3-Clause */
/* results.h - the values that a lane works on: AHEAD packs of ELEMENTS each. */
#ifndef RONDO_CUDA_KERNELS_RESULTS_H
#define RONDO_CUDA_KERNELS_RESULTS_H

#include "cuda/kernels/pack.h"

struct work {
    const uint64_t *operands; /* addresses: sources, then destinations */
    int sources, destinations;
    struct cuda_arithmetic arithmetic;
};

template <class Kind, class Pack, int AHEAD> struct results {
    typename Kind::value values[AHEAD][Pack::ELEMENTS];

    LANE_METHOD void open(const struct work &work, int source, const Pack *packs)
    {
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
#pragma unroll
            for (int j = 0; j < Pack::ELEMENTS; j++)
                values[i][j] = Kind::open(packs[i].get(j));
        if (work.arithmetic.scaled != source)
            return;
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
#pragma unroll
            for (int j = 0; j < Pack::ELEMENTS; j++)
                values[i][j] =
                    Kind::open(Kind::close(Kind::scale(values[i][j], work.arithmetic.scale)));
    }
    template <int FUNCTION> LANE_METHOD void combine(const results &left, bool is_signed)
    {
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
#pragma unroll
            for (int j = 0; j < Pack::ELEMENTS; j++)
                values[i][j] =
                    Kind::template combine<FUNCTION>(left.values[i][j], values[i][j], is_signed);
    }
    /* Finish, and store in every destination what lies before the end. */
    LANE_METHOD void close(const struct work &work, uint64_t at, const struct span &span)
    {
        Pack packs[AHEAD];

        if (work.arithmetic.divisor > 1)
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
#pragma unroll
                for (int j = 0; j < Pack::ELEMENTS; j++)
                    values[i][j] = Kind::divide(values[i][j], work.arithmetic.divisor,
                                                work.arithmetic.is_signed);
        if (work.arithmetic.divisor > 1 && work.arithmetic.restore)
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
#pragma unroll
                for (int j = 0; j < Pack::ELEMENTS; j++)
                    values[i][j] = Kind::scale(values[i][j], work.arithmetic.restore);
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
#pragma unroll
            for (int j = 0; j < Pack::ELEMENTS; j++)
                packs[i].put(j, Kind::close(values[i][j]));
        for (int i = 0; i < work.destinations; i++)
            store_ahead<Pack, AHEAD>(packs, work.operands[work.sources + i], at, span);
    }
};

#endif
