/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h - CUDA C++ for a CPU compiler: force-included where kernels (.cu) are compiled by g++
 * for the stand-in.
 *
 * A warp has one lane, so votes and shuffles give back what they got. A block of a CUDA_KERNEL has
 * one thread, so barriers have nobody to wait for; its shared memory is memory of the thread that
 * runs the block (not cleared between blocks, as on a GPU). A kernel is defined as
 * CUDA_KERNEL(name, struct type, argument) { ... }, a list of such makes a shared object which
 * cuModuleLoadData() of the stand-in takes. The contract with the library is in module.h.
 *
 * CUDA_HOST_KERNEL(name, parameters...) { ... } is the version for the CPU of a kernel that nvcc
 * compiled, `name` as that calls it (_Z5scalePfi): a block has up to 1024 threads, which take turns
 * at barriers. A shared object of such, named by CUDA_STANDIN_KERNELS, is what programs of nvcc run
 * on the stand-in's runtime.
 */
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sched.h>
#include <time.h>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __shared__      thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

struct uint3 {
    unsigned x, y, z;
};
typedef uint3 dim3;

/* This is module_place of driver/module.h. */
struct cuda_standin_place {
    uint3 grid, block, block_index, thread_index;
    void *shared;
    void (*barrier)(void);
    void *(*multicast)(const void *address, unsigned member);
};

/* Weak and hidden: one for all sources of an image, and each image its own. Aligned, as a leak
 * checker takes thread-local memory that lies 16 bytes into a page for glibc 2.19's. */
#define CUDA_STANDIN_OF_IMAGE __attribute__((weak, visibility("hidden")))
CUDA_STANDIN_OF_IMAGE __thread cuda_standin_place cuda_standin_here __attribute__((aligned(64)));

#define gridDim   cuda_standin_here.grid
#define blockDim  cuda_standin_here.block
#define blockIdx  cuda_standin_here.block_index
#define threadIdx cuda_standin_here.thread_index
#define warpSize  1

/* The dynamic shared memory of the block, where CUDA has `extern __shared__ TYPE name[]`. */
#define CUDA_DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(cuda_standin_here.shared)

extern "C" __attribute__((weak, visibility("default"))) void
cuda_standin_enter(const cuda_standin_place *place)
{
    cuda_standin_here = *place;
}

#define CUDA_KERNEL(name, type, argument)                                           \
    static void name##_kernel(const type &argument);                                \
    extern "C" __attribute__((visibility("default"))) const size_t name##_sizes[2]; \
    extern "C" const size_t name##_sizes[2] = {sizeof(type), 0};                    \
    extern "C" __attribute__((visibility("default"))) void name(void **parameters); \
    extern "C" void name(void **parameters)                                         \
    {                                                                               \
        name##_kernel(*static_cast<const type *>(parameters[0]));                   \
    }                                                                               \
    static void name##_kernel(const type &argument)

template <size_t N> struct cuda_standin_list {
    size_t of[N];
};

template <typename... P>
constexpr cuda_standin_list<sizeof...(P) + 1> cuda_standin_sizes(void (*)(P...))
{
    return {{sizeof(P)..., 0}};
}

template <typename... P, size_t... I>
void cuda_standin_call(void (*kernel)(P...), void **parameters, std::index_sequence<I...>)
{
    (void)parameters; /* there may be none */
    kernel(*static_cast<std::remove_const_t<P> *>(parameters[I])...);
}

template <typename... P> void cuda_standin_run(void (*kernel)(P...), void **parameters)
{
    cuda_standin_call(kernel, parameters, std::index_sequence_for<P...>());
}

