/* SPDX-License-Identifier: BSD-3-Clause */
/* stress_gpu.c - the bodies of these tests as threads, without Criterion: for ThreadSanitizer. */
#include "bodies.h"

#include <stdio.h>
#include <stdlib.h>

static struct world_report report;

static int run(const char *what, int size, bool host, world_body body)
{
    struct gpu_scene scene = {.devices = 2, .host = host, .cases = 40};
    int failed = world_run_threads(size, body, &scene, &report);

    printf("%s %s on %d threads%s%s%s\n", failed ? "FAILED" : "passed", what, size,
           host ? " by the host" : "", failed ? ": " : "", failed ? report.summary : "");
    fflush(stdout);
    return failed != 0;
}

static int run_both_ways(const char *what, world_body body)
{
    return run(what, 3, false, body) + run(what, 2, true, body);
}

static int run_in_one_thread(bool one_stream)
{
    static char sentence[WORLD_SENTENCE];
    int failed = gpu_runs_in_one_thread(3, one_stream, sentence) != RONDO_OK;

    printf("%s one thread for all ranks %s\n", failed ? "FAILED" : "passed", sentence);
    return failed;
}

int main(void)
{
    static const struct {
        const char *what;
        world_body body;
    } bodies[] = {
        {"the matrix", gpu_matrix},
        {"the order of streams", gpu_orders_streams},
        {"graphs", gpu_replays_graphs},
        {"messages", gpu_exchanges_messages},
        {"blocking calls", gpu_blocks_on_device_memory},
    };
    int failed = 0;

    gpu_gives_graphs_channels();
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        if (bodies[i].body != gpu_replays_graphs || gpu_threads_launch_graphs(2))
            failed += run_both_ways(bodies[i].what, bodies[i].body);
    setenv("RONDO_CUDA", "auto", 1);
    failed += run_in_one_thread(false);
    failed += run_in_one_thread(true);
    failed += run("an abort", 3, false, gpu_aborts_in_flight);
    return failed ? 1 : 0;
}
