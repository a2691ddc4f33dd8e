/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvml.c - what NVIDIA's management library says of a machine in a text file; see README.md.
 *
 * NVLinks of a GPU are numbered as the file names them: those to the first GPU first, then those to
 * switches, then the foreign ones. OLD leaves out what came later, BROKEN what nobody can do
 * without.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GPUS_MAX = 16,
    FAILURES_MAX = 8,
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    SYSTEM_APART = 50,
    DEVICE_GPU = 0,
    DEVICE_OTHER = 1,
    DEVICE_SWITCH = 2,
    FIELD_SPEED = 164
};

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char name[32];
};

struct field {
    unsigned field, scope;
    long long timestamp, latency;
    int type;
    int result;
    union {
        unsigned number;
        unsigned long long wide;
    } value;
};

struct gpu {
    int index;
    int links[GPUS_MAX];
    int switches, foreign;
    int common[GPUS_MAX];
    int no_peer[GPUS_MAX];
};

static struct gpu gpus[GPUS_MAX];
static int count, started;
static unsigned generation = 3, width = 16, version = 2, speed;
static struct {
    char name[48];
    int code;
} failures[FAILURES_MAX];
static int failure_count;

static int is_gpu(int index)
{
    return index >= 0 && index < count;
}

static int read_pair(const char *line, const char *format, int *a, int *b, int *value)
{
    return sscanf(line, format, a, b, value) == 3 && is_gpu(*a) && is_gpu(*b);
}

static void read_line(const char *line)
{
    int a, b, value;

    if (sscanf(line, "gpus %d", &value) == 1 && value >= 0 && value <= GPUS_MAX)
        count = value;
    sscanf(line, "pcie %u %u", &generation, &width);
    sscanf(line, "nvlink %u %u", &version, &speed);
    if (read_pair(line, "link %d %d %d", &a, &b, &value))
        gpus[a].links[b] = gpus[b].links[a] = value;
    if (read_pair(line, "common %d %d %d", &a, &b, &value))
        gpus[a].common[b] = gpus[b].common[a] = value;
    if (read_pair(line, "peer %d %d %d", &a, &b, &value))
        gpus[a].no_peer[b] = gpus[b].no_peer[a] = value;
    if (sscanf(line, "switch %d %d", &a, &value) == 2 && is_gpu(a))
        gpus[a].switches = value;
    if (sscanf(line, "foreign %d %d", &a, &value) == 2 && is_gpu(a))
        gpus[a].foreign = value;
    if (failure_count < FAILURES_MAX && sscanf(line, "fail %47s %d", failures[failure_count].name,
                                               &failures[failure_count].code) == 2)
        failure_count++;
}

static void read_machine(const char *name)
{
    FILE *file = fopen(name, "re");
    char line[128];

    for (int i = 0; i < GPUS_MAX; i++) {
        gpus[i].index = i;
        for (int j = 0; j < GPUS_MAX; j++)
            gpus[i].common[j] = SYSTEM_APART;
    }
    while (file && fgets(line, sizeof(line), file))
        read_line(line);
    if (file)
        fclose(file);
}

/* Tells what the function is to return before it does anything, 0: nothing. */
static int enter(const char *function)
{
    for (int i = 0; i < failure_count; i++)
        if (!strcmp(failures[i].name, function))
            return failures[i].code;
    return started ? SUCCESS : UNINITIALIZED;
}

static void fill(struct pci *pci, unsigned bus)
{
    memset(pci, 0, sizeof(*pci));
    pci->domain = 0xffff;
    pci->bus = bus;
    snprintf(pci->legacy, sizeof(pci->legacy), "FFFF:%02X:00.0", bus & 0xff);
    snprintf(pci->name, sizeof(pci->name), "0000FFFF:%02X:00.0", bus & 0xff);
}

/* A link goes to a GPU, by its index, or to one of these. */
enum { TO_SWITCH = -1, TO_OTHER = -2, TO_NOBODY = -3 };

