/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/nvls.h"

#include "base/caller/descriptor.h"
#include "base/fail.h"
#include "cuda/devcomm.h"
#include "cuda/reduce.h"

#include <stdlib.h>
#include <string.h>

static const CUmemAllocationHandleType files = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

struct cuda_nvls {
    struct cuda_devcomm *devcomm;
    const struct cuda_driver *driver;
    CUdevice device;
    size_t bytes;
    CUmemGenericAllocationHandle object, memory;
    bool has_object, has_memory, bound;
    CUdeviceptr own, all;           /* 0: not mapped */
    CUdeviceptr blocks;             /* struct cuda_nvls_block, and behind them the word `ended` */
    struct devcomm_host *rehearsal; /* pinned: what a device communicator has for calls */
};

/* ---- The team -------------------------------------------------------------------------------- */

static int attribute(const struct cuda_device *device, CUdevice_attribute which)
{
    int value = 0;

    return device->driver->cuDeviceGetAttribute(&value, which, device->handle) ? 0 : value;
}

const char *cuda_nvls_obstacle(const struct cuda_device *device)
{
    const struct cuda_driver *driver = device->driver;

    if (!driver->cuMulticastCreate || !driver->cuMulticastAddDevice ||
        !driver->cuMulticastBindMem || !driver->cuMulticastUnbind ||
        !driver->cuMulticastGetGranularity || !driver->cuMemCreate)
        return "has a driver without multicast objects (CUDA 12.1 has them)";
    if (!attribute(device, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED))
        return "is not behind an NVSwitch that stores to all and adds up";
    if (attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9)
        return "has no multicast instructions: those of sm_90 and later do";
    return NULL;
}

rondo_result cuda_nvls_open(struct cuda_devcomm *devcomm, struct cuda_nvls **ret_nvls)
{
    const size_t bytes = (CUDA_NVLS_BLOCKS + 1) * sizeof(struct cuda_nvls_block);
    char nothing[(CUDA_NVLS_BLOCKS + 1) * sizeof(struct cuda_nvls_block)] = {0};
    struct cuda_nvls *nvls = calloc(1, sizeof(*nvls));
    CUdeviceptr host;
    rondo_result result;

    if (!nvls)
        return rondo_fail(RONDO_ERROR_MEMORY, "There is no memory for a multicast object.");
    nvls->devcomm = devcomm;
    nvls->driver = devcomm->launcher->device.driver;
    nvls->device = devcomm->launcher->device.handle;
    result = devcomm_alloc(devcomm, bytes, &nvls->blocks);
    if (!result)
        result = devcomm_upload(devcomm, nvls->blocks, nothing, bytes);
    if (!result)
        result = cuda_stock_take(&devcomm->launcher->stock, &devcomm->launcher->device,
                                 CUDA_HOLDING_PINNED, sizeof(*nvls->rehearsal), &host);
    if (!result) {
        nvls->rehearsal = (struct devcomm_host *)(uintptr_t)host;
        memset(nvls->rehearsal, 0, sizeof(*nvls->rehearsal));
    }
    if (result)
        cuda_nvls_close(nvls);
    else
        *ret_nvls = nvls;
    return result;
}

static CUmulticastObjectProp describe(const struct cuda_nvls *nvls)
{
    return (CUmulticastObjectProp){.numDevices = (unsigned)nvls->devcomm->shape.size,
                                   .size = nvls->bytes,
                                   .handleTypes = files};
}

/* A device binds memory in whole units of its team. */
static rondo_result measure(struct cuda_nvls *nvls)
{
    CUmulticastObjectProp properties;
    size_t unit = 0;
    rondo_result result;

    nvls->bytes = CUDA_NVLS_BYTES;
    properties = describe(nvls);
    result = cuda_result(nvls->driver->cuMulticastGetGranularity(&unit, &properties,
                                                                 CU_MULTICAST_GRANULARITY_MINIMUM),
                         "cuMulticastGetGranularity");
    if (!result && unit)
        nvls->bytes = (nvls->bytes + unit - 1) / unit * unit;
    return result;
}

