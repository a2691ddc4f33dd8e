/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * module.h - kernels that were compiled for the CPU into shared objects.
 *
 * The contract with device.h: kernel NAME is a symbol `void NAME(void **parameters)`, with `size_t
 * NAME_sizes[]`, the size of each parameter, then 0; the object has `void cuda_standin_enter(const
 * struct module_place *)`, called on the thread of a block before it starts.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* Where a thread of a grid is. device.h has the same struct under another name. */
struct module_place {
    unsigned grid[3], block[3], block_index[3], thread_index[3];
    void *shared;          /* dynamic shared memory of the block */
    void (*barrier)(void); /* to be called at each barrier, NULL: nothing */
};

struct CUfunc_st {
    struct CUfunc_st *next; /* in its module */
    CUmodule module;
    char *name;
    void (*run)(void **parameters);
    const size_t *sizes;
    void (*enter)(const struct module_place *place);
    int dynamic_shared; /* how much a launch may ask for (cuFuncSetAttribute) */
};

/* Under the lock: is it a kernel of a loaded module? And of which context? */
bool module_has(CUfunction function);
CUcontext module_context(CUfunction function);

/* Unloads all modules of the context, whose work is done. */
void module_close_all(CUcontext context);
