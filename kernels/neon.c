/* SPDX-License-Identifier: BSD-3-Clause */
/* neon.c - the CPU level of 64-bit Arm: vectors of 16 bytes, single elements at the end. */
#define VECTOR_BYTES 16
#include "kernels/table.h"
#include "kernels/vector.h"

#include <arm_neon.h>

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
    return (u32_v)vmovl_u16((uint16x4_t)part);
}

ALWAYS_INLINE part16_v part16_of_u32_v(u32_v codes)
{
    return (part16_v)vmovn_u32((uint32x4_t)codes);
}

/* Four 8-bit codes are half of the smallest register. */
ALWAYS_INLINE u32_v u32_of_part8_v(part8_v part)
{
    uint32_t bits;

    memcpy(&bits, &part, sizeof(bits));
    return (u32_v)vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(bits)))));
}

ALWAYS_INLINE part8_v part8_of_u32_v(u32_v codes)
{
    uint16x4_t words = vmovn_u32((uint32x4_t)codes);
    uint32_t bits = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(words, words))), 0);
    part8_v part;

    memcpy(&part, &bits, sizeof(part));
    return part;
}

#define HAVE_HALF
ALWAYS_INLINE f32_v f32_of_half_v(part16_v part)
{
    return (f32_v)vcvt_f32_f16((float16x4_t)part);
}

ALWAYS_INLINE part16_v half_of_f32_v(f32_v value)
{
    u32_v nan = (u32_v)(value != value);
    u32_v bits = ((u32_v)value & ~nan) | (nan & 0x7fc00000);

    return (part16_v)vcvt_f16_f32((float32x4_t)bits);
}

#define QUADS   "kernels/quad_neon.h"
#define N(name) V(name)
#include "kernels/templates/ops.inc"
#undef N

#define LEVEL      kernel_neon
#define LEVEL_NAME "neon"
#define STREAM     NULL
#include "kernels/templates/level.inc"
