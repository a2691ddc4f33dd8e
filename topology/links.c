/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * links.c - what is between two GPUs: NVLinks, counted one by one, or else the nearest PCI part
 * that both hang on.
 *
 * NVML knows both. Where it is missing, or the machine is a recorded one, the tree of hwloc tells
 * the PCI part, and NVLinks stay unknown. Rates are those of the hardware one way: of all NVLinks
 * between the two, or of the slower one's PCI link; half of that from NUMA node to NUMA node, where
 * the processors' own links are shared with everybody.
 */
#include "topology/inside.h"

#include "base/fail.h"
#include "topology/nvml.h"

#include <stdlib.h>
#include <string.h>

/* The answers of NVML about one GPU. */
struct gpu {
    struct nvml_device *device; /* NULL: NVML does not know it */
    double pci_GBps;
    int switched;          /* NVLinks to a switch */
    double switched_GBps;  /* of all of them */
    struct nvlinks *peers; /* [gpu]: those that end there */
};

struct nvlinks {
    int lanes;
    double GBps;
};

/* ---- Names ----------------------------------------------------------------------------------- */

static const struct {
    const char *words, *letter;
} kinds[] = {
    [TOPOLOGY_LINK_UNKNOWN] = {"unknown", "?"},
    [TOPOLOGY_LINK_SAME] = {"the same GPU or board", "="},
    [TOPOLOGY_LINK_NVLINK] = {"NVLink", "L"},
    [TOPOLOGY_LINK_NVSWITCH] = {"NVLink by a switch", "X"},
    [TOPOLOGY_LINK_SWITCH] = {"a PCI switch", "S"},
    [TOPOLOGY_LINK_SWITCHES] = {"PCI switches", "T"},
    [TOPOLOGY_LINK_BRIDGE] = {"a host bridge", "B"},
    [TOPOLOGY_LINK_NODE] = {"PCI within a NUMA node", "N"},
    [TOPOLOGY_LINK_MACHINE] = {"PCI across NUMA nodes", "M"},
};

void topology_link_describe(const struct topology_link *link, char *text, size_t size)
{
    if (link->lanes)
        snprintf(text, size, "%d x %s", link->lanes, kinds[link->kind].words);
    else
        snprintf(text, size, "%s", kinds[link->kind].words);
}

void topology_link_code(const struct topology_link *link, char *text, size_t size)
{
    if (link->lanes)
        snprintf(text, size, "%s%d", kinds[link->kind].letter, link->lanes);
    else
        snprintf(text, size, "%s", kinds[link->kind].letter);
}

/* "00000000:3B:00.0", "0000:3b:00.0": the same. */
static bool read_pci(const char *text, unsigned parts[3])
{
    return sscanf(text, "%x:%x:%x", &parts[0], &parts[1], &parts[2]) == 3;
}

static int gpu_at(const struct topology *topology, const char *pci)
{
    unsigned wanted[3], own[3];
    int gpus = topology_gpus(topology);

    for (int i = 0; i < gpus && read_pci(pci, wanted); i++)
        if (read_pci(topology->device[i].pci, own) && memcmp(own, wanted, sizeof(own)) == 0)
            return i;
    return -1;
}

/* ---- NVML ------------------------------------------------------------------------------------ */

static void write_pci(const struct nvml_pci *pci, char *text, size_t size)
{
    snprintf(text, size, "%04x:%02x:%02x.0", pci->domain & 0xffffff, pci->bus & 0xff,
             pci->device & 0xff);
}

/* GPUs of NVML that the table does not have yet. */
static rondo_result add_gpus(struct topology *topology, const struct nvml *nvml)
{
    unsigned count = 0;
    rondo_result result = RONDO_OK;

    nvml->nvmlDeviceGetCount_v2(&count);
    for (unsigned i = 0; i < count && !result; i++) {
        struct nvml_device *device;
        struct nvml_pci pci = {{0}, 0, 0, 0, 0, 0, {0}};
        char address[sizeof(topology->device->pci)];

        if (nvml->nvmlDeviceGetHandleByIndex_v2(i, &device) ||
            nvml->nvmlDeviceGetPciInfo_v3(device, &pci))
            continue;
        write_pci(&pci, address, sizeof(address));
        if (gpu_at(topology, address) < 0)
            result = topology_add_gpu(topology, address, address);
    }
    return result;
}

