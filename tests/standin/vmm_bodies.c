/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vmm_bodies.c - bodies of tests: physical memory, addresses and mappings; memory in stream order.
 */
#include "tests/standin/bodies.h"

#include <unistd.h>

enum { SIZE = 2 << 20 };

static const CUmemAllocationProp on_first = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
};

static void open_for_all(struct check *check, CUdeviceptr memory, size_t size)
{
    CUmemAccessDesc access[2] = {
        {on_first.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
        {on_first.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
    };
    access[1].location.id = 1;
    CHECK_OK(cuMemSetAccess(memory, size, access, 2));
}

void body_mapping_keeps_released_memory(struct check *check)
{
    check_begin(check, 0);
    size_t granularity = 0, free_bytes = 0, total = 0;
    CUmemGenericAllocationHandle handle = 0, again = 0;
    CUdeviceptr memory = 0, base = 0;
    unsigned long long access = 9;
    CHECK_OK(cuMemGetAllocationGranularity(&granularity, &on_first,
                                           CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    CHECK(granularity == SIZE);
    CHECK_OK(cuMemCreate(&handle, 2 * (size_t)SIZE, &on_first, 0));
    CHECK_OK(cuMemAddressReserve(&memory, 4 * (size_t)SIZE, 0, 0, 0));
    CHECK_OK(cuMemMap(memory + SIZE, 2 * (size_t)SIZE, 0, handle, 0));
    CHECK_OK(cuMemGetAccess(&access, &on_first.location, memory + SIZE));
    CHECK(access == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    open_for_all(check, memory + SIZE, 2 * (size_t)SIZE);
    CHECK_OK(cuMemGetAccess(&access, &on_first.location, memory + SIZE));
    CHECK(access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CHECK_OK(cuMemRelease(handle));
    CHECK_GIVES(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemsetD32(memory + SIZE, 5, SIZE / 2));
    CHECK(check_read(check, memory + 3 * (size_t)SIZE - 4) == 5);
    CHECK_OK(cuMemGetAddressRange(&base, &total, memory + 2 * (size_t)SIZE));
    CHECK(base == memory + SIZE && total == 2 * (size_t)SIZE);
    CHECK_OK(cuMemRetainAllocationHandle(&again, (void *)(size_t)(memory + SIZE)));
    CHECK(again == handle);
    CHECK_OK(cuMemRelease(again));
    CHECK_GIVES(cuMemAddressFree(memory, 4 * (size_t)SIZE), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemUnmap(memory + SIZE, 2 * (size_t)SIZE));
    CHECK_OK(cuMemGetInfo(&free_bytes, &total));
    CHECK(free_bytes == total);
    CHECK_OK(cuMemAddressFree(memory, 4 * (size_t)SIZE));
    check_end(check, 0);
}

void body_wrong_mappings_are_refused(struct check *check)
{
    check_begin(check, 0);
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp fabric = on_first, nowhere = on_first, closed = on_first;
    CUdeviceptr memory = 0;
    int fd = -1;
    fabric.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    nowhere.location.id = 7;
    closed.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    CHECK_GIVES(cuMemCreate(&handle, SIZE, &fabric, 0), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_GIVES(cuMemCreate(&handle, SIZE, &nowhere, 0), CUDA_ERROR_INVALID_DEVICE);
    CHECK_GIVES(cuMemCreate(&handle, SIZE + 4096, &on_first, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemCreate(&handle, SIZE, &closed, 0));
    CHECK_GIVES(
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemAddressReserve(&memory, SIZE, 0, 0, 0));
    CHECK_GIVES(cuMemMap(memory, 2 * (size_t)SIZE, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuMemMap(memory + SIZE, SIZE, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemMap(memory, SIZE, 0, handle, 0));
    CHECK_GIVES(cuMemMap(memory, SIZE, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemUnmap(memory, SIZE));
    CHECK_GIVES(cuMemUnmap(memory, SIZE), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemAddressFree(memory, SIZE));
    CHECK_OK(cuMemRelease(handle));
    check_end(check, 0);
}

void body_descriptor_is_another_handle_of_the_memory(struct check *check)
{
    check_begin(check, 0);
    CUmemGenericAllocationHandle handle = 0, imported = 0;
    CUdeviceptr both = 0;
    int fd = -1;
    CHECK_OK(cuMemCreate(&handle, SIZE, &on_first, 0));
    CHECK_OK(
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CHECK_OK(cuMemImportFromShareableHandle(&imported, (void *)(size_t)fd,
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    CHECK_OK(cuMemAddressReserve(&both, 2 * (size_t)SIZE, 0, 0, 0));
    CHECK_OK(cuMemMap(both, SIZE, 0, handle, 0));
    CHECK_OK(cuMemMap(both + SIZE, SIZE, 0, imported, 0));
    open_for_all(check, both, SIZE);
    open_for_all(check, both + SIZE, SIZE);
    CHECK_OK(cuMemsetD32(both, 6, 1));
    CHECK(check_read(check, both + SIZE) == 6);
    CHECK_OK(cuMemUnmap(both, SIZE));
    CHECK_OK(cuMemUnmap(both + SIZE, SIZE));
    CHECK_OK(cuMemAddressFree(both, 2 * (size_t)SIZE));
    CHECK_OK(cuMemRelease(imported));
    CHECK_OK(cuMemRelease(handle));
    check_end(check, 0);
}

void body_memory_is_freed_in_stream_order(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    unsigned *gate = check_word(check);
    unsigned *copy = check_word(check);
    CUdeviceptr memory = 0;
    CHECK_OK(cuMemAllocAsync(&memory, 64, stream));
    CHECK_OK(cuStreamWaitValue32(stream, check_address(gate), 1, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK_OK(cuMemsetD32Async(memory, 5, 1, stream));
    CHECK_OK(cuMemcpyDtoHAsync(copy, memory, sizeof *copy, stream));
    CHECK_OK(cuMemFreeAsync(memory, stream));
    CHECK_GIVES(cuMemFreeAsync(memory, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuMemcpyDtoHAsync(copy, memory, sizeof *copy, stream), CUDA_ERROR_INVALID_VALUE);
    check_release(gate, 1);
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK(*copy == 5);
    check_end(check, 0);
}
