/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lanes.h - what kernels take from the device: lanes, and memory that others write meanwhile.
 *
 * The kernels are compiled twice: by nvcc, and by a C++ compiler for the tests, for which a header
 * that is included before everything else has defined what CUDA C++ adds to the language. There a
 * block has one lane, so no code may rely on more: lanes are counted by blockDim, never by warps.
 */
#ifndef RONDO_CUDA_KERNELS_LANES_H
#define RONDO_CUDA_KERNELS_LANES_H

#include <stdint.h>

#ifdef __CUDACC__
#define CUDA_KERNEL(name, type, argument) \
    extern "C" __global__ void name(const __grid_constant__ type argument)
#define LANE_FUNCTION static __device__ __forceinline__
#define LANE_METHOD   __device__ __forceinline__
#define LANE_CALLED   static __device__ __noinline__
#else
#define LANE_FUNCTION static inline
#define LANE_METHOD   inline
#define LANE_CALLED   static inline
#endif

/* Loads and stores that other processors and the host take part in: system scope. */
LANE_FUNCTION uint64_t lane_load_acquire(const uint64_t *from)
{
#ifdef __CUDACC__
    uint64_t value;

    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
#else
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
#endif
}

LANE_FUNCTION void lane_store_release(uint32_t *to, uint32_t value)
{
#ifdef __CUDACC__
    asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(to), "r"(value) : "memory");
#else
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
#endif
}

#endif
