/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * module.h - our kernels on a device: loaded once per process, all of them, before the first call.
 *
 * A kernel that is loaded only when it is first launched takes locks of the context and may wait
 * for the device; while another kernel there waits for a peer, that never ends. So nothing is left
 * to be loaded later.
 */
#ifndef RONDO_CUDA_MODULE_H
#define RONDO_CUDA_MODULE_H

#include "cuda/device.h"
#include "cuda/stock.h"

enum { CUDA_LANES_WANTED = 256 }; /* in a block; a device may allow fewer */

/* clang-format off */
#define CUDA_KERNELS(use) \
    use(copy) use(copies) use(reduce_int8) use(reduce_int16) use(reduce_int32) use(reduce_int64) \
    use(reduce_float16) use(reduce_bfloat16) use(reduce_float32) use(reduce_float64) \
    use(reduce_e4m3) use(reduce_e5m2) use(sum_float16) use(sum_bfloat16) use(sum_float32) \
    use(execute) use(nvls)
/* clang-format on */

enum cuda_kernel_id {
#define CUDA_KERNEL_ID(name) CUDA_KERNEL_##name,
    CUDA_KERNELS(CUDA_KERNEL_ID)
#undef CUDA_KERNEL_ID
        CUDA_KERNEL_IDS
};

struct cuda_kernel {
    CUfunction function;
    unsigned lanes;  /* of a block */
    unsigned blocks; /* of that size that the device holds at the same time */
};

/* The part of a device that all communicators of a process share. */
struct cuda_launcher {
    struct cuda_launcher *next;
    int users;
    struct cuda_device device; /* retained on its own */
    CUmodule module;
    struct cuda_kernel kernels[CUDA_KERNEL_IDS];
    struct cuda_stock stock;
};

/* True if there are kernels for any device: there was a compiler for them, or RONDO_CUDA_IMAGE
 * names a file. */
bool cuda_has_kernels(void);
/* The kernels that came with the library, or those of the file that RONDO_CUDA_IMAGE names. The
 * same launcher for everybody who opens one on that device; any thread. */
rondo_result cuda_launcher_open(const struct cuda_device *device,
                                struct cuda_launcher **ret_launcher);
/* For one more user, who closes it too. */
struct cuda_launcher *cuda_launcher_share(struct cuda_launcher *launcher);
/* The last user waits for the device, as kernels are unloaded and memory is freed. Accepts NULL. */
void cuda_launcher_close(struct cuda_launcher *launcher);

/* Queue a kernel of `blocks` blocks with one argument, by value, of that type. Never waits.
 * The device's context is current. */
rondo_result cuda_launch(const struct cuda_launcher *launcher, enum cuda_kernel_id kernel,
                         unsigned blocks, const void *argument, CUstream stream);

#endif
