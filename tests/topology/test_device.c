/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_device.c - GPUs, NICs and RDMA devices of recorded machines, which is near which, and NICs
 * without PCI.
 */
#include "recorded.h"

#include "base/fail.h"
#include "topology/inside.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

Test(device, gpus_without_a_driver_are_called_by_their_pci_address)
{
    struct topology *topology = recorded_open("gpu8_two_sockets");
    const struct topology_device *gpu = topology_device_at(topology, 0);

    cr_expect_eq(topology_gpus(topology), 8);
    cr_expect_eq(gpu->kind, TOPOLOGY_GPU);
    cr_expect_str_eq(gpu->name, "0000:18:00.0");
    cr_expect_str_eq(gpu->pci, "0000:18:00.0");
    cr_expect_eq(gpu->numa, 0);
    cr_expect_eq(topology_device_at(topology, 7)->numa, 1);
    cr_expect(gpu->link_GBps > 63.0 && gpu->link_GBps < 63.1);
    topology_close(topology);
}

Test(device, gpus_with_a_driver_are_called_as_cuda_calls_them)
{
    struct topology *topology = recorded_open("gpu4_one_socket");

    cr_expect_eq(topology_gpus(topology), 4);
    cr_expect_str_eq(topology_device_at(topology, 0)->name, "cuda0");
    cr_expect_str_eq(topology_device_at(topology, 3)->name, "cuda3");
    topology_close(topology);
}

Test(device, the_screen_of_the_management_controller_is_no_gpu)
{
    struct topology *topology = recorded_open("gpu8_two_sockets");

    for (int i = 0; i < topology_devices(topology); i++)
        cr_expect_str_neq(topology_device_at(topology, i)->pci, "0000:03:00.0");
    cr_expect_eq(topology_devices(topology), 8 + 4 + 4);
    topology_close(topology);
}

Test(device, the_nearest_nic_of_every_gpu_is_on_its_switch)
{
    struct topology *topology = recorded_open("gpu8_two_sockets");

    for (int gpu = 0; gpu < 8; gpu++) {
        char nic[32], rdma[32];
        int nearest = topology_nearest(topology, TOPOLOGY_NIC, gpu);

        snprintf(nic, sizeof(nic), "eth%d", gpu / 2);
        snprintf(rdma, sizeof(rdma), "mlx5_%d", gpu / 2);
        cr_assert_geq(nearest, 0);
        cr_expect_str_eq(topology_device_at(topology, nearest)->name, nic);
        cr_expect_eq(topology_device_distance(topology, gpu, nearest), TOPOLOGY_CLOSE);
        nearest = topology_nearest(topology, TOPOLOGY_RDMA, gpu);
        cr_assert_geq(nearest, 0);
        cr_expect_str_eq(topology_device_at(topology, nearest)->name, rdma);
        cr_expect_eq(topology_nearest(topology, TOPOLOGY_GPU, gpu), gpu ^ 1);
    }
    topology_close(topology);
}

Test(device, distance_grows_from_switch_to_numa_node_to_package)
{
    struct topology *topology = recorded_open("gpu8_two_sockets");

    cr_expect_eq(topology_device_distance(topology, 0, 0), TOPOLOGY_SAME);
    cr_expect_eq(topology_device_distance(topology, 0, 1), TOPOLOGY_CLOSE);
    cr_expect_eq(topology_device_distance(topology, 0, 2), TOPOLOGY_NUMA);
    cr_expect_eq(topology_device_distance(topology, 3, 4), TOPOLOGY_MACHINE);
    cr_expect_eq(topology_device_distance(topology, recorded_device(topology, "eth0"),
                                          recorded_device(topology, "mlx5_0")),
                 TOPOLOGY_CLOSE);
    topology_close(topology);
}

Test(device, both_ports_of_a_nic_are_close_and_gpus_on_root_ports_are_not)
{
    struct topology *topology = recorded_open("gpu4_one_socket");

    cr_expect_eq(topology_device_distance(topology, recorded_device(topology, "enp161s0f0"),
                                          recorded_device(topology, "enp161s0f1")),
                 TOPOLOGY_CLOSE);
    cr_expect_eq(topology_device_distance(topology, 0, 1), TOPOLOGY_NUMA);
    cr_expect_eq(topology_nearest(topology, TOPOLOGY_RDMA, 0), -1);
    topology_close(topology);
}

