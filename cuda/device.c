/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/device.h"

#include "base/fail.h"

#include <string.h>

int cuda_current_number(void)
{
    const struct cuda_driver *driver = cuda_loaded();
    CUcontext context = NULL;
    CUdevice device;

    if (!driver || driver->cuCtxGetCurrent(&context) || !context || driver->cuCtxGetDevice(&device))
        return -1;
    return (int)device;
}

rondo_result cuda_device_open(int number, struct cuda_device *ret_device)
{
    struct cuda_device device = {.number = number};
    rondo_result result = cuda_load(&device.driver);
    int count = 0;
    CUuuid uuid;

    if (result)
        return result;
    result = cuda_result(device.driver->cuDeviceGetCount(&count), "cuDeviceGetCount");
    if (!result && (number < 0 || number >= count))
        return rondo_fail(RONDO_ERROR_INVALID,
                          "There is no CUDA device %d: this process sees %d, numbered from 0.",
                          number, count);
    if (!result)
        result = cuda_result(device.driver->cuDeviceGet(&device.handle, number), "cuDeviceGet");
    if (!result)
        result =
            cuda_result(device.driver->cuDeviceGetUuid(&uuid, device.handle), "cuDeviceGetUuid");
    if (!result)
        result = cuda_result(
            device.driver->cuDeviceGetName(device.name, sizeof(device.name), device.handle),
            "cuDeviceGetName");
    if (!result)
        result =
            cuda_result(device.driver->cuDevicePrimaryCtxRetain(&device.context, device.handle),
                        "cuDevicePrimaryCtxRetain");
    if (result)
        return result;
    memcpy(device.uuid, uuid.bytes, sizeof(device.uuid));
    *ret_device = device;
    return RONDO_OK;
}

void cuda_device_close(struct cuda_device *device)
{
    device->driver->cuDevicePrimaryCtxRelease(device->handle);
}

rondo_result cuda_enter(const struct cuda_device *device)
{
    return cuda_result(device->driver->cuCtxPushCurrent(device->context), "cuCtxPushCurrent");
}

void cuda_leave(const struct cuda_device *device)
{
    CUcontext context;

    device->driver->cuCtxPopCurrent(&context);
}

enum cuda_memory cuda_memory_kind(const struct cuda_driver *driver, const void *memory)
{
    CUmemorytype type = (CUmemorytype)0;
    unsigned managed = 0;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void *values[] = {&type, &managed};

    /* To ask for one attribute alone is an error for memory that the driver does not know, which
     * compute-sanitizer and profilers would report of every call on such memory. */
    if (!memory || driver->cuPointerGetAttributes(2, names, values, cuda_address(memory)) || !type)
        return CUDA_MEMORY_HOST;
    if (managed)
        return CUDA_MEMORY_MANAGED;
    return type == CU_MEMORYTYPE_HOST ? CUDA_MEMORY_PINNED : CUDA_MEMORY_DEVICE;
}

size_t cuda_copyable(const struct cuda_driver *driver, CUdeviceptr memory, size_t bytes)
{
    const size_t grain = 512; /* of allocations */
    CUdeviceptr base = 0;
    size_t size = 0, rounded;
    CUmemorytype type;

    if (driver->cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory) ||
        driver->cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, memory) || !base ||
        memory + bytes <= base + size)
        return bytes;
    rounded = (size + grain - 1) / grain * grain;
    if (memory + bytes > base + rounded || /* what follows may be another part of the buffer */
        !driver->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, base + size))
        return bytes;
    return base + size - memory;
}
