/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_links.c - plans follow the links between devices: groups and their order, on machines of
 * standin/nvml. What was decided is read in the log; what was computed is checked as ever.
 */
#include "bodies.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct world_report report;
static char log_text[1 << 20];

static void run_body(const char *machine, int size, bool processes, struct gpu_scene scene,
                     world_body body)
{
    char name[256], log[] = "/tmp/rondo-links-XXXXXX", devices[8];
    struct world world = {.size = size, .processes = processes};
    int file = mkstemp(log), stderr_file = dup(2), failed;
    ssize_t length;

    cr_assert(file >= 0 && stderr_file >= 0);
    snprintf(name, sizeof(name), TEST_MACHINES "/%s", machine);
    snprintf(devices, sizeof(devices), "%d", size);
    setenv("NVML_STANDIN", name, 1);
    setenv("CUDA_STANDIN_DEVICES", devices, 1);
    setenv("RONDO_LOG", "info", 1);
    dup2(file, 2);
    scene.devices = size;
    failed = world_run(&world, body, &scene, &report);
    dup2(stderr_file, 2);
    length = pread(file, log_text, sizeof(log_text) - 1, 0);
    log_text[length > 0 ? length : 0] = 0;
    close(file);
    close(stderr_file);
    unlink(log);
    cr_assert(failed == 0, "%d ranks on %s: %s", size, machine, report.summary);
}

static void run(const char *machine, int size, bool processes, int cases)
{
    run_body(machine, size, processes, (struct gpu_scene){.cases = cases}, gpu_matrix);
}

static bool says(const char *text)
{
    return strstr(log_text, text);
}

static const char in_levels[] = "on the device: hierarchy_zero_copy, by ";

Test(gpu_links, pairs_on_bridges_are_groups_for_processes)
{
    run("slow4", 4, true, 150);
    cr_expect(says("links between devices by NVML 13.0.stand-in"));
    cr_expect(says("devices in groups 2x2: 300 GB/s inside, 1 between (PCI across NUMA nodes); "
                   "all_reduce goes in two levels from "));
    cr_expect(says("links of 1 GB/s: calls on CUDA streams are one kernel up to 4 KiB only"));
    cr_expect(says(in_levels));
}

Test(gpu_links, pairs_on_bridges_are_groups_for_threads)
{
    run("slow4", 4, false, 150);
    cr_expect(says("devices in groups 2x2"));
    cr_expect(says(in_levels));
}

Test(gpu_links, quads_are_groups)
{
    run("slow8", 8, true, 60);
    cr_expect(says("devices in groups 2x4: 50 GB/s inside"));
    cr_expect(says(in_levels));
}

Test(gpu_links, groups_that_are_no_runs_serve_where_the_order_does_not_matter)
{
    run("slowmixed4", 4, true, 150);
    cr_expect(says("devices in groups 0,1,0,1"));
    cr_expect(says("but not where the order of sums matters"));
    cr_expect(says(in_levels));
}

Test(gpu_links, sums_of_floats_have_the_bits_of_the_host)
{
    run_body("slow4", 4, true, (struct gpu_scene){0}, gpu_keeps_bits);
    cr_expect(says(in_levels));
    run_body("slow8", 8, true, (struct gpu_scene){0}, gpu_keeps_bits);
    cr_expect(says(in_levels));
    run_body("slowmixed4", 4, true, (struct gpu_scene){0}, gpu_keeps_bits);
    cr_expect_not(says(in_levels), "the order of sums is lost");
    run_body("nvswitch8", 3, false, (struct gpu_scene){0}, gpu_keeps_bits);
}

Test(gpu_links, on_one_switch_all_are_equally_near)
{
    run("nvswitch8", 8, true, 20);
    cr_expect(says("links between devices by NVML"));
    cr_expect_not(says("devices in groups"));
    cr_expect_not(says(in_levels));
}

Test(gpu_links, without_nvml_the_driver_is_asked)
{
    run("none", 3, true, 20);
    cr_expect_not(says("devices in groups"));
}
