/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * module.h - kernels that were compiled for the CPU into shared objects.
 *
 * The contract with device.h: kernel NAME is a symbol `void NAME(void **parameters)`, with `size_t
 * NAME_sizes[]`, the size of each parameter, then 0, and, where a block may have more than one
 * thread, `unsigned NAME_threads`, how many; the object has `void cuda_standin_enter(const
 * struct module_place *)`, called on the thread of a block before it starts or goes on.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* A place is where a thread of a grid is. device.h has the same struct under another name. */
struct module_place {
    unsigned grid[3], block[3], block_index[3], thread_index[3];
    void *shared;          /* dynamic shared memory of the block */
    void (*barrier)(void); /* to be called at each barrier, NULL: nothing */
    /* Where a byte of multicast memory is in each member's, calls/multicast.h */
    void *(*multicast)(const void *address, unsigned member);
};

struct CUfunc_st {
    struct CUfunc_st *next; /* in its module */
    CUmodule module;
    char *name;
    void (*run)(void **parameters);
    const size_t *sizes;
    unsigned threads; /* of a block at most */
    void (*enter)(const struct module_place *place);
    int dynamic_shared; /* how much a launch may ask for (cuFuncSetAttribute) */
};

/* Under the lock: is it a kernel of a loaded module? And of which context? */
bool module_has(CUfunction function);
CUcontext module_context(CUfunction function);

/* Unloads all modules of the context, whose work is done. */
void module_close_all(CUcontext context);
