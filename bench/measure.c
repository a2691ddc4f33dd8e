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
#include "bench/step.h"
#include "bench/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT, OUTPUT, GUARD = 64, GUARD_BYTE = 0xa5, PAGE = 4096 };

void measure_fail(struct measure *measure, struct bench_reply *reply, const char *doing)
{
    bool device = measure->device && *device_error(measure->device);
    const char *reason =
        device ? device_error(measure->device) : measure->library->error(measure->state);

    reply->status = BENCH_FAILED;
    snprintf(reply->sentence, sizeof(reply->sentence), "%s: %s", doing,
             reason && *reason ? reason : "out of memory");
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

/* Bytes of all buffers that a call, or a step, works on at once. */
static size_t room_of(const struct measure *measure, const struct bench_command *command)
{
    size_t room =
        command->line_count ? step_bytes(measure, command) : stride_of(command->buffer_bytes);

    return room < stride_of(PAGE) ? stride_of(PAGE) : room;
}

/* True if the answer is what the library takes, in which large buffers of ours would be counted. */
static bool is_weighed(const struct bench_command *command)
{
    return command->call.collective == BENCH_DUP || command->call.collective == BENCH_OPEN;
}

static int allocate(struct measure *measure, const struct bench_command *command)
{
    size_t least = room_of(measure, command);
    size_t need = least * (size_t)(command->buffers > 1 ? command->buffers : 1);

    if (need < command->rotate_bytes && !is_weighed(command))
        need = round_up(command->rotate_bytes, PAGE);
    if ((is_weighed(command) ? measure->area_bytes == need : measure->area_bytes >= need) &&
        measure->view_bytes >= least && measure->memory == command->memory)
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

/* Elements of the longer buffer decide. */
static size_t larger_of(const struct measure *measure, const struct bench_call *call)
{
    size_t input = bench_input_elements(call, measure->size);
    size_t output = bench_output_elements(call, measure->size);

    return (input > output ? input : output) * pattern_type_bytes(call->type);
}

size_t measure_stride(const struct measure *measure, const struct bench_call *call)
{
    return stride_of(larger_of(measure, call));
}

struct spot measure_spot(const struct measure *measure, unsigned char *const *areas,
                         const struct bench_call *call, size_t offset)
{
    size_t element = pattern_type_bytes(call->type);
    size_t input = bench_input_elements(call, measure->size) * element;
    size_t output = bench_output_elements(call, measure->size) * element;
    struct spot spot = {.input_bytes = input, .output_bytes = output};

    offset += lead_of(larger_of(measure, call));
    spot.input = areas[INPUT] + offset;
    spot.output = areas[OUTPUT] + offset;
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
    return measure_spot(measure, measure->areas, call, turn * measure_stride(measure, call));
}

static size_t turns_of(const struct measure *measure, const struct bench_command *command)
{
    size_t stride = command->line_count ? step_bytes(measure, command)
                                        : measure_stride(measure, &command->call);

    if (command->rotate_bytes && stride)
        return measure->area_bytes / stride;
    return command->buffers > 1 ? (size_t)command->buffers : 1;
}

/* A call may not write beyond these: the output and the input, or what holds both. */
struct guarded {
    unsigned char *buffer;
    size_t bytes;
};

static int guarded_by(const struct bench_call *call, const struct spot *spot,
                      struct guarded ret_list[2])
{
    bool input = spot->input_bytes > spot->output_bytes;

    ret_list[0] = (struct guarded){spot->output, spot->output_bytes};
    ret_list[1] = (struct guarded){spot->input, spot->input_bytes};
    if (call->in_place && input)
        ret_list[0] = ret_list[1];
    return call->in_place ? 1 : 2;
}

static bool is_whole(const struct guarded *guarded)
{
    const unsigned char *buffer = guarded->buffer;
    bool whole = true;

    for (int i = 0; i < GUARD; i++)
        whole = whole && buffer[i - GUARD] == GUARD_BYTE &&
                buffer[guarded->bytes + (size_t)i] == GUARD_BYTE;
    return whole;
}

int measure_meet(const struct measure *measure)
{
    struct bench_call barrier = {.collective = BENCH_BARRIER, .type = RONDO_UINT8};

    return measure->library->run(measure->state, &barrier, NULL, NULL);
}

void measure_prepare(const struct measure *measure, const struct bench_call *call,
                     const struct spot *to)
{
    struct guarded list[2];

    for (int i = guarded_by(call, to, list) - 1; i >= 0; i--)
        memset(list[i].buffer - GUARD, GUARD_BYTE, list[i].bytes + 2 * GUARD);
    pattern_fill_input(call, measure->rank, measure->size, to->input);
}

uint64_t measure_count_wrong(const struct measure *measure, const struct bench_call *call,
                             const struct spot *in)
{
    uint64_t wrong = pattern_count_wrong(call, measure->rank, measure->size, in->output);
    struct guarded list[2];

    for (int i = guarded_by(call, in, list) - 1; i >= 0; i--)
        wrong += !is_whole(&list[i]);
    return wrong;
}

int measure_carry(const struct measure *measure, bool in)
{
    for (int i = INPUT; i <= OUTPUT && on_device(measure); i++)
        if (device_copy(measure->device, in ? measure->areas[i] : measure->views[i],
                        in ? measure->views[i] : measure->areas[i], measure->view_bytes))
            return -1;
    return 0;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

enum { MORE_COMMUNICATORS = 16 };

/* Opens more communicators, and calls something on each, as whoever needs one will. */
static int open_more(struct measure *measure)
{
    struct bench_call call = {.collective = BENCH_ALL_REDUCE, .type = RONDO_FLOAT32, .count = 256};
    const struct bench_library *library = measure->library;
    struct spot spot = spot_of(measure, &call, 0);
    int failed = library->begin(measure->state, 1 + MORE_COMMUNICATORS, false);

    for (int i = 1; i <= MORE_COMMUNICATORS && !failed; i++)
        failed = library->start(measure->state, &call, i, spot.input, spot.output);
    return failed ? failed : library->finish(measure->state);
}

/* Finds what the library takes in this process, and each further communicator of it. */
static int weigh(struct measure *measure)
{
    double open = work_memory();

    measure->weighed = true;
    measure->rank_bytes = measure->communicator_bytes = -1;
    if (measure->before < 0 || open < 0)
        return 0;
    measure->rank_bytes = open - measure->before;
    if (!measure->library->begin || on_device(measure))
        return 0;
    if (measure_meet(measure) || open_more(measure) || measure_meet(measure))
        return -1;
    measure->communicator_bytes = (work_memory() - open) / MORE_COMMUNICATORS;
    return 0;
}

static void tell_memory(struct measure *measure, struct bench_reply *reply)
{
    if (reply->status == BENCH_OK && !measure->weighed && weigh(measure))
        measure_fail(measure, reply, "opening more communicators");
    reply->rank_bytes = measure->rank_bytes;
    reply->communicator_bytes = measure->communicator_bytes;
}

static void check(struct measure *measure, const struct bench_command *command,
                  struct bench_reply *reply)
{
    step_check(measure, command, reply);
    if (is_weighed(command))
        tell_memory(measure, reply);
    if (command->line_count)
        work_learn(&measure->speed);
    /* The model knows calls on memory of the host, one at a time. */
    if (reply->status == BENCH_OK && measure->library->predict && !command->line_count &&
        !on_device(measure))
        reply->predicted_us = measure->library->predict(measure->state, &command->call);
}

/* ---- Timing ---------------------------------------------------------------------------------- */

/* All batches have one call then. */
static int write_input(const struct measure *measure, const struct bench_call *call, size_t turn)
{
    struct spot spot = spot_of(measure, call, turn);
    struct spot view = measure_spot(measure, measure->views, call, 0);

    if (!on_device(measure)) {
        pattern_fill_input(call, measure->rank, measure->size, spot.input);
        return 0;
    }
    pattern_fill_input(call, measure->rank, measure->size, view.input);
    return device_copy(measure->device, spot.input, view.input, view.input_bytes);
}

static int call_in_turns(struct measure *measure, const struct bench_command *command, int calls,
                         size_t *turn)
{
    size_t turns = turns_of(measure, command), stride = measure_stride(measure, &command->call);
    /* Between two calls nothing is computed that would count as the library's time. */
    struct spot first = spot_of(measure, &command->call, 0);

    for (int i = 0; i < calls; i++) {
        if (command->line_count ? step_run(measure, command, *turn)
                                : measure->library->run(measure->state, &command->call,
                                                        first.input + *turn * stride,
                                                        first.output + *turn * stride))
            return -1;
        *turn = *turn + 1 == turns ? 0 : *turn + 1;
    }
    return 0;
}

int measure_record(struct measure *measure, const struct bench_command *command, int calls,
                   size_t *turn)
{
    int failed = device_record_begin(measure->device);

    if (failed)
        return failed;
    failed = call_in_turns(measure, command, calls, turn);
    if (device_record_end(measure->device) || failed)
        return -1;
    return device_replay(measure->device) || device_wait(measure->device) ? -1 : 0;
}

static int time_batch(struct measure *measure, const struct bench_command *command, size_t *turn,
                      double *ret_seconds)
{
    int calls = command->batch_calls;
    int per_graph = calls < BENCH_GRAPH_CALLS ? calls : BENCH_GRAPH_CALLS;
    int launches = command->graph ? (calls + per_graph - 1) / per_graph : 0;
    int failed;
    double start;

    if ((command->rewrite &&
         write_input(measure, &command->call, *turn % turns_of(measure, command))) ||
        (command->graph && measure_record(measure, command, per_graph, turn)) ||
        measure_meet(measure))
        return -1;
    start = work_clock();
    failed = command->graph ? 0 : call_in_turns(measure, command, calls, turn);
    for (int i = 0; i < launches && !failed; i++)
        failed = device_replay(measure->device);
    if (!failed && command->call.queued)
        failed = device_wait(measure->device);
    *ret_seconds = (work_clock() - start) / (launches ? launches * per_graph : calls) /
                   (command->divisor > 1 ? command->divisor : 1);
    return failed ? -1 : 0;
}

static void time_batches(struct measure *measure, const struct bench_command *command,
                         struct bench_reply *reply)
{
    /* Where the last command stopped: the buffers before are in the caches still. */
    size_t turn = measure->turn % turns_of(measure, command);

    for (int i = 0; i < command->batches && reply->status == BENCH_OK; i++)
        if (time_batch(measure, command, &turn, &reply->seconds[i]))
            measure_fail(measure, reply, "a timed call");
    measure->turn = turn;
    if (reply->status == BENCH_OK && measure->library->ran &&
        bench_collective_has_algorithm(command->call.collective))
        snprintf(reply->ran, sizeof(reply->ran), "%s", measure->library->ran(measure->state));
}

void measure_run(struct measure *measure, const struct bench_command *command,
                 struct bench_reply *ret_reply)
{
    const char *lack = step_lacks(measure, command);

    *ret_reply =
        (struct bench_reply){.rank_bytes = -1, .communicator_bytes = -1, .predicted_us = -1};
    if (lack) {
        ret_reply->status = BENCH_UNAVAILABLE;
        snprintf(ret_reply->sentence, sizeof(ret_reply->sentence), "%s", lack);
        return;
    }
    if (allocate(measure, command)) {
        measure_fail(measure, ret_reply, "allocating the buffers");
        return;
    }
    if (command->check)
        check(measure, command, ret_reply);
    else
        time_batches(measure, command, ret_reply);
    /* In MPI a peer's last message may need a call of this rank, which now waits for commands. */
    if (ret_reply->status == BENCH_OK && measure_meet(measure))
        measure_fail(measure, ret_reply, "the barrier behind the calls");
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
