/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cudart_kernels.c - programs with kernels of their own, as nvcc makes them: registration,
 * launches, symbols.
 *
 * Such a program registers its images, and for each kernel and variable an address of the host that
 * stands for it, with the name that it has in the image. The images are for GPUs; shared objects
 * that CUDA_STANDIN_KERNELS names (with colons between them) have versions for the CPU under the
 * same names (CUDA_HOST_KERNEL in device.h). Each context loads all of them when it needs the
 * first.
 */
#include "standin/runtime/cudart.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* nvcc's code calls these beside cuda_runtime_api.h. */
void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
char __cudaInitModule(void **handle);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int external, size_t size, int constant, int global);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int threads, void *thread, void *block, dim3 *block_size, dim3 *grid,
                            int *warp);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream);

/* A kernel or a variable. */
struct symbol {
    struct symbol *next;
    const void *host;
    const char *name; /* of the program */
    bool missed;      /* that it has no version was said */
};

struct module {
    struct module *next;
    CUcontext context;
    CUmodule module;
};

enum { CONFIGURATIONS = 16, PATH_BYTES = 4096 };

struct configuration {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct symbol *symbols;
static struct module *modules;
static _Thread_local struct configuration configurations[CONFIGURATIONS];
static _Thread_local unsigned configured;

static void add_symbol(const void *host, const char *name)
{
    struct symbol *symbol = calloc(1, sizeof *symbol);
    if (!symbol)
        abort(); /* nobody could be told */
    *symbol = (struct symbol){.host = host, .name = name};
    pthread_mutex_lock(&lock);
    symbol->next = symbols;
    symbols = symbol;
    pthread_mutex_unlock(&lock);
}

/* The address of the host may also be the handle that __cudaGetKernel() gave. */
static struct symbol *find_symbol(const void *host)
{
    pthread_mutex_lock(&lock);
    struct symbol *symbol = symbols;
    while (symbol && symbol->host != host && symbol != host)
        symbol = symbol->next;
    pthread_mutex_unlock(&lock);
    return symbol;
}

void **__cudaRegisterFatBinary(void *image)
{
    return calloc(1, sizeof image);
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
}

void __cudaUnregisterFatBinary(void **handle)
{
    free(handle);
}

char __cudaInitModule(void **handle)
{
    return 1;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int threads, void *thread, void *block, dim3 *block_size, dim3 *grid,
                            int *warp)
{
    add_symbol(host, name);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global)
{
    add_symbol(host, name);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int external, size_t size, int constant, int global)
{
    fprintf(stderr, "CUDA stand-in: managed variables are not there: %s\n", name);
    abort();
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st *stream)
{
    if (configured == CONFIGURATIONS)
        return 1;
    configurations[configured++] = (struct configuration){grid, block, shared_bytes, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    if (!configured)
        return runtime_result((CUresult)cudaErrorMissingConfiguration);
    const struct configuration *last = &configurations[--configured];
    *grid = last->grid;
    *block = last->block;
    *shared_bytes = last->shared_bytes;
    *(cudaStream_t *)stream = last->stream;
    return cudaSuccess;
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    long length = file && !fseek(file, 0, SEEK_END) ? ftell(file) : -1;
    char *bytes = length > 0 ? malloc((size_t)length) : NULL;
    bool good = bytes && !fseek(file, 0, SEEK_SET) &&
                fread(bytes, 1, (size_t)length, file) == (size_t)length;
    if (file)
        fclose(file);
    if (good)
        return bytes;
    free(bytes);
    return NULL;
}

/* Under the lock. */
static void load(CUcontext context, const char *path)
{
    struct module *module = calloc(1, sizeof *module);
    char *image = read_file(path);
    if (module && image && !cuModuleLoadData(&module->module, image)) {
        module->context = context;
        module->next = modules;
        modules = module;
    } else {
        fprintf(stderr, "CUDA stand-in: %s of CUDA_STANDIN_KERNELS can't be loaded\n", path);
        free(module);
    }
    free(image);
}

static void load_all(CUcontext context)
{
    char path[PATH_BYTES];
    const char *list = getenv("CUDA_STANDIN_KERNELS");
    while (list && *list) {
        size_t length = strcspn(list, ":");
        snprintf(path, sizeof path, "%.*s", (int)length, list);
        if (length)
            load(context, path);
        list += length + (list[length] == ':');
    }
}

static struct module *next_of(struct module *module, CUcontext context)
{
    while (module && module->context != context)
        module = module->next;
    return module;
}

void runtime_forget_kernels(CUcontext context)
{
    pthread_mutex_lock(&lock);
    for (struct module **link = &modules; *link;) {
        struct module *module = *link;
        if (module->context != context) {
            link = &module->next;
            continue;
        }
        *link = module->next;
        free(module);
    }
    pthread_mutex_unlock(&lock);
}

/* Finds the symbol in the thread's context: a function, or a variable where `function` is NULL. */
static CUresult look_up(struct symbol *symbol, CUfunction *function, CUdeviceptr *address,
                        size_t *size)
{
    CUcontext context = NULL;
    CUresult result = cuCtxGetCurrent(&context);
    if (result)
        return result;
    result = CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&lock);
    if (!next_of(modules, context))
        load_all(context);
    struct module *module = next_of(modules, context);
    for (; module && result; module = next_of(module->next, context))
        result = function ? cuModuleGetFunction(function, module->module, symbol->name)
                          : cuModuleGetGlobal(address, size, module->module, symbol->name);
    if (result && !symbol->missed)
        fprintf(stderr, "CUDA stand-in: %s has no version for the CPU in CUDA_STANDIN_KERNELS\n",
                symbol->name);
    symbol->missed |= result != CUDA_SUCCESS;
    pthread_mutex_unlock(&lock);
    return result;
}

static cudaError_t find_function(const void *host, CUfunction *function)
{
    cudaError_t error = runtime_enter();
    if (error)
        return error;
    struct symbol *symbol = find_symbol(host);
    if (!symbol)
        return runtime_result((CUresult)cudaErrorInvalidDeviceFunction);
    return look_up(symbol, function, NULL, NULL) ? runtime_result(CUDA_ERROR_NO_BINARY_FOR_GPU)
                                                 : cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    *kernel = (cudaKernel_t)(void *)find_symbol(host);
    return runtime_result(*kernel ? CUDA_SUCCESS : (CUresult)cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *host,
                                void **arguments)
{
    CUfunction function = NULL;
    if (!config)
        return runtime_result(CUDA_ERROR_INVALID_VALUE);
    cudaError_t error = find_function(host, &function);
    if (error)
        return error;
    CUlaunchConfig same = {.gridDimX = config->gridDim.x,
                           .gridDimY = config->gridDim.y,
                           .gridDimZ = config->gridDim.z,
                           .blockDimX = config->blockDim.x,
                           .blockDimY = config->blockDim.y,
                           .blockDimZ = config->blockDim.z,
                           .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
                           .hStream = config->stream,
                           .attrs = (CUlaunchAttribute *)(void *)config->attrs,
                           .numAttrs = config->numAttrs};
    return runtime_result(cuLaunchKernelEx(&same, function, arguments, NULL));
}

cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t stream)
{
    cudaLaunchConfig_t config = {
        .gridDim = grid, .blockDim = block, .dynamicSmemBytes = shared_bytes, .stream = stream};
    return cudaLaunchKernelExC(&config, host, arguments);
}

cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **arguments,
                                        size_t shared_bytes, cudaStream_t stream)
{
    cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeCooperative};
    attribute.val.cooperative = 1;
    cudaLaunchConfig_t config = {.gridDim = grid,
                                 .blockDim = block,
                                 .dynamicSmemBytes = shared_bytes,
                                 .stream = stream,
                                 .attrs = &attribute,
                                 .numAttrs = 1};
    return cudaLaunchKernelExC(&config, host, arguments);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *host)
{
    CUfunction function = NULL;
    cudaError_t error = find_function(host, &function);
    if (error || !attributes)
        return error ? error : runtime_result(CUDA_ERROR_INVALID_VALUE);
    memset(attributes, 0, sizeof *attributes);
    cuFuncGetAttribute(&attributes->maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                       function);
    cuFuncGetAttribute(&attributes->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    cuFuncGetAttribute(&attributes->binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function);
    cuFuncGetAttribute(&attributes->ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION, function);
    cuFuncGetAttribute(&attributes->maxDynamicSharedSizeBytes,
                       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute attribute, int value)
{
    CUfunction function = NULL;
    cudaError_t error = find_function(host, &function);
    return error ? error
                 : runtime_result(
                       cuFuncSetAttribute(function, (CUfunction_attribute)attribute, value));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host,
                                                          int threads, size_t shared_bytes)
{
    CUfunction function = NULL;
    cudaError_t error = find_function(host, &function);
    return error ? error
                 : runtime_result(cuOccupancyMaxActiveBlocksPerMultiprocessor(
                       blocks, function, threads, shared_bytes));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host,
                                                                   int threads, size_t shared_bytes,
                                                                   unsigned flags)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, host, threads, shared_bytes);
}

