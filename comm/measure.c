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

#include "base/caller/times.h"
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

/* Large messages both ways at once, through slots, as in most collectives. */
static rondo_result exchange_large(rondo_comm *comm, char *memory, bool streams, double *ret_time)
{
    const struct choice_key key = {
        .type = RONDO_UINT8, .root = 1 - comm->rank, .count = LARGE, .algorithm = "direct"};
    double best = 1;

    comm->tuning.streams = streams;
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
    comm->tuning.streams = comm->settings.streams;
    *ret_time = best;
    return RONDO_OK;
}

/* Rank 1 reads rank 0's memory across processes, once, as it only matters whether it can: which
 * calls gain is tried in these (reads.h). 0 if that is not allowed or makes no sense. */
static double time_reads(rondo_comm *comm, char *memory, uint64_t from)
{
    const struct process *process = comm->processes[0];
    double began;

    if (!process || process_is_own(process) || comm->settings.reads >= 0 ||
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

static rondo_result find_costs(rondo_comm *comm, struct measured *measured)
{
    rondo_result result = RONDO_OK;
    char *memory;

    if (comm->rank > 1)
        return RONDO_OK;
    memory = aligned_alloc(4096, 2 * LARGE);
    if (!memory)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for measuring links.");
    memset(memory, 0, 2 * LARGE);
    if (comm->size > 1)
        result = measure_pair(comm, memory, measured);
    /* The two ranks had a core each by chance, while the others slept. */
    if (comm->size > measured->costs.cores && measured->costs.latency < CORE_CHANGE)
        measured->costs.latency = CORE_CHANGE;
    if (!result)
        measure_alone(memory, &measured->costs);
    free(memory);
    return result;
}

static void say_costs(const rondo_comm *comm)
{
    const struct tuning *tuning = &comm->tuning;
    const struct link_costs *costs = &tuning->costs;
    char across[80] = "";

    if (comm->groups && costs->across.bandwidth > 0)
        snprintf(across, sizeof(across), "; from group to group: %.2f us, %.2f GB/s",
                 1e6 * costs->across.latency, 1e-9 * costs->across.bandwidth);
    log_info("latency %.2f us, %.1f GB/s through slots%s, %.1f GB/s directly, %.1f GB/s reduced; "
             "plain memory is %s%s",
             1e6 * costs->latency, 1e-9 * costs->copy_bw,
             tuning->past_cache ? " past the cache" : "", 1e-9 * costs->direct_bw,
             1e-9 * costs->reduce_bw,
             tuning->reads_across ? "read across processes where that helps" : "staged in slots",
             across);
}

static rondo_result measure_links(rondo_comm *comm)
{
    const struct link_costs guessed = {
        .latency = 1e-6, .copy_bw = 5e9, .direct_bw = 5e9, .reduce_bw = 5e9};
    bool given = comm->settings.costs.latency > 0;
    struct tuning *tuning = &comm->tuning;
    struct measured measured = {.streams = comm->settings.streams != 0,
                                .costs = given ? comm->settings.costs : guessed};
    rondo_result result = RONDO_OK;

    measured.costs.cores = tuning->costs.cores;
    tuning->costs = measured.costs;
    if (!given)
        result = find_costs(comm, &measured);
    if (!result && !given)
        result = comm_measure_groups(comm, &measured.costs.across);
    measured.reads_across = tuning->reads_across || measured.reads_time > 0;
    if (!result && comm->size > 1)
        result = call(comm, RONDO_BROADCAST, 0, &measured, sizeof(measured));
    if (result)
        return result;
    log_debug("reads %.1f us", 1e6 * measured.reads_time);
    tuning->costs = measured.costs;
    tuning->reads_across = measured.reads_across;
    tuning->tries_reads = comm->settings.reads < 0 && measured.reads_across;
    tuning->past_cache = measured.streams ? PAST_CACHE_SLOTS : 0;
    forget_choices(comm); /* they were made with guessed costs */
    if (comm->rank == 0)
        say_costs(comm);
    return RONDO_OK;
}

static const struct comm_stage measuring[] = {{"measure links", measure_links}, {NULL, NULL}};

rondo_result comm_measure(rondo_comm *comm)
{
    rondo_result result = comm_stages_run(comm, measuring);

    return result ? comm_break(comm, result, comm->rank) : comm_assemble(comm);
}
