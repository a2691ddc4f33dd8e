/* SPDX-License-Identifier: BSD-3-Clause */
/* test_links.c - what is between GPUs, on the machines of standin/nvml. Each test is a
 * process of its own, so each may have another machine. */
#include "recorded.h"

#include "base/fail.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

static struct topology *topology;

static void look_at(const char *machine)
{
    char name[256];

    snprintf(name, sizeof(name), MACHINES "/%s", machine);
    setenv("NVML_STANDIN", name, 1);
    cr_assert_eq(topology_open(NULL, &topology), RONDO_OK, "%s", fail_sentence());
    cr_assert_eq(topology_find_links(topology), RONDO_OK, "%s", fail_sentence());
}

/* Finds a link of the GPUs that the stand-in makes up; a real one of this machine comes before
 * them. */
static const struct topology_link *link_of(int a, int b)
{
    char one[32], other[32];

    snprintf(one, sizeof(one), "FFFF:%02X:00.0", a + 1);
    snprintf(other, sizeof(other), "0000ffff:%02x:00.0", b + 1);
    return topology_link_of(topology, one, other, NULL);
}

static void expect(int a, int b, enum topology_link_kind kind, int lanes, double GBps)
{
    const struct topology_link *link = link_of(a, b);

    cr_assert(link, "%d and %d are not known", a, b);
    cr_expect_eq(link->kind, kind, "%d-%d is %d", a, b, link->kind);
    cr_expect_eq(link->lanes, lanes, "%d-%d has %d lanes", a, b, link->lanes);
    cr_expect_float_eq(link->GBps, GBps, 0.01 * GBps, "%d-%d has %g GB/s", a, b, link->GBps);
}

static const char *describe(int a, int b)
{
    static char text[64];

    topology_link_describe(link_of(a, b), text, sizeof(text));
    return text;
}

Test(links, eight_gpus_on_switches_reach_each_other_by_all_their_links)
{
    look_at("nvswitch8");
    for (int a = 0; a < 8; a++)
        for (int b = 0; b < 8; b++)
            if (a != b)
                expect(a, b, TOPOLOGY_LINK_NVSWITCH, 18, 478.1);
    expect(3, 3, TOPOLOGY_LINK_SAME, 0, 0);
    cr_expect_str_eq(describe(0, 7), "18 x NVLink by a switch");
    cr_expect_str_eq(topology_link_source(topology), "NVML 13.0.stand-in");
    topology_close(topology);
}

Test(links, bridges_join_pairs_and_the_rest_is_pci)
{
    look_at("pairs4");
    expect(0, 1, TOPOLOGY_LINK_NVLINK, 12, 300);
    expect(3, 2, TOPOLOGY_LINK_NVLINK, 12, 300);
    expect(0, 2, TOPOLOGY_LINK_MACHINE, 0, 15.75);
    expect(1, 3, TOPOLOGY_LINK_MACHINE, 0, 15.75);
    cr_expect_str_eq(describe(0, 1), "12 x NVLink");
    topology_close(topology);
}

Test(links, without_nvlink_the_nearest_common_part_counts)
{
    look_at("pcie4");
    expect(0, 1, TOPOLOGY_LINK_SWITCH, 0, 31.5);
    expect(2, 3, TOPOLOGY_LINK_SWITCH, 0, 31.5);
    expect(0, 3, TOPOLOGY_LINK_MACHINE, 0, 15.75);
    topology_close(topology);
}

Test(links, of_a_mesh_every_pair_is_counted_for_itself)
{
    look_at("mesh8");
    expect(0, 3, TOPOLOGY_LINK_NVLINK, 2, 51.6);
    expect(0, 1, TOPOLOGY_LINK_NVLINK, 1, 25.8);
    expect(0, 4, TOPOLOGY_LINK_NVLINK, 2, 51.6);
    expect(0, 5, TOPOLOGY_LINK_MACHINE, 0, 7.9);
    topology_close(topology);
}

Test(links, a_single_gpu_has_no_peer_and_links_to_something_else_are_none)
{
    look_at("single");
    expect(0, 0, TOPOLOGY_LINK_SAME, 0, 0);
    cr_expect_null(link_of(0, 1));
    topology_close(topology);
}

Test(links, the_ring_over_gpus_follows_nvlink)
{
    int order[64];

    look_at("mixed4");
    cr_assert_eq(topology_gpus(topology), 4, "a machine with GPUs of its own");
    topology_ring(4, topology_distance_of_devices, topology, order);
    for (int i = 0, joined = 0; i < 4; i++) {
        joined += topology_link(topology, order[i], order[(i + 1) % 4])->lanes > 0;
        if (i == 3)
            cr_expect_eq(joined, 2, "%d of 2 bridges are used", joined);
    }
    topology_close(topology);
}

static void look_at_text(const char *text)
{
    char name[] = "/tmp/rondo-nvml-XXXXXX";
    int file = mkstemp(name);
    FILE *to = file < 0 ? NULL : fdopen(file, "w");

    cr_assert(to);
    fputs(text, to);
    fclose(to);
    setenv("NVML_STANDIN", name, 1);
    cr_assert_eq(topology_open(NULL, &topology), RONDO_OK, "%s", fail_sentence());
    cr_assert_eq(topology_find_links(topology), RONDO_OK, "%s", fail_sentence());
    remove(name);
}

Test(links, where_the_speed_is_not_told_the_version_says_it)
{
    look_at_text("gpus 2\npcie 5 16\nnvlink 1 0\nlink 0 1 4\n");
    expect(0, 1, TOPOLOGY_LINK_NVLINK, 4, 80);
    topology_close(topology);
}

