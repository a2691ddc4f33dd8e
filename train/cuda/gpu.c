/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu.c - the device of this process: opened, closed, and given kernels to run. */
#include "train/cuda/inside.h"

#include "train/common/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* image.S: for several kinds of devices; empty where no compiler for them was found. */
extern const unsigned char cuda_image[];
extern const uint64_t cuda_image_bytes;

enum { BLOCKS_EACH = 32, LEAST_LANES = 32 };

struct gpu gpu;

static const char *const names[GPU_KERNELS] = {
#define KERNEL_NAME(name) "rondo_train_" #name,
    TRAIN_KERNELS(KERNEL_NAME)
#undef KERNEL_NAME
};

/* ---- What goes wrong ------------------------------------------------------------------------- */

static bool keep(rondo_result result, const char *call, const char *text)
{
    if (!gpu.result) {
        gpu.result = result;
        snprintf(gpu.sentence, sizeof(gpu.sentence), "the GPU: %s failed: %s", call, text);
    }
    return false;
}

bool gpu_note(CUresult code, const char *call)
{
    const char *text = "unknown error";

    if (!code)
        return !gpu.result;
    driver.cuGetErrorString(code, &text);
    return keep(code == CUDA_ERROR_OUT_OF_MEMORY ? RONDO_ERROR_MEMORY : RONDO_ERROR_SYSTEM, call,
                text);
}

bool gpu_note_cublas(cublasStatus_t status, const char *call)
{
    return status ? keep(RONDO_ERROR_SYSTEM, call, cublas.cublasGetStatusString(status))
                  : !gpu.result;
}

