/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measure.c - allocate, check, time.
 *
 * Each buffer stands between two guard zones in its area; an area holds as many such places as fit,
 * and calls walk through them when caches are to be cold. A batch begins with a barrier of the same
 * library; its clock is read once before its calls and once when all of them are done.
 *
 * On a device, the host prepares inputs and looks at results in a copy of the first place, the
 * view, and calls are queued in a row: then a batch ends when its stream has come to its end.
 */
#include "bench/measure.h"

#include "bench/device.h"
#include "bench/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { INPUT, OUTPUT, GUARD = 64, GUARD_BYTE = 0xa5, PAGE = 4096, GRAPH_CALLS = 16 };

/* Where the buffers of one call are. */
struct spot {
    unsigned char *input, *output;
    size_t input_bytes, output_bytes;
};

static void fail(struct measure *measure, struct bench_reply *reply, const char *doing)
{
    bool device = measure->device && *device_error(measure->device);

    reply->status = BENCH_FAILED;
    snprintf(reply->sentence, sizeof(reply->sentence), "%s: %s", doing,
             device ? device_error(measure->device) : measure->library->error(measure->state));
}

static double clock_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* Guard, buffer, guard; the buffer begins on a page if it is large, else on a cache line. */
static size_t stride_of(size_t bytes)
{
    return bytes >= PAGE ? round_up(bytes + GUARD, PAGE) + PAGE
                         : round_up(bytes, GUARD) + 2 * GUARD;
}

static size_t lead_of(size_t bytes)
{
    return bytes >= PAGE ? PAGE : GUARD;
}

static bool on_device(const struct measure *measure)
{
    return measure->memory == BENCH_MEMORY_CUDA;
}

void *bench_plain_alloc(size_t bytes)
{
    void *data;

    return posix_memalign(&data, PAGE, bytes) ? NULL : memset(data, 0, bytes);
}

static void *allocate_area(struct measure *measure, size_t bytes)
{
    if (measure->library->alloc)
        return measure->library->alloc(measure->state, bytes, measure->memory);
    return on_device(measure) ? device_alloc(measure->device, bytes) : bench_plain_alloc(bytes);
}

static void free_area(struct measure *measure, void *area)
{
    if (measure->library->free)
        measure->library->free(measure->state, area, measure->memory);
    else if (on_device(measure))
        device_free(measure->device, area);
    else
        free(area);
}

static int allocate_views(struct measure *measure, size_t bytes)
{
    for (int i = INPUT; i <= OUTPUT; i++) {
        measure->views[i] = on_device(measure) ? calloc(1, bytes) : measure->areas[i];
        if (!measure->views[i])
            return -1;
    }
    measure->view_bytes = bytes;
    return 0;
}

static int allocate(struct measure *measure, const struct bench_command *command)
{
    size_t least = stride_of(command->buffer_bytes);
    size_t need;

    if (least < stride_of(PAGE))
        least = stride_of(PAGE);
    need = least < command->rotate_bytes ? round_up(command->rotate_bytes, PAGE) : least;
    if (measure->area_bytes >= need && measure->view_bytes >= least &&
        measure->memory == command->memory)
        return 0;
    measure_done(measure);
    measure->memory = command->memory;
    for (int i = INPUT; i <= OUTPUT; i++) {
        measure->areas[i] = allocate_area(measure, need);
        if (!measure->areas[i] ||
            (on_device(measure) && device_clear(measure->device, measure->areas[i], need)))
            return -1;
    }
    measure->area_bytes = need;
    return allocate_views(measure, least);
}

/* The place of a turn in the areas, or the first one in the views. */
static struct spot spot_in(const struct measure *measure, unsigned char *const *areas,
                           const struct bench_call *call, size_t turn)
{
    size_t element = pattern_type_bytes(call->type);
    size_t input = bench_input_elements(call, measure->size) * element;
    size_t output = bench_output_elements(call, measure->size) * element;
    size_t larger = input > output ? input : output;
    size_t offset = turn * stride_of(larger) + lead_of(larger);
    struct spot spot = {areas[INPUT] + offset, areas[OUTPUT] + offset, input, output};

    if (call->in_place) {
        size_t shift = bench_in_place_offset(call, measure->rank) * element;

        spot.input = spot.output + (output > input ? shift : 0);
        spot.output += input > output ? shift : 0;
    }
    return spot;
}

