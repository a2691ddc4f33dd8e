/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch.c - kernels: the blocks of a grid run side by side, each on a thread of its own, as many
 * as the device holds.
 *
 * A block of a kernel of our own has one thread, others may have more (threads.h). Blocks beyond
 * those that are resident begin when others end, in order; so blocks may wait for each other as far
 * as all of them are resident, which a cooperative launch makes sure of.
 */
#include "standin/driver/base/call.h"
#include "standin/driver/base/devices.h"
#include "standin/driver/base/hold.h"
#include "standin/driver/calls/count.h"
#include "standin/driver/calls/multicast.h"
#include "standin/driver/calls/threads.h"
#include "standin/driver/context.h"
#include "standin/driver/module.h"
#include "standin/driver/pool.h"
#include "standin/driver/queue.h"
#include "standin/driver/stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMETERS = 64, ALIGNMENT = 64 };

struct kernel {
    struct op op;
    CUcontext context;
    struct CUfunc_st function; /* a copy: unloading waits for the work, the handle may go */
    unsigned grid[3], block[3];
    size_t shared_bytes;
    size_t parameter_count;
    size_t parameters[PARAMETERS]; /* offsets into the bytes */
    char *bytes;
};

/* One run of a kernel. */
struct run {
    const struct kernel *kernel;
    uint64_t blocks;
    _Atomic uint64_t next; /* block to begin */
    pthread_mutex_t lock;
    pthread_cond_t over;
    unsigned workers;
};

static unsigned resident(size_t shared_bytes)
{
    size_t fit = DEVICE_SHARED_BYTES / (shared_bytes + 1024);
    fit = fit < DEVICE_BLOCKS_EACH ? fit : DEVICE_BLOCKS_EACH;
    return (unsigned)fit;
}

static void run_block(const struct kernel *kernel, uint64_t index, void *shared)
{
    struct module_place place = {
        .shared = shared, .barrier = hold_begin(), .multicast = multicast_member};
    memcpy(place.grid, kernel->grid, sizeof place.grid);
    memcpy(place.block, kernel->block, sizeof place.block);
    place.block_index[0] = (unsigned)(index % kernel->grid[0]);
    place.block_index[1] = (unsigned)(index / kernel->grid[0] % kernel->grid[1]);
    place.block_index[2] = (unsigned)(index / kernel->grid[0] / kernel->grid[1]);
    void *parameters[PARAMETERS];
    for (size_t i = 0; i < kernel->parameter_count; i++)
        parameters[i] = kernel->bytes + kernel->parameters[i];
    threads_run(&kernel->function, &place, parameters);
}