/* GB/s of a PCI link one way, after its encoding; 0: unknown. */
static double pci_GBps(unsigned generation, unsigned width)
{
    static const double lane[] = {0, 0.25, 0.5, 0.985, 1.969, 3.938, 7.563};
    const unsigned known = sizeof(lane) / sizeof(lane[0]);

    return (generation < known ? lane[generation] : lane[known - 1]) * width;
}

/* One way. The number of a version says nothing but which came later. */
static double nvlink_GBps(const struct nvml *nvml, struct nvml_device *device, unsigned link)
{
    struct nvml_field speed = {.field = NVML_FIELD_NVLINK_SPEED, .scope = link};
    unsigned version = 0;

    if (nvml->nvmlDeviceGetFieldValues && !nvml->nvmlDeviceGetFieldValues(device, 1, &speed) &&
        !speed.result && speed.value.number)
        return 1e-3 * speed.value.number;
    if (nvml->nvmlDeviceGetNvLinkVersion)
        nvml->nvmlDeviceGetNvLinkVersion(device, link, &version);
    if (version >= 7)
        return version == 7 ? 50 : 100;
    return version == 1 ? 20 : 25;
}

/* The GPU at the other end, `gpus`: a switch, -1: something else. */
static int other_end(const struct topology *topology, const struct nvml *nvml,
                     struct nvml_device *device, unsigned link)
{
    struct nvml_pci pci = {{0}, 0, 0, 0, 0, 0, {0}};
    char address[sizeof(topology->device->pci)];
    int type = -1;
    int gpu = -1;

    if (nvml->nvmlDeviceGetNvLinkRemoteDeviceType &&
        nvml->nvmlDeviceGetNvLinkRemoteDeviceType(device, link, &type))
        type = -1;
    if (type == NVML_END_SWITCH)
        return topology->linked;
    if (!nvml->nvmlDeviceGetNvLinkRemotePciInfo_v2 ||
        nvml->nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &pci))
        return -1;
    write_pci(&pci, address, sizeof(address));
    gpu = gpu_at(topology, address);
    if (gpu < 0 && type < 0) /* an old driver, which names what is not a GPU: a switch */
        return topology->linked;
    return gpu;
}

static void count_nvlinks(const struct topology *topology, const struct nvml *nvml, struct gpu *gpu)
{
    for (unsigned link = 0; link < NVML_NVLINKS && nvml->nvmlDeviceGetNvLinkState; link++) {
        int active = 0;
        int end;
        double rate;

        if (nvml->nvmlDeviceGetNvLinkState(gpu->device, link, &active) || !active)
            continue;
        end = other_end(topology, nvml, gpu->device, link);
        rate = nvlink_GBps(nvml, gpu->device, link);
        if (end == topology->linked) {
            gpu->switched++;
            gpu->switched_GBps += rate;
        } else if (end >= 0) {
            gpu->peers[end].lanes++;
            gpu->peers[end].GBps += rate;
        }
    }
}

static void ask_gpus(const struct topology *topology, const struct nvml *nvml, struct gpu *gpus)
{
    unsigned count = 0;

    nvml->nvmlDeviceGetCount_v2(&count);
    for (unsigned i = 0; i < count; i++) {
        struct nvml_device *device;
        struct nvml_pci pci = {{0}, 0, 0, 0, 0, 0, {0}};
        char address[sizeof(topology->device->pci)];
        unsigned generation = 0, width = 0;
        int at;

        if (nvml->nvmlDeviceGetHandleByIndex_v2(i, &device) ||
            nvml->nvmlDeviceGetPciInfo_v3(device, &pci))
            continue;
        write_pci(&pci, address, sizeof(address));
        at = gpu_at(topology, address);
        if (at < 0)
            continue;
        gpus[at].device = device;
        if (nvml->nvmlDeviceGetMaxPcieLinkGeneration && nvml->nvmlDeviceGetMaxPcieLinkWidth &&
            !nvml->nvmlDeviceGetMaxPcieLinkGeneration(device, &generation) &&
            !nvml->nvmlDeviceGetMaxPcieLinkWidth(device, &width))
            gpus[at].pci_GBps = pci_GBps(generation, width);
        count_nvlinks(topology, nvml, &gpus[at]);
    }
}

