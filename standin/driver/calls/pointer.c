/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pointer.c - what the driver knows about an address.
 */
#include "standin/driver/base/call.h"
#include "standin/driver/context.h"
#include "standin/driver/memory.h"

#include <string.h>

union answer {
    CUcontext context;
    CUdeviceptr address;
    void *bytes;
    unsigned word;
    int number;
    unsigned long long id;
    size_t size;
};

static bool is_legacy_ipc(const struct memory *memory)
{
    return memory->kind == MEMORY_DEVICE;
}

/* Sizes of what answers are written as, 0 for unknown questions. */
static size_t answer_size(CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        return 8;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return 4;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        return sizeof(bool);
    default:
        return 0;
    }
}

/* Answers a question about memory that is known. */
static union answer answer(const struct memory *memory, CUpointer_attribute attribute,
                           CUdeviceptr address)
{
    bool host = memory->kind == MEMORY_HOST || memory->kind == MEMORY_REGISTERED;
    union answer a = {0};
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        a.context = memory->kind == MEMORY_MAPPED ? NULL : memory->context;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        a.word = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        a.address = address;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        a.bytes = host || memory->kind == MEMORY_MANAGED ? memory_bytes(address) : NULL;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        a.id = memory->id;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        a.address = memory_address(memory);
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        a.size = memory->size;
        break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        a.id = memory->kind == MEMORY_MAPPED ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        a.number = memory->device;
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        a.word = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        a.word = memory->kind == MEMORY_MANAGED;
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        a.word = is_legacy_ipc(memory);
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        a.word = true;
        break;
    default:
        break;
    }
    return a;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (!data || !answer_size(attribute))
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    const struct memory *memory = memory_holding(address, 1);
    if (memory) {
        union answer a = answer(memory, attribute, address);
        memcpy(data, &a, answer_size(attribute));
    }
    call_unlock();
    return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Unlike its sister, this one is content with any address: of an unknown one all is zero, its
 * device is none. */
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr address)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (!count || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (!data[i] || !answer_size(attributes[i]))
            return CUDA_ERROR_INVALID_VALUE;
    }
    call_lock();
    const struct memory *memory = memory_holding(address, 1);
    for (unsigned i = 0; i < count; i++) {
        union answer a = {0};
        if (memory)
            a = answer(memory, attributes[i], address);
        else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            a.number = CU_DEVICE_INVALID;
        memcpy(data[i], &a, answer_size(attributes[i]));
    }
    call_unlock();
    return CUDA_SUCCESS;
}

/* Copies of the stand-in are always complete when a synchronous call returns: this asks for what
 * is so already. */
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                               CUdeviceptr address)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    const struct memory *memory = memory_holding(address, 1);
    call_unlock();
    return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
