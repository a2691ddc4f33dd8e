/* SPDX-License-Identifier: BSD-3-Clause */
/* joint.c - all ranks together: which of their calls are one collective, from when to when. */
#include "cli/trace/trace.h"

#include <math.h>
#include <stdlib.h>

static int by_collective(const void *a, const void *b)
{
    const struct traced_joint *one = a, *other = b;

    if (one->comm != other->comm)
        return one->comm < other->comm ? -1 : 1;
    return one->number < other->number ? -1 : one->number > other->number;
}

uint32_t traced_joints(const struct traced *traced, struct traced_joint **ret_joints)
{
    struct traced_joint *joints = calloc((size_t)traced->call_count + 1, sizeof(*joints));
    uint32_t count = 0;

    for (uint32_t i = 0; i < traced->call_count && joints; i++) {
        const struct traced_call *call = &traced->calls[i];

        if (call->number)
            joints[count++] = (struct traced_joint){traced_comm(traced, call)->id, call->number, i};
    }
    if (joints)
        qsort(joints, count, sizeof(*joints), by_collective);
    *ret_joints = joints;
    return count;
}

uint32_t joint_end(const struct traced_joint *joints, uint32_t count, uint32_t first)
{
    uint32_t end = first + 1;

    while (end < count && !by_collective(&joints[first], &joints[end]))
        end++;
    return end;
}

void traced_moments(const struct traced *traced, double *ret_first, double *ret_last)
{
    *ret_first = INFINITY;
    *ret_last = -INFINITY;
    for (uint32_t i = 0; i < traced->call_count; i++) {
        *ret_first = fmin(*ret_first, traced->calls[i].begin);
        *ret_last = fmax(*ret_last, traced->calls[i].end);
    }
    for (uint32_t i = 0; i < traced->span_count; i++) {
        *ret_first = fmin(*ret_first, traced->spans[i].begin);
        *ret_last = fmax(*ret_last, traced->spans[i].end);
    }
    for (uint32_t i = 0; i < traced->message_count; i++) {
        *ret_first = fmin(*ret_first, traced->messages[i].begin);
        *ret_last = fmax(*ret_last, traced->messages[i].end);
    }
    for (uint32_t i = 0; i < traced->queued_count; i++) {
        *ret_first = fmin(*ret_first, traced->queued[i].queued);
        *ret_last = fmax(*ret_last, traced->queued[i].end);
    }
    if (*ret_first > *ret_last)
        *ret_first = *ret_last = 0;
}
