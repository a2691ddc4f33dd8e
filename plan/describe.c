/* SPDX-License-Identifier: BSD-3-Clause */
/* describe.c - plans in words, and the shape of the user's buffers per collective. */
#include "plan/plan.h"

#include <stdarg.h>
#include <stdio.h>

int plan_input_blocks(rondo_collective collective, int size, int rank, int root)
{
    switch (collective) {
    case RONDO_ALL_REDUCE:
    case RONDO_REDUCE:
    case RONDO_ALL_GATHER:
    case RONDO_GATHER:
    case RONDO_SEND:
        return 1;
    case RONDO_BROADCAST:
        return rank == root;
    case RONDO_REDUCE_SCATTER:
    case RONDO_ALL_TO_ALL:
        return size;
    case RONDO_SCATTER:
        return rank == root ? size : 0;
    case RONDO_BARRIER:
    case RONDO_RECV:
    case RONDO_COLLECTIVES:
        break;
    }
    return 0;
}

int plan_output_blocks(rondo_collective collective, int size, int rank, int root)
{
    switch (collective) {
    case RONDO_ALL_REDUCE:
    case RONDO_BROADCAST:
    case RONDO_REDUCE_SCATTER:
    case RONDO_SCATTER:
    case RONDO_RECV:
        return 1;
    case RONDO_REDUCE:
        return rank == root;
    case RONDO_ALL_GATHER:
    case RONDO_ALL_TO_ALL:
        return size;
    case RONDO_GATHER:
        return rank == root ? size : 0;
    case RONDO_BARRIER:
    case RONDO_SEND:
    case RONDO_COLLECTIVES:
        break;
    }
    return 0;
}

struct text {
    char *to;
    size_t room; /* what is left, with the final 0 */
};

static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text->to, text->room, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    if ((size_t)length >= text->room)
        length = text->room ? (int)text->room - 1 : 0;
    text->to += length;
    text->room -= (size_t)length;
}

static void add_operand(struct text *text, const struct plan *plan, const struct plan_operand *at,
                        uint32_t atoms)
{
    static const char *const names[] = {"input", "output", "scratch"};

    if (at->buffer == PLAN_SLOT) {
        add(text, "slot(%d)", at->rank);
        return;
    }
    if (at->rank != plan->rank)
        add(text, "rank %d's ", at->rank);
    add(text, "%s[%u", names[at->buffer], at->block);
    if (plan->parts > 1 && atoms > 1)
        add(text, ": %u..%u of %u", at->first, at->first + atoms - 1, plan->parts);
    else if (plan->parts > 1)
        add(text, ": %u of %u", at->first, plan->parts);
    add(text, "]");
}

static void add_list(struct text *text, const struct plan *plan, const struct plan_step *step,
                     bool sources)
{
    const struct plan_operand *list =
        sources ? plan_sources(plan, step) : plan_destinations(plan, step);
    int count = sources ? step->sources : step->destinations;

    for (int i = 0; i < count; i++) {
        if (i > 0)
            add(text, sources ? " + " : ", ");
        if (i == 8 && count > 10) {
            add(text, "... (%d in all)", count);
            break;
        }
        add_operand(text, plan, &list[i], step->atoms);
    }
}

void plan_describe_step(const struct plan *plan, const struct plan_step *step, char *text,
                        size_t size)
{
    struct text out = {text, size};
    const char *addresses = step->flags & PLAN_ADDRESSES ? " that says where its buffers are" : "";

    if (size)
        text[0] = 0;
    switch ((enum plan_verb)step->verb) {
    case PLAN_COPY:
    case PLAN_REDUCE:
        add(&out, step->verb == PLAN_COPY ? "copy " : "reduce ");
        add_list(&out, plan, step, true);
        add(&out, " -> ");
        add_list(&out, plan, step, false);
        if (step->flags & PLAN_FINISH)
            add(&out, " (complete)");
        break;
    case PLAN_SIGNAL:
        if (step->event == PLAN_DATA)
            add(&out, "signal rank %d on lane %u: a message%s", step->peer, step->channel,
                addresses);
        else
            add(&out, "give the slot back to rank %d on lane %u", step->peer, step->channel);
        break;
    case PLAN_WAIT:
        if (step->event == PLAN_DATA)
            add(&out, "wait for a message from rank %d on lane %u%s", step->peer, step->channel,
                addresses);
        else if (step->flags & PLAN_SETTLED)
            add(&out, "wait until rank %d has given back all slots on lane %u", step->peer,
                step->channel);
        else
            add(&out, "wait for a free slot to rank %d on lane %u", step->peer, step->channel);
        break;
    }
}
