/* SPDX-License-Identifier: BSD-3-Clause */
/* absent.c - instead of the rest of this folder, where the CUDA toolkit was not installed. */
#include "train/cuda/gpu.h"

#include "train/common/say.h"

const struct arithmetic gpu_arithmetic = {.alloc = NULL}; /* nobody gets as far as to use it */

rondo_result gpu_check(void)
{
    return say(RONDO_ERROR_UNSUPPORTED, "this program was built without CUDA, so there is no "
                                        "--memory cuda: install the CUDA toolkit with cuBLAS's "
                                        "headers, and build again");
}

rondo_result gpu_open(void)
{
    return gpu_check();
}

void gpu_close(void)
{
}

rondo_result gpu_optimize(const struct optimizer_step *step, double *ret_norm)
{
    return gpu_check();
}

void gpu_exchange(rondo_ddp_device *ret_device)
{
}
