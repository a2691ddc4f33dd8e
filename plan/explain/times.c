/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * times.c - always runs the step that can begin first, of all programs of all ranks.
 *
 * So a step never begins before one that was run earlier, and a rank is busy with one move at a
 * time, in the order in which a thread would find them ready.
 */
#include "plan/explain/times.h"

#include "base/fail.h"

#include <math.h>
#include <stdlib.h>

/* A rank's times of messages, in the order of their numbers. */
struct stamps {
    double *at;
    uint32_t count, room;
};

struct line {
    struct stamps sent, freed;
    uint32_t acquired, awaited; /* waits that are over, of the sender and of the receiver */
    double filled;              /* bytes of the message that is being made */
};

struct runner {
    int plan, program;
    uint32_t at;
    double time;
};

struct clockwork {
    struct plan *const *plans;
    int size, ranks;
    const struct explain_costs *costs;
    struct explain_times *times;
    struct line *lines; /* [from][to][channel] */
    double *busy;       /* [plan]: until when it moves data */
    double *rails;      /* [group][rail]: until when it carries data */
    struct runner *runners;
    int count;
};

static struct line *line_of(const struct clockwork *clockwork, int from, int to, int channel)
{
    return &clockwork
                ->lines[((size_t)from * (size_t)clockwork->ranks + (size_t)to) * PLAN_CHANNELS +
                        (size_t)channel];
}

static bool stamp(struct stamps *stamps, double time)
{
    if (stamps->count == stamps->room) {
        uint32_t room = stamps->room ? 2 * stamps->room : 8;
        double *moved = realloc(stamps->at, room * sizeof(*moved));

        if (!moved)
            return false;
        stamps->at = moved;
        stamps->room = room;
    }
    stamps->at[stamps->count++] = time;
    return true;
}

static const struct plan_step *step_of(const struct clockwork *clockwork,
                                       const struct runner *runner)
{
    return &clockwork->plans[runner->plan]->steps[runner->at];
}

static struct line *own_line(const struct clockwork *clockwork, const struct runner *runner)
{
    const struct plan_step *step = step_of(clockwork, runner);
    int own = clockwork->plans[runner->plan]->rank;
    bool sends = (step->verb == PLAN_SIGNAL) == (step->event == PLAN_DATA);

    return sends ? line_of(clockwork, own, step->peer, step->channel)
                 : line_of(clockwork, step->peer, own, step->channel);
}

/* Finds when the runner's wait would be over; HUGE_VAL: nothing so far ends it. */
static double wait_end(const struct clockwork *clockwork, const struct runner *runner)
{
    const struct line *line = own_line(clockwork, runner);
    uint32_t slots = (uint32_t)clockwork->costs->slots;

    if (step_of(clockwork, runner)->event == PLAN_DATA)
        return line->awaited < line->sent.count ? line->sent.at[line->awaited] : HUGE_VAL;
    if (step_of(clockwork, runner)->flags & PLAN_SETTLED)
        return line->freed.count < line->sent.count ? HUGE_VAL
               : line->freed.count                  ? line->freed.at[line->freed.count - 1]
                                                    : 0;
    if (line->acquired < slots)
        return 0;
    return line->acquired - slots < line->freed.count ? line->freed.at[line->acquired - slots]
                                                      : HUGE_VAL;
}

/* Finds when its next step could be over if it is a wait, and when it could begin if not. */
static double ready(const struct clockwork *clockwork, const struct runner *runner)
{
    const struct plan_step *step = step_of(clockwork, runner);

    if (step->verb == PLAN_WAIT)
        return fmax(runner->time, wait_end(clockwork, runner));
    if (step->verb == PLAN_SIGNAL)
        return runner->time;
    return fmax(runner->time, clockwork->busy[runner->plan]);
}

static double seconds_of(const struct clockwork *clockwork, const struct plan *plan,
                         const struct plan_step *step)
{
    const struct explain_costs *costs = clockwork->costs;
    double bytes = costs->bytes * step->atoms / plan->parts;
    double more = bytes / 2 * (step->destinations - 1) / costs->copy_bw;

    if (step->verb == PLAN_REDUCE)
        return bytes * step->sources / costs->reduce_bw + more;
    return bytes / costs->copy_bw + more;
}

static void fill(const struct clockwork *clockwork, const struct plan *plan,
                 const struct plan_step *step)
{
    const struct plan_operand *destinations = plan_destinations(plan, step);

    for (int d = 0; d < step->destinations; d++)
        if (destinations[d].buffer == PLAN_SLOT)
            line_of(clockwork, plan->rank, destinations[d].rank, destinations[d].channel)->filled +=
                clockwork->costs->bytes * step->atoms / plan->parts;
}

/* Sends what the line was filled with, or gives a slot back. Returns when that has arrived. */
static double deliver(struct clockwork *clockwork, const struct plan_step *step, int own,
                      struct line *line, double begin)
{
    const struct explain_across *across = &clockwork->costs->across;
    bool far = across->group_of && across->group_of[own] != across->group_of[step->peer];
    double *rail;

