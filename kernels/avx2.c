/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * avx2.c - the CPU level of x86 with AVX2 and F16C: vectors of 32 bytes, single elements at the
 * end.
 */
#define VECTOR_BYTES 32
#include "kernels/table.h"
#include "kernels/f16c.h"
#include "kernels/vector.h"

ALWAYS_INLINE void bytes_load_v(void *to, const void *from, size_t bytes, size_t full)
{
    (void)bytes;
    memcpy(to, from, full);
}

ALWAYS_INLINE void bytes_store_v(void *to, const void *from, size_t bytes, size_t full)
{
    (void)bytes;
    memcpy(to, from, full);
}

#define HAVE_PARTS
ALWAYS_INLINE u32_v u32_of_part16_v(part16_v part)
{
    return (u32_v)_mm256_cvtepu16_epi32((__m128i)part);
}

/* Packing works within 128-bit halves: the wanted quarters are 0 and 2. */
ALWAYS_INLINE part16_v part16_of_u32_v(u32_v codes)
{
    __m256i packed = _mm256_packus_epi32((__m256i)codes, (__m256i)codes);

    return (part16_v)_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}

ALWAYS_INLINE u32_v u32_of_part8_v(part8_v part)
{
    return (u32_v)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)part));
}

ALWAYS_INLINE part8_v part8_of_u32_v(u32_v codes)
{
    __m128i words = (__m128i)part16_of_u32_v(codes);

    return (part8_v)_mm_cvtsi128_si64(_mm_packus_epi16(words, words));
}

ALWAYS_INLINE f32_v f32_of_half_v(part16_v part)
{
    return (f32_v)_mm256_cvtph_ps((__m128i)part);
}

ALWAYS_INLINE part16_v half_of_f32_v(f32_v value)
{
    u32_v nan = (u32_v)(value != value);
    u32_v bits = ((u32_v)value & ~nan) | (nan & 0x7fc00000);

    return (part16_v)_mm256_cvtps_ph((__m256)bits, _MM_FROUND_TO_NEAREST_INT);
}

/* `to` is aligned to 32 bytes, `bytes` a multiple of 128. */
static void stream_avx2(void *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 128) {
        const __m256i *source = (const __m256i *)(const void *)((const char *)from + i);
        __m256i *target = (__m256i *)(void *)((char *)to + i);
        __m256i a = _mm256_loadu_si256(source), b = _mm256_loadu_si256(source + 1);
        __m256i c = _mm256_loadu_si256(source + 2), d = _mm256_loadu_si256(source + 3);
        _mm256_stream_si256(target, a);
        _mm256_stream_si256(target + 1, b);
        _mm256_stream_si256(target + 2, c);
        _mm256_stream_si256(target + 3, d);
    }
}

#define QUADS   "kernels/quad_avx2.h"
#define N(name) V(name)
#include "kernels/templates/ops.inc"
#undef N

#define LEVEL      kernel_avx2
#define LEVEL_NAME "avx2"
#define STREAM     stream_avx2
#include "kernels/templates/level.inc"