/* ---- Pairs ----------------------------------------------------------------------------------- */

static enum topology_link_kind kind_by_tree(const struct topology *topology, int a, int b)
{
    switch (topology_device_distance(topology, a, b)) {
    case TOPOLOGY_CLOSE:
        return TOPOLOGY_LINK_SWITCH;
    case TOPOLOGY_NUMA:
        return TOPOLOGY_LINK_NODE;
    default:
        return TOPOLOGY_LINK_MACHINE;
    }
}

static enum topology_link_kind kind_by_nvml(int common)
{
    if (common >= NVML_COMMON_SYSTEM)
        return TOPOLOGY_LINK_MACHINE;
    if (common >= NVML_COMMON_NODE)
        return TOPOLOGY_LINK_NODE;
    if (common >= NVML_COMMON_BRIDGE)
        return TOPOLOGY_LINK_BRIDGE;
    if (common >= NVML_COMMON_SWITCHES)
        return TOPOLOGY_LINK_SWITCHES;
    return common >= NVML_COMMON_SWITCH ? TOPOLOGY_LINK_SWITCH : TOPOLOGY_LINK_SAME;
}

static double less(double a, double b)
{
    return a < b ? a : b;
}

static struct topology_link by_pci(const struct topology *topology, const struct nvml *nvml,
                                   const struct gpu *gpus, const int pair[2])
{
    const struct gpu *a = &gpus[pair[0]], *b = &gpus[pair[1]];
    struct topology_link link = {.GBps = less(a->pci_GBps, b->pci_GBps)};
    int common = 0;

    if (nvml && a->device && b->device &&
        !nvml->nvmlDeviceGetTopologyCommonAncestor(a->device, b->device, &common))
        link.kind = kind_by_nvml(common);
    else
        link.kind = kind_by_tree(topology, pair[0], pair[1]);
    if (link.kind == TOPOLOGY_LINK_MACHINE)
        link.GBps /= 2;
    return link;
}

static struct topology_link between(const struct topology *topology, const struct nvml *nvml,
                                    const struct gpu *gpus, const int pair[2])
{
    const struct gpu *a = &gpus[pair[0]], *b = &gpus[pair[1]];
    const struct nvlinks *there = &a->peers[pair[1]], *back = &b->peers[pair[0]];

    if (pair[0] == pair[1])
        return (struct topology_link){.kind = TOPOLOGY_LINK_SAME};
    if (there->lanes && back->lanes)
        return (struct topology_link){.kind = TOPOLOGY_LINK_NVLINK,
                                      .lanes =
                                          there->lanes < back->lanes ? there->lanes : back->lanes,
                                      .GBps = less(there->GBps, back->GBps)};
    if (a->switched && b->switched)
        return (struct topology_link){.kind = TOPOLOGY_LINK_NVSWITCH,
                                      .lanes =
                                          a->switched < b->switched ? a->switched : b->switched,
                                      .GBps = less(a->switched_GBps, b->switched_GBps)};
    return by_pci(topology, nvml, gpus, pair);
}

/* NULL: it reads it, or there is nobody to ask. */
static const char *why_no_peer(const struct nvml *nvml, const struct gpu *a, const struct gpu *b)
{
    static const char *const clauses[] = {NULL,
                                          "the chipset does not support it",
                                          "a GPU does not support it",
                                          "their places on the bus do not support it",
                                          "a setting of the driver forbids it",
                                          "it is not supported",
                                          NULL};
    int status = 0;

    if (!nvml || !nvml->nvmlDeviceGetP2PStatus || a == b || !a->device || !b->device ||
        nvml->nvmlDeviceGetP2PStatus(a->device, b->device, NVML_PEER_READS, &status) ||
        status < 0 || status >= (int)(sizeof(clauses) / sizeof(clauses[0])))
        return NULL;
    return clauses[status];
}

static void free_gpus(struct gpu *gpus, int count)
{
    for (int i = 0; gpus && i < count; i++)
        free(gpus[i].peers);
    free(gpus);
}

