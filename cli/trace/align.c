/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * align.c - one clock for ranks of several machines, out of their calls alone.
 *
 * No rank leaves an all_reduce before every rank has begun it. So for each such call of ranks a and
 * b on two machines, with b's clock to be put forward by x,
 *
 *     end_b + x >= begin_a    and    end_a >= begin_b + x
 *
 * and many calls leave a narrow interval for x, of which the middle is taken. It is as narrow as
 * the shortest call in which the one and the other came last: some 10 us over TCP.
 */
#include "cli/trace/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool joins_all(const struct traced *traced, const struct traced_call *call)
{
    static const char *const names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                        "barrier"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && call->ended; i++)
        if (!strncmp(traced_name(traced, call), names[i], strlen(names[i])))
            return true;
    return false;
}

static uint64_t machine_of(const struct traced *traced, int file)
{
    return traced->files[file].page->header.machine;
}

struct interval {
    double least, most;
};

/* Returns by how much the clock of `machine` is to be put forward, as its calls together with those
 * of machines that are right say. */
static struct interval compare(const struct traced *traced, const struct traced_joint *joints,
                               uint32_t count, const bool *is_right, uint64_t machine)
{
    struct interval interval = {-INFINITY, INFINITY};

    for (uint32_t first = 0, end; first < count; first = end) {
        end = joint_end(joints, count, first);
        for (uint32_t i = first; i < end; i++)
            for (uint32_t j = first; j < end; j++) {
                const struct traced_call *a = &traced->calls[joints[i].call];
                const struct traced_call *b = &traced->calls[joints[j].call];
                double forward = traced->files[a->file].forward;

                if (!is_right[a->file] || machine_of(traced, b->file) != machine ||
                    !joins_all(traced, a) || !joins_all(traced, b))
                    continue;
                interval.least = fmax(interval.least, a->begin + forward - b->end);
                interval.most = fmin(interval.most, a->end + forward - b->begin);
            }
    }
    return interval;
}

static int count_machines(const struct traced *traced)
{
    int count = 0;

    for (int i = 0; i < traced->file_count; i++) {
        int first = 0;

        while (machine_of(traced, first) != machine_of(traced, i))
            first++;
        count += first == i;
    }
    return count;
}

static void put_forward(struct traced *traced, bool *is_right, uint64_t machine, double forward)
{
    for (int i = 0; i < traced->file_count; i++)
        if (machine_of(traced, i) == machine) {
            traced->files[i].forward = forward;
            is_right[i] = true;
        }
}

/* Clocks that run at different speeds leave an interval that is less than empty; the middle is
 * still the best guess. */
static bool align_next(struct traced *traced, const struct traced_joint *joints, uint32_t count,
                       bool *is_right)
{
    for (int i = 0; i < traced->file_count; i++) {
        struct interval interval;

        if (is_right[i])
            continue;
        interval = compare(traced, joints, count, is_right, machine_of(traced, i));
        if (isinf(interval.least))
            continue;
        put_forward(traced, is_right, machine_of(traced, i), (interval.least + interval.most) / 2);
        traced->within = fmax(traced->within, fabs(interval.most - interval.least) / 2);
        return true;
    }
    return false;
}

static void apply(struct traced *traced)
{
    for (uint32_t i = 0; i < traced->step_count; i++) {
        double forward = traced->files[traced->calls[traced->steps[i].call].file].forward;

        traced->steps[i].begin += forward;
        traced->steps[i].end += forward;
    }
    for (uint32_t i = 0; i < traced->span_count; i++) {
        traced->spans[i].begin += traced->files[traced->spans[i].file].forward;
        traced->spans[i].end += traced->files[traced->spans[i].file].forward;
    }
    for (uint32_t i = 0; i < traced->message_count; i++) {
        traced->messages[i].begin += traced->files[traced->messages[i].file].forward;
        traced->messages[i].end += traced->files[traced->messages[i].file].forward;
    }
    for (uint32_t i = 0; i < traced->queued_count; i++) {
        struct traced_queued *queued = &traced->queued[i];

        queued->queued += traced->files[queued->file].forward;
        queued->begin += traced->files[queued->file].forward;
        queued->end += traced->files[queued->file].forward;
    }
    for (uint32_t i = 0; i < traced->call_count; i++) {
        traced->calls[i].begin += traced->files[traced->calls[i].file].forward;
        traced->calls[i].end += traced->files[traced->calls[i].file].forward;
    }
}

bool traced_align(struct traced *traced)
{
    bool *is_right = calloc((size_t)traced->file_count, sizeof(*is_right)), good = true;
    struct traced_joint *joints;
    uint32_t count = traced_joints(traced, &joints);

    if (!is_right || !joints) {
        free(is_right);
        free(joints);
        fprintf(stderr, "rondo trace: not enough memory for the trace\n");
        return false;
    }
    put_forward(traced, is_right, machine_of(traced, 0), 0);
    traced->machines = count_machines(traced);
    while (align_next(traced, joints, count, is_right))
        ;
    for (int i = 0; i < traced->file_count; i++)
        if (!is_right[i] && traced->files[i].page->header.room) {
            fprintf(stderr,
                    "rondo trace: %s: no call joins its rank with those of other machines, so its "
                    "clock cannot be compared with theirs\n",
                    traced->files[i].path);
            good = false;
        }
    apply(traced);
    traced_prolong_messages(traced);
    traced_prolong_queued(traced);
    free(is_right);
    free(joints);
    return good;
}
