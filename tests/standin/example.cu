/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * example.cu - kernels that the tests of the stand-in launch.
 */
#ifndef CUDA_KERNEL /* nvcc; the stand-in has its own */
#define CUDA_KERNEL(name, type, argument) \
    extern "C" __global__ void name(const __grid_constant__ type argument)
#endif

struct scale {
    float *values;
    unsigned count;
    float factor;
};

/* Each block takes every gridDim-th value. */
CUDA_KERNEL(example_scale, struct scale, job)
{
    for (unsigned i = blockIdx.x; i < job.count; i += gridDim.x)
        job.values[i] *= job.factor;
}

struct meeting {
    unsigned *arrived;
    unsigned *result; /* a word for each block */
};

/* Blocks wait for each other: they must run side by side. */
CUDA_KERNEL(example_meet, struct meeting, job)
{
    __shared__ unsigned mine;
    mine = blockIdx.x + 1;
    __atomic_fetch_add(job.arrived, 1u, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(job.arrived, __ATOMIC_ACQUIRE) < gridDim.x)
        __nanosleep(100);
    __syncthreads();
    job.result[blockIdx.x] = mine;
}

extern "C" {
__device__ unsigned example_variable = 42;
}

struct sum {
    unsigned *result;
    unsigned count;
};

/* Adds up what it put into dynamic shared memory. */
CUDA_KERNEL(example_shared, struct sum, job)
{
    CUDA_DYNAMIC_SHARED(unsigned, numbers);
    for (unsigned i = 0; i < job.count; i++)
        numbers[i] = i + example_variable;
    unsigned sum = 0;
    for (unsigned i = 0; i < job.count; i++)
        sum += numbers[i];
    *job.result = sum;
}

#ifndef __CUDACC__ /* instructions that the stand-in has as functions */
struct all {
    unsigned *multicast; /* an address of a multicast object */
    unsigned *result;
    unsigned value;
};

CUDA_KERNEL(example_store_all, struct all, job)
{
    cuda_standin_store_all(job.multicast, job.value);
}

CUDA_KERNEL(example_add_all, struct all, job)
{
    cuda_standin_add_all(job.multicast, job.value);
}

CUDA_KERNEL(example_reduce_all, struct all, job)
{
    *job.result =
        cuda_standin_reduce_all(job.multicast, [](unsigned a, unsigned b) { return a + b; });
}

/* No multicast instruction: nothing may be at such an address. */
CUDA_KERNEL(example_touch_all, struct all, job)
{
    *job.multicast = job.value;
}
#endif