static rondo_result fill(struct topology *topology, const struct nvml *nvml)
{
    size_t count = (size_t)topology_gpus(topology);
    struct gpu *gpus = calloc(count + 1, sizeof(*gpus));
    struct topology_link *link = calloc(count * count + 1, sizeof(*link));
    bool room = gpus && link;

    for (size_t i = 0; i < count && room; i++) {
        gpus[i].peers = calloc(count, sizeof(*gpus[i].peers));
        gpus[i].pci_GBps = topology->device[i].link_GBps;
        room = gpus[i].peers != NULL;
    }
    if (!room) {
        free_gpus(gpus, (int)count);
        free(link);
        return rondo_fail(RONDO_ERROR_MEMORY, "out of memory for the links of %zu GPUs", count);
    }
    topology->linked = (int)count;
    if (nvml)
        ask_gpus(topology, nvml, gpus);
    for (int a = 0; a < (int)count; a++)
        for (int b = 0; b < (int)count; b++) {
            struct topology_link *pair = &link[(size_t)a * count + (size_t)b];

            *pair = between(topology, nvml, gpus, (const int[2]){a, b});
            pair->no_peer = why_no_peer(nvml, &gpus[a], &gpus[b]);
        }
    free_gpus(gpus, (int)count);
    topology->link = link;
    return RONDO_OK;
}

/* ---- Outside --------------------------------------------------------------------------------- */

rondo_result topology_find_links(struct topology *topology)
{
    const struct nvml *nvml = NULL;
    char version[80] = "";
    rondo_result result = RONDO_OK;

    if (topology->recorded) {
        snprintf(topology->link_source, sizeof(topology->link_source),
                 "hwloc, of a recorded machine");
    } else if (nvml_load(&nvml)) {
        snprintf(topology->link_source, sizeof(topology->link_source), "hwloc alone: %s",
                 fail_sentence());
    } else {
        if (nvml->nvmlSystemGetNVMLVersion)
            nvml->nvmlSystemGetNVMLVersion(version, sizeof(version));
        snprintf(topology->link_source, sizeof(topology->link_source), "NVML%s%s",
                 version[0] ? " " : "", version);
        result = add_gpus(topology, nvml);
    }
    free(topology->link);
    topology->link = NULL;
    return result ? result : fill(topology, nvml);
}

const struct topology_link *topology_link(const struct topology *topology, int a, int b)
{
    if (!topology->link || a < 0 || b < 0 || a >= topology->linked || b >= topology->linked)
        return NULL;
    return &topology->link[a * topology->linked + b];
}

const char *topology_link_source(const struct topology *topology)
{
    return topology->link_source;
}

int topology_distance_of_devices(const void *context, int a, int b)
{
    const struct topology *topology = context;
    const struct topology_link *link = topology_link(topology, a, b);

    if (!link)
        return topology_device_distance(topology, a, b);
    if (link->kind == TOPOLOGY_LINK_NVLINK || link->kind == TOPOLOGY_LINK_NVSWITCH)
        return TOPOLOGY_LINKED;
    if (topology_is_in_tree(topology, a) && topology_is_in_tree(topology, b))
        return topology_device_distance(topology, a, b);
    switch (link->kind) {
    case TOPOLOGY_LINK_SAME:
        return a == b ? TOPOLOGY_SAME : TOPOLOGY_CLOSE;
    case TOPOLOGY_LINK_SWITCH:
    case TOPOLOGY_LINK_SWITCHES:
        return TOPOLOGY_CLOSE;
    case TOPOLOGY_LINK_BRIDGE:
    case TOPOLOGY_LINK_NODE:
        return TOPOLOGY_NUMA;
    default:
        return topology_packages(topology) > 1 ? TOPOLOGY_MACHINE : TOPOLOGY_PACKAGE;
    }
}

const struct topology_link *topology_link_of(const struct topology *topology, const char *pci_a,
                                             const char *pci_b, int *ret_distance)
{
    int a = gpu_at(topology, pci_a), b = gpu_at(topology, pci_b);
    const struct topology_link *link = topology_link(topology, a, b);

    if (link && ret_distance)
        *ret_distance = topology_distance_of_devices(topology, a, b);
    return link;
}
