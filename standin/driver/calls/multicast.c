/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * multicast.c - multicast objects (cuMulticastCreate): one address for the same place in memory of
 * several devices.
 *
 * What an object is lies in a memfd that all processes with a handle of it map: its devices, and
 * which memory they have bound, by process and descriptor, as /proc opens it. A mapping of an
 * object is addresses only, which nobody can touch: a load or a store to them is no multicast
 * instruction, and is the program's mistake. Kernels' instructions ask for each member's memory
 * (members.c), which is mapped here once more for them.
 */
#include "standin/driver/calls/multicast.h"

#include "standin/driver/base/call.h"
#include "standin/driver/base/devices.h"
#include "standin/driver/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char prefix[] = "/memfd:cuda_multicast-";

bool multicast_offered(void)
{
    return call_setting("MULTICAST", 0) != 0;
}

/* ---- Objects --------------------------------------------------------------------------------- */

bool multicast_read_name(int fd, char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    memset(name, 0, BINDING_NAME);
    return readlink(path, name, BINDING_NAME - 1) > 0;
}

/* Takes over the descriptor if it succeeds. */
static struct physical *open_shared(int fd)
{
    struct multicast_shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        return NULL;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes =
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    struct multicast *multicast = calloc(1, sizeof *multicast);
    struct physical *physical = multicast ? physical_add(&properties, shared->size, fd) : NULL;
    if (!physical) {
        free(multicast);
        munmap(shared, sizeof *shared);
        return NULL;
    }
    multicast->shared = shared;
    physical->multicast = multicast;
    physical->imported = true; /* no memory of a device */
    return physical;
}

struct physical *multicast_import(int fd)
{
    char name[BINDING_NAME];
    if (!multicast_read_name(fd, name) || strncmp(name, prefix, sizeof prefix - 1) != 0)
        return NULL;
    return open_shared(fd);
}

static bool is_good(const CUmulticastObjectProp *properties)
{
    CUmemAllocationHandleType known = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return properties && properties->numDevices && properties->numDevices <= DEVICE_LIMIT &&
           !properties->flags && !(properties->handleTypes & ~(unsigned long long)known);
}

