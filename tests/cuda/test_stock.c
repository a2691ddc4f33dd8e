/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stock.c - memory that communicators hand on to each other, on a device that has little. */
#include "base/fail.h"
#include "tests/cuda/gpu.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { MIB = 1 << 20 };

static struct gpu gpu;

static void open_device(void)
{
    setenv("CUDA_STANDIN_MEMORY", "134217728", 1); /* 128 MiB */
    cr_assert(gpu_open(&gpu), "%s", fail_sentence());
}

static void close_device(void)
{
    gpu_close(&gpu);
}

TestSuite(cuda_stock, .init = open_device, .fini = close_device);

static rondo_result take(size_t bytes, CUdeviceptr *ret_memory)
{
    return cuda_stock_take(&gpu.launcher->stock, &gpu.device, CUDA_HOLDING_DEVICE, bytes,
                           ret_memory);
}

static void give(CUdeviceptr memory)
{
    cuda_stock_return(&gpu.launcher->stock, &gpu.device, memory);
}

/* Takes memory and gives it back; true if the stock, which has nothing else, has kept it. */
static bool is_kept(size_t bytes)
{
    CUdeviceptr memory;

    cr_assert_eq(take(bytes, &memory), RONDO_OK, "%s", fail_sentence());
    give(memory);
    return gpu.launcher->stock.holdings;
}

/* A free waits for the calls, and one of them may wait for what this thread does next. */
Test(cuda_stock, nothing_is_freed_for_others_while_calls_are_on_their_way)
{
    CUdeviceptr memory;

    cr_assert(is_kept(50 * MIB));
    cuda_count_inflights(1);
    cr_expect_eq(take(100 * MIB, &memory), RONDO_ERROR_MEMORY);
    cr_expect(gpu.launcher->stock.holdings, "it was freed");
    cuda_count_inflights(-1);
    cr_assert_eq(take(100 * MIB, &memory), RONDO_OK, "%s", fail_sentence());
    give(memory);
}

Test(cuda_stock, what_is_very_large_is_freed_once_no_call_is_on_its_way)
{
    CUdeviceptr memory;

    cr_expect_not(is_kept(100 * MIB));
    cuda_count_inflights(1);
    cr_expect(is_kept(100 * MIB), "a call is on its way");
    cr_assert_eq(take(MIB, &memory), RONDO_OK, "%s", fail_sentence());
    cuda_count_inflights(-1);
    give(memory);
    cr_assert_eq(take(120 * MIB, &memory), RONDO_OK, "%s", fail_sentence());
    give(memory);
}

/* A call that is queued while memory is freed would be waited for. This thread's own one waits for
 * nothing before it has its memory. */
Test(cuda_stock, nothing_is_freed_beside_a_call_that_is_being_queued)
{
    CUdeviceptr memory;

    cuda_queueing_begin();
    cr_expect(is_kept(100 * MIB), "it was freed");
    cr_assert_eq(take(120 * MIB, &memory), RONDO_OK, "%s", fail_sentence());
    cr_expect_not(cuda_idle_begin(), "the call is still being queued");
    cuda_queueing_end();
    give(memory);
    cr_expect_not(gpu.launcher->stock.holdings);
}
