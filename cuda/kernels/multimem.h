/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * multimem.h - instructions on multicast memory: 16 bytes that are stored to all devices, or loaded
 * from all and combined on the way, in the switch. From sm_90 on; the stand-in has functions.
 *
 * A switch adds in an order of its own: two launches may differ in the bits of sums of floats, and
 * none keeps the order of a tree. 16-bit floats are added in float32 there and rounded once. Which
 * NaN comes out is the switch's choice.
 */
#ifndef RONDO_CUDA_KERNELS_MULTIMEM_H
#define RONDO_CUDA_KERNELS_MULTIMEM_H

#include "cuda/kernels/pack.h"

struct multimem_pack {
    uint32_t words[4];
};

#ifdef __CUDACC__

/* Orders accesses to the same memory by its own address and by the multicast object's. */
LANE_FUNCTION void multimem_fence(void)
{
    asm volatile("fence.proxy.alias;" : : : "memory");
}

LANE_FUNCTION void multimem_store(uint64_t to, const struct multimem_pack &pack)
{
    asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(to), "f"(__uint_as_float(pack.words[0])),
                   "f"(__uint_as_float(pack.words[1])), "f"(__uint_as_float(pack.words[2])),
                   "f"(__uint_as_float(pack.words[3]))
                 : "memory");
}

LANE_FUNCTION void multimem_release(uint64_t to, uint64_t value)
{
    asm volatile("multimem.st.release.sys.global.u64 [%0], %1;" : : "l"(to), "l"(value) : "memory");
}

#define MULTIMEM_LOAD "multimem.ld_reduce.relaxed.sys.global."

/* Four words at once: sums of floats of 16 and 32 bits. */
#define MULTIMEM_VECTOR(instruction, from, pack)                                        \
    asm volatile(MULTIMEM_LOAD instruction " {%0, %1, %2, %3}, [%4];"                   \
                 : "=r"((pack).words[0]), "=r"((pack).words[1]), "=r"((pack).words[2]), \
                   "=r"((pack).words[3])                                                \
                 : "l"(from)                                                            \
                 : "memory")

#define MULTIMEM_WORDS(instruction, from, pack)                 \
    do {                                                        \
        for (int multimem_i = 0; multimem_i < 4; multimem_i++)  \
            asm volatile(MULTIMEM_LOAD instruction " %0, [%1];" \
                         : "=r"((pack).words[multimem_i])       \
                         : "l"((from) + 4u * multimem_i)        \
                         : "memory");                           \
    } while (0)

#define MULTIMEM_PAIRS(instruction, from, pack)                                 \
    do {                                                                        \
        for (int multimem_i = 0; multimem_i < 2; multimem_i++) {                \
            uint64_t multimem_pair;                                             \
                                                                                \
            asm volatile(MULTIMEM_LOAD instruction " %0, [%1];"                 \
                         : "=l"(multimem_pair)                                  \
                         : "l"((from) + 8u * multimem_i)                        \
                         : "memory");                                           \
            (pack).words[2 * multimem_i] = (uint32_t)multimem_pair;             \
            (pack).words[2 * multimem_i + 1] = (uint32_t)(multimem_pair >> 32); \
        }                                                                       \
    } while (0)

#define MULTIMEM_PAIRS_OF_FLOATS(instruction, from, pack)                                 \
    do {                                                                                  \
        for (int multimem_i = 0; multimem_i < 2; multimem_i++) {                          \
            double multimem_double;                                                       \
                                                                                          \
            asm volatile(MULTIMEM_LOAD instruction " %0, [%1];"                           \
                         : "=d"(multimem_double)                                          \
                         : "l"((from) + 8u * multimem_i)                                  \
                         : "memory");                                                     \
            (pack).words[2 * multimem_i] = (uint32_t)__double2loint(multimem_double);     \
            (pack).words[2 * multimem_i + 1] = (uint32_t)__double2hiint(multimem_double); \
        }                                                                                 \
    } while (0)

LANE_FUNCTION void multimem_sum_float32(uint64_t from, struct multimem_pack *ret_pack)
{
    float values[4];

    asm volatile(MULTIMEM_LOAD "add.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
                 : "l"(from)
                 : "memory");
    for (int i = 0; i < 4; i++)
        ret_pack->words[i] = __float_as_uint(values[i]);
}

