/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vmm.c - virtual memory management: physical memory (cuMemCreate), addresses (cuMemAddressReserve)
 * and what is mapped where.
 *
 * Physical memory is a memfd; a shareable handle is a copy of its descriptor. It lives as long as
 * there are handles or mappings. A mapping is an entry in the table of memory, out of reach until
 * cuMemSetAccess() opens it.
 */
#include "standin/driver/base/call.h"
#include "standin/driver/base/devices.h"
#include "standin/driver/base/guard.h"
#include "standin/driver/calls/multicast.h"
#include "standin/driver/context.h"
#include "standin/driver/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct reservation {
    struct reservation *next;
    char *base;
    size_t size;
};

static struct physical *physicals;
static struct reservation *reservations;

struct physical *physical_find(CUmemGenericAllocationHandle handle)
{
    struct physical *physical = physicals;
    while (physical && (uintptr_t)physical != handle)
        physical = physical->next;
    return physical && physical->handles ? physical : NULL;
}

static struct reservation *find_reservation(CUdeviceptr address, size_t size)
{
    for (struct reservation *r = reservations; r; r = r->next) {
        uintptr_t base = (uintptr_t)r->base;
        if (address >= base && address - base <= r->size && size <= r->size - (address - base))
            return r;
    }
    return NULL;
}

static void free_if_unused(struct physical *physical)
{
    if (physical->handles || physical->mappings)
        return;
    struct physical **link = &physicals;
    while (*link != physical)
        link = &(*link)->next;
    *link = physical->next;
    if (!physical->imported)
        memory_give_back(physical->properties.location.id, physical->size);
    if (physical->multicast)
        multicast_close(physical->multicast);
    close(physical->fd);
    free(physical);
}

void physical_drop_mapping(struct physical *physical)
{
    physical->mappings--;
    free_if_unused(physical);
}

struct physical *physical_add(const CUmemAllocationProp *properties, size_t size, int fd)
{
    struct physical *physical = calloc(1, sizeof *physical);
    if (!physical)
        return NULL;
    *physical = (struct physical){.properties = *properties, .size = size, .fd = fd, .handles = 1};
    physical->next = physicals;
    physicals = physical;
    return physical;
}

