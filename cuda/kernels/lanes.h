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
#define LANE_TABLE    __device__
#else
#define LANE_FUNCTION static inline
#define LANE_METHOD   inline
#define LANE_CALLED   static inline
#define LANE_TABLE
#endif

/*
 * Memory that others take part in. Acquire and release at the scope of the system (the host, other
 * devices), of the device, or of the block; relaxed ones for words that carry their own flag.
 */
#ifdef __CUDACC__
#define LANE_LOAD(instruction, constraint, value, from) \
    asm volatile(instruction " %0, [%1];" : "=" constraint(value) : "l"(from) : "memory")
#define LANE_STORE(instruction, constraint, to, value) \
    asm volatile(instruction " [%0], %1;" : : "l"(to), constraint(value) : "memory")
#else
#define LANE_LOAD(instruction, constraint, value, from) \
    (value) = __atomic_load_n(from, __ATOMIC_ACQUIRE)
#define LANE_STORE(instruction, constraint, to, value) __atomic_store_n(to, value, __ATOMIC_RELEASE)
#endif

LANE_FUNCTION uint64_t lane_load_acquire(const uint64_t *from)
{
    uint64_t value;

    LANE_LOAD("ld.acquire.sys.u64", "l", value, from);
    return value;
}

LANE_FUNCTION uint32_t lane_load_acquire(const uint32_t *from)
{
    uint32_t value;

    LANE_LOAD("ld.acquire.sys.u32", "r", value, from);
    return value;
}

LANE_FUNCTION uint32_t lane_load_relaxed(const uint32_t *from)
{
    uint32_t value;

    LANE_LOAD("ld.relaxed.sys.u32", "r", value, from);
    return value;
}

LANE_FUNCTION void lane_store_release(uint64_t *to, uint64_t value)
{
    LANE_STORE("st.release.sys.u64", "l", to, value);
}

LANE_FUNCTION void lane_store_release(uint32_t *to, uint32_t value)
{
    LANE_STORE("st.release.sys.u32", "r", to, value);
}

LANE_FUNCTION void lane_store_relaxed(uint64_t *to, uint64_t value)
{
    LANE_STORE("st.relaxed.sys.u64", "l", to, value);
}

LANE_FUNCTION void lane_store_relaxed(uint32_t *to, uint32_t value)
{
    LANE_STORE("st.relaxed.sys.u32", "r", to, value);
}

LANE_FUNCTION uint32_t lane_load_device(const uint32_t *from)
{
    uint32_t value;

    LANE_LOAD("ld.acquire.gpu.u32", "r", value, from);
    return value;
}

LANE_FUNCTION void lane_store_device(uint32_t *to, uint32_t value)
{
    LANE_STORE("st.release.gpu.u32", "r", to, value);
}

LANE_FUNCTION uint32_t lane_load_block(const uint32_t *from)
{
    uint32_t value;

    LANE_LOAD("ld.acquire.cta.u32", "r", value, from);
    return value;
}

LANE_FUNCTION void lane_store_block(uint32_t *to, uint32_t value)
{
    LANE_STORE("st.release.cta.u32", "r", to, value);
}

/* All see what this lane stored before, hosts too, before it loads what comes after. */
LANE_FUNCTION void lane_fence(void)
{
#ifdef __CUDACC__
    asm volatile("fence.sc.sys;" : : : "memory");
#elif defined(__SANITIZE_THREAD__)
    static uint32_t word; /* ThreadSanitizer knows no fences; an exchange orders the same */

    __atomic_exchange_n(&word, 0, __ATOMIC_SEQ_CST);
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* One more has come; release at the scope of the device. */
LANE_FUNCTION void lane_count_device(uint32_t *counter)
{
#ifdef __CUDACC__
    asm volatile("red.release.gpu.add.u32 [%0], 1;" : : "l"(counter) : "memory");
#else
    __atomic_fetch_add(counter, 1, __ATOMIC_RELEASE);
#endif
}

/* Two 64-bit words that lie side by side; each is loaded and stored whole. */
LANE_FUNCTION void lane_load_pair(const uint64_t *from, uint64_t *ret_pair)
{
#ifdef __CUDACC__
    asm volatile("ld.relaxed.sys.v2.u64 {%0, %1}, [%2];"
                 : "=l"(ret_pair[0]), "=l"(ret_pair[1])
                 : "l"(from)
                 : "memory");
#else
    ret_pair[0] = __atomic_load_n(&from[0], __ATOMIC_RELAXED);
    ret_pair[1] = __atomic_load_n(&from[1], __ATOMIC_RELAXED);
#endif
}

LANE_FUNCTION void lane_store_pair(uint64_t *to, uint64_t first, uint64_t second)
{
#ifdef __CUDACC__
    asm volatile("st.relaxed.sys.v2.u64 [%0], {%1, %2};"
                 :
                 : "l"(to), "l"(first), "l"(second)
                 : "memory");
#else
    __atomic_store_n(&to[0], first, __ATOMIC_RELAXED);
    __atomic_store_n(&to[1], second, __ATOMIC_RELAXED);
#endif
}

/* Nanoseconds on the device's clock. */
LANE_FUNCTION uint64_t lane_clock(void)
{
#ifdef __CUDACC__
    uint64_t now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#else
    return globaltimer();
#endif
}

/* So many lanes of this block, which may come from different places. */
LANE_FUNCTION void lane_barrier(unsigned lanes)
{
#ifdef __CUDACC__
    asm volatile("barrier.sync 1, %0;" : : "r"(lanes) : "memory");
#else
    (void)lanes;
    __syncthreads();
#endif
}

#endif
