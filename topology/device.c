/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c - GPUs, NICs and RDMA devices: the table of them, and how far they are from each other.
 *
 * Devices hang in hwloc's tree below PCI functions, bridges and the part of the machine that they
 * are wired to. The distance of two is the kind of their lowest common ancestor. A GPU is a PCI
 * function of display class; it counts without a driver too, and is then called by its PCI address.
 */
#include "topology/inside.h"

#include "base/caller/descriptor.h"
#include "base/fail.h"

#include <dirent.h>
#include <limits.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#define VIRTUAL_NIC \
    "VirtualNIC" /* subtype of the Misc objects by which such NICs get into recorded machines */

enum { VENDOR_AMD = 0x1002, CLASS_DISPLAY = 0x03, CLASS_ACCELERATOR = 0x12 };

/*
 * Screens of management controllers and virtual machines: of display class, but they compute
 * nothing.
 */
static bool is_screen_only(unsigned vendor)
{
    static const unsigned vendors[] = {0x1a03, 0x102b, 0x1013, 0x1234, 0x15ad, 0x1b36, 0x80ee};

    for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++)
        if (vendors[i] == vendor)
            return true;
    return false;
}

static bool is_gpu(hwloc_obj_t pci)
{
    unsigned class = pci->attr->pcidev.class_id >> 8;
    unsigned vendor = pci->attr->pcidev.vendor_id;

    return (class == CLASS_DISPLAY && !is_screen_only(vendor)) ||
           (class == CLASS_ACCELERATOR && vendor == VENDOR_AMD);
}

static hwloc_obj_t pci_of(hwloc_obj_t object)
{
    while (object && object->type != HWLOC_OBJ_PCI_DEVICE)
        object = object->parent;
    return object;
}

/* Ranks names: the compute runtime's is better than the graphics driver's ("card0"). */
static int name_rank(const char *name)
{
    static const char *const better[] = {"cuda", "rsmi", "nvml", "ze"};
    int count = sizeof(better) / sizeof(better[0]);

    for (int i = 0; i < count; i++)
        if (!strncmp(name, better[i], strlen(better[i])))
            return i;
    return count;
}

static const char *gpu_name(hwloc_obj_t pci)
{
    const char *name = NULL;

    for (hwloc_obj_t child = pci->io_first_child; child; child = child->next_sibling)
        if (child->type == HWLOC_OBJ_OS_DEVICE && child->name &&
            (child->attr->osdev.type == HWLOC_OBJ_OSDEV_GPU ||
             child->attr->osdev.type == HWLOC_OBJ_OSDEV_COPROC) &&
            (!name || name_rank(child->name) < name_rank(name)))
            name = child->name;
    return name;
}

/* -1 when it is wired to several, or to none that is known. */
static int nearest_numa(const struct topology *topology, hwloc_obj_t object)
{
    hwloc_obj_t around = hwloc_get_non_io_ancestor_obj(topology->hwloc, object);

    if (!around || !around->nodeset || hwloc_bitmap_weight(around->nodeset) != 1)
        return -1;
    return topology_index_of(topology, around, HWLOC_OBJ_NUMANODE);
}

/* ---- The table ------------------------------------------------------------------------------- */

static void add(struct topology *topology, enum topology_device_kind kind, const char *name,
                hwloc_obj_t object)
{
    struct topology_device *device = &topology->device[topology->devices];
    hwloc_obj_t pci = pci_of(object);

    device->kind = kind;
    if (pci) {
        snprintf(device->pci, sizeof(device->pci), "%04x:%02x:%02x.%01x",
                 (unsigned)pci->attr->pcidev.domain & 0xffff, pci->attr->pcidev.bus,
                 pci->attr->pcidev.dev, pci->attr->pcidev.func & 0xf);
        device->link_GBps = (double)pci->attr->pcidev.linkspeed;
    }
    snprintf(device->name, sizeof(device->name), "%s", name ? name : device->pci);
    device->numa = nearest_numa(topology, object);
    topology->device_object[topology->devices++] = object;
}

static void add_all(struct topology *topology)
{
    hwloc_obj_t object = NULL;

    while ((object = hwloc_get_next_pcidev(topology->hwloc, object)))
        if (is_gpu(object))
            add(topology, TOPOLOGY_GPU, gpu_name(object), object);
    while ((object = hwloc_get_next_osdev(topology->hwloc, object))) {
        if (object->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK && object->name &&
            strcmp(object->name, "lo"))
            add(topology, TOPOLOGY_NIC, object->name, object);
        if (object->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS && object->name)
            add(topology, TOPOLOGY_RDMA, object->name, object);
    }
    while ((object = hwloc_get_next_obj_by_type(topology->hwloc, HWLOC_OBJ_MISC, object)))
        if (object->subtype && !strcmp(object->subtype, VIRTUAL_NIC) && object->name)
            add(topology, TOPOLOGY_NIC, object->name, object);
}

static int compare(const struct topology_device *a, const struct topology_device *b)
{
    int order = (int)a->kind - (int)b->kind;

    if (!order)
        order = strcmp(a->pci, b->pci);
    return order ? order : strverscmp(a->name, b->name);
}

/* Two parallel arrays of a few dozen entries: insertion keeps it short. */
static void sort(struct topology *topology)
{
    for (int i = 1; i < topology->devices; i++)
        for (int j = i; j > 0; j--) {
            struct topology_device device = topology->device[j];
            hwloc_obj_t object = topology->device_object[j];

            if (compare(&topology->device[j - 1], &device) <= 0)
                break;
            topology->device[j] = topology->device[j - 1];
            topology->device_object[j] = topology->device_object[j - 1];
            topology->device[j - 1] = device;
            topology->device_object[j - 1] = object;
        }
}

