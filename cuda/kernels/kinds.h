/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kinds.h - element kinds on the device: open (widen), combine, divide, scale, close (round).
 *
 * The same bits as kernels/ on the CPU: 16- and 8-bit floats are combined in float32 and rounded
 * once, results out of range saturate as templates/narrow.inc says, every NaN is stored as the one
 * canonical quiet NaN, minimum and maximum give NaN if there is one and order -0 below +0. Signed
 * and unsigned integers of a width share a kind: only comparisons and divisions differ.
 *
 * A kind has: bits (an element in memory), value (what accumulates), and the functions above.
 */
#ifndef RONDO_CUDA_KERNELS_KINDS_H
#define RONDO_CUDA_KERNELS_KINDS_H

#include "cuda/kernels/calls.h"
#include "cuda/kernels/lanes.h"
#include "kernels/kernels.h"

LANE_FUNCTION uint32_t bits_of(float value)
{
#ifdef __CUDACC__
    return __float_as_uint(value);
#else
    uint32_t bits;

    __builtin_memcpy(&bits, &value, sizeof(bits));
    return bits;
#endif
}

LANE_FUNCTION float float_of(uint32_t bits)
{
#ifdef __CUDACC__
    return __uint_as_float(bits);
#else
    float value;

    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
#endif
}

LANE_FUNCTION uint64_t bits_of(double value)
{
#ifdef __CUDACC__
    return (uint64_t)__double_as_longlong(value);
#else
    uint64_t bits;

    __builtin_memcpy(&bits, &value, sizeof(bits));
    return bits;
#endif
}

LANE_FUNCTION double float_of(uint64_t bits)
{
#ifdef __CUDACC__
    return __longlong_as_double((long long)bits);
#else
    double value;

    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
#endif
}

/* Truncated towards zero. Division of 64 bits is long: it is there once, not in each place. */
LANE_CALLED uint64_t quotient(uint64_t a, uint32_t divisor, bool is_signed)
{
    return is_signed ? (uint64_t)((int64_t)a / (int64_t)divisor) : a / divisor;
}

/* ---- Integers -------------------------------------------------------------------------------- */

template <class Bits, class Signed> struct integer_kind {
    typedef Bits bits;
    typedef Bits value;
    static constexpr bool BITWISE = true;

    LANE_FUNCTION value open(bits element)
    {
        return element;
    }
    LANE_FUNCTION bits close(value result)
    {
        return result;
    }
    /* Turns the order of signed numbers into that of unsigned ones. */
    LANE_FUNCTION Bits turned(Bits a, bool is_signed)
    {
        return (Bits)(a ^ (is_signed ? (Bits)((Bits)1 << (8 * sizeof(Bits) - 1)) : (Bits)0));
    }
    LANE_FUNCTION bool below(Bits a, Bits b, bool is_signed)
    {
        return turned(a, is_signed) < turned(b, is_signed);
    }
    template <int FUNCTION> LANE_FUNCTION value combine(value a, value b, bool is_signed)
    {
        switch (FUNCTION) {
        case KERNEL_SUM:
            return (Bits)(a + b);
        case KERNEL_PROD:
            return (Bits)((uint64_t)a * (uint64_t)b);
        case KERNEL_MIN:
            return below(b, a, is_signed) ? b : a;
        case KERNEL_MAX:
            return below(a, b, is_signed) ? b : a;
        case KERNEL_BAND:
            return (Bits)(a & b);
        case KERNEL_BOR:
            return (Bits)(a | b);
        default:
            return (Bits)(a ^ b);
        }
    }
    LANE_FUNCTION value scale(value a, uint64_t factor)
    {
        return (Bits)((uint64_t)a * factor);
    }
    LANE_FUNCTION value divide(value a, uint32_t divisor, bool is_signed)
    {
        return (Bits)quotient(is_signed ? (uint64_t)(int64_t)(Signed)a : a, divisor, is_signed);
    }
};

typedef integer_kind<uint8_t, int8_t> int8_kind;
typedef integer_kind<uint16_t, int16_t> int16_kind;
typedef integer_kind<uint32_t, int32_t> int32_kind;
typedef integer_kind<uint64_t, int64_t> int64_kind;

/* ---- Floats ---------------------------------------------------------------------------------- */

template <class Float, class Bits> struct float_arithmetic {
    typedef Float value;
    static constexpr bool BITWISE = false;

    /* Equal numbers differ in the sign of zero at most: their minimum has the sign if one has it,
     * their maximum if both have. */
    template <int FUNCTION> LANE_FUNCTION value combine(value a, value b, bool is_signed)
    {
        (void)is_signed;
        switch (FUNCTION) {
        case KERNEL_SUM:
            return a + b;
        case KERNEL_PROD:
            return a * b;
        case KERNEL_MIN:
            if (a == b)
                return float_of((Bits)(bits_of(a) | bits_of(b)));
            return a < b || a != a ? a : b;
        default:
            if (a == b)
                return float_of((Bits)(bits_of(a) & bits_of(b)));
            return a > b || a != a ? a : b;
        }
    }
    LANE_FUNCTION value scale(value a, uint64_t factor)
    {
        return a * float_of((Bits)factor);
    }
    LANE_FUNCTION value divide(value a, uint32_t divisor, bool is_signed)
    {
        (void)is_signed;
        return a / (Float)divisor;
    }
};

