/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/module.h"

#include "base/caller/descriptor.h"
#include "base/fail.h"
#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* image.S: for several kinds of devices; empty where no compiler for them was found. */
extern const unsigned char cuda_image[];
extern const uint64_t cuda_image_bytes;

static const char *const names[CUDA_KERNEL_IDS] = {
#define KERNEL_NAME(name) "rondo_" #name,
    CUDA_KERNELS(KERNEL_NAME)};

bool cuda_has_kernels(void)
{
    return cuda_image_bytes || setting_read_word(SETTING_CUDA_IMAGE)[0];
}

/* A whole file in memory of its own. */
static rondo_result read_file(const char *path, void **ret_data)
{
    FILE *file = descriptor_stream(path, "r");
    void *data = NULL;
    rondo_result result = RONDO_OK;
    long bytes;

    if (!file)
        return rondo_fail_errno(RONDO_ERROR_SYSTEM,
                                "The kernels in %s (RONDO_CUDA_IMAGE) cannot be read", path);
    if (fseek(file, 0, SEEK_END) || (bytes = ftell(file)) <= 0 || fseek(file, 0, SEEK_SET))
        result = rondo_fail(RONDO_ERROR_SYSTEM, "%s (RONDO_CUDA_IMAGE) is empty.", path);
    else if (!(data = malloc((size_t)bytes)))
        result = rondo_fail(RONDO_ERROR_MEMORY, "There is no memory for the %ld bytes of %s.",
                            bytes, path);
    else if (fread(data, 1, (size_t)bytes, file) != (size_t)bytes)
        result = rondo_fail_errno(RONDO_ERROR_SYSTEM, "%s cannot be read", path);
    fclose(file);
    if (result)
        free(data);
    else
        *ret_data = data;
    return result;
}

static rondo_result load_module(struct cuda_launcher *launcher)
{
    const char *path = setting_read_word(SETTING_CUDA_IMAGE);
    const void *image = cuda_image;
    void *data = NULL;
    rondo_result result = RONDO_OK;

    if (path[0]) {
        result = read_file(path, &data);
        image = data;
    } else if (!cuda_image_bytes) {
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "This build of Rondo has no kernels for GPUs: build it where nvcc is.");
    }
    if (!result)
        result = cuda_result(launcher->device.driver->cuModuleLoadData(&launcher->module, image),
                             "cuModuleLoadData, of Rondo's kernels,");
    free(data); /* the driver has made its own of it */
    return result;
}

static rondo_result attribute(const struct cuda_device *device, CUdevice_attribute which,
                              unsigned *ret_value)
{
    int value = 0;
    rondo_result result =
        cuda_result(device->driver->cuDeviceGetAttribute(&value, which, device->handle),
                    "cuDeviceGetAttribute");

    if (!result)
        *ret_value = (unsigned)value;
    return result;
}

/* The first launch of a kernel whose lanes need more memory for their stacks than any before waits
 * until the device has nothing to do, which never comes while a stream waits for a peer. So the
 * context gets as much here as the largest one needs. */
static rondo_result make_room_for_stacks(const struct cuda_driver *driver, size_t most)
{
    size_t limit = 0;
    rondo_result result =
        cuda_result(driver->cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE), "cuCtxGetLimit");

    if (!result && limit < most)
        result = cuda_result(driver->cuCtxSetLimit(CU_LIMIT_STACK_SIZE, most), "cuCtxSetLimit");
    return result;
}

/* Asking for an attribute loads the kernel, whatever CUDA_MODULE_LOADING says. */
static rondo_result load_kernel(struct cuda_launcher *launcher, const char *name, unsigned lanes,
                                unsigned processors, struct cuda_kernel *ret_kernel, size_t *stack)
{
    const struct cuda_driver *driver = launcher->device.driver;
    struct cuda_kernel kernel = {.lanes = lanes};
    int most = 0, resident = 0, local = 0;
    rondo_result result =
        cuda_result(driver->cuModuleGetFunction(&kernel.function, launcher->module, name), name);

    if (!result)
        result = cuda_result(driver->cuFuncGetAttribute(
                                 &most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel.function),
                             "cuFuncGetAttribute");
    if (!result)
        result = cuda_result(
            driver->cuFuncGetAttribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel.function),
            "cuFuncGetAttribute");
    if (!result && local > 0 && (size_t)local > *stack)
        *stack = (size_t)local;
    if (!result && most > 0 && (unsigned)most < lanes)
        kernel.lanes = (unsigned)most;
    if (!result)
        result = cuda_result(driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(
                                 &resident, kernel.function, (int)kernel.lanes, 0),
                             "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    if (!result && resident < 1)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED, "CUDA device %d (%s) cannot hold a block of %s.",
                          launcher->device.number, launcher->device.name, name);
    kernel.blocks = (unsigned)resident * processors;
    if (!result)
        *ret_kernel = kernel;
    return result;
}

