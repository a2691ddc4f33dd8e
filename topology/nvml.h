/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvml.h - what we ask of NVIDIA's management library, loaded when it is wanted.
 *
 * Declared here and not taken from nvml.h, which machines without the toolkit do not have; the
 * interface is one that NVIDIA keeps, so numbers and layouts below stay what they are. Functions
 * that came later are NULL where the library is older. Nobody outside the room includes this.
 */
#ifndef RONDO_TOPOLOGY_NVML_H
#define RONDO_TOPOLOGY_NVML_H

#include "rondo/rondo.h"

enum { NVML_DONE, NVML_NOT_SUPPORTED = 3, NVML_NVLINKS = 36 };

/* The nearest that two GPUs have in common. */
enum {
    NVML_COMMON_BOARD = 0,
    NVML_COMMON_SWITCH = 10,
    NVML_COMMON_SWITCHES = 20,
    NVML_COMMON_BRIDGE = 30,
    NVML_COMMON_NODE = 40,
    NVML_COMMON_SYSTEM = 50
};

enum { NVML_END_GPU = 0, NVML_END_SWITCH = 2 }; /* of an NVLink */
enum { NVML_PEER_READS = 0 };                   /* what is asked of a pair */
enum { NVML_FIELD_NVLINK_SPEED = 164 };         /* MB/s of a link, one way */

struct nvml_device;

struct nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char name[32];
};

struct nvml_field {
    unsigned field, scope; /* scope: the number of the link */
    long long timestamp, latency;
    int type;
    int result;
    union {
        double real;
        unsigned number;
        unsigned long long wide;
    } value;
};

/* Functions that every NVML has, with their types. */
/* clang-format off */
#define NVML_FUNCTIONS(use) \
    use(nvmlInit_v2, (void)) \
    use(nvmlDeviceGetCount_v2, (unsigned *count)) \
    use(nvmlDeviceGetHandleByIndex_v2, (unsigned index, struct nvml_device **device)) \
    use(nvmlDeviceGetPciInfo_v3, (struct nvml_device *device, struct nvml_pci *pci)) \
    use(nvmlDeviceGetTopologyCommonAncestor, \
        (struct nvml_device *a, struct nvml_device *b, int *common))
/* Functions that an NVML may lack. */
#define NVML_LATER_FUNCTIONS(use) \
    use(nvmlSystemGetNVMLVersion, (char *version, unsigned length)) \
    use(nvmlDeviceGetName, (struct nvml_device *device, char *name, unsigned length)) \
    use(nvmlDeviceGetMaxPcieLinkGeneration, (struct nvml_device *device, unsigned *generation)) \
    use(nvmlDeviceGetMaxPcieLinkWidth, (struct nvml_device *device, unsigned *width)) \
    use(nvmlDeviceGetNvLinkState, (struct nvml_device *device, unsigned link, int *active)) \
    use(nvmlDeviceGetNvLinkVersion, \
        (struct nvml_device *device, unsigned link, unsigned *version)) \
    use(nvmlDeviceGetNvLinkRemotePciInfo_v2, \
        (struct nvml_device *device, unsigned link, struct nvml_pci *pci)) \
    use(nvmlDeviceGetNvLinkRemoteDeviceType, \
        (struct nvml_device *device, unsigned link, int *type)) \
    use(nvmlDeviceGetP2PStatus, \
        (struct nvml_device *a, struct nvml_device *b, int question, int *status)) \
    use(nvmlDeviceGetFieldValues, \
        (struct nvml_device *device, int count, struct nvml_field *fields))
/* clang-format on */

struct nvml {
#define NVML_FIELD(name, arguments) int(*name) arguments;
    NVML_FUNCTIONS(NVML_FIELD)
    NVML_LATER_FUNCTIONS(NVML_FIELD)
#undef NVML_FIELD
    const char *(*nvmlErrorString)(int result); /* may be missing, too */
};

/* Load and start it, once per process. RONDO_ERROR_UNSUPPORTED with a sentence. Thread-safe. */
rondo_result nvml_load(const struct nvml **ret_nvml);

#endif
