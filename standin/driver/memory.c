/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c - the table of memory, and memory that lives in files.
 *
 * Each allocation on a device is a memfd, so that another process can map it (ipc.c), with an
 * unmapped page behind its end. It is named "cuda_standin-DEVICE-ID", which tells an importer
 * whether the descriptor is still the one it means.
 */
#include "standin/driver/memory.h"

#include "standin/driver/base/call.h"
#include "standin/driver/base/devices.h"
#include "standin/driver/base/guard.h"
#include "standin/driver/context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static struct memory *memories;
static size_t used[DEVICE_LIMIT];
static unsigned users; /* operations under way that may touch any; for the guard by pages */

size_t memory_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

struct memory *memory_find(const void *address)
{
    const char *byte = address;
    for (struct memory *memory = memories; memory; memory = memory->next) {
        if (byte >= memory->base && byte < memory->base + memory->size)
            return memory;
    }
    return NULL;
}

struct memory *memory_holding(CUdeviceptr address, size_t size)
{
    const char *begin = memory_bytes(address);
    struct memory *memory = memory_find(begin), *last = memory;
    /* What was mapped piece behind piece is one. */
    while (last && last->kind == MEMORY_MAPPED && begin + size > last->base + last->size) {
        last = memory_find(last->base + last->size);
        last = last && last->kind == MEMORY_MAPPED ? last : NULL;
    }
    return last && size <= (size_t)(last->base + last->size - begin) ? memory : NULL;
}

struct memory *memory_imported(CUcontext context, const CUipcMemHandle *handle)
{
    for (struct memory *memory = memories; memory; memory = memory->next) {
        if (memory->kind == MEMORY_IMPORTED && memory->context == context &&
            memcmp(&memory->handle, handle, sizeof *handle) == 0)
            return memory;
    }
    return NULL;
}

void memory_add(struct memory *memory)
{
    memory->id = memory->id ? memory->id : call_unique();
    memory->next = memories;
    memories = memory;
}

static bool counts(const struct memory *memory)
{
    return memory->kind == MEMORY_DEVICE || memory->kind == MEMORY_MANAGED;
}

int memory_protection(const struct memory *memory)
{
    bool mapped = memory->kind == MEMORY_MAPPED;
    if (memory->multicast || (guard_by_pages() && !users && !memory->users))
        return PROT_NONE;
    return (!mapped || memory->readable ? PROT_READ : 0) |
           (!mapped || memory->writable ? PROT_WRITE : 0);
}

/* Gives device memory the protection that it should have now. */
static void protect(const struct memory *memory)
{
    if (memory->kind == MEMORY_DEVICE || memory->kind == MEMORY_IMPORTED)
        guard_protect(memory->base, memory->length, memory_protection(memory));
    if (memory->kind == MEMORY_MAPPED)
        guard_protect(memory->base, memory->size, memory_protection(memory));
}

/* Closes device memory; the part that single operations use stays as it is. */
static void protect_unused(void)
{
    for (const struct memory *memory = memories; memory; memory = memory->next) {
        if (!memory->users)
            protect(memory);
    }
}

void memory_begin_use(void)
{
    if (guard_by_pages() && users++ == 0)
        protect_unused();
}

void memory_end_use(void)
{
    if (guard_by_pages() && --users == 0)
        protect_unused();
}

static void use(const void *address, size_t size, int more)
{
    const char *begin = address;
    for (struct memory *memory = memories; guard_by_pages() && memory; memory = memory->next) {
        if (begin >= memory->base + memory->size || memory->base >= begin + size)
            continue;
        bool was_used = memory->users;
        if (more < 0 && !was_used) /* it took the place of what was in use */
            continue;
        memory->users += (unsigned)more;
        if (!users && was_used != (memory->users > 0))
            protect(memory);
    }
}

void memory_begin_use_of(const void *address, size_t size)
{
    use(address, size, 1);
}

void memory_end_use_of(const void *address, size_t size)
{
    use(address, size, -1);
}

/* From now on nobody closes or opens it, so it stays open: work that is queued may use it. */
void memory_hide(struct memory *memory)
{
    if (guard_by_pages() && memory->kind == MEMORY_DEVICE)
        guard_protect(memory->base, memory->length, PROT_READ | PROT_WRITE);
    struct memory **link = &memories;
    while (*link && *link != memory)
        link = &(*link)->next;
    if (*link)
        *link = memory->next;
}

void memory_remove(struct memory *memory)
{
    memory_hide(memory);
    if (counts(memory))
        memory_give_back(memory->device, memory->size);
    if (memory->length)
        munmap(memory->base, memory->length + memory_pages(1)); /* with the page behind */
    if (memory->fd >= 0)
        close(memory->fd);
    free(memory);
}

void memory_free_all(CUcontext context)
{
    for (struct memory *memory = memories, *next; memory; memory = next) {
        next = memory->next;
        if (memory->context == context && memory->kind != MEMORY_MODULE &&
            memory->kind != MEMORY_MAPPED)
            memory_remove(memory);
    }
}

void memory_forget_module(const void *object)
{
    for (struct memory *memory = memories, *next; memory; memory = next) {
        next = memory->next;
        if (memory->kind == MEMORY_MODULE && memory->object == (uintptr_t)object)
            memory_remove(memory);
    }
}

bool memory_on_device(const struct memory *memory)
{
    return memory->kind == MEMORY_DEVICE || memory->kind == MEMORY_IMPORTED ||
           memory->kind == MEMORY_MAPPED || memory->kind == MEMORY_MODULE;
}

bool memory_take(CUdevice device, size_t size)
{
    if (size > device_memory() - used[device])
        return false;
    used[device] += size;
    return true;
}

void memory_give_back(CUdevice device, size_t size)
{
    used[device] -= size;
}

/* Many allocations need many descriptors: the soft limit goes up when it is reached. */
static int more_descriptors(void)
{
    struct rlimit limit;
    if (errno != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
        return -1;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

int memory_file(CUdevice device, uint64_t id, size_t size)
{
    char name[64];
    snprintf(name, sizeof name, "cuda_standin-%d-%llu", device, (unsigned long long)id);
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 && more_descriptors() == 0)
        fd = memfd_create(name, MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)size)) {
        close(fd);
        return -1;
    }
    return fd;
}

char *memory_map_file(int fd, size_t length)
{
    size_t page = memory_pages(1);
    char *base = mmap(NULL, length + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    if (mmap(base, length, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
        guard_protect(base, length, memory_protection(&(struct memory){.kind = MEMORY_DEVICE}))) {
        munmap(base, length + page);
        return NULL;
    }
    return base;
}

CUresult cuMemGetInfo(size_t *free_bytes, size_t *total)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (!free_bytes || !total)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    *free_bytes = device_memory() - used[context->device];
    call_unlock();
    *total = device_memory();
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    call_lock();
    const struct memory *memory = memory_holding(address, 1);
    if (memory && base)
        *base = memory_address(memory);
    if (memory && size)
        *size = memory->size;
    call_unlock();
    return memory ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
