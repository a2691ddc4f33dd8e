/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.cu - all kernels of the training, as one image. */
#include "train/cuda/layers.cu"
#include "train/cuda/softmax.cu"
#include "train/cuda/step.cu"
