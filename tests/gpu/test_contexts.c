/* SPDX-License-Identifier: BSD-3-Clause */
/* test_contexts.c - neither waiting for a stream nor the first call on one needs a context of the
 * calling thread. */
#include "bodies.h"

#include <criterion/criterion.h>

static struct world_report report;

static void expect(world_body body, int size, bool processes)
{
    struct gpu_scene scene = {.devices = 2};
    struct world world = {.size = size, .processes = processes};
    int failed = world_run(&world, body, &scene, &report);

    cr_assert(failed == 0, "%d ranks: %s", size, report.summary);
}

Test(gpu_contexts, a_thread_without_a_context_waits_for_default_streams)
{
    expect(gpu_waits_without_context, 2, true);
}

Test(gpu_contexts, a_thread_with_another_context_waits_for_default_streams)
{
    expect(gpu_waits_from_other_device, 2, true);
}

Test(gpu_contexts, a_communicator_without_a_device_takes_that_of_its_first_call)
{
    expect(gpu_finds_devices, 2, true);
    expect(gpu_finds_devices, 3, true);
}
