/* SPDX-License-Identifier: BSD-3-Clause */
/* test_doctor_cuda.c - what `rondo doctor` says of GPUs, on the stand-in of the driver. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT_MAX = 1 << 16 };

static char output[OUTPUT_MAX];

static void doctor(void)
{
    FILE *from = popen(TEST_RONDO " doctor 2>&1", "r");
    size_t length;

    cr_assert(from);
    length = fread(output, 1, OUTPUT_MAX - 1, from);
    output[length] = 0;
    pclose(from);
}

static bool says(const char *text)
{
    return strstr(output, text);
}

Test(doctor_cuda, every_device_is_named_and_tried)
{
    setenv("CUDA_STANDIN_DEVICES", "3", 1);
    doctor();
    cr_expect(says("ok    CUDA toolkit: built with "), "%s", output);
    cr_expect(says("3 devices; calls on CUDA streams: RONDO_CUDA is auto"), "%s", output);
    cr_expect(says("ok    GPU: 2 is "), "%s", output);
    cr_expect(says("4096 MiB"), "%s", output);
    cr_expect(says("memory operations of streams and our kernels work"), "%s", output);
    cr_expect(says("ok    GPU peers: all 3 reach each other's memory"), "%s", output);
}

Test(doctor_cuda, devices_that_do_not_reach_each_other_are_noted)
{
    setenv("CUDA_STANDIN_PEER", "0", 1);
    doctor();
    cr_expect(says("note  GPU peers: 1 of 1 pairs do not reach each other's memory: 0-1"), "%s",
              output);
}

Test(doctor_cuda, what_does_not_work_on_a_device_is_noted_with_a_remedy)
{
    setenv("CUDA_STANDIN_FAIL", "cuStreamWaitValue32:1", 1);
    doctor();
    cr_expect(says("note  GPU: 0 is "), "%s", output);
    cr_expect(says("need memory operations of streams"), "%s", output);
    cr_expect(says("ok    GPU: 1 is "), "%s", output);
}

Test(doctor_cuda, kernels_that_do_not_load_are_noted)
{
    setenv("RONDO_CUDA_IMAGE", "/dev/null", 1);
    doctor();
    cr_expect(says("note  GPU: 0 is "), "%s", output);
    cr_expect(says("compute capability 8.0 and later"), "%s", output);
}

Test(doctor_cuda, without_a_driver_or_a_device_it_says_so)
{
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    doctor();
    cr_expect(says("no GPU") || says("does not start"), "%s", output);
}

Test(doctor_cuda, every_device_has_its_links)
{
    setenv("CUDA_STANDIN_DEVICES", "4", 1);
    setenv("NVML_STANDIN", TEST_MACHINES "/pairs4", 1);
    doctor();
    cr_expect(says("ok    NVML: links between GPUs by NVML 13.0.stand-in"), "%s", output);
    cr_expect(says("ok    GPU links: 2: 2 others by PCI across NUMA nodes, 1 other by 12 x "
                   "NVLink"),
              "%s", output);
}

Test(doctor_cuda, links_are_those_of_the_devices_that_are_visible)
{
    setenv("CUDA_STANDIN_DEVICES", "4", 1);
    setenv("CUDA_VISIBLE_DEVICES", "3,2", 1);
    setenv("NVML_STANDIN", TEST_MACHINES "/pairs4", 1);
    doctor();
    cr_expect(says("ok    GPU links: 0: 1 other by 12 x NVLink\n"), "%s", output);
}

Test(doctor_cuda, why_devices_do_not_reach_each_other_is_said)
{
    setenv("CUDA_STANDIN_PEER", "0", 1);
    setenv("NVML_STANDIN", TEST_MACHINES "/apart2", 1);
    doctor();
    cr_expect(says("note  GPU peers: by NVML, 0 does not read the memory of 1: the chipset does "
                   "not support it"),
              "%s", output);
}