rondo_result cuda_nvls_make(struct cuda_nvls *nvls, int *ret_file)
{
    CUmemGenericAllocationHandle object;
    CUmulticastObjectProp properties;
    rondo_result result = measure(nvls);

    if (result)
        return result;
    properties = describe(nvls);
    result =
        cuda_result(nvls->driver->cuMulticastCreate(&object, &properties), "cuMulticastCreate");
    if (result)
        return result;
    result = cuda_result(nvls->driver->cuMemExportToShareableHandle(ret_file, object, files, 0),
                         "cuMemExportToShareableHandle of a multicast object");
    if (!result && (*ret_file = descriptor_above(*ret_file)) < 0)
        result = rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot hold a multicast object");
    nvls->driver->cuMemRelease(object); /* the file is a handle of it, by which this rank joins */
    return result;
}

rondo_result cuda_nvls_join(struct cuda_nvls *nvls, int file)
{
    rondo_result result = measure(nvls);

    if (!result)
        result = cuda_result(nvls->driver->cuMemImportFromShareableHandle(
                                 &nvls->object, (void *)(intptr_t)file, files),
                             "cuMemImportFromShareableHandle of a multicast object");
    nvls->has_object = !result;
    if (!result)
        result = cuda_result(nvls->driver->cuMulticastAddDevice(nvls->object, nvls->device),
                             "cuMulticastAddDevice");
    return result;
}

static rondo_result map(const struct cuda_nvls *nvls, CUmemGenericAllocationHandle handle,
                        CUdeviceptr *ret_at)
{
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = nvls->device},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const struct cuda_driver *driver = nvls->driver;
    CUdeviceptr at = 0;
    rondo_result result =
        cuda_result(driver->cuMemAddressReserve(&at, nvls->bytes, 0, 0, 0), "cuMemAddressReserve");

    if (result)
        return result;
    result = cuda_result(driver->cuMemMap(at, nvls->bytes, 0, handle, 0),
                         "cuMemMap of a multicast object");
    if (result) {
        driver->cuMemAddressFree(at, nvls->bytes);
        return result;
    }
    *ret_at = at;
    return cuda_result(driver->cuMemSetAccess(at, nvls->bytes, &access, 1),
                       "cuMemSetAccess to a multicast object");
}

/* Flags begin with 0. */
static rondo_result clear_flags(const struct cuda_nvls *nvls)
{
    void *nothing = calloc(1, CUDA_NVLS_FLAGS);
    rondo_result result =
        nothing ? devcomm_upload(nvls->devcomm, nvls->own, nothing, CUDA_NVLS_FLAGS)
                : rondo_fail(RONDO_ERROR_MEMORY, "There is no memory for a multicast object.");

    free(nothing);
    return result;
}

rondo_result cuda_nvls_bind(struct cuda_nvls *nvls)
{
    const struct cuda_driver *driver = nvls->driver;
    const CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = files,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = nvls->device}};
    rondo_result result =
        cuda_result(driver->cuMemCreate(&nvls->memory, nvls->bytes, &properties, 0), "cuMemCreate");

    nvls->has_memory = !result;
    if (!result)
        result = map(nvls, nvls->memory, &nvls->own);
    if (!result)
        result = clear_flags(nvls);
    if (!result)
        result = cuda_result(
            driver->cuMulticastBindMem(nvls->object, 0, nvls->memory, 0, nvls->bytes, 0),
            "cuMulticastBindMem");
    nvls->bound = !result;
    return result ? result : map(nvls, nvls->object, &nvls->all);
}

static void unmap(const struct cuda_nvls *nvls, CUdeviceptr at)
{
    if (!at)
        return;
    nvls->driver->cuMemUnmap(at, nvls->bytes);
    nvls->driver->cuMemAddressFree(at, nvls->bytes);
}

bool cuda_nvls_is_bound(const struct cuda_nvls *nvls)
{
    return nvls && nvls->bound;
}

void cuda_nvls_leave(struct cuda_nvls *nvls)
{
    if (!nvls || !nvls->devcomm)
        return;
    devcomm_free(nvls->devcomm, nvls->blocks);
    devcomm_free(nvls->devcomm, cuda_address(nvls->rehearsal));
    nvls->devcomm = NULL;
}

