/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cudart_memory.c - the runtime's memory: that of the driver by other names.
 */
#include "standin/runtime/cudart.h"

#include <string.h>

cudaError_t cudaMalloc(void **bytes, size_t size)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuMemAlloc((CUdeviceptr *)(void *)bytes, size));
}

cudaError_t cudaMallocManaged(void **bytes, size_t size, unsigned flags)
{
    cudaError_t error = runtime_enter();
    return error ? error
                 : runtime_result(cuMemAllocManaged((CUdeviceptr *)(void *)bytes, size, flags));
}

cudaError_t cudaFree(void *bytes)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuMemFree(runtime_address(bytes)));
}

cudaError_t cudaMallocAsync(void **bytes, size_t size, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    return error ? error
                 : runtime_result(cuMemAllocAsync((CUdeviceptr *)(void *)bytes, size, stream));
}

cudaError_t cudaFreeAsync(void *bytes, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuMemFreeAsync(runtime_address(bytes), stream));
}

cudaError_t cudaMallocHost(void **bytes, size_t size)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuMemAllocHost(bytes, size));
}

cudaError_t cudaHostAlloc(void **bytes, size_t size, unsigned flags)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuMemHostAlloc(bytes, size, flags));
}

cudaError_t cudaHostRegister(void *bytes, size_t size, unsigned flags)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuMemHostRegister(bytes, size, flags));
}

cudaError_t cudaHostUnregister(void *bytes)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuMemHostUnregister(bytes));
}

cudaError_t cudaHostGetDevicePointer(void **device, void *bytes, unsigned flags)
{
    cudaError_t error = runtime_enter();
    return error ? error
                 : runtime_result(
                       cuMemHostGetDevicePointer((CUdeviceptr *)(void *)device, bytes, flags));
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuMemGetInfo(left, total));
}

cudaError_t cudaMemset(void *to, int value, size_t size)
{
    cudaError_t error = runtime_enter();
    return error ? error
                 : runtime_result(cuMemsetD8(runtime_address(to), (unsigned char)value, size));
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    return error ? error
                 : runtime_result(
                       cuMemsetD8Async(runtime_address(to), (unsigned char)value, size, stream));
}

/* NULL is no memory, which is fine. */
cudaError_t cudaFreeHost(void *bytes)
{
    cudaError_t error = runtime_enter();
    return error || !bytes ? error : runtime_result(cuMemFreeHost(bytes));
}

/* By what the caller says it is; cudaMemcpyDefault and copies of the host leave it to the
 * driver. */
static CUresult copy_async(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                           CUstream stream)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return cuMemcpyHtoDAsync(runtime_address(to), from, size, stream);
    case cudaMemcpyDeviceToHost:
        return cuMemcpyDtoHAsync(to, runtime_address(from), size, stream);
    case cudaMemcpyDeviceToDevice:
        return cuMemcpyDtoDAsync(runtime_address(to), runtime_address(from), size, stream);
    case cudaMemcpyDefault:
    case cudaMemcpyHostToHost:
        return cuMemcpyAsync(runtime_address(to), runtime_address(from), size, stream);
    default:
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    }
}

static CUresult copy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return cuMemcpyHtoD(runtime_address(to), from, size);
    case cudaMemcpyDeviceToHost:
        return cuMemcpyDtoH(to, runtime_address(from), size);
    case cudaMemcpyDeviceToDevice:
        return cuMemcpyDtoD(runtime_address(to), runtime_address(from), size);
    case cudaMemcpyDefault:
    case cudaMemcpyHostToHost:
        return cuMemcpy(runtime_address(to), runtime_address(from), size);
    default:
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    }
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(copy(to, from, size, kind));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(copy_async(to, from, size, kind, stream));
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t size, cudaStream_t stream)
{
    return cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *known, const void *bytes)
{
    cudaError_t error = runtime_enter();
    if (error)
        return error;
    if (!known)
        return runtime_result(CUDA_ERROR_INVALID_VALUE);
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,
    };
    struct cudaPointerAttributes found;
    memset(&found, 0, sizeof found);
    unsigned type = 0, managed = 0;
    void *answers[] = {&type, &found.device, &found.devicePointer, &found.hostPointer, &managed};
    CUresult result = cuPointerGetAttributes(5, attributes, answers, runtime_address(bytes));
    if (result)
        return runtime_result(result);
    found.type = managed ? cudaMemoryTypeManaged : (enum cudaMemoryType)type;
    if (!type)
        found.hostPointer = (void *)(size_t)bytes; /* what the driver does not know is the host's */
    *known = found;
    return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *bytes)
{
    cudaError_t error = runtime_enter();
    return error ? error
                 : runtime_result(
                       cuIpcGetMemHandle((CUipcMemHandle *)(void *)handle, runtime_address(bytes)));
}

cudaError_t cudaIpcOpenMemHandle(void **bytes, cudaIpcMemHandle_t handle, unsigned flags)
{
    CUipcMemHandle same;
    memcpy(&same, &handle, sizeof same);
    cudaError_t error = runtime_enter();
    return error ? error
                 : runtime_result(cuIpcOpenMemHandle((CUdeviceptr *)(void *)bytes, same, flags));
}

cudaError_t cudaIpcCloseMemHandle(void *bytes)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuIpcCloseMemHandle(runtime_address(bytes)));
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    cudaError_t error = runtime_enter();
    return error ? error
                 : runtime_result(cuIpcGetEventHandle((CUipcEventHandle *)(void *)handle, event));
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    CUipcEventHandle same;
    memcpy(&same, &handle, sizeof same);
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuIpcOpenEventHandle(event, same));
}
