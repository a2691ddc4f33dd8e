/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cudart.c - libcudart.so.13 for the stand-in: devices, errors, events, streams, graphs. Each
 * function is one of the driver, after the context that the runtime makes by itself.
 */
#include "standin/runtime/cudart.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { DEVICES = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext contexts[DEVICES]; /* primary contexts that this library has retained */
static _Thread_local cudaError_t last_error;
static _Thread_local int thread_device;

cudaError_t runtime_result(CUresult result)
{
    if (result)
        last_error = (cudaError_t)result;
    return (cudaError_t)result;
}

/* The primary context of the device becomes the thread's. */
static CUresult use_device(int device)
{
    CUresult result = CUDA_SUCCESS;
    if (device < 0 || device >= DEVICES)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    if (!contexts[device])
        result = cuDevicePrimaryCtxRetain(&contexts[device], device);
    CUcontext context = contexts[device];
    pthread_mutex_unlock(&lock);
    return result ? result : cuCtxSetCurrent(context);
}

cudaError_t runtime_enter(void)
{
    CUcontext context = NULL;
    CUresult result = cuCtxGetCurrent(&context);
    if (result == CUDA_ERROR_NOT_INITIALIZED)
        result = cuInit(0);
    if (!result && !context)
        result = use_device(thread_device);
    return runtime_result(result);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

const char *cudaGetErrorString(cudaError_t error)
{
    const char *text = NULL;
    return cuGetErrorString((CUresult)error, &text) ? "unrecognized error code" : text;
}

/* Names the errors whose runtime's name is not made of the driver's. */
static const char *own_name(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "cudaSuccess";
    case cudaErrorMemoryAllocation:
        return "cudaErrorMemoryAllocation";
    case cudaErrorInitializationError:
        return "cudaErrorInitializationError";
    case cudaErrorInvalidMemcpyDirection:
        return "cudaErrorInvalidMemcpyDirection";
    case cudaErrorDeviceUninitialized:
        return "cudaErrorDeviceUninitialized";
    case cudaErrorInvalidResourceHandle:
        return "cudaErrorInvalidResourceHandle";
    case cudaErrorSymbolNotFound:
        return "cudaErrorSymbolNotFound";
    case cudaErrorInvalidSymbol:
        return "cudaErrorInvalidSymbol";
    case cudaErrorInvalidDeviceFunction:
        return "cudaErrorInvalidDeviceFunction";
    case cudaErrorNoKernelImageForDevice:
        return "cudaErrorNoKernelImageForDevice";
    default:
        return NULL;
    }
}

const char *cudaGetErrorName(cudaError_t error)
{
    static _Thread_local char name[96];
    const char *text = own_name(error);
    if (text)
        return text;
    if (cuGetErrorName((CUresult)error, &text))
        return "unrecognized error code";
    /* CUDA_ERROR_INVALID_VALUE becomes cudaErrorInvalidValue. */
    size_t filled = (size_t)snprintf(name, sizeof name, "cudaError");
    bool capital = true;
    for (text += strlen("CUDA_ERROR_"); *text && filled + 1 < sizeof name; text++) {
        if (*text != '_')
            name[filled++] = (char)(capital || *text < 'A' || *text > 'Z' ? *text : *text + 32);
        capital = *text == '_';
    }
    name[filled] = 0;
    return name;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    return runtime_result(cuDriverGetVersion(version));
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return runtime_result(CUDA_ERROR_INVALID_VALUE);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* Devices can be counted without a context. */
static CUresult start(void)
{
    CUcontext context = NULL;
    CUresult result = cuCtxGetCurrent(&context);
    return result == CUDA_ERROR_NOT_INITIALIZED ? cuInit(0) : result;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    CUresult result = start();
    return runtime_result(result ? result : cuDeviceGetCount(count));
}

cudaError_t cudaSetDevice(int device)
{
    CUresult result = start();
    if (!result)
        result = use_device(device);
    if (!result)
        thread_device = device;
    return runtime_result(result);
}

cudaError_t cudaGetDevice(int *device)
{
    CUcontext context = NULL;
    CUresult result = start();
    if (!device)
        return runtime_result(CUDA_ERROR_INVALID_VALUE);
    if (!result)
        result = cuCtxGetCurrent(&context);
    *device = thread_device;
    if (!result && context) /* the program may have set it by the driver */
        result = cuCtxGetDevice(device);
    return runtime_result(result);
}

cudaError_t cudaDeviceSynchronize(void)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuCtxSynchronize());
}

cudaError_t cudaDeviceReset(void)
{
    int device = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error)
        return error;
    pthread_mutex_lock(&lock);
    CUcontext context = contexts[device];
    contexts[device] = NULL;
    pthread_mutex_unlock(&lock);
    runtime_forget_kernels(context);
    CUresult result = cuCtxSetCurrent(NULL);
    return runtime_result(result ? result : cuDevicePrimaryCtxReset(device));
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    CUresult result = start();
    return runtime_result(
        result ? result : cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device));
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device)
{
    CUresult result = start();
    return runtime_result(result ? result : cuDeviceGetPCIBusId(id, length, device));
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
    CUresult result = start();
    return runtime_result(result ? result : cuDeviceGetByPCIBusId(device, id));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuCtxGetStreamPriorityRange(least, greatest));
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    CUresult result = start();
    return runtime_result(result ? result : cuDeviceCanAccessPeer(can, device, peer));
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    cudaError_t error = runtime_enter();
    CUcontext own = NULL, other = NULL;
    CUresult result = error ? (CUresult)error : cuCtxGetCurrent(&own);
    if (!result)
        result = use_device(peer);
    if (!result)
        result = cuCtxGetCurrent(&other);
    if (own)
        cuCtxSetCurrent(own);
    return runtime_result(result ? result : cuCtxEnablePeerAccess(other, flags));
}

static int attribute_of(CUdevice_attribute attribute, int device)
{
    int value = 0;
    return cuDeviceGetAttribute(&value, attribute, device) ? 0 : value;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    CUresult result = start();
    CUuuid uuid;
    struct cudaDeviceProp p;
    memset(&p, 0, sizeof p);
    if (!properties)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = cuDeviceGetName(p.name, (int)sizeof p.name, device);
    if (!result)
        result = cuDeviceTotalMem(&p.totalGlobalMem, device);
    if (!result)
        result = cuDeviceGetUuid(&uuid, device);
    if (result)
        return runtime_result(result);
    memcpy(&p.uuid, &uuid, sizeof p.uuid);
    p.major = attribute_of(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    p.minor = attribute_of(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    p.multiProcessorCount = attribute_of(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    p.maxThreadsPerBlock = attribute_of(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device);
    p.warpSize = attribute_of(CU_DEVICE_ATTRIBUTE_WARP_SIZE, device);
    p.pciBusID = attribute_of(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device);
    p.pciDomainID = attribute_of(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, device);
    p.unifiedAddressing = attribute_of(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, device);
    p.managedMemory = attribute_of(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, device);
    p.concurrentKernels = attribute_of(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, device);
    p.cooperativeLaunch = attribute_of(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, device);
    *properties = p;
    return cudaSuccess;
}
