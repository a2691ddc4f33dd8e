/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quad_neon.h - 8-bit floats by float16: an e5m2 is the upper half of a float16, an e4m3 that of a
 * 256th of its value when its exponent is moved by one bit. See quad.h. Codes are in order.
 */
#include "kernels/quad.h"

/* For pair.inc. */
ALWAYS_INLINE bool pair_has_nan_v(f32_v a, f32_v b)
{
    return vminvq_u32(vandq_u32((uint32x4_t)(a == a), (uint32x4_t)(b == b))) == 0;
}

/* The NaN of e4m3 has no place in that picture: 0x7f. */
ALWAYS_INLINE bool quad_has_nan(uint8x16_t codes)
{
    return vmaxvq_u8(vandq_u8(codes, vdupq_n_u8(0x7f))) == 0x7f;
}

ALWAYS_INLINE f32_v quad_open_slowly(uint16x4_t codes)
{
    return f32_of_code_v((u32_v)vmovl_u16(codes), 3, 7, 7, 0x7f);
}

ALWAYS_INLINE uint16x8_t quad_halves(uint8x8_t codes, int mantissa)
{
    uint16x8_t words = vshlq_n_u16(vmovl_u8(codes), 8);

    if (mantissa == 2)
        return words;
    words = vreinterpretq_u16_s16(vshrq_n_s16(vreinterpretq_s16_u16(words), 1));
    return vandq_u16(words, vdupq_n_u16(0xbfff));
}

ALWAYS_INLINE f32_v quad_widen(uint16x4_t halves, int mantissa)
{
    f32_v wide = (f32_v)vcvt_f32_f16((float16x4_t)halves);

    return mantissa == 3 ? wide * 256 : wide;
}

ALWAYS_INLINE quad_v quad_open_v(u8_v codes, int mantissa)
{
    uint8x16_t in = (uint8x16_t)codes;
    bool slow = mantissa == 3 && __builtin_expect(quad_has_nan(in), 0);
    uint16x8_t first = slow ? vmovl_u8(vget_low_u8(in)) : quad_halves(vget_low_u8(in), mantissa);
    uint16x8_t second = slow ? vmovl_u8(vget_high_u8(in)) : quad_halves(vget_high_u8(in), mantissa);

    if (slow)
        return (quad_v){
            quad_open_slowly(vget_low_u16(first)), quad_open_slowly(vget_high_u16(first)),
            quad_open_slowly(vget_low_u16(second)), quad_open_slowly(vget_high_u16(second))};
    return (quad_v){
        quad_widen(vget_low_u16(first), mantissa), quad_widen(vget_high_u16(first), mantissa),
        quad_widen(vget_low_u16(second), mantissa), quad_widen(vget_high_u16(second), mantissa)};
}

ALWAYS_INLINE uint32x4_t quad_size(f32_v value)
{
    return vandq_u32((uint32x4_t)value, vdupq_n_u32(0x7fffffff));
}

/* The code in the lowest byte of each word. */
ALWAYS_INLINE uint32x4_t quad_round(f32_v value, int mantissa)
{
    uint32x4_t size = vminq_u32(quad_size(value), vdupq_n_u32(QUAD_MOST(mantissa)));
    uint32x4_t exponent = vandq_u32(vmaxq_u32(size, vdupq_n_u32(QUAD_LOWEST(mantissa) << 23)),
                                    vdupq_n_u32(QUAD_INFINITE));
    /* The lower bits take the lowest exponent away from what is added below. */
    uint32_t up = ((23 - (uint32_t)mantissa) << 23) + (-(QUAD_LOWEST(mantissa) << mantissa) & 255);
    uint32x4_t base = vaddq_u32(exponent, vdupq_n_u32(up));
    f32_v sum = (f32_v)size + (f32_v)base;
    uint32x4_t field = mantissa == 3 ? vshrq_n_u32(exponent, 20) : vshrq_n_u32(exponent, 21);

    return vaddq_u32((uint32x4_t)sum, field);
}

ALWAYS_INLINE bool quad_is_special(quad_v value)
{
    uint32x4_t most = vmaxq_u32(vmaxq_u32(quad_size(value.a), quad_size(value.b)),
                                vmaxq_u32(quad_size(value.c), quad_size(value.d)));

    return vmaxvq_u32(most) >= QUAD_INFINITE;
}

/* The lowest bytes of words. */
ALWAYS_INLINE uint8x16_t quad_pack(uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d)
{
    return vcombine_u8(vmovn_u16(vcombine_u16(vmovn_u32(a), vmovn_u32(b))),
                       vmovn_u16(vcombine_u16(vmovn_u32(c), vmovn_u32(d))));
}

ALWAYS_INLINE uint8x16_t quad_signs(quad_v value)
{
    uint16x8_t first =
        vcombine_u16(vshrn_n_u32((uint32x4_t)value.a, 16), vshrn_n_u32((uint32x4_t)value.b, 16));
    uint16x8_t second =
        vcombine_u16(vshrn_n_u32((uint32x4_t)value.c, 16), vshrn_n_u32((uint32x4_t)value.d, 16));
    uint8x16_t bytes = vcombine_u8(vshrn_n_u16(first, 8), vshrn_n_u16(second, 8));

    return vandq_u8(bytes, vdupq_n_u8(0x80));
}

ALWAYS_INLINE u8_v quad_close_v(quad_v value, int mantissa)
{
    uint8x16_t codes;

    if (__builtin_expect(quad_is_special(value), 0))
        return (u8_v)quad_pack((uint32x4_t)eight_of_f32_v(value.a, mantissa),
                               (uint32x4_t)eight_of_f32_v(value.b, mantissa),
                               (uint32x4_t)eight_of_f32_v(value.c, mantissa),
                               (uint32x4_t)eight_of_f32_v(value.d, mantissa));
    codes = quad_pack(quad_round(value.a, mantissa), quad_round(value.b, mantissa),
                      quad_round(value.c, mantissa), quad_round(value.d, mantissa));
    return (u8_v)vorrq_u8(codes, quad_signs(value));
}
