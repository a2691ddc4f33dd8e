/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/vmm.h"

#include "base/caller/descriptor.h"
#include "base/fail.h"

static const CUmemAllocationHandleType files = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

rondo_result cuda_piece_export(const struct cuda_driver *driver, CUdeviceptr address, int *ret_file)
{
    CUmemAllocationProp properties = {0};
    CUmemGenericAllocationHandle handle;
    CUresult code;
    int file = -1;

    if (driver->cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)address))
        return RONDO_IN_PROGRESS;
    code = driver->cuMemGetAllocationPropertiesFromHandle(&properties, handle);
    if (!code && !(properties.requestedHandleTypes & files))
        code = CUDA_ERROR_NOT_SUPPORTED;
    if (!code)
        code = driver->cuMemExportToShareableHandle(&file, handle, files, 0);
    driver->cuMemRelease(handle);
    if (code)
        return RONDO_IN_PROGRESS;
    *ret_file = descriptor_above(file);
    return *ret_file < 0 ? RONDO_IN_PROGRESS : RONDO_OK;
}

/* The mapping keeps the memory, so the handle is not needed any longer than this. */
static rondo_result map_piece(const struct cuda_driver *driver, const struct cuda_piece *piece,
                              CUdeviceptr at)
{
    CUmemGenericAllocationHandle handle;
    rondo_result result = cuda_result(
        driver->cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)piece->file, files),
        "cuMemImportFromShareableHandle of a peer's memory");

    if (result)
        return result;
    result = cuda_result(driver->cuMemMap(at, piece->bytes, 0, handle, 0),
                         "cuMemMap of a peer's memory");
    driver->cuMemRelease(handle);
    return result;
}

static uint64_t bytes_of(const struct cuda_piece *pieces, int count)
{
    uint64_t bytes = 0;

    for (int i = 0; i < count; i++)
        bytes += pieces[i].bytes;
    return bytes;
}

rondo_result cuda_pieces_map(const struct cuda_device *device, const struct cuda_piece *pieces,
                             int count, CUdeviceptr *ret_base)
{
    const struct cuda_driver *driver = device->driver;
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->handle},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    uint64_t bytes = bytes_of(pieces, count);
    CUdeviceptr base = 0, at;
    rondo_result result =
        cuda_result(driver->cuMemAddressReserve(&base, bytes, 0, 0, 0), "cuMemAddressReserve");
    int mapped = 0;

    if (result)
        return result;
    for (at = base; mapped < count && !result; mapped += !result) {
        result = map_piece(driver, &pieces[mapped], at);
        at += result ? 0 : pieces[mapped].bytes;
    }
    at = base;
    for (int i = 0; i < count && !result; at += pieces[i++].bytes)
        result = cuda_result(driver->cuMemSetAccess(at, pieces[i].bytes, &access, 1),
                             "cuMemSetAccess to a peer's memory");
    if (!result) {
        *ret_base = base;
        return RONDO_OK;
    }
    at = base;
    for (int i = 0; i < mapped; at += pieces[i++].bytes)
        driver->cuMemUnmap(at, pieces[i].bytes);
    driver->cuMemAddressFree(base, bytes);
    return result;
}

void cuda_pieces_unmap(const struct cuda_device *device, CUdeviceptr base,
                       const struct cuda_piece *pieces, int count)
{
    const struct cuda_driver *driver = device->driver;
    CUdeviceptr at = base;

    for (int i = 0; i < count; at += pieces[i++].bytes)
        driver->cuMemUnmap(at, pieces[i].bytes);
    driver->cuMemAddressFree(base, bytes_of(pieces, count));
}

bool cuda_piece_reaches(const struct cuda_driver *driver, CUdeviceptr address, int number)
{
    const CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = number};
    unsigned long long flags = 0;

    return !driver->cuMemGetAccess(&flags, &location, address) &&
           flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}
