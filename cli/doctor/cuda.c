/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda.c - GPUs: the driver, every device with what calls on CUDA streams need of it, which
 * devices reach each other's memory, and by which links. What a device needs is tried.
 */
#include "cli/doctor/report.h"

#include "base/fail.h"
#include "base/setting.h"
#include "cuda/module.h"
#include "topology/topology.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static void say_no_driver(struct doctor_report *report)
{
    bool node = !access("/dev/nvidia0", F_OK) || !access("/dev/nvidiactl", F_OK);
    const char *sentence = fail_sentence();

    if (!node)
        doctor_say(report, DOCTOR_OK, "CUDA", NULL, "host memory only, no /dev/nvidia0: %s",
                   sentence);
    else
        doctor_say(report, DOCTOR_NOTE, "CUDA",
                   "`nvidia-smi` must work first; in a container: start it with the GPUs "
                   "(--gpus all)",
                   "there is a GPU's device file, but: %s", sentence);
}

static int attribute(const struct cuda_device *device, CUdevice_attribute wanted)
{
    int value = 0;

    return device->driver->cuDeviceGetAttribute(&value, wanted, device->handle) ? 0 : value;
}

/* A store and a wait for it by the stream itself, as calls use them. The context is current. */
static rondo_result try_memory_operations(const struct cuda_device *device)
{
    const struct cuda_driver *driver = device->driver;
    CUdeviceptr word = 0;
    CUstream stream = NULL;
    rondo_result result = cuda_result(driver->cuMemAlloc(&word, sizeof(uint32_t)), "cuMemAlloc");

    if (!result)
        result =
            cuda_result(driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (!result)
        result =
            cuda_result(driver->cuStreamWriteValue32(stream, word, 7, 0), "cuStreamWriteValue32");
    if (!result)
        result = cuda_result(driver->cuStreamWaitValue32(stream, word, 7, CU_STREAM_WAIT_VALUE_GEQ),
                             "cuStreamWaitValue32");
    if (!result)
        result = cuda_result(driver->cuStreamSynchronize(stream), "cuStreamSynchronize");
    if (stream)
        driver->cuStreamDestroy(stream);
    if (word)
        driver->cuMemFree(word);
    return result;
}

static rondo_result try_kernels(const struct cuda_device *device)
{
    struct cuda_launcher *launcher;
    rondo_result result = cuda_launcher_open(device, &launcher);

    if (!result)
        cuda_launcher_close(launcher);
    return result;
}

/* Says what is known of a device; its context is current. */
static void say_device(struct doctor_report *report, const struct cuda_device *device)
{
    size_t bytes = 0;
    char what[DOCTOR_TEXT_MAX / 2];

    device->driver->cuDeviceTotalMem(&bytes, device->handle);
    snprintf(what, sizeof(what), "%d is %s, %" PRIu64 " MiB, compute capability %d.%d",
             device->number, device->name, (uint64_t)bytes >> 20,
             attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
             attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    if (attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) != CU_COMPUTEMODE_DEFAULT)
        doctor_say(report, DOCTOR_NOTE, "GPU", "`nvidia-smi -c DEFAULT` lets several share it",
                   "%s; in a mode in which only one process may use it", what);
    else if (try_memory_operations(device))
        doctor_say(report, DOCTOR_NOTE, "GPU",
                   "calls on CUDA streams need memory operations of streams: update the driver, "
                   "or set RONDO_CUDA=host",
                   "%s; %s", what, fail_sentence());
    else if (!cuda_has_kernels())
        doctor_say(report, DOCTOR_NOTE, "GPU",
                   "calls on CUDA streams go by way of the host; build Rondo where nvcc is",
                   "%s; this build of Rondo has no kernels for it", what);
    else if (try_kernels(device))
        doctor_say(report, DOCTOR_NOTE, "GPU",
                   "Rondo's kernels are for compute capability 8.0 and later: else set "
                   "RONDO_CUDA=host",
                   "%s; %s", what, fail_sentence());
    else
        doctor_say(report, DOCTOR_OK, "GPU", NULL,
                   "%s; memory operations of streams and our kernels work", what);
}

static bool check_device(struct doctor_report *report, int number)
{
    struct cuda_device device;
    bool open = !cuda_device_open(number, &device);
    bool good = open && !cuda_enter(&device);

    if (good) {
        say_device(report, &device);
        cuda_leave(&device);
    } else {
        doctor_say(report, DOCTOR_NOTE, "GPU", "`nvidia-smi` must work first", "%d: %s", number,
                   fail_sentence());
    }
    if (open)
        cuda_device_close(&device);
    return good;
}

static void check_peers(struct doctor_report *report, const struct cuda_driver *driver, int count)
{
    char apart[200] = "";
    size_t used = 0;
    int pairs = 0;

    for (int a = 0; a < count; a++)
        for (int b = a + 1; b < count; b++) {
            int there = 0;
            int back = 0;

            driver->cuDeviceCanAccessPeer(&there, a, b);
            driver->cuDeviceCanAccessPeer(&back, b, a);
            if (there && back)
                continue;
            if (used < sizeof(apart))
                used += (size_t)snprintf(apart + used, sizeof(apart) - used, "%s%d-%d",
                                         pairs ? ", " : "", a, b);
            pairs++;
        }
    if (count > 1 && !pairs)
        doctor_say(report, DOCTOR_OK, "GPU peers", NULL, "all %d reach each other's memory", count);
    else if (pairs)
        doctor_say(report, DOCTOR_NOTE, "GPU peers",
                   "calls between them go by way of the host; see `nvidia-smi topo -p2p r`",
                   "%d of %d pairs do not reach each other's memory: %s", pairs,
                   count * (count - 1) / 2, apart);
}

/* ---- Links ----------------------------------------------------------------------------------- */

enum { KINDS = TOPOLOGY_LINK_MACHINE + 1, PCI_BYTES = 24 };

/* "1 other by 2 x NVLink, 2 others by a host bridge" */
static void say_links(struct doctor_report *report, const struct topology *topology,
                      char (*addresses)[PCI_BYTES], const int at[2])
{
    struct topology_link seen[KINDS * 4];
    int number = at[0], count = at[1], kinds = 0, others[KINDS * 4] = {0};
    char text[DOCTOR_TEXT_MAX / 2] = "";
    size_t used = 0;

    for (int peer = 0; peer < count; peer++) {
        const struct topology_link *link =
            topology_link_of(topology, addresses[number], addresses[peer], NULL);
        int i = 0;

        if (peer == number || !link)
            continue;
        while (i < kinds && (seen[i].kind != link->kind || seen[i].lanes != link->lanes))
            i++;
        if (i == KINDS * 4)
            continue;
        if (i == kinds)
            seen[kinds++] = *link;
        others[i]++;
    }
    for (int i = 0; i < kinds && used < sizeof(text); i++) {
        char words[64];

        topology_link_describe(&seen[i], words, sizeof(words));
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d other%s by %s",
                                 i ? ", " : "", others[i], others[i] == 1 ? "" : "s", words);
    }
    if (kinds)
        doctor_say(report, DOCTOR_OK, "GPU links", NULL, "%d: %s", number, text);
}

