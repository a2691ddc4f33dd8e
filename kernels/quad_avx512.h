/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quad_avx512.h - 8-bit floats by tables in registers (VBMI): both bytes of a code's bfloat16 come
 * from 128 entries each, and those of float32 are its upper half. See quad.h.
 *
 * In each 128-bit part the order is that of unpacking: of its codes 0..15, a and b have the even
 * and the odd ones of 0..7, c and d those of 8..15.
 */
#include "kernels/quad.h"

/* For pair.inc. */
ALWAYS_INLINE bool pair_has_nan_v(f32_v a, f32_v b)
{
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q) != 0;
}

/* bfloat16 of a code without sign; below the normal numbers by hand: one to three bits are left. */
#define E4M3(c)                             \
    ((c) == 127 ? 0x7fc0                    \
     : (c) >= 8 ? 0x3c00 + ((c) << 4)       \
     : (c) >= 4 ? (120 << 7) + ((c)-4) * 32 \
     : (c) >= 2 ? (119 << 7) + ((c)-2) * 64 \
                : (118 << 7) * (c))
#define E5M2(c)                               \
    ((c) > 124    ? 0x7fc0                    \
     : (c) == 124 ? 0x7f80                    \
     : (c) >= 4   ? 0x3800 + ((c) << 5)       \
     : (c) >= 2   ? (112 << 7) + ((c)-2) * 64 \
                  : (111 << 7) * (c))
#define HIGH4(c)   (E4M3(c) >> 8)
#define LOW4(c)    (E4M3(c) & 255)
#define HIGH5(c)   (E5M2(c) >> 8)
#define LOW5(c)    (E5M2(c) & 255)
#define BY4(X, c)  X(c), X((c) + 1), X((c) + 2), X((c) + 3)
#define BY16(X, c) BY4(X, c), BY4(X, (c) + 4), BY4(X, (c) + 8), BY4(X, (c) + 12)
#define BY64(X, c) BY16(X, c), BY16(X, (c) + 16), BY16(X, (c) + 32), BY16(X, (c) + 48)

/* Upper bytes, lower bytes. */
static const uint8_t quad_bytes_e4m3[2][128] = {{BY64(HIGH4, 0), BY64(HIGH4, 64)},
                                                {BY64(LOW4, 0), BY64(LOW4, 64)}};
static const uint8_t quad_bytes_e5m2[2][128] = {{BY64(HIGH5, 0), BY64(HIGH5, 64)},
                                                {BY64(LOW5, 0), BY64(LOW5, 64)}};

/* The base (quad.h) by the lowest bits of float32's exponent: 4 for e4m3, 5 for e5m2. */
#define BASE(mantissa, exponent)                        \
    ((((uint32_t)(exponent) + 23 - (mantissa)) << 23) + \
     (((uint32_t)(exponent)-QUAD_LOWEST(mantissa)) << (mantissa)))
#define BASE4(i) BASE(3, (i) < 8 ? (i) + 128 : (i) + 112 < 121 ? 121 : (i) + 112)
#define BASE5(i) BASE(2, (i) < 16 ? (i) + 128 : (i) + 96 < 113 ? 113 : (i) + 96)

static const uint32_t quad_bases_e4m3[16] = {BY16(BASE4, 0)};
static const uint32_t quad_bases_e5m2[32] = {BY16(BASE5, 0), BY16(BASE5, 16)};

ALWAYS_INLINE quad_v quad_open_v(u8_v codes, int mantissa)
{
    const uint8_t(*bytes)[128] = mantissa == 3 ? quad_bytes_e4m3 : quad_bytes_e5m2;
    __m512i in = (__m512i)codes;
    __m512i high = _mm512_permutex2var_epi8(_mm512_loadu_si512(bytes[0]), in,
                                            _mm512_loadu_si512(bytes[0] + 64));
    __m512i low = _mm512_permutex2var_epi8(_mm512_loadu_si512(bytes[1]), in,
                                           _mm512_loadu_si512(bytes[1] + 64));
    u32_v first;
    u32_v second;

    /* high | (in & 0x80) */
    high = _mm512_ternarylogic_epi32(high, in, _mm512_set1_epi8((char)0x80), 0xf8);
    first = (u32_v)_mm512_unpacklo_epi8(low, high);
    second = (u32_v)_mm512_unpackhi_epi8(low, high);
    return (quad_v){f32_of_v(first << 16), f32_of_v(first & 0xffff0000), f32_of_v(second << 16),
                    f32_of_v(second & 0xffff0000)};
}