#define CUDA_STANDIN_SHOWN extern "C" __attribute__((visibility("default")))
#define CUDA_HOST_KERNEL(name, ...)                                                  \
    static void name##_host(__VA_ARGS__);                                            \
    CUDA_STANDIN_SHOWN const decltype(cuda_standin_sizes(name##_host)) name##_sizes; \
    const decltype(cuda_standin_sizes(name##_host)) name##_sizes =                   \
        cuda_standin_sizes(name##_host);                                             \
    CUDA_STANDIN_SHOWN const unsigned name##_threads;                                \
    const unsigned name##_threads = 1024;                                            \
    CUDA_STANDIN_SHOWN void name(void **parameters);                                 \
    void name(void **parameters)                                                     \
    {                                                                                \
        cuda_standin_run(name##_host, parameters);                                   \
    }                                                                                \
    static void name##_host(__VA_ARGS__)

static inline void __threadfence(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void __threadfence_block(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void __threadfence_system(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void __syncthreads(void)
{
    if (cuda_standin_here.barrier)
        cuda_standin_here.barrier();
}

static inline void __syncwarp(unsigned = 0xffffffffu)
{
}

/*
 * Few processors run many blocks: who waits lets others go on. Now and then it sleeps: where all
 * threads of a processor do nothing but yield, some kernels (Linux 6.18) run none but these for
 * minutes, not even their own threads.
 */
static inline void __nanosleep(unsigned nanoseconds)
{
    enum { YIELDS = 16 };
    static thread_local unsigned yields;

    if (nanoseconds < 1000 && ++yields % YIELDS) {
        sched_yield();
        return;
    }
    struct timespec time = {0, static_cast<long>(nanoseconds < 1000000 ? nanoseconds : 1000000)};
    nanosleep(&time, nullptr);
}

static inline unsigned long long globaltimer(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<unsigned long long>(time.tv_sec) * 1000000000ull +
           static_cast<unsigned long long>(time.tv_nsec);
}

/* A clock of 1 GHz, as the attribute of the device says. */
static inline long long clock64(void)
{
    return static_cast<long long>(globaltimer());
}

static inline unsigned __activemask(void)
{
    return 1;
}

static inline unsigned __ballot_sync(unsigned, int predicate)
{
    return predicate != 0;
}

static inline int __any_sync(unsigned, int predicate)
{
    return predicate != 0;
}

static inline int __all_sync(unsigned, int predicate)
{
    return predicate != 0;
}

static inline int __syncthreads_or(int predicate)
{
    return predicate != 0;
}

static inline int __syncthreads_and(int predicate)
{
    return predicate != 0;
}

template <typename T> static inline T __shfl_sync(unsigned, T value, int, int = 1)
{
    return value;
}

template <typename T> static inline T __shfl_down_sync(unsigned, T value, unsigned, int = 1)
{
    return value;
}

template <typename T> static inline T __shfl_up_sync(unsigned, T value, unsigned, int = 1)
{
    return value;
}

template <typename T> static inline T __shfl_xor_sync(unsigned, T value, int, int = 1)
{
    return value;
}

static inline int __popc(unsigned value)
{
    return __builtin_popcount(value);
}

static inline int __ffs(int value)
{
    return __builtin_ffs(value);
}

static inline int __clz(int value)
{
    return value ? __builtin_clz(static_cast<unsigned>(value)) : 32;
}

template <typename T> static inline T __ldg(const T *address)
{
    return *address;
}

template <typename T> static inline T atomicAdd(T *address, T value)
{
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}

template <typename T> static inline T atomicExch(T *address, T value)
{
    return __atomic_exchange_n(address, value, __ATOMIC_RELAXED);
}

template <typename T> static inline T atomicMax(T *address, T value)
{
    T before = __atomic_load_n(address, __ATOMIC_RELAXED);
    while (before < value && !__atomic_compare_exchange_n(address, &before, value, false,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    return before;
}

template <typename T> static inline T atomicCAS(T *address, T compare, T value)
{
    __atomic_compare_exchange_n(address, &compare, value, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    return compare;
}

/* Instructions on multicast memory, whose members are asked for one by one: what is stored goes to
 * all (multimem.st), is added to all (multimem.red), or is loaded from all and combined
 * (multimem.ld_reduce), from the first member on. */
template <typename T> static inline T *cuda_standin_member(const T *address, unsigned member)
{
    return static_cast<T *>(cuda_standin_here.multicast(address, member));
}

template <typename T> static inline void cuda_standin_store_all(T *address, T value)
{
    T *at;
    for (unsigned i = 0; (at = cuda_standin_member(address, i)); i++)
        *at = value;
}

template <typename T> static inline void cuda_standin_release_all(T *address, T value)
{
    T *at;
    for (unsigned i = 0; (at = cuda_standin_member(address, i)); i++)
        __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

template <typename T> static inline void cuda_standin_add_all(T *address, T value)
{
    T *at;
    for (unsigned i = 0; (at = cuda_standin_member(address, i)); i++)
        __atomic_fetch_add(at, value, __ATOMIC_RELEASE);
}

template <typename T, typename C>
static inline T cuda_standin_reduce_all(const T *address, C combine)
{
    T result = *cuda_standin_member(address, 0);
    const T *at;
    for (unsigned i = 1; (at = cuda_standin_member(address, i)); i++)
        result = combine(result, *at);
    return result;
}