static struct spot spot_of(const struct measure *measure, const struct bench_call *call,
                           size_t turn)
{
    return spot_in(measure, measure->areas, call, turn);
}

static size_t turns_of(const struct measure *measure, const struct bench_command *command)
{
    struct spot spot = spot_of(measure, &command->call, 0);
    size_t larger = spot.input_bytes > spot.output_bytes ? spot.input_bytes : spot.output_bytes;

    return command->rotate_bytes ? measure->area_bytes / stride_of(larger) : 1;
}

static void guard_set(unsigned char *buffer, size_t bytes)
{
    memset(buffer - GUARD, GUARD_BYTE, GUARD);
    memset(buffer + bytes, GUARD_BYTE, GUARD);
}

static bool guard_is_whole(const unsigned char *buffer, size_t bytes)
{
    bool whole = true;

    for (int i = 0; i < GUARD; i++)
        whole = whole && buffer[i - GUARD] == GUARD_BYTE && buffer[bytes + (size_t)i] == GUARD_BYTE;
    return whole;
}

static int meet(const struct measure *measure)
{
    struct bench_call barrier = {.collective = BENCH_BARRIER, .type = RONDO_UINT8};

    return measure->library->run(measure->state, &barrier, NULL, NULL);
}

/* Write the input, and what shows where else something is written; `to` is in the views. */
static void prepare(const struct measure *measure, const struct bench_call *call,
                    const struct spot *to)
{
    bool long_input = to->input_bytes > to->output_bytes;
    unsigned char *longer = long_input ? to->input : to->output;
    size_t longer_bytes = long_input ? to->input_bytes : to->output_bytes;

    if (!call->in_place) {
        memset(to->output, GUARD_BYTE, to->output_bytes);
        guard_set(to->input, to->input_bytes);
        guard_set(to->output, to->output_bytes);
    } else {
        memset(longer, GUARD_BYTE, longer_bytes);
        guard_set(longer, longer_bytes);
    }
    pattern_fill_input(call, measure->rank, measure->size, to->input);
}

static uint64_t count_wrong(const struct measure *measure, const struct bench_call *call,
                            const struct spot *in)
{
    uint64_t wrong = pattern_count_wrong(call, measure->rank, measure->size, in->output);
    bool long_input = in->input_bytes > in->output_bytes;

    if (!call->in_place)
        return wrong + !guard_is_whole(in->input, in->input_bytes) +
               !guard_is_whole(in->output, in->output_bytes);
    return wrong + (long_input ? !guard_is_whole(in->input, in->input_bytes)
                               : !guard_is_whole(in->output, in->output_bytes));
}

/* The first places of both areas, from the views (`in`), or to them. */
static int carry(const struct measure *measure, bool in)
{
    for (int i = INPUT; i <= OUTPUT && on_device(measure); i++)
        if (device_copy(measure->device, in ? measure->areas[i] : measure->views[i],
                        in ? measure->views[i] : measure->areas[i], measure->view_bytes))
            return -1;
    return 0;
}

/* One call, done when this returns. */
static int call_once(const struct measure *measure, const struct bench_call *call,
                     const struct spot *spot)
{
    if (measure->library->run(measure->state, call, spot->input, spot->output))
        return -1;
    return call->queued ? device_wait(measure->device) : 0;
}

static void check(struct measure *measure, const struct bench_call *call, struct bench_reply *reply)
{
    struct spot spot = spot_of(measure, call, 0);
    struct spot view = spot_in(measure, measure->views, call, 0);

    prepare(measure, call, &view);
    /* Allocating and copying may wait for a device, and so for calls of ranks that share it. */
    if (carry(measure, true) || (on_device(measure) && meet(measure)) ||
        call_once(measure, call, &spot) || carry(measure, false))
        fail(measure, reply, "the checked call");
    else
        reply->wrong = count_wrong(measure, call, &view);
}

