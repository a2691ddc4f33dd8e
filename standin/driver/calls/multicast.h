/* SPDX-License-Identifier: BSD-3-Clause */
/* multicast.h - multicast objects, as the rest of the driver sees them. */
#pragma once

#include "standin/driver/calls/physical.h"

#include <stdatomic.h>
#include <stdint.h>

enum { BINDINGS = 64, BINDING_NAME = 96 };

/* In memory of all processes that have the object. */
struct binding {
    _Atomic uint64_t number; /* never used again; 0: free; written last */
    int device;              /* as all processes name it */
    int process, fd;
    char name[BINDING_NAME]; /* of the file, as /proc has it */
    uint64_t at, from, size;
};

struct multicast_shared {
    uint32_t devices;
    uint64_t size;
    _Atomic uint32_t added; /* a bit for each device */
    _Atomic uint64_t numbers;
    _Atomic uint32_t writer; /* a lock: who binds and unbinds */
    struct binding bindings[BINDINGS];
};

struct multicast {
    struct multicast_shared *shared;
    struct physical *own[BINDINGS]; /* what this process has bound */
    struct {
        uint64_t number; /* of the binding */
        char *base;
    } aliases[BINDINGS];
};

static inline uint32_t multicast_devices(const struct multicast_shared *shared)
{
    return atomic_load_explicit(&shared->added, memory_order_acquire);
}

/* 0: it is free. */
static inline uint64_t binding_number(const struct binding *binding)
{
    return atomic_load_explicit(&binding->number, memory_order_acquire);
}

static inline bool binding_overlaps(const struct binding *binding, int device, size_t at,
                                    size_t size)
{
    return binding_number(binding) && binding->device == device &&
           at < binding->at + binding->size && binding->at < at + size;
}

/* The file's path, as /proc has it; false: there is none. */
bool multicast_read_name(int fd, char *name);

/* True if devices have multicast objects: CUDA_STANDIN_MULTICAST=1. */
bool multicast_offered(void);
/* Under the lock: the object whose file that is, as another handle; NULL: it is no such file. Takes
 * over the descriptor if it is. */
struct physical *multicast_import(int fd);
/* Under the lock: the last handle and mapping in this process are gone, and its bindings go. */
void multicast_close(struct multicast *multicast);

/* For kernels: where a byte of multicast memory is in that member's memory, by a mapping that is
 * the stand-in's own; NULL: there are not so many members. What is no multicast memory, or not
 * bound by all members, ends the process, as such an access does on a GPU. */
void *multicast_member(const void *address, unsigned member);