void cuda_nvls_close(struct cuda_nvls *nvls)
{
    if (!nvls)
        return;
    cuda_nvls_leave(nvls);
    unmap(nvls, nvls->all);
    if (nvls->bound)
        nvls->driver->cuMulticastUnbind(nvls->object, nvls->device, 0, nvls->bytes);
    unmap(nvls, nvls->own);
    if (nvls->has_memory)
        nvls->driver->cuMemRelease(nvls->memory);
    if (nvls->has_object)
        nvls->driver->cuMemRelease(nvls->object);
    free(nvls);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static bool is_bitwise(const struct kernel_op *op)
{
    return op->function == KERNEL_BAND || op->function == KERNEL_BOR || op->function == KERNEL_BXOR;
}

/* Narrow floats leave the switch rounded, so an average of them would be rounded twice. */
static bool can_reduce(const struct kernel_op *op)
{
    bool ordered = op->function == KERNEL_MIN || op->function == KERNEL_MAX;

    if (op->has_scale)
        return false;
    switch (cuda_kind_of(op->type)) {
    case CUDA_KIND_FLOAT16:
    case CUDA_KIND_BFLOAT16:
        return op->function == KERNEL_SUM && op->divisor <= 1;
    case CUDA_KIND_FLOAT32:
    case CUDA_KIND_FLOAT64:
        return op->function == KERNEL_SUM;
    case CUDA_KIND_INT32:
    case CUDA_KIND_INT64:
        return op->function == KERNEL_SUM || ordered || is_bitwise(op);
    case CUDA_KIND_INT8:
    case CUDA_KIND_INT16:
        return is_bitwise(op);
    default:
        return false;
    }
}

bool cuda_nvls_can(rondo_collective collective, const struct kernel_op *op)
{
    if (collective == RONDO_ALL_GATHER)
        return true;
    return (collective == RONDO_ALL_REDUCE || collective == RONDO_REDUCE_SCATTER) && can_reduce(op);
}

static enum cuda_nvls_verb verb_of(rondo_collective collective)
{
    return collective == RONDO_ALL_REDUCE   ? CUDA_NVLS_ALL_REDUCE
           : collective == RONDO_ALL_GATHER ? CUDA_NVLS_ALL_GATHER
                                            : CUDA_NVLS_REDUCE_SCATTER;
}

rondo_result cuda_nvls_launch(struct cuda_nvls *nvls, const struct cuda_nvls_call *call,
                              CUstream stream)
{
    struct cuda_devcomm *devcomm = nvls->devcomm;
    struct devcomm_host *host = call->rehearsal ? nvls->rehearsal : devcomm->host;
    struct cuda_nvls_argument argument = {
        .input = call->input,
        .output = call->output,
        .own = nvls->own,
        .all = nvls->all,
        .blocks = nvls->blocks,
        .ended = nvls->blocks + CUDA_NVLS_BLOCKS * sizeof(struct cuda_nvls_block),
        .status = cuda_address(host->status),
        .halt = cuda_address(&host->halt),
        .bytes = call->count * call->element,
        .verb = verb_of(call->collective),
        .rank = (uint32_t)devcomm->shape.rank,
        .size = (uint32_t)devcomm->shape.size,
        .fingerprint = call->fingerprint};

    memcpy(argument.steps, call->steps, (size_t)devcomm->shape.size * sizeof(*call->steps));
    if (call->op) {
        argument.arithmetic = cuda_arithmetic_of(call->op, KERNEL_FOLD, -1, true);
        argument.kind =
            is_bitwise(call->op) ? CUDA_KIND_INT32 : (int32_t)cuda_kind_of(call->op->type);
    }
    return cuda_launch(devcomm->launcher, CUDA_KERNEL_nvls, call->blocks, &argument, stream);
}

void cuda_nvls_give_up(struct cuda_nvls *nvls)
{
    /* Release, pairs with the acquire in nvls_look_up() on the device. */
    __atomic_store_n(&nvls->rehearsal->halt.stop, 1, __ATOMIC_RELEASE);
}
