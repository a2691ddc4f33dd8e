/* SPDX-License-Identifier: BSD-3-Clause */
/* test_absent.c - what a build without the CUDA toolkit says: the files that stand in for what
 * needs it are compiled and linked here in every build. */
#include "rondo/cuda.h"

#include "bench/device.h"
#include "cli/doctor/report.h"
#include "comm/gpu/gpu.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

Test(cuda_absent, calls_say_that_this_build_has_no_cuda)
{
    struct gpu *gpu = NULL;
    rondo_stream *stream = NULL;
    void *memory = NULL;

    cr_assert(rondo_cuda_check() == RONDO_ERROR_UNSUPPORTED);
    cr_assert(strstr(rondo_last_error(NULL), "built without CUDA"), "%s", rondo_last_error(NULL));
    cr_assert(rondo_stream_open_cuda(NULL, &stream) == RONDO_ERROR_UNSUPPORTED && !stream);
    cr_assert(rondo_cuda_mem_alloc(8, &memory) == RONDO_ERROR_UNSUPPORTED && !memory);
    cr_assert(gpu_open(0, &gpu) == RONDO_ERROR_UNSUPPORTED && !gpu);
    cr_assert(strstr(rondo_last_error(NULL), "install the CUDA toolkit"));
}

Test(cuda_absent, who_asks_for_no_device_is_served)
{
    struct gpu *gpu = NULL;

    cr_assert(gpu_current() == -1);
    cr_assert(gpu_open(-1, &gpu) == RONDO_OK && !gpu);
    cr_assert(rondo_comm_cuda_device(NULL) == -1);
    cr_assert(rondo_cuda_mem_free(NULL) == RONDO_OK);
}

Test(cuda_absent, the_doctor_says_so_in_a_line)
{
    static struct doctor_report report;

    doctor_check_cuda(&report);
    cr_assert(report.count == 1 && strstr(report.line[0].found, "built without the CUDA toolkit"),
              "%s", report.line[0].found);
}

Test(cuda_absent, a_benchmark_with_memory_of_a_device_says_why_not)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    char sentence[256] = "";

    if (driver)
        cr_skip_test("there is a driver");
    cr_assert(device_open(0, sentence, sizeof(sentence)) == NULL);
    cr_expect(strstr(sentence, "GPU memory needs NVIDIA's driver"), "%s", sentence);
}
