/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_memory.h - memory of a GPU, as transports see it: somebody else's, who shares it.
 *
 * An adapter that may read and write it moves messages from device to device (GPUDirect). There are
 * two ways to tell an adapter of it: by a file that stands for it (dmabuf), or by its address,
 * where a module of the kernel knows what such addresses mean (peer memory).
 */
#ifndef RONDO_TRANSPORT_LINK_DEVICE_MEMORY_H
#define RONDO_TRANSPORT_LINK_DEVICE_MEMORY_H

#include "rondo/rondo.h"

#include <stdbool.h>

/* The way by which the payload of calls on CUDA streams gets to ranks of other nodes; it travels in
 * endpoints. */
enum device_way {
    DEVICE_STAGED, /* the host moves all of it, through a copy in pinned memory */
    DEVICE_SLOTS,  /* the device moves it from and to slots, which are pinned memory of the host */
    DEVICE_DMABUF, /* slots are memory of the device, which adapters know by a file (dmabuf) */
    DEVICE_PEER,   /* slots are memory of the device, which adapters know by its address */
    DEVICE_WAYS
};

struct device_memory {
    uint64_t address; /* page aligned; 0: none */
    size_t bytes;
    int file;        /* that stands for memory in which it lies; -1: there is none */
    uint64_t offset; /* of it, in that file */
};

struct device_source {
    void *context;
    const char *name; /* "CUDA device 0" */
    /* Memory of the device, with a file if that is wanted. */
    rondo_result (*take)(void *context, size_t bytes, bool file, struct device_memory *ret_memory);
    /* Takes device memory back that nobody uses any more; zeroes: there is nothing to take. */
    void (*give)(void *context, struct device_memory *memory);
    /* Copies, complete on return; what an adapter wrote before it was said to be there is seen. */
    rondo_result (*read)(void *context, void *to, uint64_t from, size_t bytes);
    rondo_result (*write)(void *context, uint64_t to, const void *from, size_t bytes);
};

#endif
