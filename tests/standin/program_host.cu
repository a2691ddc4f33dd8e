/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program_host.cu - the kernels of program.cu for the CPU, under the names that nvcc gave them.
 */
extern "C" {
__constant__ float factor = 1;
}

CUDA_HOST_KERNEL(_Z4fillIfEvPT_iS0_, float *values, int count, float value)
{
    int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        values[i] = value + static_cast<float>(i % 7);
}

CUDA_HOST_KERNEL(_Z5scalePfi, float *values, int count)
{
    int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        values[i] *= factor;
}

CUDA_HOST_KERNEL(_Z3sumPKfiPf, const float *values, int count, float *sums)
{
    CUDA_DYNAMIC_SHARED(float, part);
    int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    part[threadIdx.x] = i < count ? values[i] : 0;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = part[0];
}
