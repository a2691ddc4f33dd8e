/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pack.h - what a lane loads at once from one operand: a pack of elements, in one of two ways.
 *
 *   wide    16 bytes that lie side by side on a 16-byte boundary: one access
 *   single  4 elements, each beside those of the neighbouring lanes, an access each: where operands
 *           do not share their alignment, and at both ends of wide ones; byte by byte for elements
 *           off their own boundary
 *
 *   lane       0       1       2          0   1   2   0   1   2   0   1   2
 *   wide   |.......|.......|.......|     |.  |.  |.  |.  |.  |.  |.  |.  |.  |   single
 *
 * Addresses are numbers: where operands are is known only when the kernel runs.
 */
#ifndef RONDO_CUDA_KERNELS_PACK_H
#define RONDO_CUDA_KERNELS_PACK_H

#include "cuda/kernels/kinds.h"

enum { WIDE_BYTES = 16, SINGLE_ELEMENTS = 4 };

/* Elements of `Bits` from `begin` to `end`, as one lane of `lanes` sees them. */
struct span {
    uint64_t begin, end;
    uint64_t lane, lanes;
    bool aligned; /* single: elements lie on their own boundaries */
};

template <class Bits> struct wide_pack {
    enum { ELEMENTS = WIDE_BYTES / sizeof(Bits), LANE_STEP = ELEMENTS, EACH = sizeof(Bits) };
    uint32_t words[4];

    LANE_METHOD void load(uint64_t operand, uint64_t at, const struct span &span)
    {
        (void)span;
#ifdef __CUDACC__
        uint4 all = *reinterpret_cast<const uint4 *>(operand + at * EACH);

        words[0] = all.x, words[1] = all.y, words[2] = all.z, words[3] = all.w;
#else
        __builtin_memcpy(words, reinterpret_cast<const void *>(operand + at * EACH), WIDE_BYTES);
#endif
    }
    LANE_METHOD void store(uint64_t operand, uint64_t at, const struct span &span) const
    {
        (void)span;
#ifdef __CUDACC__
        *reinterpret_cast<uint4 *>(operand + at * EACH) =
            make_uint4(words[0], words[1], words[2], words[3]);
#else
        __builtin_memcpy(reinterpret_cast<void *>(operand + at * EACH), words, WIDE_BYTES);
#endif
    }
    LANE_METHOD Bits get(int i) const
    {
        if (EACH == 8)
            return (Bits)(words[2 * i % 4] | (uint64_t)words[(2 * i + 1) % 4] << 32);
        return (Bits)(words[i * EACH / 4] >> i * EACH % 4 * 8);
    }
    /* In order, element 0 first. */
    LANE_METHOD void put(int i, Bits element)
    {
        if (EACH == 8) {
            words[2 * i % 4] = (uint32_t)element;
            words[(2 * i + 1) % 4] = (uint32_t)((uint64_t)element >> 32);
        } else if (i * EACH % 4 == 0) {
            words[i * EACH / 4] = (uint32_t)element;
        } else {
            words[i * EACH / 4] |= (uint32_t)element << i * EACH % 4 * 8;
        }
    }
};

template <class Bits> struct single_pack {
    enum { ELEMENTS = SINGLE_ELEMENTS, LANE_STEP = 1, EACH = sizeof(Bits) };
    Bits elements[ELEMENTS];

    LANE_METHOD void load(uint64_t operand, uint64_t at, const struct span &span)
    {
#pragma unroll
        for (int i = 0; i < ELEMENTS; i++) {
            uint64_t element = at + (uint64_t)i * span.lanes;

            elements[i] = 0;
            if (element < span.end)
                elements[i] = read(operand + element * EACH, span.aligned);
        }
    }
    LANE_METHOD void store(uint64_t operand, uint64_t at, const struct span &span) const
    {
#pragma unroll
        for (int i = 0; i < ELEMENTS; i++) {
            uint64_t element = at + (uint64_t)i * span.lanes;

            if (element < span.end)
                write(operand + element * EACH, elements[i], span.aligned);
        }
    }
    LANE_METHOD Bits get(int i) const
    {
        return elements[i];
    }
    LANE_METHOD void put(int i, Bits element)
    {
        elements[i] = element;
    }

  private:
    static LANE_METHOD Bits read(uint64_t address, bool aligned)
    {
        const uint8_t *bytes = reinterpret_cast<const uint8_t *>(address);
        Bits element = 0;

        if (aligned)
            return *reinterpret_cast<const Bits *>(address);
        for (unsigned i = 0; i < sizeof(Bits); i++)
            element = (Bits)(element | (Bits)bytes[i] << 8 * i);
        return element;
    }
    static LANE_METHOD void write(uint64_t address, Bits element, bool aligned)
    {
        uint8_t *bytes = reinterpret_cast<uint8_t *>(address);

        if (aligned) {
            *reinterpret_cast<Bits *>(address) = element;
            return;
        }
        for (unsigned i = 0; i < sizeof(Bits); i++)
            bytes[i] = (uint8_t)(element >> 8 * i);
    }
};

/* AHEAD packs from `at` on, each beside those of other lanes; what lies past the end is zero. */
template <class Pack, int AHEAD>
LANE_FUNCTION void load_ahead(Pack *packs, uint64_t operand, uint64_t at, const struct span &span)
{
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
        uint64_t next = at + (uint64_t)i * span.lanes * Pack::ELEMENTS;

        packs[i] = Pack();
        if (next < span.end)
            packs[i].load(operand, next, span);
    }
}

template <class Pack, int AHEAD>
LANE_FUNCTION void store_ahead(const Pack *packs, uint64_t operand, uint64_t at,
                               const struct span &span)
{
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
        uint64_t next = at + (uint64_t)i * span.lanes * Pack::ELEMENTS;

        if (next < span.end)
            packs[i].store(operand, next, span);
    }
}

/* A cut of a count: what is wide, and what lies before and after it. Nothing is wide where operands
 * differ in their distance from a boundary. */
struct cut {
    struct span wide, single[2];
};

/* `count` elements of `bytes` each, in so many operands. */
LANE_FUNCTION struct cut cut_count(const uint64_t *operands, int n, uint64_t count, unsigned bytes,
                                   uint64_t lane, uint64_t lanes)
{
    uint64_t differ = 0, low = 0;
    uint64_t head, tail;

    for (int i = 0; i < n; i++) {
        differ |= operands[i] ^ operands[0];
        low |= operands[i];
    }
    head = (0 - operands[0]) % WIDE_BYTES / bytes;
    if (differ % WIDE_BYTES || low % bytes || head > count)
        head = count;
    tail = count - (count - head) % (WIDE_BYTES / bytes);
    return {{head, tail, lane, lanes, true},
            {{0, head, lane, lanes, low % bytes == 0}, {tail, count, lane, lanes, true}}};
}

#endif