static cudaError_t find_variable(const void *host, CUdeviceptr *address, size_t *size)
{
    cudaError_t error = runtime_enter();
    struct symbol *symbol = error ? NULL : find_symbol(host);
    if (error)
        return error;
    bool found = symbol && !look_up(symbol, NULL, address, size);
    return runtime_result(found ? CUDA_SUCCESS : (CUresult)cudaErrorInvalidSymbol);
}

cudaError_t cudaGetSymbolAddress(void **address, const void *host)
{
    CUdeviceptr found = 0;
    size_t size = 0;
    cudaError_t error = find_variable(host, &found, &size);
    if (!error)
        *address = (void *)(size_t)found;
    return error;
}

cudaError_t cudaGetSymbolSize(size_t *size, const void *host)
{
    CUdeviceptr address = 0;
    return find_variable(host, &address, size);
}

/* The address of what is to be copied, if the variable is as long as that. */
static cudaError_t place(const void *host, size_t count, size_t offset, void **address)
{
    CUdeviceptr found = 0;
    size_t size = 0;
    cudaError_t error = find_variable(host, &found, &size);
    if (error)
        return error;
    *address = (void *)(size_t)(found + offset);
    bool fits = offset <= size && count <= size - offset;
    return fits ? cudaSuccess : runtime_result(CUDA_ERROR_INVALID_VALUE);
}

cudaError_t cudaMemcpyToSymbol(const void *host, const void *from, size_t count, size_t offset,
                               enum cudaMemcpyKind kind)
{
    void *to = NULL;
    cudaError_t error = place(host, count, offset, &to);
    return error ? error : cudaMemcpy(to, from, count, kind);
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *host, size_t count, size_t offset,
                                 enum cudaMemcpyKind kind)
{
    void *from = NULL;
    cudaError_t error = place(host, count, offset, &from);
    return error ? error : cudaMemcpy(to, from, count, kind);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *host, const void *from, size_t count, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *to = NULL;
    cudaError_t error = place(host, count, offset, &to);
    return error ? error : cudaMemcpyAsync(to, from, count, kind, stream);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *host, size_t count, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *from = NULL;
    cudaError_t error = place(host, count, offset, &from);
    return error ? error : cudaMemcpyAsync(to, from, count, kind, stream);
}