    if (step->event != PLAN_DATA)
        return far ? begin + across->latency : begin;
    if (!far)
        return begin + clockwork->costs->latency;
    rail = &clockwork->rails[(size_t)across->group_of[own] * (size_t)clockwork->ranks +
                             (size_t)(across->index_of[own] % across->rails)];
    *rail = fmax(*rail, begin) + line->filled / across->bandwidth;
    line->filled = 0;
    return *rail + across->latency;
}

static bool run_step(struct clockwork *clockwork, struct runner *runner, double begin)
{
    const struct plan *plan = clockwork->plans[runner->plan];
    const struct plan_step *step = step_of(clockwork, runner);
    struct explain_span *span = &clockwork->times->spans[runner->plan][runner->at];
    bool good = false;

    *span = (struct explain_span){begin, begin};
    if (step->verb == PLAN_WAIT) {
        struct line *line = own_line(clockwork, runner);

        span->start = runner->time;
        if (!(step->flags & PLAN_SETTLED))
            ++*(step->event == PLAN_DATA ? &line->awaited : &line->acquired);
    } else if (step->verb == PLAN_SIGNAL) {
        struct line *line = own_line(clockwork, runner);

        span->end = deliver(clockwork, step, plan->rank, line, begin);
        good = stamp(step->event == PLAN_DATA ? &line->sent : &line->freed, span->end);
    } else {
        fill(clockwork, plan, step);
        span->end += seconds_of(clockwork, plan, step);
        clockwork->busy[runner->plan] = span->end;
    }
    runner->at++;
    if (step->verb == PLAN_SIGNAL)
        return good; /* it takes none of the rank's time */
    runner->time = span->end;
    clockwork->times->end = fmax(clockwork->times->end, span->end);
    return true;
}

/* True when all are through; plans that stop half way are not right. */
static bool run(struct clockwork *clockwork)
{
    for (;;) {
        struct runner *first = NULL;
        double least = HUGE_VAL;

        for (int i = 0; i < clockwork->count; i++) {
            struct runner *runner = &clockwork->runners[i];
            const struct plan *plan = clockwork->plans[runner->plan];
            double begin = HUGE_VAL;

            if (runner->at < plan->program[runner->program].end)
                begin = ready(clockwork, runner);
            if (begin < least) {
                least = begin;
                first = runner;
            }
        }
        if (!first)
            return true;
        if (!run_step(clockwork, first, least))
            return false;
    }
}

static bool open_clockwork(struct clockwork *clockwork)
{
    size_t size = (size_t)clockwork->size, ranks = 1;

    for (int i = 0; i < clockwork->size; i++)
        if (clockwork->plans[i])
            ranks = (size_t)clockwork->plans[i]->size;
    ranks = ranks > size ? ranks : size;
    clockwork->ranks = (int)ranks;
    clockwork->lines = calloc(ranks * ranks * PLAN_CHANNELS, sizeof(*clockwork->lines));
    clockwork->busy = calloc(size, sizeof(*clockwork->busy));
    clockwork->rails = calloc(ranks * ranks, sizeof(*clockwork->rails));
    clockwork->runners = calloc(size * PLAN_PROGRAMS_MAX, sizeof(*clockwork->runners));
    clockwork->times->spans = calloc(size, sizeof(*clockwork->times->spans));
    if (!clockwork->lines || !clockwork->busy || !clockwork->rails || !clockwork->runners ||
        !clockwork->times->spans)
        return false;
    for (int i = 0; i < clockwork->size; i++) {
        const struct plan *plan = clockwork->plans[i];

        if (!plan)
            continue;
        clockwork->times->spans[i] =
            calloc((size_t)plan->step_count + 1, sizeof(struct explain_span));
        if (!clockwork->times->spans[i])
            return false;
        for (int p = 0; p < plan->programs; p++)
            clockwork->runners[clockwork->count++] =
                (struct runner){.plan = i, .program = p, .at = plan->program[p].begin};
    }
    return true;
}

static void close_clockwork(struct clockwork *clockwork)
{
    size_t ranks = (size_t)clockwork->ranks;

    for (size_t i = 0; clockwork->lines && i < ranks * ranks * PLAN_CHANNELS; i++) {
        free(clockwork->lines[i].sent.at);
        free(clockwork->lines[i].freed.at);
    }
    free(clockwork->lines);
    free(clockwork->busy);
    free(clockwork->rails);
    free(clockwork->runners);
}

rondo_result explain_times_open(struct plan *const *plans, int size,
                                const struct explain_costs *costs, struct explain_times *ret_times)
{
    struct explain_times times = {.size = size};
    struct clockwork clockwork = {.plans = plans, .size = size, .costs = costs, .times = &times};
    bool good = open_clockwork(&clockwork) && run(&clockwork);

    close_clockwork(&clockwork);
    if (!good) {
        explain_times_close(&times);
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the times of %d ranks.", size);
    }
    *ret_times = times;
    return RONDO_OK;
}

void explain_times_close(struct explain_times *times)
{
    for (int i = 0; times->spans && i < times->size; i++)
        free(times->spans[i]);
    free(times->spans);
    times->spans = NULL;
}
