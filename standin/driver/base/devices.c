/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devices.c - the made-up GPUs and what they say about themselves.
 *
 * CUDA_STANDIN_DEVICES of them (default 2), all alike, with CUDA_STANDIN_MEMORY bytes each (default
 * 4 GiB), all peers of each other unless CUDA_STANDIN_PEER=0. They speak as a GPU of compute
 * capability 9.0, but run one thread a block. CUDA_VISIBLE_DEVICES (indices only) chooses and
 * orders them as the real driver does.
 */
#include "standin/driver/base/devices.h"

#include "standin/driver/base/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count;
static int physical[DEVICE_LIMIT]; /* of each device that this process sees */
static size_t memory;
static bool peers;
static unsigned multiprocessors;

/* Returns all of them where MPS sets no limit: what is no percentage is none. */
static unsigned count_multiprocessors(void)
{
    const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    double percent = text ? strtod(text, NULL) : 100;
    if (!(percent > 0 && percent < 100))
        return DEVICE_MULTIPROCESSORS;
    double some = DEVICE_MULTIPROCESSORS * percent / 100;
    unsigned whole = (unsigned)some;
    return whole + (whole < some);
}

void device_init(void)
{
    int real = (int)call_setting("DEVICES", 2);
    real = real < DEVICE_LIMIT ? real : DEVICE_LIMIT;
    memory = (size_t)call_setting("MEMORY", 4ULL << 30);
    peers = call_setting("PEER", 1) != 0;
    multiprocessors = count_multiprocessors();
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    for (int i = 0; !visible && i < real; i++)
        physical[count++] = i;
    while (visible && count < DEVICE_LIMIT) {
        char *end = NULL;
        long index = strtol(visible, &end, 10);
        if (end == visible || index < 0 || index >= real)
            break; /* the first bad index ends the list, as with the real driver */
        physical[count++] = (int)index;
        visible = *end == ',' ? end + 1 : end;
    }
}

int device_count(void)
{
    return count;
}

bool device_exists(CUdevice device)
{
    return device >= 0 && device < count;
}

int device_number(CUdevice device)
{
    return device_exists(device) ? physical[device] : -1;
}

unsigned device_multiprocessors(void)
{
    return multiprocessors;
}

size_t device_memory(void)
{
    return memory;
}

bool device_reaches(CUdevice device, CUdevice other)
{
    return peers && device != other;
}

CUresult cuDeviceGetCount(int *ret_count)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!ret_count)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_count = count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_exists(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

/* All questions about one device begin with this. */
static CUresult enter(const char *function, const void *answer, CUdevice device)
{
    CUresult result = call_enter(function);
    if (result)
        return result;
    if (!answer)
        return CUDA_ERROR_INVALID_VALUE;
    return device_exists(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    CUresult result = enter(__func__, name, device);
    if (!result && length > 0)
        snprintf(name, (size_t)length, "CUDA stand-in on the CPU");
    return result;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    CUresult result = enter(__func__, uuid, device);
    if (!result) {
        memcpy(uuid->bytes, "cuda stand-in  ", sizeof uuid->bytes);
        uuid->bytes[15] = (char)physical[device];
    }
    return result;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    CUresult result = enter(__func__, bytes, device);
    if (!result)
        *bytes = memory;
    return result;
}

/* Bus ids that no real device has: a domain beyond 16 bits is for virtual ones, so use the
 * highest of 16 bits. */
CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device)
{
    CUresult result = enter(__func__, id, device);
    if (!result && length < 13)
        return CUDA_ERROR_INVALID_VALUE;
    if (!result)
        snprintf(id, (size_t)length, "FFFF:%02X:00.0", physical[device] + 1);
    return result;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
    CUresult result = enter(__func__, device, 0);
    unsigned domain = 0, bus = 0;
    if (result)
        return result;
    if (!id || sscanf(id, "%x:%x", &domain, &bus) != 2)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < count; i++) {
        if (domain == 0xffff && (int)bus == physical[i] + 1) {
            *device = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    CUresult result = enter(__func__, can, device);
    if (result)
        return result;
    if (!device_exists(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = device_reaches(device, peer);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice source,
                                 CUdevice destination)
{
    CUresult result = enter(__func__, value, source);
    if (result)
        return result;
    if (!device_exists(destination) || source == destination)
        return CUDA_ERROR_INVALID_DEVICE;
    switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
        *value = device_reaches(source, destination);
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *value = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

struct attribute {
    CUdevice_attribute which;
    int value;
};

/* In no order. What is not here is 0: not there, not supported. */
static const struct attribute attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, DEVICE_BLOCKS_EACH},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, DEVICE_BLOCKS_EACH},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 * 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, DEVICE_SHARED_BYTES_BLOCK},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, DEVICE_SHARED_BYTES},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 64},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1 << 20},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS,
     CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST},
    {CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0xffff},
};

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    CUresult result = enter(__func__, value, device);
    if (result)
        return result;
    if (attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    int answer = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? physical[device] + 1 : 0;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        if (attributes[i].which == attribute)
            answer = attributes[i].value;
    }
    if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        answer = (int)device_multiprocessors();
    if (attribute == CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED)
        answer = call_setting("MULTICAST", 0) != 0;
    *value = answer;
    return CUDA_SUCCESS;
}