static int end_of(const struct gpu *gpu, unsigned link)
{
    int left = (int)link;

    for (int peer = 0; peer < count; peer++) {
        if (left < gpu->links[peer])
            return peer;
        left -= gpu->links[peer];
    }
    if (left < gpu->switches)
        return TO_SWITCH;
    return left - gpu->switches < gpu->foreign ? TO_OTHER : TO_NOBODY;
}

const char *nvmlErrorString(int code)
{
    return code == NOT_SUPPORTED ? "Not Supported" : "an error that was asked for";
}

#ifndef BROKEN
int nvmlInit_v2(void)
{
    const char *name = getenv("NVML_STANDIN");

    if (!started && name)
        read_machine(name);
    started = 1;
    return enter(__func__);
}

int nvmlDeviceGetCount_v2(unsigned *ret_count)
{
    int code = enter(__func__);

    if (!code)
        *ret_count = (unsigned)count;
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **ret_gpu)
{
    int code = enter(__func__);

    if (code || !is_gpu((int)index))
        return code ? code : INVALID_ARGUMENT;
    *ret_gpu = &gpus[index];
    return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(struct gpu *gpu, struct pci *pci)
{
    int code = enter(__func__);

    if (!code)
        fill(pci, (unsigned)gpu->index + 1);
    return code;
}
#endif

int nvmlDeviceGetTopologyCommonAncestor(struct gpu *a, struct gpu *b, int *common)
{
    int code = enter(__func__);

    if (!code)
        *common = a->common[b->index];
    return code;
}

int nvmlDeviceGetName(struct gpu *gpu, char *name, unsigned length)
{
    int code = enter(__func__);

    if (!code)
        snprintf(name, length, "made-up GPU %d", gpu->index);
    return code;
}

int nvmlDeviceGetMaxPcieLinkGeneration(struct gpu *gpu, unsigned *ret_generation)
{
    (void)gpu;
    *ret_generation = generation;
    return enter(__func__);
}

int nvmlDeviceGetMaxPcieLinkWidth(struct gpu *gpu, unsigned *ret_width)
{
    (void)gpu;
    *ret_width = width;
    return enter(__func__);
}

int nvmlDeviceGetNvLinkState(struct gpu *gpu, unsigned link, int *active)
{
    int code = enter(__func__);

    if (code || end_of(gpu, link) == TO_NOBODY)
        return code ? code : NOT_SUPPORTED;
    *active = 1;
    return SUCCESS;
}

int nvmlDeviceGetNvLinkVersion(struct gpu *gpu, unsigned link, unsigned *ret_version)
{
    (void)gpu;
    (void)link;
    *ret_version = version;
    return enter(__func__);
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct gpu *gpu, unsigned link, struct pci *pci)
{
    int code = enter(__func__);
    int end = end_of(gpu, link);

    if (!code)
        fill(pci, end >= 0 ? (unsigned)end + 1 : 0xf0);
    return code;
}

#ifndef OLD
int nvmlSystemGetNVMLVersion(char *text, unsigned length)
{
    int code = enter(__func__);

    if (!code)
        snprintf(text, length, "13.0.stand-in");
    return code;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(struct gpu *gpu, unsigned link, int *type)
{
    int code = enter(__func__);
    int end = end_of(gpu, link);

    if (!code)
        *type = end >= 0 ? DEVICE_GPU : end == TO_SWITCH ? DEVICE_SWITCH : DEVICE_OTHER;
    return code;
}

int nvmlDeviceGetP2PStatus(struct gpu *a, struct gpu *b, int question, int *status)
{
    int code = enter(__func__);

    (void)question;
    if (!code)
        *status = a->no_peer[b->index];
    return code;
}

int nvmlDeviceGetFieldValues(struct gpu *gpu, int fields, struct field *field)
{
    int code = enter(__func__);

    for (int i = 0; i < fields && !code; i++) {
        int known =
            field[i].field == FIELD_SPEED && speed && end_of(gpu, field[i].scope) != TO_NOBODY;

        field[i].result = known ? SUCCESS : NOT_SUPPORTED;
        field[i].value.number = known ? speed : 0;
    }
    return code;
}
#endif
