/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lanes.h - what kernels take from the device. They are compiled by nvcc, and for the tests by a
 * C++ compiler that is given a header with what CUDA C++ adds; there a block has one lane.
 */
#ifndef RONDO_TRAIN_CUDA_LANES_H
#define RONDO_TRAIN_CUDA_LANES_H

#include "train/cuda/calls.h"

#ifdef __CUDACC__
#define CUDA_KERNEL(name, type, argument) \
    extern "C" __global__ void name(const __grid_constant__ type argument)
#define LANE_FUNCTION static __device__ __forceinline__
#else
#define LANE_FUNCTION static inline
#endif
#define TRAIN_KERNEL(name) CUDA_KERNEL(rondo_train_##name, struct train_##name, call)

struct add {
    template <class T> LANE_FUNCTION T of(T a, T b)
    {
        return a + b;
    }
};

struct most {
    template <class T> LANE_FUNCTION T of(T a, T b)
    {
        return a > b ? a : b;
    }
};

struct least {
    template <class T> LANE_FUNCTION T of(T a, T b)
    {
        return a < b ? a : b;
    }
};

/* The values of all lanes of the block, combined as a balanced tree; every lane gets the result.
 * All lanes have to be here. */
template <class Combine, class T> LANE_FUNCTION T block_combine(T value)
{
    __shared__ T values[TRAIN_LANES];

    __syncthreads(); /* the call before may still be reading */
    values[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half)
            values[threadIdx.x] =
                Combine::template of<T>(values[threadIdx.x], values[threadIdx.x + half]);
        __syncthreads();
    }
    return values[0];
}

/* For kernels of elements: the first one of this lane, and how far it is to the next. */
LANE_FUNCTION uint64_t first_element()
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

LANE_FUNCTION uint64_t all_lanes()
{
    return (uint64_t)gridDim.x * blockDim.x;
}

#endif