static bool has_network(hwloc_topology_t hwloc)
{
    hwloc_obj_t object = NULL;

    while ((object = hwloc_get_next_osdev(hwloc, object)))
        if (object->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK)
            return true;
    return false;
}

static bool is_up(const char *folder, const char *name)
{
    char path[PATH_MAX];
    unsigned flags = 0;
    FILE *file;

    if (snprintf(path, sizeof(path), "%s/%s/flags", folder, name) >= (int)sizeof(path))
        return false;
    file = descriptor_stream(path, "r");
    if (!file)
        return false;
    if (fscanf(file, "%x", &flags) != 1)
        flags = 0;
    fclose(file);
    return (flags & IFF_UP) && !(flags & IFF_LOOPBACK);
}

/*
 * Interfaces without a PCI device, as containers have them: in the tree they also get into recorded
 * machines.
 */
void topology_add_virtual_nics(hwloc_topology_t hwloc, const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, versionsort);

    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;

        if (name[0] != '.' && is_up(folder, name)) {
            hwloc_obj_t nic =
                hwloc_topology_insert_misc_object(hwloc, hwloc_get_root_obj(hwloc), name);

            if (nic)
                nic->subtype = strdup(VIRTUAL_NIC);
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

rondo_result topology_find_devices(struct topology *topology)
{
    hwloc_topology_t hwloc = topology->hwloc;
    size_t most;

    if (!topology->recorded && !has_network(hwloc))
        topology_add_virtual_nics(hwloc, "/sys/class/net");
    most = 1 + (size_t)hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_PCI_DEVICE) +
           (size_t)hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_OS_DEVICE) +
           (size_t)hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_MISC);
    topology->device = calloc(most, sizeof(*topology->device));
    topology->device_object = calloc(most, sizeof(hwloc_obj_t));
    if (!topology->device || !topology->device_object)
        return rondo_fail(RONDO_ERROR_MEMORY, "out of memory while reading the machine's devices");
    add_all(topology);
    sort(topology);
    return RONDO_OK;
}

rondo_result topology_add_gpu(struct topology *topology, const char *pci, const char *name)
{
    size_t count = (size_t)topology->devices + 1;
    struct topology_device *device = realloc(topology->device, count * sizeof(*device));
    hwloc_obj_t *object;

    if (device)
        topology->device = device;
    object = realloc(topology->device_object, count * sizeof(hwloc_obj_t));
    if (object)
        topology->device_object = object;
    if (!device || !object)
        return rondo_fail(RONDO_ERROR_MEMORY, "out of memory while reading the machine's devices");
    device += topology->devices;
    *device = (struct topology_device){.kind = TOPOLOGY_GPU, .numa = -1};
    snprintf(device->pci, sizeof(device->pci), "%s", pci);
    snprintf(device->name, sizeof(device->name), "%s", name);
    object[topology->devices++] = hwloc_get_root_obj(topology->hwloc);
    sort(topology);
    return RONDO_OK;
}

bool topology_is_in_tree(const struct topology *topology, int device)
{
    return topology->device_object[device] != hwloc_get_root_obj(topology->hwloc);
}

int topology_devices(const struct topology *topology)
{
    return topology->devices;
}

const struct topology_device *topology_device_at(const struct topology *topology, int index)
{
    return index >= 0 && index < topology->devices ? &topology->device[index] : NULL;
}

const char *topology_device_kind_name(enum topology_device_kind kind)
{
    static const char *const names[] = {"GPU", "NIC", "RDMA"};

    return names[kind];
}

/* ---- Distances ------------------------------------------------------------------------------- */

static hwloc_obj_t common_ancestor(hwloc_obj_t a, hwloc_obj_t b)
{
    for (; a; a = a->parent)
        for (hwloc_obj_t up = b; up; up = up->parent)
            if (up == a)
                return a;
    return NULL; /* not reached: all hang under the machine */
}

int topology_device_distance(const struct topology *topology, int device_a, int device_b)
{
    hwloc_obj_t around;

    if (device_a == device_b)
        return TOPOLOGY_SAME;
    around = common_ancestor(topology->device_object[device_a], topology->device_object[device_b]);
    if (around->type == HWLOC_OBJ_BRIDGE &&
        around->attr->bridge.upstream_type != HWLOC_OBJ_BRIDGE_PCI)
        return TOPOLOGY_NUMA;
    if (!around->cpuset) /* a switch, a PCI function, or a device under which the other hangs */
        return TOPOLOGY_CLOSE;
    if (hwloc_get_nbobjs_inside_cpuset_by_type(topology->hwloc, around->cpuset, HWLOC_OBJ_PACKAGE) >
        1)
        return TOPOLOGY_MACHINE;
    return hwloc_bitmap_weight(around->nodeset) == 1 ? TOPOLOGY_NUMA : TOPOLOGY_PACKAGE;
}

int topology_nearest(const struct topology *topology, enum topology_device_kind kind, int device)
{
    int nearest = -1;
    int nearest_distance = INT_MAX;

    if (!topology_is_in_tree(topology, device))
        return -1;
    for (int i = 0; i < topology->devices; i++) {
        int distance;

        if (topology->device[i].kind != kind || i == device)
            continue;
        distance = topology_device_distance(topology, device, i);
        if (distance < nearest_distance) {
            nearest = i;
            nearest_distance = distance;
        }
    }
    return nearest;
}

int topology_gpus(const struct topology *topology)
{
    int count = 0;

    while (count < topology->devices && topology->device[count].kind == TOPOLOGY_GPU)
        count++;
    return count;
}
