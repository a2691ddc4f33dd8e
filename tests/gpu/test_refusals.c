/* SPDX-License-Identifier: BSD-3-Clause */
/* test_refusals.c - where a driver maps no memory of other processes, calls are right all the same,
 * and the log says why they take another way. */
#include "bodies.h"
#include "device.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LOG_BYTES = 1 << 20, NOT_SUPPORTED = 801 };

static struct world_report report;
static char logged[LOG_BYTES];

/* The ranks' lines on stderr are in `logged` after this. */
static int run(const struct gpu_scene *scene, int size)
{
    struct gpu_scene copy = *scene;
    struct world world = {.size = size, .processes = true};
    int file = memfd_create("log", MFD_CLOEXEC), before = dup(STDERR_FILENO), failed;
    ssize_t bytes;

    if (!device_can_be_told_to_fail())
        cr_skip_test("a GPU's driver cannot be told to refuse");
    setenv("RONDO_LOG", "info", 1);
    /* Processes that write at a place that they share overwrite each other's lines. */
    (void)fcntl(file, F_SETFL, O_APPEND);
    dup2(file, STDERR_FILENO);
    failed = world_run(&world, gpu_goes_without_handles, &copy, &report);
    dup2(before, STDERR_FILENO);
    close(before);
    bytes = pread(file, logged, LOG_BYTES - 1, 0);
    logged[bytes > 0 ? bytes : 0] = '\0';
    close(file);
    return failed;
}

/* The driver refuses in one rank, -1: in all. */
static void expect_by_the_host(const char *failing, int victim, int size)
{
    struct gpu_scene scene = {.devices = 2, .victim = victim, .failing = failing};
    int failed = run(&scene, size);

    cr_assert(failed == 0, "%d ranks, %s in %d: %s", size, failing, victim, report.summary);
    cr_assert(strstr(logged, "calls on CUDA streams go by way of the host: rank "), "%s", logged);
    cr_assert(strstr(logged, "CUDA_ERROR_NOT_SUPPORTED") || strstr(logged, "not supported"), "%s",
              logged);
}

Test(gpu_refusals, a_rank_that_cannot_open_handles_has_all_go_by_the_host)
{
    for (int size = 2; size <= 4; size++)
        expect_by_the_host("cuIpcOpenMemHandle:1+=801", 1, size);
}

Test(gpu_refusals, ranks_that_cannot_open_handles_go_by_the_host)
{
    for (int size = 2; size <= 4; size++)
        expect_by_the_host("cuIpcOpenMemHandle:1+=801", -1, size);
}

/* Not the first one that a rank opens: it is in step with some peers by then. */
Test(gpu_refusals, a_rank_that_can_open_only_some_handles_has_all_go_by_the_host)
{
    expect_by_the_host("cuIpcOpenMemHandle:2=801", 2, 4);
    expect_by_the_host("cuIpcOpenMemHandle:3=801", 0, 4);
}

Test(gpu_refusals, a_rank_that_can_make_no_handles_has_all_go_by_the_host)
{
    expect_by_the_host("cuIpcGetMemHandle:1+=801", 1, 3);
    expect_by_the_host("cuIpcGetMemHandle:1+=801", -1, 2);
}

/* Memory that is refused after the start is copied to memory that peers have mapped. */
static void expect_copies(const char *failing, int victim, int size)
{
    struct gpu_scene scene = {.devices = 1, .victim = victim, .failing = failing};
    int failed = run(&scene, size);

    cr_assert(failed == 0, "%d ranks, %s in %d: %s", size, failing, victim, report.summary);
    cr_assert(!strstr(logged, "by way of the host"), "%s", logged);
    cr_assert(strstr(logged, "copied before peers read it"), "%s", logged);
}

Test(gpu_refusals, memory_whose_handle_cannot_be_opened_later_is_copied)
{
    expect_copies("cuIpcOpenMemHandle:2+=801", 1, 2);
    expect_copies("cuIpcOpenMemHandle:3+=801", 1, 3);
    expect_copies("cuIpcOpenMemHandle:2=801", -1, 2);
}

Test(gpu_refusals, memory_that_later_has_no_handle_is_copied)
{
    expect_copies("cuIpcGetMemHandle:2+=801", 1, 2);
}

Test(gpu_refusals, nothing_is_copied_where_nothing_is_refused)
{
    struct gpu_scene scene = {.devices = 1};

    cr_assert(run(&scene, 3) == 0, "%s", report.summary);
    cr_assert(!strstr(logged, "by way of the host") && !strstr(logged, "copied before"), "%s",
              logged);
}