static CUresult check_properties(const CUmemAllocationProp *properties)
{
    if (!properties || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_exists(properties->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    CUmemAllocationHandleType known = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return properties->requestedHandleTypes & ~known ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!granularity)
        return CUDA_ERROR_INVALID_VALUE;
    result = check_properties(properties);
    if (!result)
        *granularity = GRANULARITY;
    return result;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!address || !is_granular(size) || flags || alignment & (alignment - 1))
        return CUDA_ERROR_INVALID_VALUE;
    alignment = alignment > GRANULARITY ? alignment : GRANULARITY;
    struct reservation *reservation = calloc(1, sizeof *reservation);
    char *base =
        mmap(NULL, size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!reservation || base == MAP_FAILED) {
        free(reservation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    size_t before = (alignment - (uintptr_t)base % alignment) % alignment;
    reservation->base = base + before;
    reservation->size = size;
    if (before)
        munmap(base, before);
    munmap(base + before + size, alignment - before);
    call_lock();
    reservation->next = reservations;
    reservations = reservation;
    call_unlock();
    *address = (uintptr_t)reservation->base;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    call_lock();
    struct reservation *reservation = find_reservation(address, size);
    if (!reservation || (uintptr_t)reservation->base != address || reservation->size != size)
        reservation = NULL;
    for (size_t at = 0; reservation && at < size; at += GRANULARITY) {
        if (memory_find(reservation->base + at))
            reservation = NULL; /* something is mapped there */
    }
    if (reservation) {
        struct reservation **link = &reservations;
        while (*link != reservation)
            link = &(*link)->next;
        *link = reservation->next;
        munmap(reservation->base, size);
    }
    call_unlock();
    free(reservation);
    return reservation ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!handle || !is_granular(size) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    result = check_properties(properties);
    if (result)
        return result;
    CUdevice device = properties->location.id;
    struct physical *physical = NULL;
    call_lock();
    if (memory_take(device, size)) {
        int fd = memory_file(device, call_unique(), size);
        physical = fd < 0 ? NULL : physical_add(properties, size, fd);
        if (!physical)
            memory_give_back(device, size);
        if (!physical && fd >= 0)
            close(fd);
    }
    call_unlock();
    if (!physical)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = (uintptr_t)physical;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    call_lock();
    struct physical *physical = physical_find(handle);
    if (physical) {
        physical->handles--;
        free_if_unused(physical);
    }
    call_unlock();
    return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The entry in the table for `size` bytes at `address`. */
static struct memory *add_mapping(char *base, size_t size, const struct physical *physical)
{
    struct memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    *memory = (struct memory){.kind = MEMORY_MAPPED, .base = base, .size = size, .fd = -1};
    memory->device = physical->properties.location.id;
    memory->object = (uintptr_t)physical;
    memory->multicast = physical->multicast;
    memory_add(memory);
    return memory;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!is_granular(size) || address % GRANULARITY || offset || flags)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    struct physical *physical = physical_find(handle);
    char *base = memory_bytes(address);
    bool good = physical && size <= physical->size && find_reservation(address, size);
    for (size_t at = 0; good && at < size; at += GRANULARITY)
        good = !memory_find(base + at);
    if (!good)
        result = CUDA_ERROR_INVALID_VALUE;
    else if ((!physical->multicast &&
              mmap(base, size, PROT_NONE, MAP_SHARED | MAP_FIXED, physical->fd, 0) == MAP_FAILED) ||
             !add_mapping(base, size, physical))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    else
        physical->mappings++;
    call_unlock();
    return result;
}

/* The mapping that begins there, if it is that long. */
static struct memory *find_mapping(CUdeviceptr address, size_t size)
{
    struct memory *memory = memory_holding(address, size);
    bool exact = memory && memory->kind == MEMORY_MAPPED && memory_address(memory) == address &&
                 memory->size == size;
    return exact ? memory : NULL;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    call_lock();
    struct memory *memory = find_mapping(address, size);
    if (memory) {
        struct physical *physical = (struct physical *)(uintptr_t)memory->object;
        mmap(memory->base, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
             -1, 0);
        memory_remove(memory);
        physical_drop_mapping(physical);
    }
    call_unlock();
    return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *wanted,
                        size_t count)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!wanted || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (wanted[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        if (!device_exists(wanted[i].location.id))
            return CUDA_ERROR_INVALID_DEVICE;
    }
    call_lock_memory(wanted[0].location.id);
    call_lock();
    struct memory *memory = find_mapping(address, size);
    for (size_t i = 0; memory && i < count; i++) {
        unsigned bit = 1u << wanted[i].location.id;
        memory->readable &= ~bit;
        memory->writable &= ~bit;
        if (wanted[i].flags & CU_MEM_ACCESS_FLAGS_PROT_READ)
            memory->readable |= bit;
        if (wanted[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            memory->writable |= bit;
    }
    if (!memory)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (guard_protect(memory->base, size, memory_protection(memory)))
        result = CUDA_ERROR_OPERATING_SYSTEM;
    call_unlock();
    call_unlock_memory(wanted[0].location.id);
    return result;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                        CUdeviceptr address)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
        !device_exists(location->id))
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    const struct memory *memory = memory_holding(address, 1);
    unsigned bit = 1u << location->id;
    if (!memory || memory->kind != MEMORY_MAPPED)
        result = CUDA_ERROR_INVALID_VALUE;
    else
        *flags = memory->writable & bit   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                 : memory->readable & bit ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                          : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    call_unlock();
    return result;
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!shareable || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    int fd = -1;
    call_lock();
    const struct physical *physical = physical_find(handle);
    if (!physical || physical->properties.requestedHandleTypes != (unsigned)type)
        result = CUDA_ERROR_INVALID_VALUE;
    else if ((fd = fcntl(physical->fd, F_DUPFD_CLOEXEC, 3)) < 0)
        result = CUDA_ERROR_OPERATING_SYSTEM;
    call_unlock();
    if (!result)
        *(int *)shareable = fd;
    return result;
}

/* Reads from the descriptor whose memory it is. */
static bool read_file(int fd, CUmemAllocationProp *properties, size_t *size)
{
    char path[64], target[128] = "";
    struct stat status;
    int device = -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (readlink(path, target, sizeof target - 1) <= 0 ||
        sscanf(target, "/memfd:cuda_standin-%d-", &device) != 1 || !device_exists(device) ||
        fstat(fd, &status) || !is_granular((size_t)status.st_size))
        return false;
    *properties = (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    *size = (size_t)status.st_size;
    return true;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        CUmemAllocationHandleType type)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUmemAllocationProp properties;
    size_t size = 0;
    bool known = handle && read_file((int)(uintptr_t)shareable, &properties, &size);
    int fd = handle ? fcntl((int)(uintptr_t)shareable, F_DUPFD_CLOEXEC, 3) : -1;
    if (fd < 0)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    struct physical *physical = known ? physical_add(&properties, size, fd) : multicast_import(fd);
    if (physical)
        physical->imported = true;
    call_unlock();
    if (!physical) {
        close(fd);
        return known ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    }
    *handle = (uintptr_t)physical;
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    const struct memory *memory = memory_find(address);
    bool mapped = memory && memory->kind == MEMORY_MAPPED;
    if (mapped) {
        ((struct physical *)(uintptr_t)memory->object)->handles++;
        *handle = memory->object;
    }
    call_unlock();
    return mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                CUmemGenericAllocationHandle handle)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    call_lock();
    const struct physical *physical = physical_find(handle);
    if (physical && properties)
        *properties = physical->properties;
    call_unlock();
    return physical && properties ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
