/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * avx512.c - the CPU level of x86 with AVX-512 F, BW, VL, DQ and VBMI: vectors of 64 bytes, masked
 * ones at the end. (Processors without VBMI slow down for 512 bits; they keep to AVX2.)
 */
#define VECTOR_BYTES 64
#include "kernels/table.h"
#include "kernels/f16c.h"
#include "kernels/vector.h"

/*
 * The first `bytes`; the rest is zero. `full` is a constant: the width of a vector, a half or a
 * quarter of it.
 */
ALWAYS_INLINE void bytes_load_v(void *to, const void *from, size_t bytes, size_t full)
{
    uint64_t mask = (UINT64_C(1) << (bytes & 63)) - 1;

    if (bytes == full) {
        memcpy(to, from, full);
    } else if (full == 64) {
        __m512i value = _mm512_maskz_loadu_epi8(mask, from);
        memcpy(to, &value, 64);
    } else if (full == 32) {
        __m256i value = _mm256_maskz_loadu_epi8((__mmask32)mask, from);
        memcpy(to, &value, 32);
    } else {
        __m128i value = _mm_maskz_loadu_epi8((__mmask16)mask, from);
        memcpy(to, &value, 16);
    }
}

ALWAYS_INLINE void bytes_store_v(void *to, const void *from, size_t bytes, size_t full)
{
    uint64_t mask = (UINT64_C(1) << (bytes & 63)) - 1;

    if (bytes == full) {
        memcpy(to, from, full);
    } else if (full == 64) {
        _mm512_mask_storeu_epi8(to, mask, _mm512_loadu_si512(from));
    } else if (full == 32) {
        _mm256_mask_storeu_epi8(to, (__mmask32)mask, _mm256_loadu_si256(from));
    } else {
        _mm_mask_storeu_epi8(to, (__mmask16)mask, _mm_loadu_si128(from));
    }
}
#define SOME_ELEMENTS

#define HAVE_PARTS
ALWAYS_INLINE u32_v u32_of_part16_v(part16_v part)
{
    return (u32_v)_mm512_cvtepu16_epi32((__m256i)part);
}

ALWAYS_INLINE part16_v part16_of_u32_v(u32_v codes)
{
    return (part16_v)_mm512_cvtepi32_epi16((__m512i)codes);
}

ALWAYS_INLINE u32_v u32_of_part8_v(part8_v part)
{
    return (u32_v)_mm512_cvtepu8_epi32((__m128i)part);
}

ALWAYS_INLINE part8_v part8_of_u32_v(u32_v codes)
{
    return (part8_v)_mm512_cvtepi32_epi8((__m512i)codes);
}

ALWAYS_INLINE f32_v f32_of_half_v(part16_v part)
{
    return (f32_v)_mm512_cvtph_ps((__m256i)part);
}

ALWAYS_INLINE part16_v half_of_f32_v(f32_v value)
{
    u32_v nan = (u32_v)(value != value);
    u32_v bits = ((u32_v)value & ~nan) | (nan & 0x7fc00000);

    return (part16_v)_mm512_cvtps_ph((__m512)bits, _MM_FROUND_TO_NEAREST_INT);
}

/* `to` is aligned to 64 bytes, `bytes` a multiple of 128. */
static void stream_avx512(void *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 128) {
        __m512i a = _mm512_loadu_si512((const char *)from + i);
        __m512i b = _mm512_loadu_si512((const char *)from + i + 64);
        _mm512_stream_si512((void *)((char *)to + i), a);
        _mm512_stream_si512((void *)((char *)to + i + 64), b);
    }
}

#define QUADS   "kernels/quad_avx512.h"
#define N(name) V(name)
#include "kernels/templates/ops.inc"
#undef N

#define LEVEL      kernel_avx512
#define LEVEL_NAME "avx512"
#define STREAM     stream_avx512
#include "kernels/templates/level.inc"
