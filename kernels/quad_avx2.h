/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quad_avx2.h - 8-bit floats by float16, which F16C widens: an e5m2 is the upper half of a float16,
 * an e4m3 that of a 256th of its value when its exponent is moved by one bit. See quad.h.
 *
 * Codes 0..7 are in a, 8..15 in c, 16..23 in b, 24..31 in d, as packing wants it.
 */
#include "kernels/quad.h"

/* For pair.inc. */
ALWAYS_INLINE bool pair_has_nan_v(f32_v a, f32_v b)
{
    return _mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q)) != 0;
}

/* The NaN of e4m3 has no place in that picture: 0x7f. */
ALWAYS_INLINE bool quad_has_nan(__m256i codes)
{
    __m256i ones = _mm256_or_si256(codes, _mm256_set1_epi8((char)0x80));

    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(ones, _mm256_set1_epi8(-1))) != 0;
}

ALWAYS_INLINE f32_v quad_open_slowly(__m128i codes)
{
    return f32_of_code_v((u32_v)_mm256_cvtepu8_epi32(codes), 3, 7, 7, 0x7f);
}

ALWAYS_INLINE f32_v quad_widen(__m128i halves, int mantissa)
{
    f32_v wide = (f32_v)_mm256_cvtph_ps(halves);

    return mantissa == 3 ? wide * 256 : wide;
}

ALWAYS_INLINE __m256i quad_halves(__m256i words, int mantissa)
{
    if (mantissa == 2)
        return words;
    return _mm256_and_si256(_mm256_srai_epi16(words, 1), _mm256_set1_epi16((short)0xbfff));
}

ALWAYS_INLINE quad_v quad_open_v(u8_v codes, int mantissa)
{
    __m256i in = (__m256i)codes;
    __m256i zero = _mm256_setzero_si256();
    __m256i first = quad_halves(_mm256_unpacklo_epi8(zero, in), mantissa);
    __m256i second = quad_halves(_mm256_unpackhi_epi8(zero, in), mantissa);

    if (mantissa == 3 && __builtin_expect(quad_has_nan(in), 0)) {
        __m128i low = _mm256_castsi256_si128(in);
        __m128i high = _mm256_extracti128_si256(in, 1);

        return (quad_v){quad_open_slowly(low), quad_open_slowly(high),
                        quad_open_slowly(_mm_srli_si128(low, 8)),
                        quad_open_slowly(_mm_srli_si128(high, 8))};
    }
    return (quad_v){quad_widen(_mm256_castsi256_si128(first), mantissa),
                    quad_widen(_mm256_extracti128_si256(first, 1), mantissa),
                    quad_widen(_mm256_castsi256_si128(second), mantissa),
                    quad_widen(_mm256_extracti128_si256(second, 1), mantissa)};
}

ALWAYS_INLINE __m256i quad_size(f32_v value)
{
    return _mm256_and_si256((__m256i)value, _mm256_set1_epi32(0x7fffffff));
}

/* The code in the lowest byte of each word, and zeros. */
ALWAYS_INLINE __m256i quad_round(f32_v value, int mantissa)
{
    __m256i most = _mm256_set1_epi32(QUAD_MOST(mantissa));
    __m256i least = _mm256_set1_epi32(QUAD_LOWEST(mantissa) << 23);
    __m256i size = _mm256_min_epu32(quad_size(value), most);
    __m256i exponent =
        _mm256_and_si256(_mm256_max_epu32(size, least), _mm256_set1_epi32(QUAD_INFINITE));
    /* The lower bits take the lowest exponent away from what is added below. */
    __m256i base =
        _mm256_add_epi32(exponent, _mm256_set1_epi32(((23 - mantissa) << 23) +
                                                     (-(QUAD_LOWEST(mantissa) << mantissa) & 255)));
    __m256 sum = _mm256_add_ps(_mm256_castsi256_ps(size), _mm256_castsi256_ps(base));
    __m256i code =
        _mm256_add_epi32(_mm256_castps_si256(sum), _mm256_srli_epi32(exponent, 23 - mantissa));

    return _mm256_and_si256(code, _mm256_set1_epi32(255));
}

ALWAYS_INLINE bool quad_is_special(quad_v value)
{
    __m256i most = _mm256_max_epu32(_mm256_max_epu32(quad_size(value.a), quad_size(value.b)),
                                    _mm256_max_epu32(quad_size(value.c), quad_size(value.d)));
    __m256i special = _mm256_cmpgt_epi32(most, _mm256_set1_epi32(QUAD_INFINITE - 1));

    return _mm256_movemask_epi8(special) != 0;
}

/* Words with codes in their lowest bytes, to bytes in order. */
ALWAYS_INLINE __m256i quad_pack(__m256i a, __m256i b, __m256i c, __m256i d)
{
    return _mm256_packus_epi16(_mm256_packus_epi32(a, c), _mm256_packus_epi32(b, d));
}

ALWAYS_INLINE u8_v quad_close_v(quad_v value, int mantissa)
{
    __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i sign = _mm256_set1_epi8((char)0x80);
    __m256i signs = _mm256_packs_epi16(_mm256_packs_epi32((__m256i)value.a, (__m256i)value.c),
                                       _mm256_packs_epi32((__m256i)value.b, (__m256i)value.d));
    __m256i codes;

    if (__builtin_expect(quad_is_special(value), 0))
        codes = quad_pack(
            (__m256i)eight_of_f32_v(value.a, mantissa), (__m256i)eight_of_f32_v(value.b, mantissa),
            (__m256i)eight_of_f32_v(value.c, mantissa), (__m256i)eight_of_f32_v(value.d, mantissa));
    else
        codes =
            _mm256_or_si256(quad_pack(quad_round(value.a, mantissa), quad_round(value.b, mantissa),
                                      quad_round(value.c, mantissa), quad_round(value.d, mantissa)),
                            _mm256_and_si256(signs, sign)); /* packing saturates, so signs stay */
    return (u8_v)_mm256_permutevar8x32_epi32(codes, order);
}
