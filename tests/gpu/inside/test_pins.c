/* SPDX-License-Identifier: BSD-3-Clause */
/* test_pins.c - pinned memory of the host that ranks of this process share (comm/gpu/arena.c). */
#include "comm/gpu/arena.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { PAGE = 4096, PAGES = 8 };

static struct cuda_device device;
static char *memory;

static void open_device(void)
{
    cr_assert(cuda_device_open(0, &device) == RONDO_OK && cuda_enter(&device) == RONDO_OK);
    memory = aligned_alloc(PAGE, PAGES * PAGE);
    cr_assert(memory);
}

static void close_device(void)
{
    free(memory);
    cuda_leave(&device);
    cuda_device_close(&device);
}

TestSuite(gpu_pins, .init = open_device, .fini = close_device);

static rondo_result pin(uint64_t comm, int page, int pages)
{
    const struct gpu_pages wanted = {comm, memory + page * PAGE, (size_t)pages * PAGE};
    CUdeviceptr address = 0;
    rondo_result result = gpu_pin(device.driver, &wanted, &address);

    cr_assert(result || address);
    return result;
}

static void unpin(uint64_t comm, int page)
{
    gpu_unpin(device.driver, memory + page * PAGE, comm);
}

/* The driver refuses what is pinned; nothing is changed by asking. */
static bool is_pinned(int page)
{
    char *at = memory + page * PAGE;
    CUresult code = device.driver->cuMemHostRegister(at, PAGE, 0);

    if (!code)
        device.driver->cuMemHostUnregister(at);
    return code == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

Test(gpu_pins, ranks_of_a_communicator_share_a_pin)
{
    cr_assert(pin(1, 0, 4) == RONDO_OK);
    cr_assert(pin(1, 0, 4) == RONDO_OK);
    unpin(1, 0);
    cr_assert(is_pinned(0) && is_pinned(3) && !is_pinned(4));
    unpin(1, 0);
    cr_assert(!is_pinned(0));
}

/* A peer closed communicator 1, and its memory became communicator 2's. */
Test(gpu_pins, what_another_communicator_has_now_is_pinned_anew)
{
    cr_assert(pin(1, 0, 4) == RONDO_OK);
    cr_assert(pin(1, 4, 2) == RONDO_OK);
    cr_assert(pin(1, 6, 2) == RONDO_OK);
    cr_assert(pin(2, 0, 1) == RONDO_OK);
    cr_assert(pin(2, 3, 2) == RONDO_OK);
    cr_assert(is_pinned(0) && !is_pinned(1) && is_pinned(3) && is_pinned(4) && !is_pinned(5));
    unpin(1, 0);
    unpin(1, 4);
    cr_assert(is_pinned(0) && is_pinned(3) && is_pinned(6));
    unpin(1, 6);
    unpin(2, 0);
    unpin(2, 3);
    for (int page = 0; page < PAGES; page++)
        cr_assert(!is_pinned(page), "page %d", page);
}