/* The combinations that switches know; others never come here (cuda/nvls.c). */
template <class Kind, int FUNCTION> struct multimem_load;

#define MULTIMEM(kind, function, how, signed_how)                                              \
    template <> struct multimem_load<kind, function> {                                         \
        static LANE_METHOD void get(uint64_t from, bool is_signed, struct multimem_pack *pack) \
        {                                                                                      \
            if (is_signed)                                                                     \
                signed_how;                                                                    \
            else                                                                               \
                how;                                                                           \
        }                                                                                      \
    };
#define MULTIMEM_ALIKE(kind, function, how) MULTIMEM(kind, function, how, how)

MULTIMEM_ALIKE(float32_kind, KERNEL_SUM, multimem_sum_float32(from, pack))
MULTIMEM_ALIKE(float16_kind, KERNEL_SUM, MULTIMEM_VECTOR("add.acc::f32.v4.f16x2", from, *pack))
MULTIMEM_ALIKE(bfloat16_kind, KERNEL_SUM, MULTIMEM_VECTOR("add.acc::f32.v4.bf16x2", from, *pack))
MULTIMEM_ALIKE(float64_kind, KERNEL_SUM, MULTIMEM_PAIRS_OF_FLOATS("add.f64", from, *pack))
MULTIMEM_ALIKE(int32_kind, KERNEL_SUM, MULTIMEM_WORDS("add.u32", from, *pack))
MULTIMEM(int32_kind, KERNEL_MIN, MULTIMEM_WORDS("min.u32", from, *pack),
         MULTIMEM_WORDS("min.s32", from, *pack))
MULTIMEM(int32_kind, KERNEL_MAX, MULTIMEM_WORDS("max.u32", from, *pack),
         MULTIMEM_WORDS("max.s32", from, *pack))
MULTIMEM_ALIKE(int32_kind, KERNEL_BAND, MULTIMEM_WORDS("and.b32", from, *pack))
MULTIMEM_ALIKE(int32_kind, KERNEL_BOR, MULTIMEM_WORDS("or.b32", from, *pack))
MULTIMEM_ALIKE(int32_kind, KERNEL_BXOR, MULTIMEM_WORDS("xor.b32", from, *pack))
MULTIMEM_ALIKE(int64_kind, KERNEL_SUM, MULTIMEM_PAIRS("add.u64", from, *pack))
MULTIMEM(int64_kind, KERNEL_MIN, MULTIMEM_PAIRS("min.u64", from, *pack),
         MULTIMEM_PAIRS("min.s64", from, *pack))
MULTIMEM(int64_kind, KERNEL_MAX, MULTIMEM_PAIRS("max.u64", from, *pack),
         MULTIMEM_PAIRS("max.s64", from, *pack))

#else

LANE_FUNCTION void multimem_fence(void)
{
    lane_fence();
}

LANE_FUNCTION void multimem_store(uint64_t to, const struct multimem_pack &pack)
{
    cuda_standin_store_all(reinterpret_cast<struct multimem_pack *>(to), pack);
}

LANE_FUNCTION void multimem_release(uint64_t to, uint64_t value)
{
    cuda_standin_release_all(reinterpret_cast<uint64_t *>(to), value);
}

/* Widened, combined, rounded once, as a switch does. */
template <class Kind, int FUNCTION> struct multimem_load {
    static LANE_METHOD void get(uint64_t from, bool is_signed, struct multimem_pack *ret_pack)
    {
        typedef wide_pack<typename Kind::bits> Pack;
        const struct span none = {0, 0, 0, 1, true};
        typename Kind::value values[Pack::ELEMENTS] = {};
        const char *at;
        Pack result = {};

        for (unsigned i = 0; (at = cuda_standin_member(reinterpret_cast<const char *>(from), i));
             i++) {
            Pack pack;

            pack.load(reinterpret_cast<uint64_t>(at), 0, none);
            for (int j = 0; j < Pack::ELEMENTS; j++) {
                typename Kind::value value = Kind::open(pack.get(j));

                values[j] =
                    i ? Kind::template combine<FUNCTION>(values[j], value, is_signed) : value;
            }
        }
        for (int j = 0; j < Pack::ELEMENTS; j++)
            result.put(j, Kind::close(values[j]));
        __builtin_memcpy(ret_pack, &result, sizeof(*ret_pack));
    }
};

#endif

#endif
