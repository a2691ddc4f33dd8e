/* SPDX-License-Identifier: BSD-3-Clause */
/* f16c.h - single float16 by the instructions of F16C, for x86 levels; included before scalar.h. */
#ifndef RONDO_KERNELS_F16C_H
#define RONDO_KERNELS_F16C_H

#include <immintrin.h>
#include <stdint.h>

#define HAVE_HALF

static inline __attribute__((always_inline)) float f32_of_half_1(uint16_t part)
{
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(part)));
}

static inline __attribute__((always_inline)) uint16_t half_of_f32_1(float value)
{
    __m128i code = _mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT);

    return value != value ? 0x7e00 : (uint16_t)_mm_cvtsi128_si32(code);
}

#endif
