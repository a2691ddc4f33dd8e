/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h - the table of all memory that the driver knows: who allocated what, where it is.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum memory_kind {
    MEMORY_DEVICE,     /* cuMemAlloc: a memfd of its own */
    MEMORY_MANAGED,    /* cuMemAllocManaged */
    MEMORY_HOST,       /* cuMemHostAlloc */
    MEMORY_REGISTERED, /* cuMemHostRegister: belongs to the program */
    MEMORY_IMPORTED,   /* cuIpcOpenMemHandle: device memory of another process */
    MEMORY_MAPPED,     /* cuMemMap */
    MEMORY_MODULE,     /* a variable of a module */
};

struct memory {
    struct memory *next;
    enum memory_kind kind;
    char *base;
    size_t size;   /* as asked for */
    size_t length; /* as mapped: whole pages */
    int fd;        /* device memory and imports; else -1 */
    uint64_t id;
    CUcontext context;
    CUdevice device;
    unsigned flags;        /* of cuMemHostAlloc and cuMemHostRegister */
    unsigned opens;        /* imports: how often it was opened */
    CUipcMemHandle handle; /* imports: by what */
    uint64_t object;       /* MEMORY_MAPPED: of cuMemCreate(); MEMORY_MODULE: its shared object */
    unsigned readable, writable; /* MEMORY_MAPPED: by which devices, a bit for each */
    bool multicast;              /* MEMORY_MAPPED: addresses of a multicast object */
    unsigned users; /* operations under way that touch this memory; for the guard by pages */
};

/* Addresses are integers in the driver's interface. */
static inline char *memory_bytes(CUdeviceptr address)
{
    return (char *)(uintptr_t)address;
}

static inline CUdeviceptr memory_address(const struct memory *memory)
{
    return (CUdeviceptr)(uintptr_t)memory->base;
}

/* All under the lock. What holds this byte, or NULL. */
struct memory *memory_find(const void *address);

/* Finds the one allocation that holds all of it, or the first of mappings one behind the other that
 * do. NULL: there is none. */
struct memory *memory_holding(CUdeviceptr address, size_t size);

/* Finds what the context imported by that handle, or NULL. */
struct memory *memory_imported(CUcontext context, const CUipcMemHandle *handle);

/* Takes over `memory` (from calloc). */
void memory_add(struct memory *memory);

/* Takes it out of the table, gives back its pages, file and bytes of the device, and frees it. */
void memory_remove(struct memory *memory);

/* Takes it out of the table only: nobody finds it any more, its pages stay. */
void memory_hide(struct memory *memory);

/* Everything that belongs to the context. */
void memory_free_all(CUcontext context);

/* The variables of a module go with it. */
void memory_forget_module(const void *object);

/* Work that touches device memory begins and ends: any, or only these bytes of it; what that means
 * is up to the guard. */
void memory_begin_use(void);
void memory_end_use(void);
void memory_begin_use_of(const void *address, size_t size);
void memory_end_use_of(const void *address, size_t size);

/* Tells how the pages of device memory may be used now. */
int memory_protection(const struct memory *memory);

/* True if it is on a device, out of the program's reach. */
bool memory_on_device(const struct memory *memory);

/* Bytes of the device are taken (false: it has not as many left) and given back. */
bool memory_take(CUdevice device, size_t size);
void memory_give_back(CUdevice device, size_t size);

/* A new memfd of that size, named after the device and a number; -1 when there is none to be
 * had. */
int memory_file(CUdevice device, uint64_t id, size_t size);

/* Maps the file as device memory that nobody uses yet; NULL when that fails. */
char *memory_map_file(int fd, size_t length);

/* Rounds up to whole pages. */
size_t memory_pages(size_t size);
