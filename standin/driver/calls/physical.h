/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * physical.h - what handles of virtual memory management name: memory of a device (vmm.c), or a
 * multicast object (multicast.c).
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

enum { GRANULARITY = 2 << 20 };

struct multicast;

struct physical {
    struct physical *next;
    CUmemAllocationProp properties;
    size_t size;
    int fd;
    unsigned handles, mappings;  /* bindings to multicast objects count as mappings */
    bool imported;               /* not counted as memory of this process's device */
    struct multicast *multicast; /* NULL: it is memory */
};

/* All under the lock. NULL: there is none with such a handle. */
struct physical *physical_find(CUmemGenericAllocationHandle handle);
/* A new one with one handle, in whose file it lives. NULL: memory is out. */
struct physical *physical_add(const CUmemAllocationProp *properties, size_t size, int fd);
/* One mapping of it is gone; without handles and mappings it goes, too. */
void physical_drop_mapping(struct physical *physical);

static inline bool is_granular(size_t size)
{
    return size && size % GRANULARITY == 0;
}