static void interface(const char *folder, const char *name, const char *flags)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    cr_assert_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/%s/flags", folder, name);
    file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(flags, file);
    fclose(file);
}

/* Two packages of two cores each, without devices. */
static hwloc_topology_t plain_machine(void)
{
    hwloc_topology_t hwloc;

    cr_assert_eq(hwloc_topology_init(&hwloc), 0);
    hwloc_topology_set_type_filter(hwloc, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_ALL);
    cr_assert_eq(hwloc_topology_set_synthetic(hwloc, "pack:2 [numa] core:2 pu:1"), 0);
    cr_assert_eq(hwloc_topology_load(hwloc), 0);
    return hwloc;
}

/* Opens the machine as a recorded one, whose file is in that folder; closes `hwloc`. */
static struct topology *record(hwloc_topology_t hwloc, const char *folder)
{
    struct topology *topology = NULL;
    char file[64];

    snprintf(file, sizeof(file), "%s/machine.xml", folder);
    cr_assert_eq(hwloc_topology_export_xml(hwloc, file, 0), 0);
    hwloc_topology_destroy(hwloc);
    cr_assert_eq(topology_open(file, &topology), RONDO_OK, "%s", fail_sentence());
    return topology;
}

static void remove_folder(const char *folder)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
}

Test(device, nics_without_pci_are_found_and_survive_recording)
{
    char folder[] = "/tmp/rondo_net_XXXXXX";
    struct topology *topology;
    hwloc_topology_t hwloc = plain_machine();

    cr_assert_not_null(mkdtemp(folder));
    interface(folder, "lo", "0x9\n");
    interface(folder, "eth0", "0x1003\n");
    interface(folder, "down0", "0x1002\n");
    topology_add_virtual_nics(hwloc, folder);

    topology = record(hwloc, folder);
    cr_assert_eq(topology_devices(topology), 1);
    cr_expect_eq(topology_device_at(topology, 0)->kind, TOPOLOGY_NIC);
    cr_expect_str_eq(topology_device_at(topology, 0)->name, "eth0");
    cr_expect_str_eq(topology_device_at(topology, 0)->pci, "");
    cr_expect_eq(topology_device_at(topology, 0)->numa, -1);
    topology_close(topology);
    remove_folder(folder);
}

static hwloc_obj_t add_nic(hwloc_topology_t hwloc, hwloc_obj_t parent, const char *name)
{
    hwloc_obj_t nic = hwloc_topology_insert_misc_object(hwloc, parent, name);

    cr_assert_not_null(nic);
    nic->subtype = strdup("VirtualNIC");
    return nic;
}

/* Whoever writes a recording may hang a device anywhere, also under another one. */
Test(device, a_device_that_hangs_under_another_is_close_to_it)
{
    char folder[] = "/tmp/rondo_net_XXXXXX", picture[64];
    hwloc_topology_t hwloc = plain_machine();
    hwloc_obj_t outer = add_nic(hwloc, hwloc_get_root_obj(hwloc), "a");
    struct topology *topology;

    cr_assert_not_null(mkdtemp(folder));
    add_nic(hwloc, outer, "b");
    add_nic(hwloc, hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_PACKAGE, 1), "c");
    topology = record(hwloc, folder);
    cr_assert_eq(topology_devices(topology), 3);
    cr_expect_eq(topology_device_distance(topology, 0, 1), TOPOLOGY_CLOSE);
    cr_expect_eq(topology_device_distance(topology, 1, 0), TOPOLOGY_CLOSE);
    cr_expect_eq(topology_device_distance(topology, 1, 2), TOPOLOGY_MACHINE);
    snprintf(picture, sizeof(picture), "%s/machine.svg", folder);
    cr_expect_eq(topology_write_svg(topology, picture, 4), RONDO_OK, "%s", fail_sentence());
    topology_close(topology);
    remove_folder(folder);
}