static rondo_result load_all(struct cuda_launcher *launcher)
{
    unsigned processors = 0, lanes = 0;
    size_t stack = 0;
    rondo_result result =
        attribute(&launcher->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &processors);

    if (!result)
        result = attribute(&launcher->device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &lanes);
    if (!result)
        result = load_module(launcher);
    if (lanes > CUDA_LANES_WANTED)
        lanes = CUDA_LANES_WANTED;
    for (int i = 0; i < CUDA_KERNEL_IDS && !result; i++)
        result = load_kernel(launcher, names[i], lanes, processors, &launcher->kernels[i], &stack);
    if (!result)
        result = make_room_for_stacks(launcher->device.driver, stack);
    if (!result)
        log_info("CUDA device %d (%s): %d kernels loaded, blocks of %u lanes on %u processors, "
                 "stacks of up to %zu bytes",
                 launcher->device.number, launcher->device.name, CUDA_KERNEL_IDS, lanes, processors,
                 stack);
    return result;
}

static struct cuda_launcher *launchers;
static struct lock launchers_lock = LOCK_AT(LOCK_CUDA_LAUNCHERS);
FORK_RENEWS({.lock = &launchers_lock});

/* Free a launcher after its last user, or after nobody could open it. */
static void discard(struct cuda_launcher *launcher)
{
    if (!cuda_enter(&launcher->device)) {
        cuda_stock_clear(&launcher->stock, &launcher->device);
        if (launcher->module)
            launcher->device.driver->cuModuleUnload(launcher->module);
        cuda_leave(&launcher->device);
    }
    cuda_device_close(&launcher->device);
    lock_done(&launcher->stock.lock);
    free(launcher);
}

/* With the lock held. */
static rondo_result open_first(int number, struct cuda_launcher **ret_launcher)
{
    struct cuda_launcher *launcher = calloc(1, sizeof(*launcher));
    rondo_result result;

    if (!launcher)
        return rondo_fail(RONDO_ERROR_MEMORY, "There is no memory for a list of kernels.");
    result = cuda_device_open(number, &launcher->device);
    if (result) {
        free(launcher);
        return result;
    }
    lock_init(&launcher->stock.lock, LOCK_CUDA_STOCK);
    result = cuda_enter(&launcher->device);
    if (!result) {
        result = load_all(launcher);
        cuda_leave(&launcher->device);
    }
    if (result) {
        discard(launcher);
        return result;
    }
    launcher->next = launchers;
    launchers = *ret_launcher = launcher;
    return RONDO_OK;
}

rondo_result cuda_launcher_open(const struct cuda_device *device,
                                struct cuda_launcher **ret_launcher)
{
    struct cuda_launcher *launcher;
    rondo_result result = RONDO_OK;

    lock_take(&launchers_lock);
    launcher = launchers;
    while (launcher && launcher->device.number != device->number)
        launcher = launcher->next;
    if (!launcher)
        result = open_first(device->number, &launcher);
    if (!result) {
        launcher->users++;
        *ret_launcher = launcher;
    }
    lock_give(&launchers_lock);
    return result;
}

struct cuda_launcher *cuda_launcher_share(struct cuda_launcher *launcher)
{
    lock_take(&launchers_lock);
    launcher->users++;
    lock_give(&launchers_lock);
    return launcher;
}

void cuda_launcher_close(struct cuda_launcher *launcher)
{
    struct cuda_launcher **at = &launchers;
    bool last;

    if (!launcher)
        return;
    lock_take(&launchers_lock);
    last = --launcher->users == 0;
    while (*at != launcher)
        at = &(*at)->next;
    if (last)
        *at = launcher->next;
    lock_give(&launchers_lock);
    if (last)
        discard(launcher);
}

rondo_result cuda_launch(const struct cuda_launcher *launcher, enum cuda_kernel_id kernel,
                         unsigned blocks, const void *argument, CUstream stream)
{
    const struct cuda_kernel *it = &launcher->kernels[kernel];
    void *arguments[] = {(void *)(uintptr_t)argument};

    log_debug("kernel %s of %u blocks", names[kernel], blocks);
    return cuda_result(launcher->device.driver->cuLaunchKernel(
                           it->function, blocks, 1, 1, it->lanes, 1, 1, 0, stream, arguments, NULL),
                       names[kernel]);
}
