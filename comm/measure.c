/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measure.c - what links cost, found out once when a communicator opens.
 *
 * Ranks 0 and 1 play ping-pong with small messages (latency) and exchange large ones (bandwidth
 * through slots, stored in both ways); rank 1 sees whether it can read rank 0's memory across
 * processes; rank 0 adds how fast it copies and reduces. All of it takes a few milliseconds. Rank
 * 0's numbers go to everybody, so that all ranks choose alike.
 */
#include "comm/failure/error.h"
#include "comm/open.h"
#include "comm/stage.h"
#include "comm/state/comm.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/setting.h"
#include "comm/engine/run.h"
#include "transport/memory/process.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PINGS = 50, LARGE = 1 << 19, REPEATS = 5 };

/* The results of measuring, which rank 1 sends to rank 0, and rank 0 to all. */
struct measured {
    struct link_costs costs;
    /* Seconds for LARGE bytes through slots with ordinary stores,
     * past the cache, and read across; 0: not possible. */
    double stored_time, streamed_time, reads_time;
    uint64_t address;
    int32_t reads_across, streams;
};

static rondo_result call(rondo_comm *comm, rondo_collective collective, int root, void *memory,
                         size_t bytes)
{
    struct task task = {
        .key = {.collective = collective, .type = RONDO_UINT8, .root = root, .count = bytes},
        .input = memory,
        .output = memory};

    return run_task(comm, &task);
}

static rondo_result ping_pong(rondo_comm *comm, double *ret_latency)
{
    int peer = 1 - comm->rank;
    double best = 1;

    for (int i = 0; i < PINGS; i++) {
        double began = clock_seconds();
        uint64_t ball = 0;
        rondo_result result;

        result = call(comm, comm->rank ? RONDO_RECV : RONDO_SEND, peer, &ball, sizeof(ball));
        if (!result)
            result = call(comm, comm->rank ? RONDO_SEND : RONDO_RECV, peer, &ball, sizeof(ball));
        if (result)
            return result;
        began = clock_seconds() - began;
        best = began < best ? began : best;
    }
    *ret_latency = best / 2;
    return RONDO_OK;
}

/* Forget choices, as they were made with other costs or settings. */
static void forget_choices(rondo_comm *comm)
{
    memset(comm->choices.slots, 0, sizeof(comm->choices.slots));
}

/* Large messages both ways at once, as in most collectives. */
static rondo_result exchange_large(rondo_comm *comm, char *memory, bool streams, double *ret_time)
{
    const int setting = comm->settings.streams;
    const struct choice_key key = {.type = RONDO_UINT8, .root = 1 - comm->rank, .count = LARGE};
    double best = 1;

    comm->settings.streams = streams;
    forget_choices(comm);
    for (int i = 0; i < REPEATS; i++) {
        struct task tasks[2] = {{.key = key, .input = memory},
                                {.key = key, .output = memory + LARGE}};
        double began = clock_seconds();
        struct batch batch;
        rondo_result result;

        tasks[0].key.collective = RONDO_SEND;
        tasks[1].key.collective = RONDO_RECV;
        batch_open(&batch, comm, tasks, 2);
        result = run_batches(&batch, 1);
        if (result)
            return result;
        began = clock_seconds() - began;
        best = began < best ? began : best;
    }
    comm->settings.streams = setting;
    *ret_time = best;
    return RONDO_OK;
}

/* Rank 1 reads rank 0's memory across processes, once, as it only matters whether it can: which
 * calls gain is tried in these (reads.h). 0 if that is not allowed or makes no sense. */
static double time_reads(rondo_comm *comm, char *memory, uint64_t from)
{
    const struct process *process = comm->processes[0];
    double began;

    if (!process || process_is_own(process) || !comm->settings.measure_reads ||
        !process_readable(process, from))
        return 0;
    began = clock_seconds();
    return process_read(process, memory, from, LARGE) ? 0 : clock_seconds() - began;
}

static rondo_result measure_pair(rondo_comm *comm, char *memory, struct measured *measured)
{
    int peer = 1 - comm->rank;
    rondo_result result = ping_pong(comm, &measured->costs.latency);

    if (!result)
        result = exchange_large(comm, memory, false, &measured->stored_time);
    if (!result)
        result = exchange_large(comm, memory, true, &measured->streamed_time);
    if (result)
        return result;
    log_debug("%d bytes both ways through slots: %.1f us stored, %.1f us past the cache", LARGE,
              1e6 * measured->stored_time, 1e6 * measured->streamed_time);
    measured->streams = comm->settings.streams;
    if (measured->streams < 0)
        measured->streams = measured->streamed_time < measured->stored_time;
    measured->costs.copy_bw =
        LARGE / (measured->streams ? measured->streamed_time : measured->stored_time);
    measured->address = (uint64_t)(uintptr_t)memory;
    if (comm->rank == 0) {
        result = call(comm, RONDO_SEND, peer, &measured->address, sizeof(measured->address));
        if (!result)
            result =
                call(comm, RONDO_RECV, peer, &measured->reads_time, sizeof(measured->reads_time));
        return result;
    }
    result = call(comm, RONDO_RECV, peer, &measured->address, sizeof(measured->address));
    if (result)
        return result;
    measured->reads_time = time_reads(comm, memory, measured->address);
    return call(comm, RONDO_SEND, peer, &measured->reads_time, sizeof(measured->reads_time));
}