/* The first pair that NVML knows a reason of. */
static void say_obstacle(struct doctor_report *report, const struct topology *topology,
                         char (*addresses)[PCI_BYTES], int count)
{
    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++) {
            const struct topology_link *link =
                topology_link_of(topology, addresses[a], addresses[b], NULL);

            if (a == b || !link || !link->no_peer)
                continue;
            doctor_say(report, DOCTOR_NOTE, "GPU peers",
                       "in a virtual machine: let its host pass peer access on; on a board of "
                       "one's own: see ACS and the IOMMU in the firmware",
                       "by NVML, %d does not read the memory of %d: %s", a, b, link->no_peer);
            return;
        }
}

static void check_links(struct doctor_report *report, const struct cuda_driver *driver, int count)
{
    struct topology *topology = NULL;
    char addresses[64][PCI_BYTES] = {""};
    bool by_nvml;

    if (topology_open(NULL, &topology) || topology_find_links(topology)) {
        doctor_say(report, DOCTOR_NOTE, "NVML", "`lstopo` may say more", "%s", fail_sentence());
        topology_close(topology);
        return;
    }
    by_nvml = !strncmp(topology_link_source(topology), "NVML", 4);
    doctor_say(report, by_nvml || count < 2 ? DOCTOR_OK : DOCTOR_NOTE, "NVML",
               by_nvml || count < 2 ? NULL
                                    : "it comes with the driver; in a container: set "
                                      "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
               "links between GPUs by %s", topology_link_source(topology));
    count = count < 64 ? count : 64;
    for (int i = 0; i < count; i++)
        if (driver->cuDeviceGetPCIBusId(addresses[i], PCI_BYTES, i))
            addresses[i][0] = 0;
    for (int i = 0; i < count; i++)
        say_links(report, topology, addresses, (const int[2]){i, count});
    say_obstacle(report, topology, addresses, count);
    topology_close(topology);
}

void doctor_check_cuda(struct doctor_report *report)
{
    const struct cuda_driver *driver;
    int version = 0;
    int count = 0;

    doctor_say(report, DOCTOR_OK, "CUDA toolkit", NULL, "built with %d.%d", CUDA_VERSION / 1000,
               CUDA_VERSION % 1000 / 10);
    if (cuda_load(&driver)) {
        say_no_driver(report);
        return;
    }
    driver->cuDriverGetVersion(&version);
    driver->cuDeviceGetCount(&count);
    doctor_say(report, DOCTOR_OK, "CUDA", NULL,
               "driver for %d.%d, %d device%s; calls on CUDA streams: RONDO_CUDA is %s",
               version / 1000, version % 1000 / 10, count, count == 1 ? "" : "s",
               setting_read_word(SETTING_CUDA));
    for (int number = 0; number < count; number++)
        if (!check_device(report, number))
            return;
    check_peers(report, driver, count);
    check_links(report, driver, count);
}