static void run_blocks(void *argument)
{
    struct run *run = argument;
    size_t shared_bytes = run->kernel->shared_bytes;
    size_t rounded = (shared_bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    void *shared = shared_bytes ? aligned_alloc(ALIGNMENT, rounded) : NULL;
    for (;;) {
        uint64_t index = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
        if (index >= run->blocks)
            break;
        run_block(run->kernel, index, shared);
    }
    free(shared);
    pthread_mutex_lock(&run->lock);
    if (--run->workers == 0)
        pthread_cond_signal(&run->over);
    pthread_mutex_unlock(&run->lock);
}

static void count_running(CUcontext context, int change)
{
    call_lock();
    context->kernels += (unsigned)change;
    if (!context->kernels)
        pthread_cond_broadcast(&context->quiet);
    call_unlock();
}

static void run_kernel(struct op *op)
{
    const struct kernel *kernel = (struct kernel *)op;
    struct run run = {.kernel = kernel};
    count_running(kernel->context, 1);
    run.blocks = (uint64_t)kernel->grid[0] * kernel->grid[1] * kernel->grid[2];
    unsigned most = resident(kernel->shared_bytes) * device_multiprocessors();
    run.workers = run.blocks < most ? (unsigned)run.blocks : most;
    pthread_mutex_init(&run.lock, NULL);
    pthread_cond_init(&run.over, NULL);
    for (unsigned i = 1, others = run.workers; i < others; i++)
        pool_run(run_blocks, &run);
    run_blocks(&run);
    pthread_mutex_lock(&run.lock);
    while (run.workers)
        pthread_cond_wait(&run.over, &run.lock);
    pthread_mutex_unlock(&run.lock);
    pthread_cond_destroy(&run.over);
    pthread_mutex_destroy(&run.lock);
    count_running(kernel->context, -1);
}

static void close_kernel(struct op *op)
{
    free(((struct kernel *)op)->bytes);
}

static const struct op_kind kernel_kind = {CU_GRAPH_NODE_TYPE_KERNEL, run_kernel, close_kernel,
                                           NULL, NULL};

static bool take_parameters(struct kernel *kernel, void **parameters)
{
    const size_t *sizes = kernel->function.sizes;
    size_t total = ALIGNMENT;
    for (size_t i = 0; sizes[i] && i < PARAMETERS; i++) {
        kernel->parameters[i] = total - ALIGNMENT;
        total += (sizes[i] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        kernel->parameter_count++;
    }
    kernel->bytes = aligned_alloc(ALIGNMENT, total);
    for (size_t i = 0; kernel->bytes && i < kernel->parameter_count; i++)
        memcpy(kernel->bytes + kernel->parameters[i], parameters[i], sizes[i]);
    return kernel->bytes;
}

static CUresult check(const CUlaunchConfig *config, CUfunction function, CUstream stream,
                      bool cooperative)
{
    uint64_t blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ;
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    if (!module_has(function))
        return CUDA_ERROR_INVALID_HANDLE;
    if (module_context(function) != stream->context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!blocks || !threads || threads > function->threads || config->gridDimY > 65535 ||
        config->gridDimZ > 65535 || config->sharedMemBytes > (unsigned)function->dynamic_shared)
        return CUDA_ERROR_INVALID_VALUE;
    if (cooperative && blocks > resident(config->sharedMemBytes) * device_multiprocessors())
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return CUDA_SUCCESS;
}

/* A lane of any kernel needs so many bytes for its stack. */
static size_t stack_of_kernels(void)
{
    return (size_t)call_setting("STACK", 0);
}

static CUresult launch(const char *name, const CUlaunchConfig *config, CUfunction function,
                       void **parameters, bool cooperative)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(name, config->hStream, &stream);
    if (result)
        return result;
    result = check(config, function, stream, cooperative);
    if (!result && !stream->capture && stack_of_kernels() > stream->context->stack) {
        queue_drain_context(stream->context); /* as a driver does, to make more room */
        stream->context->stack = stack_of_kernels();
    }
    if (!result && function->sizes[0] && !parameters)
        result = CUDA_ERROR_INVALID_VALUE;
    struct kernel *kernel = result ? NULL : op_new(sizeof *kernel, &kernel_kind);
    if (!kernel) {
        call_unlock();
        return result ? result : CUDA_ERROR_OUT_OF_MEMORY;
    }
    kernel->context = stream->context;
    kernel->function = *function;
    memcpy(kernel->grid, &config->gridDimX, sizeof kernel->grid);
    memcpy(kernel->block, &config->blockDimX, sizeof kernel->block);
    kernel->shared_bytes = config->sharedMemBytes;
    if (!take_parameters(kernel, parameters)) {
        call_unlock();
        op_release(&kernel->op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    count_kernel(function->name);
    return stream_submit(stream, &kernel->op);
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void **parameters, void **extra)
{
    if (extra)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUlaunchConfig config = {.gridDimX = grid_x,
                             .gridDimY = grid_y,
                             .gridDimZ = grid_z,
                             .blockDimX = block_x,
                             .blockDimY = block_y,
                             .blockDimZ = block_z,
                             .sharedMemBytes = shared_bytes,
                             .hStream = stream};
    return launch(__func__, &config, function, parameters, false);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                          void **extra)
{
    if (!config || extra)
        return CUDA_ERROR_INVALID_VALUE;
    bool cooperative = false;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            cooperative = config->attrs[i].value.cooperative;
    }
    return launch(__func__, config, function, parameters, cooperative);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, CUstream stream,
                                   void **parameters)
{
    CUlaunchConfig config = {.gridDimX = grid_x,
                             .gridDimY = grid_y,
                             .gridDimZ = grid_z,
                             .blockDimX = block_x,
                             .blockDimY = block_y,
                             .blockDimZ = block_z,
                             .sharedMemBytes = shared_bytes,
                             .hStream = stream};
    return launch(__func__, &config, function, parameters, true);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                     int block_size, size_t shared_bytes)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (!blocks || block_size < 1)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    bool known = module_has(function);
    call_unlock();
    if (!known)
        return CUDA_ERROR_INVALID_HANDLE;
    *blocks = (unsigned)block_size <= function->threads ? (int)resident(shared_bytes) : 0;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                              int block_size, size_t shared_bytes,
                                                              unsigned flags)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, shared_bytes);
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (!value || attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    bool known = module_has(function);
    int dynamic_shared = known ? function->dynamic_shared : 0;
    int threads = known ? (int)function->threads : 0;
    call_unlock();
    if (!known)
        return CUDA_ERROR_INVALID_HANDLE;
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? threads
             : attribute == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES    ? (int)stack_of_kernels()
             : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS            ? 32
             : attribute == CU_FUNC_ATTRIBUTE_BINARY_VERSION      ? 90
             : attribute == CU_FUNC_ATTRIBUTE_PTX_VERSION         ? 90
             : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? dynamic_shared
                                                                            : 0;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    bool shared = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    if (shared && (value < 0 || value > DEVICE_SHARED_BYTES_BLOCK))
        return CUDA_ERROR_INVALID_VALUE;
    if (!shared && attribute != CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    bool known = module_has(function);
    if (known && shared)
        function->dynamic_shared = value;
    call_unlock();
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
