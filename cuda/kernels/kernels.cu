/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.cu - all kernels, as one image. */
#include "cuda/kernels/copies.cu"
#include "cuda/kernels/executor.cu"
#include "cuda/kernels/nvls.cu"
#include "cuda/kernels/reduce.cu"