/* The code in the lowest byte of each word. */
ALWAYS_INLINE __m512i quad_round(f32_v value, int mantissa)
{
    __m512 most = _mm512_castsi512_ps(_mm512_set1_epi32(QUAD_MOST(mantissa)));
    __m512i least = _mm512_set1_epi32(QUAD_LOWEST(mantissa) << 23);
    __m512 size = _mm512_range_ps((__m512)value, most, 0xa); /* the smaller one, without signs */
    __m512i index = _mm512_srli_epi32(_mm512_max_epu32(_mm512_castps_si512(size), least), 23);
    __m512i base = mantissa == 3
                       ? _mm512_permutexvar_epi32(index, _mm512_loadu_si512(quad_bases_e4m3))
                       : _mm512_permutex2var_epi32(_mm512_loadu_si512(quad_bases_e5m2), index,
                                                   _mm512_loadu_si512(quad_bases_e5m2 + 16));

    return _mm512_castps_si512(_mm512_add_ps(size, _mm512_castsi512_ps(base)));
}

/* Code i comes from the lowest byte of its word, of two vectors. */
#define PLACE(i) ((i) / 16 * 16 + (i) % 8 / 2 * 4 + (i) % 2 * 64)
static const uint8_t quad_places[64] = {BY64(PLACE, 0)};

/* Byte `byte` of all words of a, b, c and d, in the order of the codes. */
ALWAYS_INLINE __m512i quad_gather(__m512i a, __m512i b, __m512i c, __m512i d, int byte)
{
    __m512i from = _mm512_add_epi8(_mm512_loadu_si512(quad_places), _mm512_set1_epi8((char)byte));

    return _mm512_or_si512(_mm512_maskz_permutex2var_epi8(0x00ff00ff00ff00ff, a, from, b),
                           _mm512_maskz_permutex2var_epi8(0xff00ff00ff00ff00, c, from, d));
}

/* True if there are infinities or NaNs: only they times zero are not zero. */
ALWAYS_INLINE bool quad_is_special(quad_v value)
{
    __m512 zero = _mm512_setzero_ps();
    __m512 left = _mm512_fmadd_ps((__m512)value.a, zero, _mm512_mul_ps((__m512)value.b, zero));
    __m512 right = _mm512_fmadd_ps((__m512)value.c, zero, _mm512_mul_ps((__m512)value.d, zero));

    return _mm512_cmp_ps_mask(left, right, _CMP_UNORD_Q) != 0;
}

ALWAYS_INLINE u8_v quad_close_v(quad_v value, int mantissa)
{
    __m512i a = quad_round(value.a, mantissa), b = quad_round(value.b, mantissa);
    __m512i c = quad_round(value.c, mantissa), d = quad_round(value.d, mantissa);
    __m512i codes;
    __m512i signs;

    if (__builtin_expect(quad_is_special(value), 0)) {
        u32_v rounded[4] = {eight_of_f32_v(value.a, mantissa), eight_of_f32_v(value.b, mantissa),
                            eight_of_f32_v(value.c, mantissa), eight_of_f32_v(value.d, mantissa)};

        return (u8_v)quad_gather((__m512i)rounded[0], (__m512i)rounded[1], (__m512i)rounded[2],
                                 (__m512i)rounded[3], 0);
    }
    codes = quad_gather(a, b, c, d, 0);
    signs = quad_gather((__m512i)value.a, (__m512i)value.b, (__m512i)value.c, (__m512i)value.d, 3);
    /* codes | (signs & 0x80) */
    return (u8_v)_mm512_ternarylogic_epi32(codes, signs, _mm512_set1_epi8((char)0x80), 0xf8);
}