/* Every function of this file begins with it. */
static CUresult enter(const char *function)
{
    CUresult result = call_enter(function);
    return result || multicast_offered() ? result : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *properties,
                                   CUmulticastGranularity_flags option)
{
    CUresult result = enter(__func__);
    if (result)
        return result;
    if (!granularity || !is_good(properties) || option > CU_MULTICAST_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = GRANULARITY;
    return CUDA_SUCCESS;
}

static struct physical *create(const CUmulticastObjectProp *properties)
{
    char name[64];
    snprintf(name, sizeof name, "cuda_multicast-%d-%llu", (int)getpid(),
             (unsigned long long)call_unique());
    int fd = memfd_create(name, MFD_CLOEXEC);
    struct multicast_shared first = {.devices = properties->numDevices, .size = properties->size};
    bool good = fd >= 0 && ftruncate(fd, sizeof first) == 0 &&
                pwrite(fd, &first, sizeof first, 0) == (ssize_t)sizeof first;
    struct physical *physical = good ? open_shared(fd) : NULL;
    if (!physical && fd >= 0)
        close(fd);
    if (physical)
        physical->properties.requestedHandleTypes =
            (CUmemAllocationHandleType)properties->handleTypes;
    return physical;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle,
                           const CUmulticastObjectProp *properties)
{
    CUresult result = enter(__func__);
    if (result)
        return result;
    if (!handle || !is_good(properties) || !is_granular(properties->size))
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    struct physical *physical = create(properties);
    call_unlock();
    if (!physical)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = (uintptr_t)physical;
    return CUDA_SUCCESS;
}

static struct multicast *find(CUmemGenericAllocationHandle handle)
{
    struct physical *physical = physical_find(handle);
    return physical ? physical->multicast : NULL;
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device)
{
    CUresult result = enter(__func__);
    int number = device_number(device);
    if (result)
        return result;
    if (number < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    call_lock();
    struct multicast *multicast = find(handle);
    uint32_t bit = 1u << number, added = 0;
    bool free_place = multicast != NULL;
    if (multicast)
        added = multicast_devices(multicast->shared);
    do {
        free_place = multicast && !(added & bit) &&
                     (unsigned)__builtin_popcount(added) < multicast->shared->devices;
    } while (free_place &&
             !atomic_compare_exchange_weak_explicit(&multicast->shared->added, &added, added | bit,
                                                    memory_order_acq_rel, memory_order_acquire));
    call_unlock();
    return free_place ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- Bindings -------------------------------------------------------------------------------- */

static void lock_bindings(struct multicast_shared *shared)
{
    uint32_t nobody = 0;
    while (!atomic_compare_exchange_weak_explicit(&shared->writer, &nobody, 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
        nobody = 0;
        usleep(10);
    }
}

static void unlock_bindings(struct multicast_shared *shared)
{
    atomic_store_explicit(&shared->writer, 0, memory_order_release);
}

struct wanted {
    struct physical *memory;
    size_t at, from, size;
};

static CUresult check(const struct multicast *multicast, const struct wanted *wanted, int device)
{
    const struct multicast_shared *shared = multicast->shared;
    if (!is_granular(wanted->size) || wanted->at % GRANULARITY || wanted->from % GRANULARITY ||
        wanted->at + wanted->size > shared->size ||
        wanted->from + wanted->size > wanted->memory->size)
        return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || !(multicast_devices(shared) >> device & 1))
        return CUDA_ERROR_INVALID_DEVICE;
    if ((unsigned)__builtin_popcount(multicast_devices(shared)) != shared->devices)
        return CUDA_ERROR_ILLEGAL_STATE; /* the team is not complete */
    for (int i = 0; i < BINDINGS; i++)
        if (binding_overlaps(&shared->bindings[i], device, wanted->at, wanted->size))
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* Under the driver's lock and that of the bindings. */
static CUresult bind(struct multicast *multicast, const struct wanted *wanted)
{
    struct multicast_shared *shared = multicast->shared;
    int device = device_number(wanted->memory->properties.location.id), i = 0;
    CUresult result = check(multicast, wanted, device);
    if (result)
        return result;
    while (i < BINDINGS && binding_number(&shared->bindings[i]))
        i++;
    if (i == BINDINGS || !multicast_read_name(wanted->memory->fd, shared->bindings[i].name))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct binding *binding = &shared->bindings[i];
    binding->device = device;
    binding->process = (int)getpid();
    binding->fd = wanted->memory->fd;
    binding->at = wanted->at;
    binding->from = wanted->from;
    binding->size = wanted->size;
    /* Release, pairs with the acquire in binding_number(): all else is there. */
    atomic_store_explicit(&binding->number,
                          1 + atomic_fetch_add_explicit(&shared->numbers, 1, memory_order_relaxed),
                          memory_order_release);
    multicast->own[i] = wanted->memory;
    wanted->memory->mappings++;
    return CUDA_SUCCESS;
}

/* Under the driver's lock. */
static CUresult bind_locked(CUmemGenericAllocationHandle handle, const struct wanted *wanted)
{
    struct multicast *multicast = find(handle);
    if (!multicast || !wanted->memory || wanted->memory->multicast)
        return CUDA_ERROR_INVALID_VALUE;
    lock_bindings(multicast->shared);
    CUresult result = bind(multicast, wanted);
    unlock_bindings(multicast->shared);
    return result;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t at,
                            CUmemGenericAllocationHandle memory, size_t from, size_t size,
                            unsigned long long flags)
{
    CUresult result = enter(__func__);
    if (result)
        return result;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    struct wanted wanted = {.memory = physical_find(memory), .at = at, .from = from, .size = size};
    result = bind_locked(handle, &wanted);
    call_unlock();
    return result;
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t at, CUdeviceptr address,
                             size_t size, unsigned long long flags)
{
    CUresult result = enter(__func__);
    if (result)
        return result;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    const struct memory *memory = memory_find(memory_bytes(address));
    struct wanted wanted = {.at = at, .size = size};
    if (memory && memory->kind == MEMORY_MAPPED) {
        wanted.memory = (struct physical *)(uintptr_t)memory->object;
        wanted.from = address - memory_address(memory);
    }
    result = bind_locked(handle, &wanted);
    call_unlock();
    return result;
}

static void unbind(struct multicast *multicast, int i)
{
    atomic_store_explicit(&multicast->shared->bindings[i].number, 0, memory_order_release);
    physical_drop_mapping(multicast->own[i]);
    multicast->own[i] = NULL;
}

/* Only who has bound memory can take it out again: else it is not this process's. */
CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t at,
                           size_t size)
{
    CUresult result = enter(__func__);
    int number = device_number(device);
    bool found = false;
    if (result)
        return result;
    call_lock();
    struct multicast *multicast = find(handle);
    for (int i = 0; multicast && i < BINDINGS; i++) {
        const struct binding *binding = &multicast->shared->bindings[i];
        if (!multicast->own[i] || binding->device != number || binding->at != at ||
            binding->size != size)
            continue;
        unbind(multicast, i);
        found = true;
    }
    call_unlock();
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void multicast_close(struct multicast *multicast)
{
    for (int i = 0; i < BINDINGS; i++) {
        if (multicast->own[i])
            unbind(multicast, i);
        if (multicast->aliases[i].base)
            munmap(multicast->aliases[i].base, multicast->shared->size);
    }
    munmap(multicast->shared, sizeof *multicast->shared);
    free(multicast);
}