/* Measure what one rank does on its own: copying, and reducing two float32 sources. */
static void measure_alone(char *memory, struct link_costs *costs)
{
    const struct kernel_op op = {.type = RONDO_FLOAT32, .function = KERNEL_SUM};
    const void *sources[] = {memory, memory + LARGE};
    void *destinations[] = {memory + LARGE};
    const struct kernel_call sum = {.sources = sources,
                                    .destinations = destinations,
                                    .source_count = 2,
                                    .destination_count = 1,
                                    .count = LARGE / sizeof(float),
                                    .scaled = -1};
    double copy = 1, reduce = 1;

    for (int i = 0; i < REPEATS; i++) {
        double began = clock_seconds();
        double between;

        kernel_copy(destinations[0], sources[0], LARGE);
        between = clock_seconds();
        kernel_reduce(&op, &sum);
        copy = between - began < copy ? between - began : copy;
        between = clock_seconds() - between;
        reduce = between < reduce ? between : reduce;
    }
    costs->direct_bw = LARGE / copy;
    costs->reduce_bw = 2.0 * LARGE / reduce;
}

/*
 * RONDO_COSTS, for repeatable choices: "latency_us,copy_GBps,reduce_GBps", and what goes from group
 * to group: ",latency_us,GBps,rails".
 */
static rondo_result read_costs(struct link_costs *costs, bool *ret_set)
{
    const char *text = setting_read_word(SETTING_COSTS);
    double latency, copy, reduce, far = 1, out = 1, rails = 1;
    int used = 0, read;

    *ret_set = *text != 0;
    if (!*ret_set)
        return RONDO_OK;
    read = sscanf(text, "%lf,%lf,%lf%n,%lf,%lf,%lf%n", &latency, &copy, &reduce, &used, &far, &out,
                  &rails, &used);
    if ((read != 3 && read != 6) || text[used] ||
        !isfinite(latency + copy + reduce + far + out + rails) || latency <= 0 || copy <= 0 ||
        reduce <= 0 || far <= 0 || out <= 0 || rails < 1 || rails > 1024)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "RONDO_COSTS is \"%s\"; it must be three positive numbers, "
                          "\"latency_us,copy_GBps,reduce_GBps\", or with three more for what "
                          "goes from group to group, \",latency_us,GBps,rails\".",
                          text);
    if (read == 6)
        costs->across = (struct group_costs){
            .latency = 1e-6 * far, .bandwidth = 1e9 * out, .rails = (int)rails};
    costs->latency = 1e-6 * latency;
    costs->copy_bw = costs->direct_bw = 1e9 * copy;
    costs->reduce_bw = 1e9 * reduce;
    return RONDO_OK;
}

static rondo_result find_costs(rondo_comm *comm, struct measured *measured)
{
    bool given;
    rondo_result result = read_costs(&measured->costs, &given);
    char *memory;

    if (result || given || comm->rank > 1)
        return result;
    memory = aligned_alloc(4096, 2 * LARGE);
    if (!memory)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for measuring links.");
    memset(memory, 0, 2 * LARGE);
    if (comm->size > 1)
        result = measure_pair(comm, memory, measured);
    if (!result)
        measure_alone(memory, &measured->costs);
    free(memory);
    return result;
}

static rondo_result measure_links(rondo_comm *comm)
{
    struct measured measured = {
        .streams = comm->settings.streams != 0,
        .costs = {.latency = 1e-6, .copy_bw = 5e9, .direct_bw = 5e9, .reduce_bw = 5e9}};
    rondo_result result;

    measured.costs.cores = comm->costs.cores;
    comm->costs = measured.costs;
    result = find_costs(comm, &measured);
    if (!result && !setting_is_set(SETTING_COSTS))
        result = comm_measure_groups(comm, &measured.costs.across);
    measured.reads_across = comm->settings.reads_across || measured.reads_time > 0;
    if (!result && comm->size > 1)
        result = call(comm, RONDO_BROADCAST, 0, &measured, sizeof(measured));
    if (result)
        return result;
    log_debug("reads %.1f us", 1e6 * measured.reads_time);
    comm->costs = measured.costs;
    comm->settings.reads_across = measured.reads_across;
    comm->settings.tries_reads = comm->settings.measure_reads && measured.reads_across;
    comm->past_cache = measured.streams ? PAST_CACHE_SLOTS : 0;
    forget_choices(comm); /* they were made with guessed costs */
    if (comm->rank == 0)
        log_info(
            "latency %.2f us, %.1f GB/s through slots%s, %.1f GB/s directly, %.1f GB/s reduced; "
            "plain memory is %s",
            1e6 * comm->costs.latency, 1e-9 * comm->costs.copy_bw,
            comm->past_cache ? " past the cache" : "", 1e-9 * comm->costs.direct_bw,
            1e-9 * comm->costs.reduce_bw,
            comm->settings.reads_across ? "read across processes where that helps"
                                        : "staged in slots");
    return RONDO_OK;
}

static const struct comm_stage measuring[] = {{"measure links", measure_links}, {NULL, NULL}};

rondo_result comm_measure(rondo_comm *comm)
{
    rondo_result result = comm_stages_run(comm, measuring);

    return result ? comm_break(comm, result, comm->rank) : comm_assemble(comm);
}
