/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measure.c - allocate, check, time.
 *
 * Each buffer stands between two guard zones in its area; an area holds as many such places as fit,
 * and calls walk through them when caches are to be cold. A batch begins with a barrier of the same
 * library; its clock is read once before and once after all of its calls.
 */
#include "bench/measure.h"

#include "bench/pattern.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { INPUT, OUTPUT, GUARD = 64, GUARD_BYTE = 0xa5, PAGE = 4096 };

/* Where the buffers of one call are. */
struct spot {
    unsigned char *input, *output;
    size_t input_bytes, output_bytes;
};

static void fail(struct measure *measure, struct bench_reply *reply, const char *doing)
{
    reply->status = BENCH_FAILED;
    snprintf(reply->sentence, sizeof(reply->sentence), "%s: %s", doing,
             measure->library->error(measure->state));
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

static int allocate(struct measure *measure, const struct bench_command *command)
{
    size_t need = stride_of(command->buffer_bytes);

    if (need < stride_of(PAGE))
        need = stride_of(PAGE);
    if (need < command->rotate_bytes)
        need = round_up(command->rotate_bytes, PAGE);
    if (measure->area_bytes >= need && measure->shared == command->shared)
        return 0;
    measure_done(measure);
    measure->shared = command->shared;
    for (int i = INPUT; i <= OUTPUT; i++) {
        measure->areas[i] = measure->library->alloc(measure->state, need, command->shared);
        if (!measure->areas[i])
            return -1;
    }
    measure->area_bytes = need;
    return 0;
}

static struct spot spot_of(const struct measure *measure, const struct bench_call *call,
                           size_t turn)
{
    size_t element = pattern_type_bytes(call->type);
    size_t input = bench_input_elements(call, measure->size) * element;
    size_t output = bench_output_elements(call, measure->size) * element;
    size_t larger = input > output ? input : output;
    size_t offset = turn * stride_of(larger) + lead_of(larger);
    struct spot spot = {measure->areas[INPUT] + offset, measure->areas[OUTPUT] + offset, input,
                        output};

    if (call->in_place) {
        size_t shift = bench_in_place_offset(call, measure->rank) * element;

        spot.input = spot.output + (output > input ? shift : 0);
        spot.output += input > output ? shift : 0;
    }
    return spot;
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

static void barrier_call(struct bench_call *ret_call)
{
    memset(ret_call, 0, sizeof(*ret_call));
    ret_call->collective = BENCH_BARRIER;
    ret_call->type = RONDO_UINT8;
}

static void check(struct measure *measure, const struct bench_call *call, struct bench_reply *reply)
{
    struct spot spot = spot_of(measure, call, 0);
    bool long_input = spot.input_bytes > spot.output_bytes;
    unsigned char *longer = long_input ? spot.input : spot.output;
    size_t longer_bytes = long_input ? spot.input_bytes : spot.output_bytes;

    if (!call->in_place) {
        memset(spot.output, GUARD_BYTE, spot.output_bytes);
        guard_set(spot.input, spot.input_bytes);
        guard_set(spot.output, spot.output_bytes);
    } else {
        memset(longer, GUARD_BYTE, longer_bytes);
        guard_set(longer, longer_bytes);
    }
    pattern_fill_input(call, measure->rank, measure->size, spot.input);
    if (measure->library->run(measure->state, call, spot.input, spot.output)) {
        fail(measure, reply, "the checked call");
        return;
    }
    reply->wrong = pattern_count_wrong(call, measure->rank, measure->size, spot.output);
    if (!call->in_place)
        reply->wrong += !guard_is_whole(spot.input, spot.input_bytes) +
                        !guard_is_whole(spot.output, spot.output_bytes);
    else
        reply->wrong += !guard_is_whole(longer, longer_bytes);
}

static int time_batch(struct measure *measure, const struct bench_command *command, size_t *turn,
                      double *ret_seconds)
{
    size_t turns = turns_of(measure, command);
    struct bench_call barrier;
    double start;

    if (command->rewrite) /* all batches have one call then */
        pattern_fill_input(&command->call, measure->rank, measure->size,
                           spot_of(measure, &command->call, *turn % turns).input);
    barrier_call(&barrier);
    if (measure->library->run(measure->state, &barrier, NULL, NULL))
        return -1;
    start = clock_seconds();
    for (int i = 0; i < command->batch_calls; i++) {
        struct spot spot = spot_of(measure, &command->call, (*turn)++ % turns);

        if (measure->library->run(measure->state, &command->call, spot.input, spot.output))
            return -1;
    }
    *ret_seconds = (clock_seconds() - start) / command->batch_calls;
    return 0;
}

void measure_run(struct measure *measure, const struct bench_command *command,
                 struct bench_reply *ret_reply)
{
    const char *lack = measure->library->lacks(measure->state, &command->call);
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
        if (measure->areas[i])
            measure->library->free(measure->state, measure->areas[i], measure->shared);
        measure->areas[i] = NULL;
    }
    measure->area_bytes = 0;
}