/* ---- Timing ---------------------------------------------------------------------------------- */

/* All batches have one call then. */
static int write_input(const struct measure *measure, const struct bench_call *call, size_t turn)
{
    struct spot spot = spot_of(measure, call, turn);
    struct spot view = spot_in(measure, measure->views, call, 0);

    if (!on_device(measure)) {
        pattern_fill_input(call, measure->rank, measure->size, spot.input);
        return 0;
    }
    pattern_fill_input(call, measure->rank, measure->size, view.input);
    return device_copy(measure->device, spot.input, view.input, view.input_bytes);
}

static int call_in_turns(const struct measure *measure, const struct bench_command *command,
                         int calls, size_t *turn)
{
    size_t turns = turns_of(measure, command);

    for (int i = 0; i < calls; i++) {
        struct spot spot = spot_of(measure, &command->call, (*turn)++ % turns);

        if (measure->library->run(measure->state, &command->call, spot.input, spot.output))
            return -1;
    }
    return 0;
}

/* Some calls become a graph, and are done once. */
static int record(const struct measure *measure, const struct bench_command *command, int calls,
                  size_t *turn)
{
    int failed = device_record_begin(measure->device);
    int ended;

    if (failed)
        return failed;
    failed = call_in_turns(measure, command, calls, turn);
    ended = device_record_end(measure->device);
    if (failed || ended)
        return -1;
    return device_replay(measure->device) || device_wait(measure->device) ? -1 : 0;
}

static int time_batch(struct measure *measure, const struct bench_command *command, size_t *turn,
                      double *ret_seconds)
{
    int calls = command->batch_calls;
    int per_graph = calls < GRAPH_CALLS ? calls : GRAPH_CALLS;
    int launches = command->graph ? (calls + per_graph - 1) / per_graph : 0;
    int failed;
    double start;

    if (command->rewrite &&
        write_input(measure, &command->call, *turn % turns_of(measure, command)))
        return -1;
    if (command->graph && record(measure, command, per_graph, turn))
        return -1;
    if (meet(measure))
        return -1;
    start = clock_seconds();
    failed = command->graph ? 0 : call_in_turns(measure, command, calls, turn);
    for (int i = 0; i < launches && !failed; i++)
        failed = device_replay(measure->device);
    if (!failed && command->call.queued)
        failed = device_wait(measure->device);
    *ret_seconds = (clock_seconds() - start) / (launches ? launches * per_graph : calls);
    return failed ? -1 : 0;
}

void measure_run(struct measure *measure, const struct bench_command *command,
                 struct bench_reply *ret_reply)
{
    const struct bench_library *library = measure->library;
    const char *lack = library->lacks ? library->lacks(measure->state, &command->call) : NULL;
    size_t turn = 0;

    memset(ret_reply, 0, sizeof(*ret_reply));
    if (lack) {
        ret_reply->status = BENCH_UNAVAILABLE;
        snprintf(ret_reply->sentence, sizeof(ret_reply->sentence), "%s", lack);
        return;
    }
    if (allocate(measure, command)) {
        fail(measure, ret_reply, "allocating the buffers");
        return;
    }
    if (command->check) {
        check(measure, &command->call, ret_reply);
        return;
    }
    for (int i = 0; i < command->batches && ret_reply->status == BENCH_OK; i++)
        if (time_batch(measure, command, &turn, &ret_reply->seconds[i]))
            fail(measure, ret_reply, "a timed call");
}

void measure_done(struct measure *measure)
{
    for (int i = INPUT; i <= OUTPUT; i++) {
        if (on_device(measure))
            free(measure->views[i]);
        if (measure->areas[i])
            free_area(measure, measure->areas[i]);
        measure->views[i] = NULL;
        measure->areas[i] = NULL;
    }
    measure->area_bytes = 0;
    measure->view_bytes = 0;
}