rondo_result gpu_outcome(void)
{
    return gpu.result ? say(gpu.result, "%s", gpu.sentence) : RONDO_OK;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static rondo_result count_devices(int *ret_count)
{
    const char *name = "unknown error";
    rondo_result result = library_load_driver();
    CUresult code;
    int count = 0;

    if (result)
        return result;
    code = driver.cuInit(0);
    if (!code)
        code = driver.cuDeviceGetCount(&count);
    if (code) {
        driver.cuGetErrorName(code, &name);
        return say(RONDO_ERROR_UNSUPPORTED,
                   "NVIDIA's driver is installed but does not start (%s): is there a GPU in this "
                   "machine, and may this user open /dev/nvidia*?",
                   name);
    }
    if (!count)
        return say(RONDO_ERROR_UNSUPPORTED, "NVIDIA's driver finds no GPU in this machine");
    *ret_count = count;
    return RONDO_OK;
}

/* The file of kernels that is to be taken instead of our own if it has them, as for the library;
 * "": none. */
static const char *other_image(void)
{
    const char *path = getenv("RONDO_CUDA_IMAGE");

    return path ? path : "";
}

rondo_result gpu_check(void)
{
    int count;
    rondo_result result = count_devices(&count);

    if (!result)
        result = library_load_cublas();
    if (!result && !cuda_image_bytes && !*other_image())
        result = say(RONDO_ERROR_UNSUPPORTED,
                     "this program has no kernels for GPUs: build it where nvcc is");
    return result;
}

/* Launchers tell by environment which one of the ranks of this host it is. */
static int local_rank(void)
{
    static const char *const variables[] = {"RONDO_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                            "MPI_LOCALRANKID", "SLURM_LOCALID", "LOCAL_RANK"};

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        if (getenv(variables[i]))
            return atoi(getenv(variables[i]));
    return 0;
}

/* NULL: it cannot be read, which has been said. */
static void *read_image(const char *path)
{
    FILE *file = fopen(path, "rb");
    void *image = NULL;
    long bytes = 0;
    bool good = file && !fseek(file, 0, SEEK_END) && (bytes = ftell(file)) > 0 &&
                !fseek(file, 0, SEEK_SET) && (image = malloc((size_t)bytes)) &&
                fread(image, 1, (size_t)bytes, file) == (size_t)bytes;

    if (file)
        fclose(file);
    if (good)
        return image;
    free(image);
    say(RONDO_ERROR_SYSTEM, "the kernels in %s (RONDO_CUDA_IMAGE) cannot be read", path);
    return NULL;
}

static bool load_image(const void *image)
{
    return gpu_note(driver.cuModuleLoadData(&gpu.module, image),
                    "cuModuleLoadData, of the kernels,");
}

/* Our own kernels, or those of the other image if it has them: it may be for the library only. */
static rondo_result load_module(void)
{
    const char *path = other_image();
    CUfunction first;
    void *other;

    if (!*path)
        return load_image(cuda_image) ? RONDO_OK : gpu_outcome();
    other = read_image(path);
    if (!other)
        return RONDO_ERROR_SYSTEM;
    load_image(other);
    free(other); /* the driver has made its own of it */
    if (gpu.result ||
        driver.cuModuleGetFunction(&first, gpu.module, names[0]) != CUDA_ERROR_NOT_FOUND)
        return gpu_outcome();
    driver.cuModuleUnload(gpu.module);
    gpu.module = NULL;
    if (!cuda_image_bytes)
        return say(RONDO_ERROR_UNSUPPORTED,
                   "%s (RONDO_CUDA_IMAGE) has no kernels of rondo train, and neither has this "
                   "program: build it where nvcc is",
                   path);
    return load_image(cuda_image) ? RONDO_OK : gpu_outcome();
}

static rondo_result load_kernels(void)
{
    rondo_result result = load_module();
    int most = 1;

    if (result)
        return result;
    gpu.lanes = TRAIN_LANES;
    for (int i = 0; i < GPU_KERNELS && !gpu.result; i++) {
        if (gpu_note(driver.cuModuleGetFunction(&gpu.kernels[i], gpu.module, names[i]), names[i]))
            gpu_note(driver.cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                               gpu.kernels[i]),
                     "cuFuncGetAttribute");
        while (gpu.lanes > 1 && gpu.lanes > (unsigned)most)
            gpu.lanes /= 2;
    }
    return gpu_outcome();
}

static void open_streams(void)
{
    int processors = 1;

    gpu_note(driver.cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                         gpu.device),
             "cuDeviceGetAttribute");
    gpu.blocks = (unsigned)processors * BLOCKS_EACH;
    gpu_note(driver.cuStreamCreate(&gpu.passes, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    gpu_note(driver.cuStreamCreate(&gpu.exchanges, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

static void open_news(void)
{
    CUdeviceptr there = 0;
    void *here = NULL;

    gpu_note(driver.cuMemHostAlloc(&here, sizeof(*gpu.news), 0), "cuMemHostAlloc");
    gpu_note(driver.cuMemAlloc(&there, sizeof(*gpu.news)), "cuMemAlloc");
    gpu.news = here;
    gpu.device_news = (struct gpu_news *)(uintptr_t)there;
}

rondo_result gpu_open(void)
{
    int count = 0;
    rondo_result result = gpu_check();

    if (!result)
        result = count_devices(&count);
    if (result)
        return result;
    gpu_note(driver.cuDeviceGet(&gpu.device, local_rank() % count), "cuDeviceGet");
    gpu_note(driver.cuDevicePrimaryCtxRetain(&gpu.context, gpu.device), "cuDevicePrimaryCtxRetain");
    gpu_note(driver.cuCtxSetCurrent(gpu.context), "cuCtxSetCurrent");
    if (!gpu.result)
        open_streams();
    if (!gpu.result)
        open_news();
    if (!gpu.result && gpu_note_cublas(cublas.cublasCreate(&gpu.cublas), "cublasCreate"))
        gpu_note_cublas(cublas.cublasSetStream(gpu.cublas, gpu.passes), "cublasSetStream");
    return gpu.result ? gpu_outcome() : load_kernels();
}

void gpu_close(void)
{
    if (!gpu.context)
        return;
    gpu_marks_close();
    for (int i = 0; i < GPU_ROOMS; i++)
        gpu_arithmetic.release(gpu.rooms[i].memory);
    if (gpu.cublas)
        cublas.cublasDestroy(gpu.cublas);
    if (gpu.module)
        driver.cuModuleUnload(gpu.module);
    gpu_arithmetic.release(gpu.device_news);
    if (gpu.news)
        driver.cuMemFreeHost(gpu.news);
    if (gpu.passes)
        driver.cuStreamDestroy(gpu.passes);
    if (gpu.exchanges)
        driver.cuStreamDestroy(gpu.exchanges);
    driver.cuDevicePrimaryCtxRelease(gpu.device);
    memset(&gpu, 0, sizeof(gpu));
}

/* ---- Kernels --------------------------------------------------------------------------------- */

static void launch(enum gpu_kernel kernel, uint64_t blocks, unsigned lanes, const void *call)
{
    void *arguments[] = {(void *)(uintptr_t)call};

    if (!blocks || gpu.result)
        return;
    gpu_note(driver.cuLaunchKernel(gpu.kernels[kernel], (unsigned)blocks, 1, 1, lanes, 1, 1, 0,
                                   gpu.passes, arguments, NULL),
             names[kernel]);
}

void gpu_launch_rows(enum gpu_kernel kernel, uint64_t rows, int width, const void *call)
{
    unsigned lanes = gpu.lanes;

    while (lanes > LEAST_LANES && lanes / 2 >= (unsigned)width)
        lanes /= 2;
    launch(kernel, rows < gpu.blocks ? rows : gpu.blocks, lanes, call);
}

void gpu_launch_elements(enum gpu_kernel kernel, uint64_t count, const void *call)
{
    uint64_t blocks = (count + gpu.lanes - 1) / gpu.lanes;

    launch(kernel, blocks < gpu.blocks ? blocks : gpu.blocks, gpu.lanes, call);
}

void gpu_launch_blocks(enum gpu_kernel kernel, unsigned blocks, const void *call)
{
    launch(kernel, blocks, gpu.lanes, call);
}
