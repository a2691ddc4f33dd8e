/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program.cu - a program as people write them for nvcc: its kernels have templates, blocks of many
 * threads, barriers, shared memory, a constant. It knows nothing of the stand-in.
 */
#include <cstdio>

#define FAILS(call) fails((call), #call, __LINE__)

static bool fails(cudaError_t error, const char *call, int line)
{
    if (error != cudaSuccess)
        std::printf("line %d: %s: %s\n", line, call, cudaGetErrorName(error));
    return error != cudaSuccess;
}

enum { COUNT = 1000, THREADS = 128, BLOCKS = (COUNT + THREADS - 1) / THREADS };

__constant__ float factor = 1;

template <typename T> __global__ void fill(T *values, int count, T value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] = value + i % 7;
}

__global__ void scale(float *values, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] *= factor;
}

/* The sum of each block's values. */
__global__ void sum(const float *values, int count, float *sums)
{
    extern __shared__ float part[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < count ? values[i] : 0;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = part[0];
}

static float expected()
{
    float all = 0;
    for (int i = 0; i < COUNT; i++)
        all += 3 * (2.0f + static_cast<float>(i % 7));
    return all;
}

int main()
{
    float *values = nullptr, *sums = nullptr, back[BLOCKS], three = 3, all = 0;
    cudaStream_t stream = nullptr;
    cudaFuncAttributes attributes;
    if (FAILS(cudaStreamCreate(&stream)))
        return 1;
    if (FAILS(cudaMalloc(&values, COUNT * sizeof(float))))
        return 1;
    if (FAILS(cudaMalloc(&sums, sizeof back)))
        return 1;
    if (FAILS(cudaMemcpyToSymbol(factor, &three, sizeof three)))
        return 1;
    if (FAILS(cudaFuncGetAttributes(&attributes, sum)))
        return 1;
    fill<<<BLOCKS, THREADS, 0, stream>>>(values, static_cast<int>(COUNT), 2.0f);
    scale<<<dim3(BLOCKS), dim3(THREADS / 4, 4), 0, stream>>>(values, 0);
    scale<<<BLOCKS, THREADS, 0, stream>>>(values, COUNT);
    sum<<<BLOCKS, THREADS, THREADS * sizeof(float), stream>>>(values, COUNT, sums);
    if (FAILS(cudaGetLastError()))
        return 1;
    if (FAILS(cudaMemcpyAsync(back, sums, sizeof back, cudaMemcpyDeviceToHost, stream)))
        return 1;
    if (FAILS(cudaStreamSynchronize(stream)))
        return 1;
    for (float one : back)
        all += one;
    std::printf("%g, expected %g\n", all, expected());
    scale<<<BLOCKS, 4096>>>(values, COUNT); /* too many threads for any device */
    if (cudaGetLastError() == cudaSuccess)
        return 1;
    if (FAILS(cudaFree(values)))
        return 1;
    if (FAILS(cudaFree(sums)))
        return 1;
    return all != expected();
}