Test(links, later_versions_are_faster)
{
    look_at_text("gpus 2\npcie 6 16\nnvlink 7 0\nswitch 0 18\nswitch 1 18\n");
    expect(0, 1, TOPOLOGY_LINK_NVSWITCH, 18, 900);
    topology_close(topology);
}

Test(links, a_question_that_fails_leaves_pci)
{
    look_at_text("gpus 2\npcie 4 16\nnvlink 4 25000\nlink 0 1 4\ncommon 0 1 20\n"
                 "fail nvmlDeviceGetNvLinkState 3\n");
    expect(0, 1, TOPOLOGY_LINK_SWITCHES, 0, 31.5);
    topology_close(topology);
}

Test(links, why_a_gpu_does_not_read_anothers_memory_is_told)
{
    look_at_text("gpus 3\npcie 4 16\npeer 0 1 1\npeer 0 2 6\n");
    cr_expect_str_eq(link_of(0, 1)->no_peer, "the chipset does not support it");
    cr_expect_str_eq(link_of(1, 0)->no_peer, "the chipset does not support it");
    cr_expect_null(link_of(0, 2)->no_peer);
    cr_expect_null(link_of(1, 2)->no_peer);
    topology_close(topology);
}

Test(links, ends_that_cannot_be_told_are_no_links)
{
    look_at_text("gpus 2\npcie 4 16\nnvlink 4 25000\nlink 0 1 4\ncommon 0 1 30\n"
                 "fail nvmlDeviceGetNvLinkRemotePciInfo_v2 3\n");
    expect(0, 1, TOPOLOGY_LINK_BRIDGE, 0, 31.5);
    topology_close(topology);
}

Test(links, a_library_that_does_not_start_is_named_and_the_tree_asked)
{
    look_at_text("gpus 2\nfail nvmlInit_v2 9\n");
    cr_expect_str_eq(topology_link_source(topology), "hwloc alone: libnvidia-ml.so.1 does not "
                                                     "start: an error that was asked for");
    cr_expect_null(link_of(0, 1));
    topology_close(topology);
}

Test(links, recorded_machines_are_looked_at_by_their_tree_alone)
{
    topology = recorded_open("gpu8_two_sockets");
    cr_assert_eq(topology_find_links(topology), RONDO_OK, "%s", fail_sentence());
    cr_expect_eq(topology_link(topology, 0, 1)->kind, TOPOLOGY_LINK_SWITCH);
    cr_expect_eq(topology_link(topology, 0, 2)->kind, TOPOLOGY_LINK_NODE);
    cr_expect_eq(topology_link(topology, 3, 4)->kind, TOPOLOGY_LINK_MACHINE);
    for (int a = 0; a < 8; a++)
        for (int b = 0; b < 8; b++)
            cr_expect_eq(topology_distance_of_devices(topology, a, b),
                         topology_device_distance(topology, a, b));
    topology_close(topology);
}

Test(links, of_gpus_that_only_nvml_shows_no_device_is_the_nearest)
{
    int gpus, own = 0;

    look_at("pairs4");
    gpus = topology_gpus(topology);
    for (int gpu = 0; gpu < gpus; gpu++)
        if (!strncmp(topology_device_at(topology, gpu)->pci, "ffff:", 5)) {
            own++;
            for (int kind = TOPOLOGY_GPU; kind <= TOPOLOGY_RDMA; kind++)
                cr_expect_eq(topology_nearest(topology, (enum topology_device_kind)kind, gpu), -1);
        }
    cr_expect_eq(own, 4);
    topology_close(topology);
}

/* ---- Other libraries: in other processes ----------------------------------------------------- */

static char output[1 << 16];

static void topo(const char *folder, const char *machine, const char *options)
{
    char command[1024];
    FILE *from;
    size_t length;

    snprintf(command, sizeof(command),
             "LD_LIBRARY_PATH=%s NVML_STANDIN=" MACHINES "/%s " DRIVER " topo %s 2>&1", folder,
             machine, options);
    from = popen(command, "r");
    cr_assert(from);
    length = fread(output, 1, sizeof(output) - 1, from);
    output[length] = 0;
    cr_expect_eq(pclose(from), 0, "%s", output);
}

static bool says(const char *text)
{
    return strstr(output, text);
}

Test(links, an_old_library_has_links_without_their_speed)
{
    topo(NVML_FOLDER "/old", "nvswitch8", "");
    cr_expect(says("18 x NVLink by a switch, 450 GB/s one way"), "%s", output);
    cr_expect(says("links between GPUs, by NVML\n"), "%s", output);
}

Test(links, a_library_without_what_is_needed_is_named)
{
    setenv("RONDO_LOG", "none", 1);
    topo(NVML_FOLDER "/broken", "nvswitch8", "--json -");
    cr_expect(says("\"links\": []"), "%s", output);
}

Test(links, rondo_topo_has_a_table_and_rings_by_nvlink)
{
    topo(NVML_FOLDER, "pairs4", "");
    cr_expect(says("GPU   0    1    2    3   \n"), "%s", output);
    cr_expect(says("0     =    L12  M    M   \n"), "%s", output);
    cr_expect(says("L12   12 x NVLink, 300 GB/s one way\n"), "%s", output);
    cr_expect(says("M     PCI across NUMA nodes, 16 GB/s one way\n"), "%s", output);
    cr_expect(says("2 by NVLink"), "%s", output);
    cr_expect(!says("(ffff:01:00.0) reaches the network"), "%s", output);
}

Test(links, pictures_and_json_have_them_too)
{
    topo(NVML_FOLDER, "mesh8", "--svg /dev/stdout --json -");
    cr_expect(says(">NVLink</text>"), "%s", output);
    cr_expect(says("\"kind\": \"2 x NVLink\""), "%s", output);
}
