/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpudirect.c - could RDMA adapters use memory of the GPUs? What the driver, the adapters
 * and the kernel say about it; whether bytes arrive is tried when a job starts.
 */
#include "cli/doctor/report.h"

#include "base/setting.h"
#include "cuda/device.h"
#include "topology/rdma.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* These functions of libibverbs do without its types. */
struct library {
    void *handle;
    void **(*list)(int *count);
    void (*free_list)(void **list);
    const char *(*name)(void *device);
    void *(*open)(void *device);
    int (*close)(void *context);
    void *(*alloc_pd)(void *context);
    int (*dealloc_pd)(void *pd);
    void *(*reg_dmabuf_mr)(void *pd, uint64_t offset, size_t bytes, uint64_t iova, int fd,
                           int access);
};

static bool load(struct library *library)
{
    static const struct {
        const char *name;
        size_t at;
    } wanted[] = {{"ibv_get_device_list", offsetof(struct library, list)},
                  {"ibv_free_device_list", offsetof(struct library, free_list)},
                  {"ibv_get_device_name", offsetof(struct library, name)},
                  {"ibv_open_device", offsetof(struct library, open)},
                  {"ibv_close_device", offsetof(struct library, close)},
                  {"ibv_alloc_pd", offsetof(struct library, alloc_pd)},
                  {"ibv_dealloc_pd", offsetof(struct library, dealloc_pd)},
                  {"ibv_reg_dmabuf_mr", offsetof(struct library, reg_dmabuf_mr)}};
    bool all = true;

    library->handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]) && library->handle; i++) {
        void *function = dlsym(library->handle, wanted[i].name);

        memcpy((char *)library + wanted[i].at, &function, sizeof(function));
        all &= function != NULL;
    }
    return library->handle && all;
}

/* A file that is none: who knows dmabuf says so, others say that they do not. */
static bool refuses_bad_file(const struct library *library, void *device)
{
    enum { LOCAL_WRITE = 1, PAGE = 4096 };
    void *context = library->open(device);
    void *pd = context ? library->alloc_pd(context) : NULL;
    bool knows = false;

    errno = 0;
    if (pd) {
        knows = !library->reg_dmabuf_mr(pd, 0, PAGE, 0, -1, LOCAL_WRITE) && errno == EBADF;
        library->dealloc_pd(pd);
    }
    if (context)
        library->close(context);
    return knows;
}

static bool knows_dmabuf(const char *name)
{
    struct library library = {0};
    bool knows = false;
    int count = 0;
    void **list;

    if (!load(&library))
        return false;
    list = library.list(&count);
    for (int i = 0; list && i < count; i++)
        if (strcmp(library.name(list[i]), name) == 0)
            knows = refuses_bad_file(&library, list[i]);
    if (list)
        library.free_list(list);
    return knows;
}

static bool knows_peer_memory(void)
{
    return !access("/sys/module/nvidia_peermem", F_OK) ||
           !access("/sys/kernel/mm/memory_peers", F_OK);
}

static bool has(const struct cuda_driver *driver, int number, CUdevice_attribute which)
{
    CUdevice device;
    int value = 0;

    return !driver->cuDeviceGet(&device, number) &&
           !driver->cuDeviceGetAttribute(&value, which, device) && value;
}

static void say_pair(struct doctor_report *report, const struct cuda_driver *driver, int number,
                     const char *adapter)
{
    const char *remedy = "update the adapter's driver (rdma-core, MLNX_OFED), or `modprobe "
                         "nvidia-peermem`";

    if (!has(driver, number, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED))
        doctor_say(report, DOCTOR_OK, "GPUDirect", NULL,
                   "%s and GPU %d: the GPU does not support it; its buffers are staged between "
                   "nodes",
                   adapter, number);
    else if (has(driver, number, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) && knows_dmabuf(adapter))
        doctor_say(report, DOCTOR_OK, "GPUDirect", NULL,
                   "%s and GPU %d: by dmabuf, if the test at a job's start passes", adapter,
                   number);
    else if (knows_peer_memory())
        doctor_say(report, DOCTOR_OK, "GPUDirect", NULL,
                   "%s and GPU %d: by peer memory, if the test at a job's start passes", adapter,
                   number);
    else
        doctor_say(report, DOCTOR_NOTE, "GPUDirect", remedy,
                   "%s and GPU %d: neither by dmabuf nor by peer memory; its buffers are staged "
                   "between nodes",
                   adapter, number);
}

void doctor_check_gpudirect(struct doctor_report *report)
{
    const struct cuda_driver *driver;
    struct rdma_port *ports = NULL;
    int gpus = 0, count = 0;

    if (rdma_list("/sys/class/infiniband", &ports, &count) || !count)
        return;
    if (!cuda_load(&driver))
        driver->cuDeviceGetCount(&gpus);
    if (gpus && strcmp(setting_read_word(SETTING_GPUDIRECT), "off") == 0)
        doctor_say(report, DOCTOR_OK, "GPUDirect", NULL, "RONDO_GPUDIRECT is off");
    else
        for (int i = 0; i < count; i++)
            for (int gpu = 0; gpu < gpus; gpu++)
                if (ports[i].active && (!i || strcmp(ports[i].device, ports[i - 1].device) != 0))
                    say_pair(report, driver, gpu, ports[i].device);
    rdma_list_free(ports, count);
}
