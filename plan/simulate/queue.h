/* SPDX-License-Identifier: BSD-3-Clause */
/* queue.h - events in the order of their times; of equal ones, the first that came goes first. */
#ifndef RONDO_PLAN_SIMULATE_QUEUE_H
#define RONDO_PLAN_SIMULATE_QUEUE_H

#include "plan/simulate/list.h"

enum event_kind { EVENT_RESUME, EVENT_TIMER, EVENT_FLOW };

struct event {
    double time;
    uint64_t number; /* of its coming; the kind is in its last two bits */
    int32_t index;   /* a track or a flow */
    uint32_t version;
};

struct queue {
    struct event *events; /* a heap with four children each */
    uint32_t count, room;
    uint64_t number;
};

static inline bool event_before(const struct event *a, const struct event *b)
{
    return a->time < b->time || (a->time <= b->time && a->number < b->number);
}

static inline bool queue_push(struct queue *queue, double time, enum event_kind kind, int32_t index,
                              uint32_t version)
{
    struct event event = {time, queue->number++ << 2 | kind, index, version};
    uint32_t at = queue->count;

    if (!list_grow((void **)&queue->events, &queue->room, queue->count + 1, sizeof(event)))
        return false;
    queue->count++;
    while (at && event_before(&event, &queue->events[(at - 1) / 4])) {
        queue->events[at] = queue->events[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    queue->events[at] = event;
    return true;
}

/* Takes the first event of a queue that has some. */
static inline struct event queue_pop(struct queue *queue)
{
    struct event first = queue->events[0], last = queue->events[--queue->count];
    uint32_t at = 0;

    for (;;) {
        uint32_t child = 4 * at + 1, least = child;

        if (child >= queue->count)
            break;
        for (uint32_t i = child + 1; i < child + 4 && i < queue->count; i++)
            if (event_before(&queue->events[i], &queue->events[least]))
                least = i;
        if (!event_before(&queue->events[least], &last))
            break;
        queue->events[at] = queue->events[least];
        at = least;
    }
    queue->events[at] = last;
    return first;
}

#endif