struct float32_kind : float_arithmetic<float, uint32_t> {
    typedef uint32_t bits;

    LANE_FUNCTION value open(bits element)
    {
        return float_of(element);
    }
    LANE_FUNCTION bits close(value result)
    {
        return result != result ? UINT32_C(0x7fc00000) : bits_of(result);
    }
};

struct float64_kind : float_arithmetic<double, uint64_t> {
    typedef uint64_t bits;

    LANE_FUNCTION value open(bits element)
    {
        return float_of(element);
    }
    LANE_FUNCTION bits close(value result)
    {
        return result != result ? UINT64_C(0x7ff8000000000000) : bits_of(result);
    }
};

struct bfloat16_kind : float_arithmetic<float, uint32_t> {
    typedef uint16_t bits;

    LANE_FUNCTION value open(bits element)
    {
        return float_of((uint32_t)element << 16);
    }
    LANE_FUNCTION bits close(value result)
    {
        uint32_t all = bits_of(result);

        return result != result ? (bits)0x7fc0 : (bits)((all + ((all >> 16) & 1) + 0x7fff) >> 16);
    }
};

/*
 * A code of `mantissa` bits with an exponent `bias` and the sign in bit `top`, to float32 and back.
 * narrow.inc explains the arithmetic: above its smallest normal number a code is the upper
 * part of the float32 with another bias; below, the addition of a number whose last bit is worth as
 * much as the code's makes the processor round.
 */
LANE_FUNCTION float float_of_code(uint32_t code, int mantissa, int bias, int top, uint32_t special)
{
    uint32_t size = code & ((UINT32_C(1) << top) - 1);
    uint32_t field = size << (23 - mantissa);
    uint32_t smallest = (uint32_t)(128 - bias) << 23;
    uint32_t bits = field + ((uint32_t)(127 - bias) << 23);

    if (size < UINT32_C(1) << mantissa)
        bits = bits_of(float_of(field + smallest) - float_of(smallest));
    if (size >= special)
        bits = field | UINT32_C(0x7f800000);
    return float_of(bits | (code >> top) << 31);
}

/* Larger results become the code `most`, infinities `infinity`, every NaN `nan`. */
LANE_FUNCTION uint32_t code_of_float(float value, int mantissa, int bias, int top, uint32_t most,
                                     uint32_t infinity, uint32_t nan)
{
    int shift = 23 - mantissa;
    uint32_t bits = bits_of(value);
    uint32_t size = bits & UINT32_C(0x7fffffff);
    uint32_t magic = (uint32_t)(151 - bias - mantissa) << 23;
    uint32_t odd = (size >> shift) & 1;
    uint32_t code = ((size + odd + (UINT32_C(1) << (shift - 1)) - 1) >> shift) -
                    ((uint32_t)(127 - bias) << mantissa);

    if (size < (uint32_t)(128 - bias) << 23)
        code = bits_of(float_of(size) + float_of(magic)) - magic;
    code = code > most ? most : code;
    code = size == UINT32_C(0x7f800000) ? infinity : code;
    return size > UINT32_C(0x7f800000) ? nan : code | (bits >> 31) << top;
}

struct float16_kind : float_arithmetic<float, uint32_t> {
    typedef uint16_t bits;

    LANE_FUNCTION value open(bits element)
    {
#ifdef __CUDACC__
        float wide;

        asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(element));
        return wide;
#else
        return float_of_code(element, 10, 15, 15, 0x7c00);
#endif
    }
    LANE_FUNCTION bits close(value result)
    {
#ifdef __CUDACC__
        uint16_t code;

        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(result));
        return result != result ? (bits)0x7e00 : code;
#else
        return (bits)code_of_float(result, 10, 15, 15, 0x7c00, 0x7c00, 0x7e00);
#endif
    }
};

struct e4m3_kind : float_arithmetic<float, uint32_t> {
    typedef uint8_t bits;

    LANE_FUNCTION value open(bits element)
    {
        return float_of_code(element, 3, 7, 7, 0x7f);
    }
    LANE_FUNCTION bits close(value result)
    {
        return (bits)code_of_float(result, 3, 7, 7, 0x7e, 0x7e, 0x7f);
    }
};

struct e5m2_kind : float_arithmetic<float, uint32_t> {
    typedef uint8_t bits;

    LANE_FUNCTION value open(bits element)
    {
        return float_of_code(element, 2, 15, 7, 0x7c);
    }
    LANE_FUNCTION bits close(value result)
    {
        return (bits)code_of_float(result, 2, 15, 7, 0x7b, 0x7c, 0x7e);
    }
};

#endif
